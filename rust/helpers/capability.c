// SPDX-License-Identifier: GPL-2.0

#include <linux/capability.h>

/* Without CONFIG_MULTIUSER this is an inline function. */
bool rust_helper_capable(int cap)
{
	return capable(cap);
}
