// SPDX-License-Identifier: GPL-2.0

#include <linux/mutex.h>

/* A macro when locks are watched. */
int rust_helper_mutex_lock_killable(struct mutex *lock)
{
	return mutex_lock_killable(lock);
}
