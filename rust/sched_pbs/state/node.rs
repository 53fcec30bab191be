// SPDX-License-Identifier: GPL-2.0

//! The policy's node with the memory and the recording of the kernel.

use crate::{
    linux::storage::CHARGED,
    pbs_core::{self, Interrupted, Memory, NoMemory},
    rings::inputs::Tap,
};
use kernel::{alloc::KVVec, task_ext::give_way};

/// The run state of a CPU's plan.
pub(crate) type Node = pbs_core::Node<KernelMemory>;

/// Size of memory that is filled in one go.
const PIECE: usize = 1 << 16;

/// The memory of [`pbs_core`] in the kernel; it is requested only in process context, when a plan
/// is built.
pub(crate) struct KernelMemory;

impl Memory for KernelMemory {
    type Slice<T: Copy> = KVVec<T>;
    type Tap = Tap;

    fn alloc<T: Copy>(len: usize, fill: T) -> Result<KVVec<T>, NoMemory> {
        let mut vec = KVVec::with_capacity(len, CHARGED).map_err(|_| NoMemory)?;
        while vec.len() < len {
            // A caller that is killed finds that out at the next pause.
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
