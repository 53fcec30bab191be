// SPDX-License-Identifier: GPL-2.0

//! Where plans and nodes get their memory.
//!
//! The kernel and a user-space program allocate differently.  All allocation
//! happens when a plan or a node is constructed, in process context and
//! outside every lock; afterwards nothing grows.

use core::cmp::Ordering;
use core::ops::DerefMut;

use super::input::Tap;

/// An allocator of slices of fixed length.
pub trait Memory {
    /// An owned slice.
    type Slice<T: Copy>: DerefMut<Target = [T]>;

    /// Where nodes note what they are told; `()` for those who do not record.
    type Tap: Tap;

    /// Allocates a slice of `len` elements, each of them `fill`.
    fn alloc<T: Copy>(len: usize, fill: T) -> Result<Self::Slice<T>, NoMemory>;

    /// Called every so often while a plan is read and built, which may take
    /// long.  An error ends that.
    fn pause() -> Result<(), Interrupted> {
        Ok(())
    }
}

/// After how many records there is a [`Memory::pause`]: a power of two.
pub(super) const PAUSE_EVERY: usize = 4096;

/// Pauses at some of the records.
pub(super) fn pause<M: Memory>(number: u32) -> Result<(), Interrupted> {
    if number as usize & (PAUSE_EVERY - 1) == 0 {
        M::pause()
    } else {
        Ok(())
    }
}

/// Nobody waits for the plan any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// The memory for a plan or a node could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Sorts, pausing every so often.  It can't be ended half way.
pub(super) fn sort<M: Memory, T>(slice: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut compared = 0_usize;
    slice.sort_unstable_by(|one, other| {
        compared += 1;
        if compared & (PAUSE_EVERY - 1) == 0 {
            let _ = M::pause();
        }
        compare(one, other)
    });
}
