// SPDX-License-Identifier: GPL-2.0
//! Whether a schedule is possible: knows nothing of who made it.

use std::fmt;

use crate::{Outcome, TraceJob};

/// Reason for which a schedule is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The outcomes differ from the jobs in number or order.
    NotTheJobs {
        /// The first place that is wrong.
        job: usize,
    },
    /// A job starts before it comes.
    TooEarly {
        /// The place in the trace.
        job: usize,
        /// Start time, in seconds.
        start_s: u64,
    },
    /// A job has its cores for longer or shorter than it runs, or is killed without reason.
    WrongEnd {
        /// The place in the trace.
        job: usize,
        /// End time, in seconds.
        end_s: u64,
    },
    /// More is used than there is.
    Overuse {
        /// The first such time, in seconds.
        time_s: u64,
        /// Cores in use at that time.
        used_cores: u64,
    },
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotTheJobs { job } => {
                write!(f, "outcome {job} is not that of job {job} of the trace")
            }
            Self::TooEarly { job, start_s } => {
                write!(f, "job {job} starts at {start_s} s, before it comes")
            }
            Self::WrongEnd { job, end_s } => write!(
                f,
                "job {job} ends at {end_s} s, which is neither when it is over nor when it is \
                 killed"
            ),
            Self::Overuse { time_s, used_cores } => {
                write!(f, "{used_cores} cores are used at {time_s} s, more than there are")
            }
        }
    }
}

impl std::error::Error for Invalid {}

/// Checks afterwards that a schedule was possible: nobody starts before they come or runs
/// for longer than they may, and never is more used than there is. Jobs that never started
/// are in nobody's way.
///
/// # Errors
///
/// What is wrong first.
pub fn check(jobs: &[TraceJob], outcomes: &[Outcome], cores: u64) -> Result<(), Invalid> {
    if jobs.len() != outcomes.len() {
        let job = jobs.len().min(outcomes.len());
        return Err(Invalid::NotTheJobs { job });
    }
    let mut changes = Vec::with_capacity(2 * jobs.len());
    for (job, (what, outcome)) in jobs.iter().zip(outcomes).enumerate() {
        if outcome.job != job {
            return Err(Invalid::NotTheJobs { job });
        }
        let Some(start_s) = outcome.start_s else {
            continue;
        };
        if start_s < what.submit_s {
            return Err(Invalid::TooEarly { job, start_s });
        }
        let end_s = outcome.end_s;
        let over_s = start_s.saturating_add(what.occupies_s());
        if end_s != over_s || outcome.killed != what.is_killed() {
            return Err(Invalid::WrongEnd { job, end_s });
        }
        // What ends at a time is given back before what starts then: `false` sorts first.
        changes.push((start_s, true, what.cores));
        changes.push((end_s, false, what.cores));
    }
    changes.sort_unstable();
    let mut used_cores: u64 = 0;
    for (time_s, is_more, more) in changes {
        used_cores =
            if is_more { used_cores.saturating_add(more) } else { used_cores.saturating_sub(more) };
        if used_cores > cores {
            return Err(Invalid::Overuse { time_s, used_cores });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_wrong_is_found() {
        let jobs = [TraceJob::new(5, 10, 20, 3), TraceJob::new(0, 30, 20, 2)];
        let outcome =
            |job, start_s, end_s, killed| Outcome { job, start_s: Some(start_s), end_s, killed };
        let right = [outcome(0, 20, 30, false), outcome(1, 0, 20, true)];
        assert_eq!(check(&jobs, &right, 3), Ok(()));
        let wrong = |at: usize, with: Outcome| {
            let mut outcomes = right;
            outcomes[at] = with;
            check(&jobs, &outcomes, 3).unwrap_err()
        };
        assert_eq!(wrong(0, right[1]), Invalid::NotTheJobs { job: 0 });
        assert_eq!(check(&jobs, &right[..1], 3), Err(Invalid::NotTheJobs { job: 1 }));
        let (job, start_s) = (0, 4);
        assert_eq!(wrong(0, outcome(0, 4, 14, false)), Invalid::TooEarly { job, start_s });
        for with in [outcome(1, 0, 30, false), outcome(1, 0, 20, false)] {
            let (job, end_s) = (1, with.end_s);
            assert_eq!(wrong(1, with), Invalid::WrongEnd { job, end_s });
        }
        let (time_s, used_cores) = (19, 5);
        let overuse = Invalid::Overuse { time_s, used_cores };
        assert_eq!(wrong(0, outcome(0, 19, 29, false)), overuse);
        // Who never started uses nothing.
        let mut outcomes = right;
        outcomes[0].start_s = None;
        assert_eq!(check(&jobs, &outcomes, 2), Ok(()));
    }
}
