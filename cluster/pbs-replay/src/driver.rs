// SPDX-License-Identifier: GPL-2.0
//! The clock of a replay: from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use crate::{Policy, TraceJob};

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it started; `None`: never.
    pub start_s: Option<u64>,
    /// When it ended; where it never started, that of the trace.
    pub end_s: u64,
}

/// More was used than there is: the scheduler errs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overuse {
    /// When.
    pub time_s: u64,
    /// So many cores.
    pub used_cores: u64,
}

impl fmt::Display for Overuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cores are used at {} s, more than there are", self.used_cores, self.time_s)
    }
}

impl std::error::Error for Overuse {}

/// Replays a trace, which is in the order of submission. `done` hears how many jobs have
/// ended, now and then.
pub fn replay(
    jobs: &[TraceJob],
    policy: &mut dyn Policy,
    mut done: impl FnMut(usize),
) -> Vec<Outcome> {
    let mut outcomes = vec![
        Outcome {
            start_s: None,
            end_s: 0,
        };
        jobs.len()
    ];
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut next_job = 0;
    let mut ended = 0;
    let mut started = Vec::new();
    let mut asked_s = 0;
    loop {
        let submit_s = jobs.get(next_job).map(|job| job.submit_s);
        let end_s = ends.peek().map(|&Reverse((end_s, _))| end_s);
        // A time that has passed was asked for already.
        let wanted_s = policy.next_s().filter(|&wanted_s| wanted_s > asked_s);
        let next = [submit_s, end_s, wanted_s].into_iter().flatten().min();
        let Some(now_s) = next else { break };
        asked_s = now_s;
        while let Some(&Reverse((end_s, job))) = ends.peek() {
            if end_s > now_s {
                break;
            }
            ends.pop();
            policy.ended(now_s, job);
            ended += 1;
            if ended % 1024 == 0 {
                done(ended);
            }
        }
        while jobs.get(next_job).is_some_and(|job| job.submit_s <= now_s) {
            policy.submit(now_s, next_job, &jobs[next_job]);
            next_job += 1;
        }
        policy.start(now_s, &mut started);
        for job in started.drain(..) {
            let end_s = now_s + jobs[job].run_s.max(1);
            outcomes[job] = Outcome {
                start_s: Some(now_s),
                end_s,
            };
            ends.push(Reverse((end_s, job)));
        }
    }
    done(ended);
    outcomes
}

/// Checks afterwards that never more was used than there is.
///
/// # Errors
///
/// The first time at which more was.
pub fn check(jobs: &[TraceJob], outcomes: &[Outcome], cores: u64) -> Result<(), Overuse> {
    let mut changes = Vec::new();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        if let Some(start_s) = outcome.start_s {
            // What ends at a time is given back before what starts then.
            changes.push((start_s, true, job.cores));
            changes.push((outcome.end_s, false, job.cores));
        }
    }
    changes.sort_unstable();
    let mut used_cores = 0;
    for (time_s, is_more, more) in changes {
        match is_more {
            true => used_cores += more,
            false => used_cores -= more,
        }
        if used_cores > cores {
            return Err(Overuse { time_s, used_cores });
        }
    }
    Ok(())
}
