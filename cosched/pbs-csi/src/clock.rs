// SPDX-License-Identifier: GPL-2.0
//! The clock that all processes of a boot share.

/// `CLOCK_MONOTONIC` in ns: `Instant` is the same clock, but does not tell its number.
#[allow(unsafe_code)] // A system call that std has not.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid; the clock exists everywhere.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let rest = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
