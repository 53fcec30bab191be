// SPDX-License-Identifier: GPL-2.0
//! Times at which jobs with predecessors came in a replay.

use crate::preceding::predecessors;
use crate::{Outcome, TraceJob};

/// Returns the jobs with the times at which they came in a replay: a job with a predecessor comes
/// when its user has thought after the predecessor's end, and not before its time in the trace.
/// Waits count from then on.
pub fn as_they_came(jobs: &[TraceJob], outcomes: &[Outcome]) -> Vec<TraceJob> {
    let came = jobs.iter().zip(predecessors(jobs)).map(|(job, predecessor)| {
        let outcome = predecessor.and_then(|place| outcomes.get(place));
        match outcome.filter(|of| of.start_s.is_some()) {
            Some(outcome) => job.after(outcome.end_s),
            None => *job,
        }
    });
    came.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, replay, Easy};

    fn job(
        number: u64,
        submit_s: u64,
        run_s: u64,
        preceding: Option<u64>,
        think_s: u64,
    ) -> TraceJob {
        TraceJob { number, preceding, think_s, ..TraceJob::new(submit_s, run_s, run_s, 4) }
    }

    #[test]
    fn a_job_comes_when_its_user_has_thought() {
        let jobs = [
            job(1, 0, 100, None, 0),
            job(2, 5, 50, Some(1), 10),
            job(3, 5, 50, Some(2), 0),
            // These have no predecessor: it is unknown, comes later, or is the job itself.
            job(4, 6, 1, Some(77), 1_000),
            job(5, 6, 1, Some(6), 1_000),
            job(6, 7, 1, Some(6), 1_000),
            // Its time in the trace is later than the end of its predecessor.
            job(7, 900, 1, Some(1), 10),
        ];
        let outcomes = replay(&jobs, &mut Easy::new(16), |_| ()).unwrap();
        let starts_s: Vec<_> = outcomes.iter().map(|of| of.start_s.unwrap()).collect();
        assert_eq!(starts_s, [0, 110, 160, 6, 6, 7, 900]);
        let came = as_they_came(&jobs, &outcomes);
        assert_eq!(came.iter().map(|of| of.submit_s).collect::<Vec<_>>(), starts_s);
        assert_eq!(check(&came, &outcomes, 16), Ok(()));
    }

    #[test]
    fn a_job_whose_predecessor_never_ran_never_comes() {
        let mut jobs = [job(1, 0, 100, None, 0), job(2, 5, 50, Some(1), 10)];
        jobs[0].cores = 99;
        jobs[1].deadline_s = Some(60);
        let outcomes = replay(&jobs, &mut Easy::new(16), |_| ()).unwrap();
        assert!(outcomes.iter().all(|of| of.start_s.is_none()));
        jobs[0].cores = 4;
        let outcomes = replay(&jobs, &mut Easy::new(16), |_| ()).unwrap();
        // The time to a deadline is the same whenever a job comes.
        let came = as_they_came(&jobs, &outcomes);
        assert_eq!((came[1].submit_s, came[1].deadline_s), (110, Some(165)));
    }
}
