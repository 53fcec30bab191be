// SPDX-License-Identifier: GPL-2.0

//! Memory for tables that may be too large for `kmalloc`.

use kernel::{
    alloc::{Flags, KVVec},
    prelude::*,
};

/// Flags for the memory of a plan or an open file, which is charged to the caller. The rings of
/// events are not charged: they belong to the machine.
pub(crate) const CHARGED: Flags = GFP_KERNEL_ACCOUNT;

/// A table of `len` entries.
pub(crate) fn table<T>(len: usize, mut entry: impl FnMut() -> T) -> Result<KVVec<T>> {
    let mut vec = KVVec::with_capacity(len, CHARGED)?;
    for _ in 0..len {
        vec.push(entry(), CHARGED)?;
    }
    Ok(vec)
}
