// SPDX-License-Identifier: GPL-2.0

#include <linux/uaccess.h>

int rust_helper_put_user_u32(u32 value, u32 __user *to)
{
	return put_user(value, to);
}
