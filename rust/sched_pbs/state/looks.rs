// SPDX-License-Identifier: GPL-2.0

//! Looks at the running thread: the time between two of them, and the part of it that interrupts
//! have taken.

use crate::linux::sched_class::RunQueue;

/// The last look at the running thread.
#[derive(Default)]
pub(crate) struct Looks {
    /// Clock of the run queue at that look.
    clock_ns: u64,
    /// Clock of task time at that look: it stands still in interrupts, if Linux measures those.
    clock_task_ns: u64,
    /// Whether the thread was in user space at that look.
    in_user: bool,
}

/// Time since the last look.
pub(crate) struct Since {
    /// Time for which the thread had the CPU.
    pub(crate) ran_ns: u64,
    /// Time for which interrupts had it.
    pub(crate) interrupted_ns: u64,
}

impl Looks {
    /// Begins with a thread that gets the CPU.
    #[inline]
    pub(crate) fn begin(&mut self, rq: &RunQueue) {
        self.clock_ns = rq.clock_ns();
        self.clock_task_ns = rq.clock_task_ns();
        self.in_user = false;
    }

    /// Whether the thread was in user space at the last look; `false` before the first one.
    pub(crate) fn in_user(&self) -> bool {
        self.in_user
    }

    /// Looks once more, and finds the thread in user space or not. Returns the time since the last
    /// look.
    pub(crate) fn take(&mut self, rq: &RunQueue, in_user: bool) -> Since {
        let (clock_ns, clock_task_ns) = (self.clock_ns, self.clock_task_ns);
        self.begin(rq);
        self.in_user = in_user;
        let passed_ns = self.clock_ns.saturating_sub(clock_ns);
        let ran_ns = self.clock_task_ns.saturating_sub(clock_task_ns);
        Since {
            ran_ns: ran_ns.min(passed_ns),
            interrupted_ns: passed_ns.saturating_sub(ran_ns),
        }
    }
}
