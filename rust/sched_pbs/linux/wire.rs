// SPDX-License-Identifier: GPL-2.0

//! The records of `include/uapi/linux/pbs.h`, to and from user space.

use kernel::{
    bindings,
    prelude::*,
    types::{AsBytes, FromBytes},
    uaccess::UserSlice,
};

/// A C structure of integers, of which every bit pattern is valid and which has no padding.
///
/// # Safety
///
/// The type is such a structure.
pub(crate) unsafe trait Record: Sized {}

// SAFETY: The header promises this for all its records, and is compiled with warnings for padding.
unsafe impl Record for bindings::pbs_event {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_attach {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_task_end {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_info {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_error {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_get_plan {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_configure {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_process {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_inputs_info {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_kept_plan {}
// SAFETY: As above.
unsafe impl Record for bindings::pbs_snapshot {}
// SAFETY: The type has the fields of `pbs_input`, in the same places: see rings/inputs.rs.
unsafe impl Record for crate::pbs_core::Input {}
// SAFETY: An integer.
unsafe impl Record for u32 {}
// SAFETY: An integer.
unsafe impl Record for i32 {}
// SAFETY: An integer.
unsafe impl Record for u64 {}

/// A [`Record`] as plain bytes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Wire<T>(pub(crate) T);

// SAFETY: By the contract of `Record`.
unsafe impl<T: Record> AsBytes for Wire<T> {}
// SAFETY: By the contract of `Record`.
unsafe impl<T: Record> FromBytes for Wire<T> {}

/// Reads a record from the user address that an ioctl got as its argument.
pub(crate) fn get<T: Record>(arg: usize) -> Result<T> {
    let mut user = UserSlice::new(arg as _, core::mem::size_of::<T>()).reader();
    Ok(user.read::<Wire<T>>()?.0)
}

/// Writes a record to the user address that an ioctl got as its argument.
pub(crate) fn put<T: Record>(arg: usize, record: T) -> Result {
    UserSlice::new(arg as _, core::mem::size_of::<T>())
        .writer()
        .write(&Wire(record))
}
