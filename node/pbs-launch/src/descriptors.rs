// SPDX-License-Identifier: GPL-2.0
//! Open files of this process.

use std::io;

/// Raises the limit of open files as far as this process may, and returns the number that it can
/// have open from now on. Programs with an owner do not inherit the raised limit: see [`Owner`].
///
/// [`Owner`]: crate::Owner
///
/// # Errors
///
/// The limit cannot be read, or cannot be raised.
#[allow(unsafe_code)]
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is valid.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}
