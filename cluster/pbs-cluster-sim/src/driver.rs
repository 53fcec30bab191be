// SPDX-License-Identifier: GPL-2.0
//! The clock of a replay: from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use serde::Serialize;

use crate::preceding::predecessors;
use crate::{Policy, TraceJob};

/// Progress is told whenever so many more jobs have ended.
const PROGRESS_JOBS: usize = 1024;
/// A policy that is asked so often while nothing runs and nothing comes, and starts
/// nothing, never will.
const IDLE_QUESTIONS: u32 = 100_000;

/// Outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Index of the job in the trace.
    pub job: usize,
    /// Start time, in seconds; `None`: never.
    pub start_s: Option<u64>,
    /// End time, in seconds. For a job that never started, its time of submission.
    pub end_s: u64,
    /// Whether the job was killed at the end of its requested time, before it was over.
    pub killed: bool,
}

/// A policy did what none may. The replay ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The policy starts a job that is not in the trace, or that has not arrived yet.
    NotSubmitted {
        /// Time of the start, in seconds.
        time_s: u64,
        /// The place in the trace.
        job: usize,
    },
    /// The policy starts a job a second time.
    Twice {
        /// Time of the second start, in seconds.
        time_s: u64,
        /// The place in the trace.
        job: usize,
    },
    /// The policy asks to be called again and again, but starts nothing although nothing else
    /// happens.
    Idle {
        /// Time of the last call, in seconds.
        time_s: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotSubmitted { time_s, job } => write!(
                f,
                "at {time_s} s the policy starts job {job} (counted from 0), which has not come; \
                 start only what was submitted"
            ),
            Self::Twice { time_s, job } => write!(
                f,
                "at {time_s} s the policy starts job {job} (counted from 0) again; start each \
                 once"
            ),
            Self::Idle { time_s } => write!(
                f,
                "at {time_s} s nothing runs and nothing comes, and the policy has been asked \
                 {IDLE_QUESTIONS} times and starts nothing; answer next_s() with nothing then"
            ),
        }
    }
}

impl std::error::Error for Fault {}

/// Replays a trace, in the order of submission; jobs that come at the same time, in that of
/// the trace. A job with a predecessor comes after that ([`as_they_came`](crate::as_they_came));
/// if the predecessor never runs, nor does the job. `progress` hears how many jobs have ended, now and then and at the end.
///
/// Outcomes are in the order of the trace. [`check`](crate::check) looks whether they are
/// possible.
///
/// # Errors
///
/// The first [`Fault`] of the policy.
///
/// ```
/// use pbs_cluster_sim::{check, replay, Easy, TraceJob};
///
/// // On 4 cores a job of 2 runs, one of 4 waits for it, and a short one goes before that.
/// let jobs = [
///     TraceJob::new(0, 100, 100, 2),
///     TraceJob::new(1, 50, 60, 4),
///     TraceJob::new(2, 10, 20, 1),
/// ];
/// let outcomes = replay(&jobs, &mut Easy::new(4), |_| ())?;
/// let starts_s: Vec<_> = outcomes.iter().map(|outcome| outcome.start_s).collect();
/// assert_eq!(starts_s, [Some(0), Some(100), Some(2)]);
/// assert_eq!(check(&jobs, &outcomes, 4), Ok(()));
/// # Ok::<(), pbs_cluster_sim::Fault>(())
/// ```
pub fn replay(
    jobs: &[TraceJob],
    policy: &mut dyn Policy,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Outcome>, Fault> {
    let mut outcomes: Vec<Outcome> = (0..)
        .zip(jobs)
        .map(|(job, what)| Outcome { job, start_s: None, end_s: what.submit_s, killed: false })
        .collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); jobs.len()];
    let mut arrivals: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (job, predecessor) in predecessors(jobs).into_iter().enumerate() {
        match predecessor {
            Some(predecessor) => followers[predecessor].push(job),
            None => arrivals.push(Reverse((jobs[job].submit_s, job))),
        }
    }
    let mut has_come = vec![false; jobs.len()];
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut started = Vec::new();
    let mut asked_s = None;
    let mut ended = 0;
    let mut idle_questions = 0;
    loop {
        let submit_s = arrivals.peek().map(|&Reverse((submit_s, _))| submit_s);
        let end_s = ends.peek().map(|&Reverse((end_s, _))| end_s);
        let is_idle = submit_s.is_none() && end_s.is_none();
        let wanted_s = policy.next_s().filter(|&wanted_s| Some(wanted_s) > asked_s);
        let next_s = [submit_s, end_s, wanted_s].into_iter().flatten().min();
        let Some(now_s) = next_s else { break };
        asked_s = Some(now_s);
        while let Some(&Reverse((_, job))) = ends.peek().filter(|end| end.0 .0 <= now_s) {
            ends.pop();
            policy.ended(now_s, job);
            ended += 1;
            for &follower in &followers[job] {
                let submit_s = jobs[follower].after(outcomes[job].end_s).submit_s;
                arrivals.push(Reverse((submit_s, follower)));
            }
            if ended % PROGRESS_JOBS == 0 {
                progress(ended);
            }
        }
        while let Some(&Reverse((_, job))) = arrivals.peek().filter(|of| of.0 .0 <= now_s) {
            arrivals.pop();
            has_come[job] = true;
            policy.submit(now_s, job, &as_came(&jobs[job], now_s).as_told());
        }
        policy.start(now_s, &mut started);
        idle_questions = if is_idle && started.is_empty() { idle_questions + 1 } else { 0 };
        if idle_questions == IDLE_QUESTIONS {
            return Err(Fault::Idle { time_s: now_s });
        }
        for job in started.drain(..) {
            if !has_come.get(job).is_some_and(|&has_come| has_come) {
                return Err(Fault::NotSubmitted { time_s: now_s, job });
            }
            let outcome = &mut outcomes[job];
            if outcome.start_s.is_some() {
                return Err(Fault::Twice { time_s: now_s, job });
            }
            outcome.start_s = Some(now_s);
            outcome.end_s = now_s.saturating_add(jobs[job].occupies_s());
            outcome.killed = jobs[job].is_killed();
            ends.push(Reverse((outcome.end_s, job)));
        }
    }
    progress(ended);
    Ok(outcomes)
}

/// A job that comes at a time.
fn as_came(job: &TraceJob, now_s: u64) -> TraceJob {
    TraceJob { think_s: 0, ..*job }.after(now_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy that gives prepared answers, every second until the last one.
    struct Says(Vec<Vec<usize>>, u64);

    impl Policy for Says {
        fn name(&self) -> &str {
            "says"
        }

        fn submit(&mut self, _: u64, _: usize, what: &TraceJob) {
            assert_eq!(what.run_s, what.requested_s, "nobody knows better");
        }

        fn ended(&mut self, _: u64, _: usize) {}

        fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
            started.extend(self.0.get(now_s as usize).into_iter().flatten());
            self.1 = now_s + 1;
        }

        fn next_s(&self) -> Option<u64> {
            Some(self.1)
        }
    }

    fn says(answers: &[&[usize]]) -> Result<Vec<Outcome>, Fault> {
        // The one that comes later stands first.
        let jobs = [TraceJob::new(2, 9, 5, 1), TraceJob::new(0, 3, 5, 1)];
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        replay(&jobs, &mut Says(answers, 0), |_| ())
    }

    #[test]
    fn what_none_may_do_is_a_fault() {
        let wrong = |answers: &[&[usize]]| says(answers).unwrap_err();
        let (time_s, job) = (0, 0);
        assert_eq!(wrong(&[&[0]]), Fault::NotSubmitted { time_s, job });
        let job = 7;
        assert_eq!(wrong(&[&[7]]), Fault::NotSubmitted { time_s, job });
        let (time_s, job) = (3, 1);
        assert_eq!(wrong(&[&[1], &[], &[], &[1]]), Fault::Twice { time_s, job });
        // Though all have run: who asks for ever never ends.
        let last = wrong(&[&[1], &[], &[], &[0]]);
        assert!(matches!(last, Fault::Idle { .. }), "{last}");
    }

    #[test]
    fn who_runs_longer_than_asked_for_is_killed() {
        let jobs = [TraceJob::new(0, 9, 5, 1), TraceJob::new(0, 0, 5, 1)];
        let ran = |jobs: &[TraceJob]| {
            let outcomes = replay(jobs, &mut crate::Fcfs::new(2), |_| ()).unwrap();
            let ran = outcomes.iter().map(|outcome| (outcome.end_s, outcome.killed));
            ran.collect::<Vec<_>>()
        };
        assert_eq!(ran(&jobs), [(5, true), (1, false)]);
        assert_eq!(
            ran(&jobs.map(|job| job.with(crate::Estimates::Perfect))),
            [(5, true), (1, false)]
        );
        assert_eq!(ran(&jobs.map(|job| job.unlimited())), [(9, false), (1, false)]);
    }
}
