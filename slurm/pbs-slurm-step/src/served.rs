// SPDX-License-Identifier: GPL-2.0
//! With the service of the node: the job is submitted, and followed to its end.

use std::path::Path;
use std::time::{Duration, Instant};

use pbs_node_api::{Client, Failure, Job, JobKey, Lasting, Shown, Submission};

use crate::{End, Waits};

/// Interval at which the job is checked for its end.
const LOOK: Duration = Duration::from_millis(20);
/// Time to wait for a service that has gone, once the step is to end: the next service cancels the
/// job with its allocation.
const PATIENCE: Duration = Duration::from_secs(10);

/// A job that was submitted.
#[derive(Debug)]
pub struct Submitted {
    service: Lasting,
    job: Job,
}

/// Submits it to the service that listens there.
///
/// # Errors
///
/// It refuses it. Or nobody listens: nothing was submitted then.
pub fn submit(socket: &Path, submission: &Submission) -> Result<Submitted, Failure> {
    let mut service = Lasting::new(socket);
    // Whether it is there, before anything is submitted: of a submission without an answer
    // one does not know.
    service.ask(Client::status)?;
    let submission = std::slice::from_ref(submission);
    let submitted = service.ask(|client| client.submit(submission));
    let jobs = submitted.map_err(|failure| match failure {
        Failure::Connection(error) => Failure::Refused(pbs_node_api::Refusal::Failed {
            why: format!("the service ended while the job was submitted: {error}"),
        }),
        refused => refused,
    })?;
    Ok(Submitted { service, job: jobs.into_iter().next().unwrap_or_default() })
}

impl Submitted {
    /// Waits for its end, and cancels it if it is to end before.
    pub fn follow(mut self, waits: &mut dyn Waits) -> End {
        let key = JobKey { number: Some(self.job.number), name: None };
        let mut stopped: Option<Instant> = None;
        let mut is_cancelled = false;
        let mut is_away = false;
        loop {
            if stopped.is_some() && !is_cancelled {
                let answer = self.service.ask(|client| client.cancel(&key));
                // It may be over already.
                is_cancelled = matches!(answer, Ok(_) | Err(Failure::Refused(_)));
            }
            match self.service.ask(|client| client.show(&key)) {
                Ok(shown) if shown.job.state == "over" => return end(&shown),
                Ok(_) => is_away = false,
                Err(Failure::Refused(refusal)) => return End::NotComplete(refusal.to_string()),
                Err(Failure::Connection(error)) => {
                    if stopped.is_some_and(|at| at.elapsed() > PATIENCE) {
                        return End::Cancelled;
                    }
                    // Jobs go on without it, and the next one has them.
                    if !std::mem::replace(&mut is_away, true) {
                        waits.tell(&format!(
                            "waiting for the service, which does not answer: {error}"
                        ));
                    }
                }
            }
            if waits.wait(LOOK) {
                stopped.get_or_insert_with(Instant::now);
            }
        }
    }
}

/// Outcome of a job that is over.
fn end(shown: &Shown) -> End {
    let Shown { job, programs, .. } = shown;
    let failed =
        programs.iter().find_map(|program| match (program.code, program.signal, &program.error) {
            (_, _, Some(_)) => Some(127),
            (Some(code), ..) if code != 0 => Some(code),
            (_, Some(signal), _) => Some(128 + signal),
            _ => None,
        });
    let outcome = job.outcome.as_deref().unwrap_or("unknown");
    match (outcome, failed) {
        ("cancelled", _) => End::Cancelled,
        // What does not fit is no success in any case.
        (_, Some(code)) => End::Program(u8::try_from(code).unwrap_or(u8::MAX)),
        ("complete", None) if job.kept == Some(false) => End::Late,
        ("complete", None) => End::Well,
        (outcome, None) => End::NotComplete(match &job.reason {
            Some(why) => format!("{outcome}: {why}"),
            None => outcome.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_node_api::Program;

    fn shown(outcome: &str, kept: Option<bool>, programs: Vec<Program>) -> Shown {
        Shown {
            job: Job { outcome: Some(outcome.into()), kept, ..Job::default() },
            programs,
            ..Shown::default()
        }
    }

    fn program(code: Option<i32>, signal: Option<i32>, error: Option<&str>) -> Program {
        Program { code, signal, error: error.map(Into::into), ..Program::default() }
    }

    #[test]
    fn the_outcome_of_a_job_is_that_of_the_step() {
        let well = program(Some(0), None, None);
        let of = |outcome, kept, programs| end(&shown(outcome, kept, programs));
        assert_eq!(of("complete", Some(true), vec![well.clone()]), End::Well);
        assert_eq!(of("complete", Some(false), vec![well.clone()]), End::Late);
        let failed = vec![well, program(Some(3), None, None)];
        assert_eq!(of("complete", Some(false), failed.clone()), End::Program(3));
        assert_eq!(of("cancelled", None, failed), End::Cancelled);
        let killed = vec![program(None, Some(9), None)];
        assert_eq!(of("killed", None, killed), End::Program(137));
        let missing = vec![program(Some(0), None, Some("there is none"))];
        assert_eq!(of("complete", None, missing), End::Program(127));
        assert_eq!(of("ejected", None, Vec::new()), End::NotComplete("ejected".into()));
    }
}
