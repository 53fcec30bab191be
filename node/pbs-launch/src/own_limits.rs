// SPDX-License-Identifier: GPL-2.0
//! Limits of this process, which programs inherit in part.

use std::io;
use std::sync::OnceLock;

/// Limit of POSIX timers and queued signals before it was lowered.
static FORMER_TIMERS: OnceLock<libc::rlimit> = OnceLock::new();

/// Raises the limit of open files as far as this process may, and returns the number that it can
/// have open from now on. Programs with an owner do not inherit the raised limit: see [`Owner`].
///
/// [`Owner`]: crate::Owner
///
/// # Errors
///
/// The limit cannot be read, or cannot be raised.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = limit_of(libc::RLIMIT_NOFILE)?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        set_limit(libc::RLIMIT_NOFILE, limit)?;
    }
    Ok(limit.rlim_cur)
}

/// Lowers the limit of POSIX timers and queued signals for this process and for all that it starts
/// from now on, but for root's programs: the services of the machine count as root's, too. Linux
/// counts those of all processes of a user against it. A timer whose signal is ignored expires
/// whoever has the CPU: a few hundred of them take most of it.
///
/// # Errors
///
/// The limit cannot be read, or cannot be lowered.
pub fn lower_timers(timers: u64) -> io::Result<()> {
    let limit = limit_of(libc::RLIMIT_SIGPENDING)?;
    FORMER_TIMERS.get_or_init(|| limit);
    let rlim_max = limit.rlim_max.min(timers);
    let lowered = libc::rlimit { rlim_cur: limit.rlim_cur.min(rlim_max), rlim_max };
    set_limit(libc::RLIMIT_SIGPENDING, lowered)
}

/// Limit of POSIX timers and queued signals of root's programs, if this process lowered its own.
pub(crate) fn former_timers() -> Option<libc::rlimit> {
    FORMER_TIMERS.get().copied()
}

#[allow(unsafe_code)]
pub(crate) fn limit_of(resource: libc::__rlimit_resource_t) -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    match unsafe { libc::getrlimit(resource, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

#[allow(unsafe_code)]
fn set_limit(resource: libc::__rlimit_resource_t, limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: `limit` is valid.
    match unsafe { libc::setrlimit(resource, &limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
