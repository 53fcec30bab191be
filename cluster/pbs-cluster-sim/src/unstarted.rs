// SPDX-License-Identifier: GPL-2.0
//! Reasons for which jobs of a replay never ran.

use std::collections::BTreeMap;

use pbs_cluster_planner::{Impossible, Refusal};
use pbs_text::grouped;
use serde::Serialize;

use crate::preceding::predecessors;
use crate::{Outcome, TraceJob};

/// Reason for which a job never ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeverRan {
    /// The job needs more cores than there are, or none.
    Cores,
    /// The job needs more memory on each core than nodes have.
    Memory,
    /// The empty cluster has no nodes for the job.
    Nodes,
    /// Limits, free pools or gates of the site exclude the job at all times.
    Rules,
    /// No plan ends the job by its deadline.
    Deadline,
    /// The job follows one that never ran.
    Predecessor,
    /// The job still waited when nothing else happened.
    Waiting,
}

impl NeverRan {
    /// Returns the reason for which the planner declines a job.
    pub(crate) fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Impossible(Impossible::TooMuch { resource, .. }) if resource == "ncpus" => {
                Self::Cores
            }
            Refusal::Impossible(_) => Self::Nodes,
            Refusal::NotInTime { .. } => Self::Deadline,
            _ => Self::Rules,
        }
    }

    /// Describes one job, or several.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Cores => {
                ["needs more cores than the cluster has", "need more cores than the cluster has"]
            }
            Self::Memory => {
                ["needs more memory than nodes have", "need more memory than nodes have"]
            }
            Self::Nodes => ["has no room on the nodes", "have no room on the nodes"],
            Self::Rules => {
                ["is excluded by rules of the site", "are excluded by rules of the site"]
            }
            Self::Deadline => ["can't end by its deadline", "can't end by their deadlines"],
            Self::Predecessor => ["follows a job that never ran", "follow jobs that never ran"],
            Self::Waiting => {
                ["waited when nothing else happened", "waited when nothing else happened"]
            }
        }
    }
}

/// Jobs that never ran for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unstarted {
    /// The reason.
    pub why: NeverRan,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of the first of them in the trace.
    pub first: u64,
}

impl Unstarted {
    /// Counts jobs by reason: each has its reason and its number in the trace.
    pub fn count(jobs: impl IntoIterator<Item = (NeverRan, u64)>) -> Vec<Self> {
        let mut counts: BTreeMap<NeverRan, (usize, u64)> = BTreeMap::new();
        for (why, number) in jobs {
            counts.entry(why).or_insert((0, number)).0 += 1;
        }
        counts.into_iter().map(|(why, (jobs, first))| Self { why, jobs, first }).collect()
    }

    /// Counts the jobs of a replay that never ran. `jobs` are those that were replayed, with the
    /// times of the trace, and `declined` has the reasons of the policy. Only jobs at places that
    /// `counts` are counted.
    pub fn of_replay(
        jobs: &[TraceJob],
        outcomes: &[Outcome],
        cores: u64,
        declined: &BTreeMap<usize, NeverRan>,
        counts: impl Fn(usize) -> bool,
    ) -> Vec<Self> {
        let never = |place: usize| outcomes[place].start_s.is_none();
        let why = |place: usize, job: &TraceJob, predecessor: Option<usize>| {
            let follows = predecessor.is_some_and(never);
            match declined.get(&place) {
                _ if follows => NeverRan::Predecessor,
                _ if !(1..=cores).contains(&job.cores) => NeverRan::Cores,
                Some(why) => *why,
                None => NeverRan::Waiting,
            }
        };
        let all = jobs.iter().zip(predecessors(jobs)).enumerate();
        let unstarted = all.filter(|(place, _)| never(*place) && counts(*place));
        Self::count(unstarted.map(|(place, (job, of))| (why(place, job, of), job.number)))
    }

    /// Lists the reasons, each with its number of jobs and the first of them.
    pub fn text(all: &[Self]) -> String {
        let parts = all.iter().map(|Self { why, jobs, first }| {
            let words = why.words()[usize::from(*jobs != 1)];
            let such_as = if *jobs == 1 { "" } else { "such as " };
            format!("{} {words} ({such_as}job {first})", grouped(*jobs as i128))
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay, Easy, Policy};

    #[test]
    fn each_job_that_never_ran_has_a_reason() {
        let job = |number, cores, preceding| TraceJob {
            number,
            preceding,
            ..TraceJob::new(number, 5, 5, cores)
        };
        let jobs = [
            job(1, 4, None),
            job(2, 9, None),
            job(3, 1, Some(2)),
            job(4, 1, Some(3)),
            job(5, 0, None),
        ];
        let mut easy = Easy::new(8);
        let outcomes = replay(&jobs, &mut easy, |_| ()).unwrap();
        let all = Unstarted::of_replay(&jobs, &outcomes, 8, &easy.declined(), |_| true);
        let expected = [
            Unstarted { why: NeverRan::Cores, jobs: 2, first: 2 },
            Unstarted { why: NeverRan::Predecessor, jobs: 2, first: 3 },
        ];
        assert_eq!(all, expected);
        assert_eq!(
            Unstarted::text(&all),
            "2 need more cores than the cluster has (such as job 2), 2 follow jobs that never ran \
             (such as job 3)"
        );
        let declined = BTreeMap::from([(1, NeverRan::Rules)]);
        let outcomes = [Outcome { start_s: None, ..outcomes[0] }; 5];
        let all = Unstarted::of_replay(&jobs[..2], &outcomes, 16, &declined, |_| true);
        assert_eq!(
            Unstarted::text(&all),
            "1 is excluded by rules of the site (job 2), 1 waited when nothing else happened \
             (job 1)"
        );
    }
}
