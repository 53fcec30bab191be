// SPDX-License-Identifier: GPL-2.0
//! Memory that a fork does not separate.

use std::sync::atomic::AtomicU64;

use pbs_vmtest::check;

/// Zero, and the same for this process and those that it forks from now on.
/// Never given back.
pub fn of_processes() -> Result<&'static AtomicU64, String> {
    // SAFETY: a new mapping, which nothing else knows of.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<AtomicU64>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    check!(page != libc::MAP_FAILED, "no shared page");
    // SAFETY: page-aligned, large enough, zero, and mapped for ever.
    Ok(unsafe { &*page.cast::<AtomicU64>() })
}
