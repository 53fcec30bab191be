// SPDX-License-Identifier: GPL-2.0

//! Reading the kernel's clocks as plain nanoseconds.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

use crate::time::Ktime;

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds.
///
/// May be called in any context but an NMI, a run-queue lock held or not.
///
/// # Examples
///
/// ```
/// use kernel::clock::monotonic_ns;
///
/// let before_ns = monotonic_ns();
/// assert!(monotonic_ns() >= before_ns);
/// ```
#[inline]
pub fn monotonic_ns() -> u64 {
    // CAST: `CLOCK_MONOTONIC` starts at boot and is never negative.
    Ktime::ktime_get().to_ns() as u64
}
