// SPDX-License-Identifier: GPL-2.0
//! Replays of one trace under several schedulers, side by side on the cores of this machine.

use std::collections::BTreeMap;
use std::io::{stderr, IsTerminal};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pbs_text::grouped;

use crate::output::write_err;

/// Progress of replays that run at the same time.
pub(super) struct Progress {
    /// Number of jobs of the trace.
    jobs: usize,
    /// Number of replays.
    replays: usize,
    is_shown: bool,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    /// Number of replays that are over.
    over: usize,
    /// Schedulers that are at work, with the number of jobs that have ended.
    at_work: BTreeMap<usize, (String, usize)>,
}

impl Progress {
    /// Creates the progress of so many replays, shown if a person looks at standard error.
    fn new(jobs: usize, replays: usize) -> Self {
        let is_shown = stderr().is_terminal();
        Self { jobs, replays, is_shown, now: Mutex::default() }
    }

    /// Reports that a number of jobs have ended in a replay.
    pub(super) fn tell(&self, replay: usize, scheduler: &str, done: usize) {
        self.change(|now| {
            now.at_work.insert(replay, (scheduler.into(), done));
        });
    }

    fn is_over(&self, replay: usize) {
        self.change(|now| {
            now.at_work.remove(&replay);
            now.over += 1;
        });
    }

    fn change(&self, how: impl FnOnce(&mut Now)) {
        // A replay that panicked has left no half of a change.
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        how(&mut now);
        if self.is_shown {
            let end = if now.over == self.replays { "\n" } else { "" };
            write_err(&format!("\r{}\x1b[K{end}", self.line(&now)));
        }
    }

    fn line(&self, now: &Now) -> String {
        let mut line = format!("{} of {} replays", now.over, self.replays);
        for (scheduler, done) in now.at_work.values() {
            let (done, jobs) = (grouped(*done as u64), grouped(self.jobs as u64));
            line += &format!("; {scheduler}: {done} of {jobs} jobs");
        }
        line
    }
}

/// Runs replays of a trace with so many jobs, at most `threads` at a time. Returns the results in
/// the order of the replays, or the first failure in this order.
pub(super) fn side_by_side<T: Send, E: Send>(
    jobs: usize,
    replays: usize,
    threads: usize,
    run: impl Fn(usize, &Progress) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let progress = Progress::new(jobs, replays);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let replay = next.fetch_add(1, Ordering::Relaxed);
            if replay >= replays {
                return done;
            }
            let result = run(replay, &progress);
            progress.is_over(replay);
            if result.is_err() {
                // Replays that have not begun do not begin.
                next.store(replays, Ordering::Relaxed);
            }
            done.push((replay, result));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(replays)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(replay, _)| *replay);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_replays() {
        for threads in [1, 2, 5] {
            let run = |replay: usize, _: &Progress| Ok::<_, ()>(replay * 10);
            assert_eq!(side_by_side(1, 4, threads, run), Ok(vec![0, 10, 20, 30]));
        }
    }

    #[test]
    fn first_failure_is_returned_and_ends_the_others() {
        let run = |replay: usize, _: &Progress| if replay < 2 { Ok(()) } else { Err(replay) };
        assert_eq!(side_by_side(1, 9, 1, run), Err(2));
        let begun = AtomicUsize::new(0);
        let fail = |replay: usize, _: &Progress| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(replay)
        };
        assert_eq!(side_by_side(1, 9, 1, fail), Err(0));
        assert_eq!(begun.into_inner(), 1);
    }

    #[test]
    fn progress_names_all_schedulers_at_work() {
        let progress = Progress::new(5_000, 3);
        progress.tell(1, "planned", 0);
        progress.tell(0, "EASY", 2_048);
        progress.is_over(2);
        let now = progress.now.lock().unwrap();
        let expected = "1 of 3 replays; EASY: 2,048 of 5,000 jobs; planned: 0 of 5,000 jobs";
        assert_eq!(progress.line(&now), expected);
    }
}
