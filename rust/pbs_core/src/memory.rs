// SPDX-License-Identifier: GPL-2.0

//! Memory of plans and nodes.
//!
//! The kernel and a user-space program allocate differently.  All allocation happens when a plan or
//! a node is constructed, in process context and outside every lock; afterwards nothing grows.

use core::cmp::Ordering;
use core::ops::DerefMut;

use super::input::Tap;

/// An allocator of slices of fixed length.
pub trait Memory {
    /// An owned slice.
    type Slice<T: Copy>: DerefMut<Target = [T]>;

    /// Receiver of the inputs of nodes; `()` if they are not recorded.
    type Tap: Tap;

    /// Allocates a slice of `len` elements, each of them `fill`.
    fn alloc<T: Copy>(len: usize, fill: T) -> Result<Self::Slice<T>, NoMemory>;

    /// Called at intervals while a plan is read and built, which may take long.  An error aborts
    /// that.
    fn pause() -> Result<(), Interrupted> {
        Ok(())
    }
}

/// Number of records between two calls of [`Memory::pause`]: a power of two.
pub(super) const PAUSE_EVERY: usize = 4096;

/// Pauses at some of the records.
pub(super) fn pause<M: Memory>(number: u32) -> Result<(), Interrupted> {
    if number as usize & (PAUSE_EVERY - 1) == 0 {
        M::pause()
    } else {
        Ok(())
    }
}

/// Interruption: the caller no longer waits for the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Lack of memory for a plan or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Sorts, pausing at intervals.  Cannot be aborted half way.
pub(super) fn sort<M: Memory, T>(slice: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut compared = 0_usize;
    slice.sort_unstable_by(|one, other| {
        compared += 1;
        if compared & (PAUSE_EVERY - 1) == 0 {
            // Sorting cannot stop half way; the next pause of the caller aborts.
            let _ = M::pause();
        }
        compare(one, other)
    });
}
