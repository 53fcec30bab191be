// SPDX-License-Identifier: GPL-2.0
//! Execution time and unallocated time, as plans have them: a scheduler that gets the CPU
//! in execution time alone.

use super::{Demand, Stretch};

/// Windows that begin at time 0, each with its unallocated time at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Execution time and unallocated time of a window.
    pub period_ns: u64,
    /// Unallocated time of a window, less than the period.
    pub unallocated_ns: u64,
}

impl Windows {
    fn execution_ns(self) -> u64 {
        self.period_ns - self.unallocated_ns
    }

    /// Execution time that has passed at a time.
    fn inner_ns(self, at_ns: u64) -> u64 {
        let within_ns = (at_ns % self.period_ns).min(self.execution_ns());
        at_ns / self.period_ns * self.execution_ns() + within_ns
    }

    /// First time at which so much execution time has passed; at a window's end that is the
    /// end of its execution time.
    fn outer_end_ns(self, inner_ns: u64) -> u64 {
        match inner_ns.checked_sub(1) {
            Some(last_ns) => self.outer_begin_ns(last_ns) + 1,
            None => 0,
        }
    }

    /// Last time at which so much execution time has passed: what runs then.
    fn outer_begin_ns(self, inner_ns: u64) -> u64 {
        inner_ns / self.execution_ns() * self.period_ns + inner_ns % self.execution_ns()
    }

    /// Runs jobs with a scheduler that sees execution time alone. Deadlines keep their order.
    pub fn run(
        self,
        demands: &[Demand],
        scheduler: impl Fn(&[Demand]) -> Vec<Stretch>,
    ) -> Vec<Stretch> {
        if self.unallocated_ns == 0 {
            return scheduler(demands);
        }
        let inner = demands
            .iter()
            .map(|demand| Demand { release_ns: self.inner_ns(demand.release_ns), ..*demand });
        let stretches = scheduler(&inner.collect::<Vec<_>>());
        stretches.iter().flat_map(|stretch| self.outer(stretch)).collect()
    }

    /// A stretch of execution time, cut where unallocated time lies in it.
    fn outer(self, stretch: &Stretch) -> Vec<Stretch> {
        let mut parts = Vec::new();
        let mut from_ns = stretch.from_ns;
        while from_ns < stretch.to_ns {
            let window_end_ns = (from_ns / self.execution_ns() + 1) * self.execution_ns();
            let to_ns = stretch.to_ns.min(window_end_ns);
            parts.push(Stretch {
                from_ns: self.outer_begin_ns(from_ns),
                to_ns: self.outer_end_ns(to_ns),
                ..*stretch
            });
            from_ns = to_ns;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::{demand, edf, longest_run_ns, stretch};
    use super::*;

    const WINDOWS: Windows = Windows { period_ns: 10, unallocated_ns: 2 };

    #[test]
    fn a_job_pauses_in_unallocated_time() {
        let stretches = WINDOWS.run(&[demand(5, 40, 12)], edf::run);
        assert_eq!(stretches, [stretch(0, 5, 8), stretch(0, 10, 18), stretch(0, 20, 21)]);
        assert_eq!(longest_run_ns(&stretches), 8);
    }

    #[test]
    fn a_job_that_is_released_in_unallocated_time_begins_with_the_next_window() {
        assert_eq!(WINDOWS.run(&[demand(9, 40, 3)], edf::run), [stretch(0, 10, 13)]);
    }

    #[test]
    fn an_end_with_the_execution_time_is_before_the_unallocated_time() {
        assert_eq!(WINDOWS.run(&[demand(0, 40, 8)], edf::run), [stretch(0, 0, 8)]);
    }

    #[test]
    fn without_unallocated_time_nothing_changes() {
        let whole = Windows { period_ns: 10, unallocated_ns: 0 };
        assert_eq!(whole.run(&[demand(5, 40, 12)], edf::run), [stretch(0, 5, 17)]);
    }
}
