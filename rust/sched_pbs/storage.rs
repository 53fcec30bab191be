// SPDX-License-Identifier: GPL-2.0

//! Memory for tables that may be too large for `kmalloc`.

use super::pbs_core::{Memory, NoMemory};
use kernel::{alloc::KVVec, prelude::*};

/// A table of `len` entries.
pub(crate) fn table<T>(len: usize, mut entry: impl FnMut() -> T) -> Result<KVVec<T>> {
    let mut vec = KVVec::with_capacity(len, GFP_KERNEL)?;
    for _ in 0..len {
        vec.push(entry(), GFP_KERNEL)?;
    }
    Ok(vec)
}

/// The memory of [`pbs_core`](super::pbs_core) in the kernel; it asks for it in process context
/// only, when a plan is built.
pub(crate) struct KernelMemory;

impl Memory for KernelMemory {
    type Slice<T: Copy> = KVVec<T>;

    fn alloc<T: Copy>(len: usize, fill: T) -> Result<KVVec<T>, NoMemory> {
        let mut vec = KVVec::with_capacity(len, GFP_KERNEL).map_err(|_| NoMemory)?;
        vec.extend_with(len, fill, GFP_KERNEL)
            .map_err(|_| NoMemory)?;
        Ok(vec)
    }
}
