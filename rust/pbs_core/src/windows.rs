// SPDX-License-Identifier: GPL-2.0

//! Execution time and unallocated time (Leppert 2021, 2.4.3).
//!
//! Every period begins with execution time, in which the plan has the CPU, and
//! ends with unallocated time, in which the rest of the system lives.  *Plan
//! time* is the execution time that has passed: idle slots and ceilings are
//! measured in it.

use super::config::Config;

/// The present window, with the values needed to convert within it.
///
/// The bounds are stored: a decision divides only when it is made more than a whole period after
/// the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    period_ns: u64,
    execution_ns: u64,
    /// Monotonic time at which the present period began.
    start_ns: u64,
    /// Plan time at that moment.
    plan_start_ns: u64,
    /// Number of periods before the present one.
    number: u64,
    /// Period and execution time of the periods after the present one, if they differ.
    next_ns: Option<(u64, u64)>,
}

impl Windows {
    pub(super) fn new(config: &Config, now_ns: u64) -> Windows {
        let (period_ns, execution_ns) = lengths_ns(config);
        Windows {
            period_ns,
            execution_ns,
            start_ns: now_ns,
            plan_start_ns: 0,
            number: 0,
            next_ns: None,
        }
    }

    /// Sets the lengths of the periods after the present one, which ends as it began: plan time
    /// must not run backwards, nor may changes in quick succession take the unallocated time away.
    pub(super) fn set_lengths(&mut self, config: &Config) {
        let next_ns = lengths_ns(config);
        let differ = next_ns != (self.period_ns, self.execution_ns);
        self.next_ns = differ.then_some(next_ns);
    }

    /// Continues the rhythm of `old`: plans that arrive in quick succession must not take the
    /// unallocated time away.
    pub(super) fn take_over(&mut self, old: &Windows) {
        self.start_ns = old.start_ns;
        // Candidates keep the rounds in which they entered, which are numbers of windows.
        self.number = old.number;
    }

    /// Makes the period that contains `now_ns` the present one.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.start_ns);
        if passed_ns < self.period_ns {
            return;
        }
        if let Some((period_ns, execution_ns)) = self.next_ns.take() {
            self.start_ns = self.end_ns();
            self.plan_start_ns = self.plan_start_ns.wrapping_add(self.execution_ns);
            self.number = self.number.wrapping_add(1);
            (self.period_ns, self.execution_ns) = (period_ns, execution_ns);
            return self.advance(now_ns);
        }
        let periods = if passed_ns - self.period_ns < self.period_ns {
            1
        } else {
            passed_ns.checked_div(self.period_ns).unwrap_or(1)
        };
        // Neither is greater than `now_ns`.
        self.start_ns = self
            .start_ns
            .wrapping_add(periods.wrapping_mul(self.period_ns));
        self.plan_start_ns = self
            .plan_start_ns
            .wrapping_add(periods.wrapping_mul(self.execution_ns));
        self.number = self.number.wrapping_add(periods);
    }

    /// Number of periods before the present one.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Number of periods before the one that contains `at_ns`: the present one, or a later one.
    pub(super) fn later_number(&self, at_ns: u64) -> u64 {
        self.advanced(at_ns).number()
    }

    /// These windows when the period that contains `at_ns` is the present one.
    fn advanced(&self, at_ns: u64) -> Windows {
        let mut windows = *self;
        windows.advance(at_ns);
        windows
    }

    /// Execution time of the present window.
    pub(super) fn execution_ns(&self) -> u64 {
        self.execution_ns
    }

    /// Monotonic time at which the present period ends.
    pub(super) fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.period_ns)
    }

    /// Length of the period that contains `now_ns`: the present one, or a later one.
    pub(super) fn period_at_ns(&self, now_ns: u64) -> u64 {
        match self.next_ns {
            Some((period_ns, _)) if now_ns >= self.end_ns() => period_ns,
            _ => self.period_ns,
        }
    }

    /// Plan time at `now_ns`, which lies in the present period.
    pub(super) fn plan_ns(&self, now_ns: u64) -> u64 {
        let phase_ns = now_ns.saturating_sub(self.start_ns);
        self.plan_start_ns
            .saturating_add(phase_ns.min(self.execution_ns))
    }

    /// Plan time at `at_ns`, which lies in the present period or in a later one.
    pub(super) fn later_plan_ns(&self, at_ns: u64) -> u64 {
        self.advanced(at_ns).plan_ns(at_ns)
    }

    /// Whether `now_ns`, which lies in the present period, is unallocated time.
    pub(super) fn unallocated(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.start_ns) >= self.execution_ns
    }

    /// Monotonic time of the next change of windows after `now_ns`.
    pub(super) fn change_ns(&self, now_ns: u64) -> u64 {
        let length_ns = if self.unallocated(now_ns) {
            self.period_ns
        } else {
            self.execution_ns
        };
        self.start_ns.saturating_add(length_ns)
    }

    /// Monotonic time at which plan time reaches `plan_ns`, or of the next
    /// change of windows if that comes first.
    pub(super) fn until_ns(&self, now_ns: u64, plan_ns: u64) -> u64 {
        let change_ns = self.change_ns(now_ns);
        if self.unallocated(now_ns) {
            // Plan time stands still.
            return change_ns;
        }
        let reached_ns = self
            .start_ns
            .saturating_add(plan_ns.saturating_sub(self.plan_start_ns));
        change_ns.min(reached_ns)
    }
}

/// Lengths of a period and of its execution time.
fn lengths_ns(config: &Config) -> (u64, u64) {
    // A configuration that was checked has neither of these at its bound.
    let period_ns = config.window_period_ns.max(2);
    let unallocated_ns = config.window_unallocated_ns.min(period_ns - 1);
    (period_ns, period_ns - unallocated_ns)
}

saved!([super] Windows {
    period_ns,
    execution_ns,
    start_ns,
    plan_start_ns,
    number,
    next_ns,
});

#[cfg(any(test, feature = "std"))]
impl Windows {
    /// Whether each period has execution time, and no more than it lasts.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound =
            |(period_ns, execution_ns): (u64, u64)| (1..=period_ns).contains(&execution_ns);
        is_sound((self.period_ns, self.execution_ns)) && self.next_ns.is_none_or(is_sound)
    }
}
