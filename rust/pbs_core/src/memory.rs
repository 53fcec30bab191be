// SPDX-License-Identifier: GPL-2.0

//! Memory of plans and nodes.
//!
//! The kernel and a user-space program allocate differently.  All allocation happens when a plan or
//! a node is constructed, in process context and outside every lock; afterwards nothing grows.

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
