// SPDX-License-Identifier: GPL-2.0
//! Objective of a plan.

/// Jobs shorter than this count as this long in the bounded slowdown, in seconds.
const SLOWDOWN_BOUND_S: u64 = 10;

/// A request that has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingJob {
    /// Number of cores.
    pub cores: u64,
    /// Time for which the cores are booked.
    pub duration_s: u64,
    /// Run time that is expected, for the slowdown.
    pub expected_s: u64,
    /// Time since the submission.
    pub waited_s: u64,
    /// Latest start that was promised; [`u64::MAX`] without a promise.
    pub latest_start_s: u64,
    /// Latest start with which a deadline is kept that was not promised; [`u64::MAX`] without one.
    pub wanted_start_s: u64,
    /// Core seconds of all waiting jobs of the same user, for the fairness.
    pub user_core_s: u64,
    /// Cores that have to be free beside the job for all of its time, unless its promised start
    /// were broken for that.
    pub spare_cores: u64,
}

impl WaitingJob {
    /// A job that has just come, of a user without other jobs. It has no promise and no deadline,
    /// and is expected to run for the booked time.
    pub fn new(cores: u64, duration_s: u64) -> Self {
        Self {
            cores,
            duration_s,
            expected_s: duration_s,
            waited_s: 0,
            latest_start_s: u64::MAX,
            wanted_start_s: u64::MAX,
            user_core_s: cores.saturating_mul(duration_s),
            spare_cores: 0,
        }
    }
}

/// Weights of what a plan costs, summed over all jobs. Less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// Cost of a second of waiting.
    pub wait_per_s: f64,
    /// Cost of one unit of bounded slowdown.
    pub slowdown: f64,
    /// Cost of one unit of a user's normalised wait: the sum of the waits of the user's jobs, in
    /// seconds, over their core seconds (Klusáček and Chlumský 2015).
    pub fairness: f64,
    /// Growth of these three costs with each second of waiting, for evenness: one long wait costs
    /// more than several short ones, and no job is put off for ever.
    pub growth_per_s: f64,
    /// Cost of a deadline that was not promised and is missed.
    pub missed_deadline: f64,
    /// Cost of a second until the last job of the plan has ended, for utilisation.
    pub length_per_s: f64,
}

impl Default for Objective {
    /// A unit of slowdown counts as ten minutes of waiting. After a wait of 5,000 s each further
    /// second costs twice as much as the first one, after 10,000 s three times as much. Fairness,
    /// deadlines and the length of the plan count nothing.
    fn default() -> Self {
        Self {
            wait_per_s: 1.0,
            slowdown: 600.0,
            fairness: 0.0,
            growth_per_s: 0.0001,
            missed_deadline: 0.0,
            length_per_s: 0.0,
        }
    }
}

/// Cost of a plan by part. Less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Cost of the waits, with their growth.
    pub wait: f64,
    /// Cost of the bounded slowdowns, with their growth.
    pub slowdown: f64,
    /// Cost of the normalised waits of users, with their growth.
    pub fairness: f64,
    /// Cost of missed deadlines that were not promised.
    pub missed_deadlines: f64,
    /// Cost of the length of the plan.
    pub length: f64,
}

impl Cost {
    /// Returns the sum of all parts.
    pub fn total(&self) -> f64 {
        self.wait + self.slowdown + self.fairness + self.missed_deadlines + self.length
    }
}

impl Objective {
    /// Returns the cost of a second of slowdown of a job.
    fn slowdown_per_s(&self, job: &WaitingJob) -> f64 {
        self.slowdown / job.expected_s.max(SLOWDOWN_BOUND_S) as f64
    }

    /// Returns the cost of a second of the normalised wait of a job's user.
    fn fairness_per_s(&self, job: &WaitingJob) -> f64 {
        self.fairness / job.user_core_s.max(1) as f64
    }

    /// Returns the cost of a job that starts so long after its submission.
    fn waiting_cost(&self, job: &WaitingJob, wait_s: u64) -> f64 {
        let per_s = self.wait_per_s + self.slowdown_per_s(job) + self.fairness_per_s(job);
        let wait_s = wait_s as f64;
        wait_s * per_s * (1.0 + self.growth_per_s * wait_s)
    }

    /// Returns the cost of a plan by part. Each job has its start.
    pub fn cost_by_part<'a>(
        &self,
        now_s: u64,
        jobs: impl Iterator<Item = (&'a WaitingJob, u64)>,
    ) -> Cost {
        let (mut cost, mut end_s) = (Cost::default(), now_s);
        for (job, start_s) in jobs {
            let wait_s = (job.waited_s + start_s.saturating_sub(now_s)) as f64;
            // A longer wait counts more than in proportion.
            let counted_s = wait_s * (1.0 + self.growth_per_s * wait_s);
            cost.wait += counted_s * self.wait_per_s;
            cost.slowdown += counted_s * self.slowdown_per_s(job);
            cost.fairness += counted_s * self.fairness_per_s(job);
            if start_s > job.wanted_start_s {
                cost.missed_deadlines += self.missed_deadline;
            }
            end_s = end_s.max(start_s.saturating_add(job.duration_s));
        }
        cost.length = self.length_per_s * (end_s - now_s) as f64;
        cost
    }

    /// Returns the cost of a job that starts at that time.
    fn cost(&self, job: &WaitingJob, now_s: u64, start_s: u64) -> f64 {
        let missed = if start_s > job.wanted_start_s { self.missed_deadline } else { 0.0 };
        self.waiting_cost(job, job.waited_s + (start_s - now_s)) + missed
    }

    /// Returns the cost of a second of waiting of a job that has not waited, for each second of
    /// each of its cores: jobs with more of it go first in a good order.
    pub(super) fn urgency(&self, job: &WaitingJob) -> f64 {
        let area = job.cores as f64 * job.duration_s.max(1) as f64;
        self.waiting_cost(job, job.waited_s + 1) / (job.waited_s + 1) as f64 / area
    }
}

/// Returns the growth with which a second of waiting costs twice as much after so long a wait: that
/// of w + g·w² has the derivative 1 + 2·g·w.
pub fn growth_per_s(even_after_s: u64) -> f64 {
    0.5 / even_after_s as f64
}

/// Costs of the first jobs of an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    cost: f64,
    /// Time at which all of them have ended.
    end_s: u64,
}

impl Sum {
    /// Returns the costs of no job.
    pub(crate) fn none(now_s: u64) -> Self {
        Self { cost: 0.0, end_s: now_s }
    }

    /// Returns the costs with one more job, which starts at that time.
    pub(crate) fn with(
        self,
        objective: &Objective,
        now_s: u64,
        job: &WaitingJob,
        start_s: u64,
    ) -> Self {
        Self {
            cost: self.cost + objective.cost(job, now_s, start_s),
            end_s: self.end_s.max(start_s.saturating_add(job.duration_s)),
        }
    }

    /// Returns the cost of the plan. Further jobs never reduce it.
    pub(crate) fn total(&self, objective: &Objective, now_s: u64) -> f64 {
        self.cost + objective.length_per_s * (self.end_s - now_s) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_cost() {
        let objective = Objective {
            fairness: 50.0,
            missed_deadline: 77.0,
            length_per_s: 3.0,
            ..Objective::default()
        };
        let late = WaitingJob { wanted_start_s: 130, waited_s: 9, ..WaitingJob::new(2, 40) };
        let jobs = [(WaitingJob::new(4, 500), 100), (late, 600)];
        let none = Sum::none(100);
        let sum =
            jobs.iter().fold(none, |sum, (job, start)| sum.with(&objective, 100, job, *start));
        let total = sum.total(&objective, 100);
        let cost = objective.cost_by_part(100, jobs.iter().map(|(job, start_s)| (job, *start_s)));
        assert!((cost.total() - total).abs() < 1e-9 * total, "{cost:?} is not {total}");
        assert_eq!((cost.missed_deadlines, cost.length), (77.0, 3.0 * 540.0));
        assert!(cost.wait > 509.0 && cost.slowdown > cost.wait && cost.fairness > 0.0);
    }
}
