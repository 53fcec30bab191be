// SPDX-License-Identifier: GPL-2.0
//! A normal task that runs beside plans and wakes up now and then.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use pbs_vmtest::harness::{burn, fork, now_ns, Child};
use pbs_vmtest::shared;
use serde::{Deserialize, Serialize};

/// Period of the wake-ups, and the work after each.
const PERIOD_NS: u64 = 10_000_000;
const WORK_INSNS: u64 = 25_000;

/// Sleeps until then, of the monotonic clock.
pub fn sleep_until(at_ns: u64) {
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as _,
        tv_nsec: (at_ns % 1_000_000_000) as _,
    };
    // SAFETY: a valid time; what is left is not asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &at,
            std::ptr::null_mut(),
        );
    }
}

/// Results of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Number of times that it got the CPU.
    pub wakeups: u64,
    /// Longest time from the moment at which it was to wake up until it ran.
    pub longest_wait_ns: u64,
    /// All of these times together.
    pub waited_ns: u64,
}

/// A normal task that wakes up a hundred times a second, until it is stopped.
pub struct Cron {
    child: Child,
    /// Whether to end; wake-ups, longest wait and sum of waits.
    told: &'static [AtomicU64],
}

impl Cron {
    /// Starts the task, which begins at that time.
    pub fn new(base_ns: u64) -> Result<Self, String> {
        let told = shared::of_processes(4)?;
        let child = fork(|| {
            let mut next_ns = base_ns;
            while told[0].load(SeqCst) == 0 {
                sleep_until(next_ns);
                let waited_ns = now_ns().saturating_sub(next_ns);
                told[1].fetch_add(1, SeqCst);
                told[2].fetch_max(waited_ns, SeqCst);
                told[3].fetch_add(waited_ns, SeqCst);
                burn(WORK_INSNS);
                // As cron does: what was slept over is not made up for.
                next_ns += PERIOD_NS * (waited_ns / PERIOD_NS + 1);
            }
        })?;
        Ok(Self { child, told })
    }

    /// Ends it.
    pub fn end(mut self) -> Result<Beside, String> {
        self.told[0].store(1, SeqCst);
        self.child.wait_ok()?;
        Ok(Beside {
            wakeups: self.told[1].load(SeqCst),
            longest_wait_ns: self.told[2].load(SeqCst),
            waited_ns: self.told[3].load(SeqCst),
        })
    }
}
