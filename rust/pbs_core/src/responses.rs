// SPDX-License-Identifier: GPL-2.0

//! Measured times of rescheduling: from a failure to the plan that deals with it, and from one
//! plan to the next (Leppert 2021, 3.3.3, "Inferable information").

use super::memory::Memory;
use super::node::Node;

/// Number of values over which an average is taken, as soon as there are so many.
const LAST: u64 = 8;

/// Greatest RESCHEDULE_TIME that is measured, which is the greatest that can be configured.
const MOST_NS: u64 = 1 << 48;

/// An average of which recent values are the greater part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Average {
    values: u64,
    mean_ns: u64,
}

impl Average {
    const NONE: Average = Average {
        values: 0,
        mean_ns: 0,
    };

    fn add(&mut self, value_ns: u64) {
        self.values = self.values.saturating_add(1);
        let parts = self.values.min(LAST);
        // Each of both is at most `MOST_NS`.
        let others_ns = self.mean_ns.saturating_mul(parts - 1);
        let sum_ns = others_ns.saturating_add(value_ns.min(MOST_NS));
        self.mean_ns = sum_ns.checked_div(parts).unwrap_or(0);
    }

    fn get(&self) -> Option<u64> {
        (self.values != 0).then_some(self.mean_ns)
    }
}

/// A failure that was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signal {
    seq: u64,
    time_ns: u64,
}

/// Measured times of rescheduling, over all plans of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Responses {
    /// The first failure with which no plan has dealt.
    first: Option<Signal>,
    /// The last failure.
    last: Option<Signal>,
    response: Average,
    interval: Average,
}

impl Responses {
    pub(super) const NONE: Responses = Responses {
        first: None,
        last: None,
        response: Average::NONE,
        interval: Average::NONE,
    };

    /// Notes that a failure was signalled by the event `seq`.
    pub(super) fn fail(&mut self, seq: u64, time_ns: u64) {
        let signal = Signal { seq, time_ns };
        self.first = self.first.or(Some(signal));
        self.last = Some(signal);
    }

    /// The times after a plan has replaced the one that was in force since `since_ns`.  It deals
    /// with the failures before `dealt_seq`, or begins a new run.
    pub(super) fn after(
        mut self,
        dealt_seq: u64,
        again: bool,
        since_ns: u64,
        now_ns: u64,
    ) -> Responses {
        if again {
            self.first = None;
            return self;
        }
        self.interval.add(now_ns.saturating_sub(since_ns));
        if let Some(first) = self.first.filter(|first| first.seq < dealt_seq) {
            self.response.add(now_ns.saturating_sub(first.time_ns));
            // Of the failures after the question only the last one is known.
            self.first = self.last.filter(|last| last.seq >= dealt_seq);
        }
        self
    }
}

impl<M: Memory> Node<M> {
    /// Average time from a failure to the plan that dealt with it; `None` if no plan has.
    pub fn measured_reschedule_time_ns(&self) -> Option<u64> {
        self.responses.response.get()
    }

    /// Average time between two plans of one run; `None` before the second plan.  A node whose
    /// plans come often is in a volatile state (3.3.3).
    pub fn plan_interval_ns(&self) -> Option<u64> {
        self.responses.interval.get()
    }

    /// Uses the measured RESCHEDULE_TIME, where the configuration wants that.
    pub(super) fn use_measured_reschedule_time(&mut self) {
        if self.policy.config.reschedule_time_measured == 0 {
            return;
        }
        if let Some(measured_ns) = self.measured_reschedule_time_ns() {
            self.policy.reschedule_time_insns = self.rates.cpu().length_insns(measured_ns);
        }
    }
}

saved!([super] Average {
    values,
    mean_ns,
});
saved!([super] Signal {
    seq,
    time_ns,
});
saved!([super] Responses {
    first,
    last,
    response,
    interval,
});
