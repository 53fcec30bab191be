// SPDX-License-Identifier: GPL-2.0
//! Figures of a scheduler in a setting, over all draws.

use serde::Serialize;

use super::draw::Run;

/// Sums over draws. Rogues are in none of them, unless their names say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    jobs: u64,
    accepted: u64,
    kept: u64,
    accepted_with_rogues: u64,
    kept_with_rogues: u64,
    ended: u64,
    response_ns: u64,
    tardiness_ns: u64,
    greatest_tardiness_ns: u64,
    longest_run_ns: Option<u64>,
    plans: u64,
}

impl Sums {
    pub(crate) fn of(run: &Run) -> Self {
        let mut sums =
            Self { plans: run.plans, longest_run_ns: run.longest_run_ns, ..Self::default() };
        for outcome in &run.outcomes {
            let job = &outcome.job;
            let is_kept = outcome.ended_ns.is_some_and(|ended_ns| ended_ns <= job.deadline_ns);
            let is_kept = outcome.accepted && is_kept;
            sums.accepted_with_rogues += u64::from(outcome.accepted);
            sums.kept_with_rogues += u64::from(is_kept);
            if job.rogue {
                continue;
            }
            sums.jobs += 1;
            sums.accepted += u64::from(outcome.accepted);
            sums.kept += u64::from(is_kept);
            if let Some(ended_ns) = outcome.ended_ns.filter(|_| outcome.accepted) {
                let tardiness_ns = ended_ns.saturating_sub(job.deadline_ns);
                sums.ended += 1;
                sums.response_ns += ended_ns - job.release_ns;
                sums.tardiness_ns += tardiness_ns;
                sums.greatest_tardiness_ns = sums.greatest_tardiness_ns.max(tardiness_ns);
            }
        }
        sums
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.accepted += other.accepted;
        self.kept += other.kept;
        self.accepted_with_rogues += other.accepted_with_rogues;
        self.kept_with_rogues += other.kept_with_rogues;
        self.ended += other.ended;
        self.response_ns += other.response_ns;
        self.tardiness_ns += other.tardiness_ns;
        self.greatest_tardiness_ns = self.greatest_tardiness_ns.max(other.greatest_tardiness_ns);
        self.longest_run_ns = self.longest_run_ns.max(other.longest_run_ns);
        self.plans += other.plans;
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            jobs: self.jobs,
            accepted: self.accepted,
            kept: self.kept,
            accepted_percent: percent(self.accepted, self.jobs),
            kept_of_accepted_percent: percent(self.kept, self.accepted),
            kept_of_all_percent: percent(self.kept, self.jobs),
            kept_with_rogues_percent: percent(self.kept_with_rogues, self.accepted_with_rogues),
            mean_response_ms: self.response_ns as f64 / 1e6 / self.ended.max(1) as f64,
            mean_tardiness_ms: self.tardiness_ns as f64 / 1e6 / self.ended.max(1) as f64,
            greatest_tardiness_ms: self.greatest_tardiness_ns as f64 / 1e6,
            longest_run_ms: self.longest_run_ns.map(|longest_ns| longest_ns as f64 / 1e6),
            plans: self.plans,
        }
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Figures that are printed, from the sums.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Jobs that are no rogues.
    pub(crate) jobs: u64,
    pub(crate) accepted: u64,
    pub(crate) kept: u64,
    pub(crate) accepted_percent: f64,
    pub(crate) kept_of_accepted_percent: f64,
    pub(crate) kept_of_all_percent: f64,
    /// Share of the accepted jobs that were kept, rogues included.
    pub(crate) kept_with_rogues_percent: f64,
    pub(crate) mean_response_ms: f64,
    pub(crate) mean_tardiness_ms: f64,
    pub(crate) greatest_tardiness_ms: f64,
    /// Longest time in which jobs keep the CPU without a gap for the rest of the system.
    pub(crate) longest_run_ms: Option<f64>,
    pub(crate) plans: u64,
}

impl Figures {
    pub(crate) fn kept_of_accepted(&self) -> f64 {
        self.kept_of_accepted_percent
    }

    pub(crate) fn kept_of_all(&self) -> f64 {
        self.kept_of_all_percent
    }

    pub(crate) fn greatest_ms(&self) -> f64 {
        self.greatest_tardiness_ms
    }

    pub(crate) fn longest_ms(&self) -> f64 {
        self.longest_run_ms.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use pbs_gen::deadline_jobs::DeadlineJob;

    use super::super::draw::Outcome;
    use super::*;

    fn outcome(deadline_ms: u64, ended_ms: Option<u64>, rogue: bool) -> Outcome {
        Outcome {
            job: DeadlineJob {
                release_ns: 10_000_000,
                deadline_ns: deadline_ms * 1_000_000,
                planned_insns: 2_500_000,
                real_insns: 2_500_000,
                rogue,
            },
            accepted: ended_ms.is_some(),
            ended_ns: ended_ms.map(|ms| ms * 1_000_000),
        }
    }

    #[test]
    fn a_rogue_counts_where_it_is_named_alone() {
        let run = Run {
            outcomes: vec![
                outcome(50, Some(30), false),
                outcome(50, Some(70), false),
                outcome(50, None, false),
                outcome(50, Some(500), true),
            ],
            plans: 2,
            longest_run_ns: Some(7_000_000),
        };
        let mut sums = Sums::default();
        sums.add(&Sums::of(&run));
        let figures = sums.figures();
        assert_eq!((figures.jobs, figures.accepted, figures.kept), (3, 2, 1));
        assert_eq!(figures.kept_of_accepted_percent, 50.0);
        assert_eq!(figures.kept_with_rogues_percent, 100.0 / 3.0);
        assert_eq!(figures.mean_response_ms, 40.0);
        assert_eq!((figures.mean_tardiness_ms, figures.greatest_tardiness_ms), (10.0, 20.0));
        assert_eq!((figures.longest_run_ms, figures.plans), (Some(7.0), 2));
    }
}
