// SPDX-License-Identifier: GPL-2.0

//! Memory for tables that may be too large for `kmalloc`.

use crate::{
    pbs_core::{Interrupted, Memory, NoMemory},
    user::inputs::Tap,
};
use kernel::{
    alloc::{Flags, KVVec},
    prelude::*,
    task_ext::give_way,
};

/// What a plan or an open file needs is charged to the memory of who wants it. The rings of events
/// are not, which belong to the machine.
pub(crate) const CHARGED: Flags = GFP_KERNEL_ACCOUNT;

/// How much is filled in one go.
const PIECE: usize = 1 << 16;

/// A table of `len` entries.
pub(crate) fn table<T>(len: usize, mut entry: impl FnMut() -> T) -> Result<KVVec<T>> {
    let mut vec = KVVec::with_capacity(len, CHARGED)?;
    for _ in 0..len {
        vec.push(entry(), CHARGED)?;
    }
    Ok(vec)
}

/// The memory of [`pbs_core`](crate::pbs_core) in the kernel; it asks for it in process context
/// only, when a plan is built.
pub(crate) struct KernelMemory;

impl Memory for KernelMemory {
    type Slice<T: Copy> = KVVec<T>;
    type Tap = Tap;

    fn alloc<T: Copy>(len: usize, fill: T) -> Result<KVVec<T>, NoMemory> {
        let mut vec = KVVec::with_capacity(len, CHARGED).map_err(|_| NoMemory)?;
        while vec.len() < len {
            // Who is killed finds that out at the next pause.
            let _ = give_way();
            let piece = PIECE.min(len - vec.len());
            vec.extend_with(piece, fill, CHARGED)
                .map_err(|_| NoMemory)?;
        }
        Ok(vec)
    }

    fn pause() -> Result<(), Interrupted> {
        give_way().map_err(|_| Interrupted)
    }
}
