// SPDX-License-Identifier: GPL-2.0
//! Times of both clocks: the monotonic one, which events have, and the one since 1970.

pub(crate) use pbs_uapi::clock::{monotonic_ns, unix_ns};

/// A time of the monotonic clock as one since 1970: both clocks go on alike from now.
pub(crate) fn since_1970(time_ns: u64) -> u64 {
    (unix_ns().saturating_add(time_ns)).saturating_sub(monotonic_ns())
}
