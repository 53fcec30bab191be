// SPDX-License-Identifier: GPL-2.0

//! Single numbers to user space.
//!
//! A [`UserSlice`](crate::uaccess::UserSlice) is for any length, and copies by a loop; this is for
//! the answer of a call that is made often.
//!
//! C header: [`include/linux/uaccess.h`](srctree/include/linux/uaccess.h)

use crate::{bindings, error::to_result, prelude::*};

/// Writes `value` to the address `to` of the current task. Fails with [`EFAULT`] if it can't be
/// written to. May sleep.
///
/// # Examples
///
/// ```
/// use kernel::uaccess_ext::put_user_u32;
///
/// assert_eq!(put_user_u32(1, usize::MAX - 3), Err(EFAULT));
/// ```
#[inline]
pub fn put_user_u32(value: u32, to: usize) -> Result {
    // SAFETY: C code checks the address.
    to_result(unsafe { bindings::put_user_u32(value, to as *mut u32) })
}
