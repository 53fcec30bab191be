// SPDX-License-Identifier: GPL-2.0

#include <linux/hrtimer.h>

bool rust_helper_hrtimer_is_queued(struct hrtimer *timer)
{
	return hrtimer_is_queued(timer);
}
