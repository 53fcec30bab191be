// SPDX-License-Identifier: GPL-2.0
//! Memory that a fork does not separate.

use std::sync::atomic::AtomicU64;

use crate::check;

/// Zeroes, the same for this process and those that it forks from now on. Never
/// given back.
pub fn of_processes(len: usize) -> Result<&'static [AtomicU64], String> {
    // SAFETY: a new mapping, which nothing else knows of.
    let pages = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len * size_of::<AtomicU64>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    check!(pages != libc::MAP_FAILED, "no shared memory");
    // SAFETY: page-aligned, long enough, zero, and mapped for ever.
    Ok(unsafe { std::slice::from_raw_parts(pages.cast::<AtomicU64>(), len) })
}
