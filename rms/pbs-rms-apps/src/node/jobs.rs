// SPDX-License-Identifier: GPL-2.0
//! Tasks that are jobs of this machine's service (service.rst).
//!
//! Each is submitted by the user whose application it is, confined to the CPU that the
//! application was given, and planned there in the class. Its deadline is the end of the
//! allocation; one that can't keep it has the one that it can, and is expected to be late: that
//! is for the application to answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::live::{TaskNews, Tasks};
use pbs_job::with_values;
use pbs_node_api::{
    Alteration, Client, Environment, Failure, Job, JobKey, Lasting, Refusal, Shown, Submission,
};
use pbs_uapi::clock::unix_ns;

/// Time that a cancelled job has to save its work, before it is cancelled once more.
const SAVE: Duration = Duration::from_secs(10);
/// Maximum wait for the end of a cancelled job.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which a cancelled job is checked.
const LOOK: Duration = Duration::from_millis(5);
/// No deadline of a job is nearer than that.
const LEAST_NS: u64 = 1_000_000;

#[derive(Clone, Debug)]
struct Running {
    number: u64,
    submitted_unix_ns: u64,
    expected_end_unix_ns: Option<u64>,
}

/// Tasks that are jobs of this machine's service.
#[derive(Debug)]
pub struct Jobs {
    service: Lasting,
    cpus: Vec<u32>,
    /// From which task on, and what.
    submissions: Vec<(u64, Submission)>,
    running: BTreeMap<u64, Running>,
    news: Vec<TaskNews>,
    /// Whether it has been told that the service is away.
    is_away: bool,
}

impl Jobs {
    /// Tasks for the service that listens there. `cpus` says which CPU each node is;
    /// each submission is for the tasks from that number on, to that of the next.
    ///
    /// # Errors
    ///
    /// Nobody listens.
    pub fn new(
        socket: &Path,
        cpus: Vec<u32>,
        submissions: Vec<(u64, Submission)>,
    ) -> Result<Self, Failure> {
        let mut service = Lasting::new(socket);
        service.ask(Client::status)?;
        Ok(Self {
            service,
            cpus,
            submissions,
            running: BTreeMap::new(),
            news: Vec::new(),
            is_away: false,
        })
    }

    fn submission(&self, task: u64, node: u32) -> Result<Submission, String> {
        let cpu = usize::try_from(node).ok().and_then(|node| self.cpus.get(node));
        let cpu = cpu.ok_or_else(|| format!("node {node} is not a CPU of this machine"))?;
        let from = self.submissions.iter().rfind(|of| of.0 <= task);
        let (_, submission) = from.ok_or("there is no job for it")?;
        let mut submission = submission.clone();
        submission.request = with_values(&submission.request, &[("cpus", format!("[{cpu}]"))]);
        submission
            .environment
            .push(Environment { name: "PBS_TASK".into(), value: task.to_string() });
        Ok(submission)
    }

    /// Submits it, with another deadline than in its file if there is one.
    fn submit(&mut self, of: &Submission, deadline_ns: Option<u64>) -> Result<Job, Failure> {
        let mut submission = of.clone();
        if let Some(ns) = deadline_ns {
            let deadline = [("deadline_ns", ns.to_string())];
            submission.request = with_values(&submission.request, &deadline);
        }
        let jobs = self.service.ask(|client| client.submit(&[submission]))?;
        Ok(jobs.into_iter().next().unwrap_or_default())
    }

    fn show(&mut self, number: u64) -> Result<Shown, Failure> {
        self.service.ask(|client| client.show(&key(number)))
    }
}

impl Tasks for Jobs {
    fn start(&mut self, task: u64, node: u32, until_unix_ns: Option<u64>) -> Result<(), String> {
        let submission = self.submission(task, node)?;
        let left_ns = until_unix_ns.map(|until| until.saturating_sub(unix_ns()).max(LEAST_NS));
        let submitted = match self.submit(&submission, left_ns) {
            Err(Failure::Refused(Refusal::Declined {
                earliest_deadline_ns: Some(earliest_ns),
                ..
            })) => {
                // What the other jobs of the node are may have changed since.
                let deadline_ns = earliest_ns.saturating_add(earliest_ns / 8);
                self.submit(&submission, Some(deadline_ns))
            }
            other => other,
        };
        let job = submitted.map_err(|failure| failure.to_string())?;
        let running = Running {
            number: job.number,
            submitted_unix_ns: job.submitted_unix_ns,
            expected_end_unix_ns: None,
        };
        self.running.insert(task, running);
        self.expect(task, &job);
        Ok(())
    }

    fn extend(&mut self, task: u64, until_unix_ns: u64) {
        let Some(running) = self.running.get(&task).cloned() else {
            return;
        };
        let deadline_ns = until_unix_ns.saturating_sub(running.submitted_unix_ns);
        let alteration = Alteration { deadline_ns: Some(deadline_ns), ..Alteration::default() };
        // Where it is expected to end later than that, it goes on with the one that it has.
        let _ = self.service.ask(|client| client.alter(&key(running.number), &alteration));
    }

    fn kill(&mut self, task: u64) {
        let Some(running) = self.running.remove(&task) else {
            return;
        };
        let began = Instant::now();
        let mut cancelled = 0;
        while began.elapsed() < PATIENCE {
            // The second call ends a job that saves its work.
            if cancelled == 0 || cancelled == 1 && began.elapsed() >= SAVE {
                let answer = self.service.ask(|client| client.cancel(&key(running.number)));
                // It may be over already.
                cancelled += u32::from(matches!(answer, Ok(_) | Err(Failure::Refused(_))));
            }
            match self.show(running.number) {
                Ok(shown) if shown.job.state == "over" => return,
                Err(Failure::Refused(_)) => return,
                Ok(_) | Err(Failure::Connection(_)) => sleep(LOOK),
            }
        }
        let why = format!("job {} does not end", running.number);
        self.news.push(TaskNews::Trouble { why });
    }

    fn look(&mut self) -> Vec<TaskNews> {
        let running: Vec<(u64, u64)> =
            (self.running.iter()).map(|(&task, running)| (task, running.number)).collect();
        for (task, number) in running {
            match self.show(number) {
                Ok(shown) => {
                    self.is_away = false;
                    self.expect(task, &shown.job);
                }
                Err(Failure::Refused(refusal)) => {
                    self.running.remove(&task);
                    let outcome = refusal.to_string();
                    self.news.push(TaskNews::Ended { task, outcome });
                }
                Err(failure @ Failure::Connection(_)) => {
                    // It is waited for, and that is told once.
                    if !std::mem::replace(&mut self.is_away, true) {
                        let why = failure.to_string();
                        self.news.push(TaskNews::Trouble { why });
                    }
                    break;
                }
            }
        }
        std::mem::take(&mut self.news)
    }
}

impl Jobs {
    /// Notes what is expected of a task, or that it is over.
    fn expect(&mut self, task: u64, job: &Job) {
        if job.state == "over" {
            self.running.remove(&task);
            let outcome = job.outcome.clone().unwrap_or_else(|| "unknown".into());
            self.news.push(TaskNews::Ended { task, outcome });
            return;
        }
        let Some(running) = self.running.get_mut(&task) else {
            return;
        };
        let Some(end_unix_ns) = job.expected_end_unix_ns else {
            return;
        };
        if running.expected_end_unix_ns != Some(end_unix_ns) {
            running.expected_end_unix_ns = Some(end_unix_ns);
            self.news.push(TaskNews::Expected { task, end_unix_ns });
        }
    }
}

fn key(number: u64) -> JobKey {
    JobKey { number: Some(number), name: None }
}
