// SPDX-License-Identifier: GPL-2.0
//! Clocks of the machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{clock_gettime, ClockId};

/// The time of `CLOCK_MONOTONIC` in nanoseconds: events carry it, and all processes of a boot
/// share it. [`std::time::Instant`] is the same clock, but hides its number.
pub fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

/// The time of `CLOCK_BOOTTIME` in nanoseconds, which passes while the machine is suspended.
pub fn boottime_ns() -> u64 {
    ns(ClockId::Boottime)
}

/// The time that the calling process has had a CPU, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    ns(ClockId::ProcessCPUTime)
}

/// The time that the calling thread has had a CPU, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

/// The time since 1970. Zero if the clock is before that.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time since 1970 in nanoseconds.
pub fn unix_ns() -> u64 {
    u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX)
}

/// The time since 1970 in seconds.
pub fn unix_s() -> u64 {
    since_1970().as_secs()
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
