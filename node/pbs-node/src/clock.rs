// SPDX-License-Identifier: GPL-2.0
//! Times of both clocks: the monotonic one, which events have, and the one since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{clock_gettime, ClockId};

/// The monotonic clock, which is that of the events.
pub(crate) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

/// The time since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A time of the monotonic clock as one since 1970: both clocks go on alike from now.
pub(crate) fn since_1970(time_ns: u64) -> u64 {
    (unix_ns().saturating_add(time_ns)).saturating_sub(monotonic_ns())
}
