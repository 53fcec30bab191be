// SPDX-License-Identifier: GPL-2.0
//! The yardsticks: no admission, no plan, no class.

use crate::{replay, Easy, Fcfs, Policy, TraceJob};

use crate::whole::node::list_s;
use crate::whole::{Error, Fate, Options, WholeJob};

/// A scheduler that knows no deadlines. It sees all cores as one pool: that a job needs its
/// cores on one node is forgiven to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yardstick {
    /// EASY backfilling.
    Easy,
    /// First come, first served.
    Fcfs,
}

impl Yardstick {
    /// Name of the yardstick in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Easy => "EASY",
            Self::Fcfs => "FCFS",
        }
    }
}

/// The jobs as a trace: what they ask for is what the planner is asked for.
fn trace(jobs: &[WholeJob]) -> Vec<TraceJob> {
    let of = |job: &WholeJob| {
        let run_s = list_s(job.cores, &job.processes);
        TraceJob {
            deadline_s: Some(job.deadline_s),
            ..TraceJob::new(job.submit_s, run_s, job.duration_s, job.cores.into())
        }
    };
    jobs.iter().map(of).collect()
}

/// Returns the fates of the jobs under a scheduler without deadlines. A job that exceeds its
/// requested time is killed then, as sites do.
///
/// # Errors
///
/// The scheduler violated the rules of a replay.
pub fn yardstick(
    options: &Options,
    jobs: &[WholeJob],
    policy: Yardstick,
) -> Result<Vec<Fate>, Error> {
    let cores = options.total_cores();
    let mut scheduler: Box<dyn Policy> = match policy {
        Yardstick::Easy => Box::new(Easy::new(cores)),
        Yardstick::Fcfs => Box::new(Fcfs::new(cores)),
    };
    let outcomes = replay(&trace(jobs), scheduler.as_mut(), |_| ());
    let outcomes = outcomes.map_err(|fault| Error::of(&fault))?;
    let fates = outcomes.iter().map(|outcome| Fate {
        start_s: outcome.start_s,
        end_s: outcome.end_s,
        is_aborted: outcome.killed,
        ..Fate::default()
    });
    Ok(fates.collect())
}
