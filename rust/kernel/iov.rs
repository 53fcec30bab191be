// SPDX-License-Identifier: GPL-2.0

//! User memory for a write to a file or a read from it: in one piece, as with `read(2)` and
//! `write(2)`, or in several, as with `readv(2)` and `writev(2)`.
//!
//! C header: [`include/linux/uio.h`](srctree/include/linux/uio.h)

use crate::{bindings, ffi::c_void, prelude::*, types::AsBytes};
use core::marker::PhantomData;

/// Source of a write to a file.
pub type IovIterSource<'a> = IovIter<'a, Source>;

/// Destination of a read from a file.
pub type IovIterDest<'a> = IovIter<'a, Dest>;

/// Bytes come from it.
pub struct Source;

/// Bytes go to it.
pub struct Dest;

/// The memory that a call on a file is about, which shrinks from its begin as it is used.
///
/// # Invariants
///
/// `iter` is what C code handed to the file's function, which has not returned yet.
pub struct IovIter<'a, Direction> {
    iter: *mut bindings::iov_iter,
    _iter: PhantomData<(&'a mut bindings::iov_iter, Direction)>,
}

impl<Direction> IovIter<'_, Direction> {
    /// Wraps the argument of a file's `write_iter` or `read_iter` function.
    ///
    /// # Safety
    ///
    /// `iter` must be that argument, of the function that fits the direction, and the new value be
    /// gone before that function returns. No other may be made of it.
    pub(crate) unsafe fn from_raw(iter: *mut bindings::iov_iter) -> Self {
        // INVARIANT: By the function's requirements.
        Self {
            iter,
            _iter: PhantomData,
        }
    }

    /// Number of bytes left.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        // SAFETY: By the type invariant.
        unsafe { bindings::iov_iter_count(self.iter) }
    }
}

impl IovIterSource<'_> {
    /// Fills `to` with the bytes that follow. Sleeps. Fails with [`EFAULT`] if they can't be read.
    pub fn read_slice(&mut self, to: &mut [u8]) -> Result {
        // SAFETY: By the type invariant, and `to` has room for so many bytes.
        let copied = unsafe {
            bindings::copy_from_iter(to.as_mut_ptr().cast::<c_void>(), to.len(), self.iter)
        };
        if copied == to.len() {
            Ok(())
        } else {
            Err(EFAULT)
        }
    }
}

impl IovIterDest<'_> {
    /// Writes all of `value`, or nothing if some of the memory is not there at this moment: see
    /// [`IovIterDest::fault_in`]. Returns whether it was written. Does not sleep:
    /// therefore a lock may be held that others wait for.
    pub fn write_nofault<T: AsBytes>(&mut self, value: &T) -> bool {
        let from = core::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: By the type invariant, and `value` is of so many bytes.
        unsafe { bindings::copy_to_iter_nofault(from, core::mem::size_of::<T>(), self.iter) }
    }

    /// Sees to it that the next `bytes` bytes are there, if that can be. Sleeps, possibly for long:
    /// the memory may be anybody's. Fails with [`EFAULT`] if some can't be written to.
    pub fn fault_in(&mut self, bytes: usize) -> Result {
        // SAFETY: By the type invariant.
        match unsafe { bindings::fault_in_iov_iter_writeable(self.iter, bytes) } {
            0 => Ok(()),
            _ => Err(EFAULT),
        }
    }
}
