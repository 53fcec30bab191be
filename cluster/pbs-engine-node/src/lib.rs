// SPDX-License-Identifier: GPL-2.0
//! An engine: the service of this node.
//!
//! A request's command is a job file. When its time has come the job is submitted to the
//! service, with what is left of the allocation as its deadline; the service plans it in
//! the class, beside what it has. When it is predicted to end is told upwards; so is how
//! it ended. The cluster counts cores and seconds, and never sees an instruction; the node
//! never learns of a cluster.
//!
//! Jobs have names made of the request's number and its start. By that name they are found
//! again after either side was started anew, so that none is started twice.

mod account;
mod desk;
mod owners;
mod pin;
mod serve;
mod sweep;

pub use owners::Owners;
pub use pin::pin;
pub use serve::serve;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_job::with_values;
use pbs_manager::{Allocation, Engine, Happened};
use pbs_node_api::{
    Array, Environment, Failure, Filter, Job, JobKey, Lasting, Refusal, Submission,
};
use pbs_uapi::clock::{since_1970, unix_s};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

const SECOND_NS: u64 = 1_000_000_000;
/// Maximum number of finished jobs of a name that are searched for a previously started one.
const LAST: u64 = 1;

/// Largest job file, in bytes: as much as a call of the service may have.
const JOB_FILE_BYTES: u64 = 16 << 20;

/// A request that was handed to the service.
#[derive(Clone, Debug)]
struct Handed {
    number: u64,
    /// Signal by which its programs are notified before the end.
    notify_signal: Option<String>,
    until_s: u64,
    /// End that was reported last.
    told_s: u64,
}

/// Reason for which a request is not with the service.
enum Unhanded {
    /// The service does not answer, or has too much to do.
    Away(String),
    /// The service refused the request.
    Refused(String),
}

impl From<Failure> for Unhanded {
    fn from(failure: Failure) -> Self {
        match &failure {
            Failure::Refused(refusal) if !refusal.is_temporary() => {
                Self::Refused(failure.to_string())
            }
            Failure::Connection(_) | Failure::Refused(_) => Self::Away(failure.to_string()),
        }
    }
}

/// The service of this node.
#[derive(Debug)]
pub struct Local {
    service: Lasting,
    /// User who owns the jobs.
    uid: u32,
    /// Directory in which jobs start; `None`: that of the job's file.
    directory: Option<String>,
    environment: Vec<Environment>,
    /// First word of the names of jobs.
    prefix: &'static str,
    handed: HashMap<RequestId, Handed>,
    /// Allocations that must start but were not handed over, because the service was away.
    late: Vec<Allocation>,
    /// Jobs that the service has not cancelled, because it was away or could not.
    uncancelled: Vec<(RequestId, u64)>,
    /// Refused requests that were not reported yet.
    refused: Vec<(RequestId, String)>,
    /// Reason for which the service could not be asked, if there is one.
    trouble: Option<String>,
    /// The name of this node, once it had something to do, and when its service answered
    /// last.
    heard: Option<(String, u64)>,
}

impl Local {
    /// The service that listens there; jobs start in that directory (`None`: in that of their
    /// file), with that environment. They are those of the user as whom the calling thread acts.
    pub fn new(socket: &Path, directory: Option<&str>, environment: Vec<Environment>) -> Self {
        Self {
            service: Lasting::new(socket),
            uid: geteuid().as_raw(),
            directory: directory.map(String::from),
            environment,
            prefix: "cluster",
            handed: HashMap::new(),
            late: Vec::new(),
            uncancelled: Vec::new(),
            refused: Vec::new(),
            trouble: None,
            heard: None,
        }
    }

    /// Whether requests are with the service, or were refused and that is to be told.
    pub fn is_busy(&self) -> bool {
        let is_quiet = self.handed.is_empty() && self.late.is_empty() && self.refused.is_empty();
        !is_quiet || !self.uncancelled.is_empty()
    }

    /// Returns the problem since the last call, if any; jobs continue.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    fn submission(&self, allocation: &Allocation, name: &str) -> Result<Submission, String> {
        let [file] = &allocation.command[..] else {
            return Err("its command must be one job file; see pbs-job(5)".into());
        };
        let path = self.directory.as_ref().map_or_else(PathBuf::new, PathBuf::from).join(file);
        let directory = match (&self.directory, path.parent()) {
            (None, Some(folder)) => folder.to_string_lossy().into_owned(),
            (directory, _) => directory.clone().unwrap_or_default(),
        };
        let text = job_file(&path).map_err(|error| format!("{file}: {error}"))?;
        let left_ns =
            left_ns(allocation.until_s).ok_or_else(|| "its time has already ended".to_string())?;
        Ok(Submission {
            file: file.clone(),
            request: with_values(&text, &[("deadline_ns", left_ns.to_string())]),
            name: Some(name.into()),
            directory,
            array: array(allocation.array_index)?,
            umask: 0o022,
            environment: environment(&self.environment, allocation.omp_threads),
            ..Submission::default()
        })
    }

    fn list(&mut self, filter: &Filter) -> Result<Vec<Job>, Failure> {
        self.service.ask(|client| client.list(filter))
    }

    /// The job of this user that was started for it before.
    fn find(&mut self, name: &str) -> Result<Option<Job>, Failure> {
        let filter = Filter {
            name: Some(name.into()),
            uid: Some(self.uid),
            last: Some(LAST),
            ..Filter::default()
        };
        Ok(self.list(&filter)?.pop())
    }

    fn hand(&mut self, allocation: &Allocation) -> Result<u64, Unhanded> {
        let name = format!("{}-{}-{}", self.prefix, allocation.request, allocation.from_s);
        // The service adds the index to the name.
        let index = allocation.array_index.map_or_else(String::new, |index| format!("[{index}]"));
        if let Some(job) = self.find(&format!("{name}{index}"))? {
            return Ok(job.number);
        }
        let submission = self.submission(allocation, &name);
        let submission = submission.map_err(Unhanded::Refused)?;
        let jobs = self.service.ask(|client| client.submit(&[submission]))?;
        Ok(jobs.first().map_or(0, |job| job.number))
    }

    /// Returns this user's jobs that are not over, by number, and those that were handed over and
    /// are over since.
    fn current(&mut self) -> Result<HashMap<u64, Job>, Failure> {
        let open = self.list(&Filter { uid: Some(self.uid), ..Filter::default() })?;
        let mut jobs: HashMap<u64, Job> = open.into_iter().map(|job| (job.number, job)).collect();
        for handed in self.handed.values() {
            if jobs.contains_key(&handed.number) {
                continue;
            }
            let key = JobKey { number: Some(handed.number), name: None };
            match self.service.ask(|client| client.show(&key)) {
                Ok(shown) => drop(jobs.insert(handed.number, shown.job)),
                // A job that is in no answer is not known to be over.
                Err(Failure::Refused(Refusal::NoSuchJob { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(jobs)
    }

    /// Cancels a job, now or when the service can.
    fn cancel(&mut self, request: RequestId, number: u64) {
        let key = JobKey { number: Some(number), name: None };
        match self.service.ask(|client| client.cancel(&key)) {
            // It may be over already.
            Ok(_)
            | Err(Failure::Refused(Refusal::NotInState { .. } | Refusal::NoSuchJob { .. })) => {}
            Err(error) => {
                self.trouble = Some(format!("request {request}: {error}"));
                self.uncancelled.push((request, number));
            }
        }
    }

    /// Hands over and cancels what could not be while the service was away.
    fn catch_up(&mut self) {
        for (request, number) in std::mem::take(&mut self.uncancelled) {
            self.cancel(request, number);
        }
        for allocation in std::mem::take(&mut self.late) {
            self.start(&allocation);
        }
    }
}

impl Engine for Local {
    fn start(&mut self, allocation: &Allocation) {
        let id = allocation.request;
        let is_refused = self.refused.iter().any(|&(of, _)| of == id);
        let is_late = self.late.iter().any(|of| of.request == id);
        if is_refused || is_late || self.handed.contains_key(&id) {
            return;
        }
        match self.hand(allocation) {
            Err(Unhanded::Away(why)) => {
                self.trouble = Some(why);
                self.late.push(allocation.clone());
            }
            Ok(number) => {
                let handed = Handed {
                    number,
                    notify_signal: allocation.notify_signal.clone(),
                    until_s: allocation.until_s,
                    told_s: allocation.until_s,
                };
                self.handed.insert(id, handed);
                if let Some((node, _)) = allocation.nodes.first() {
                    self.heard = Some((node.clone(), unix_s()));
                }
            }
            Err(Unhanded::Refused(why)) => self.refused.push((id, why)),
        }
    }

    fn stop(&mut self, request: RequestId) {
        self.late.retain(|allocation| allocation.request != request);
        if let Some(handed) = self.handed.remove(&request) {
            self.cancel(request, handed.number);
        }
    }

    fn extend(&mut self, request: RequestId, until_s: u64) {
        if let Some(handed) = self.handed.get_mut(&request) {
            handed.until_s = until_s;
        }
    }

    fn notify(&mut self, request: RequestId) {
        let Some(handed) = self.handed.get(&request) else {
            return;
        };
        let Some(signal) = &handed.notify_signal else {
            return;
        };
        let key = JobKey { number: Some(handed.number), name: None };
        if let Err(error) = self.service.ask(|client| client.notify(&key, signal)) {
            self.trouble = Some(format!("request {request} was not notified: {error}"));
        }
    }

    fn heard(&self) -> Vec<(String, u64)> {
        self.heard.clone().into_iter().collect()
    }

    fn next_s(&self) -> Option<u64> {
        None
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        self.catch_up();
        let refused = self.refused.drain(..);
        let refused = refused
            .map(|(request, why)| Happened::Ended { request, outcome: format!("refused: {why}") });
        let mut happened: Vec<Happened> = refused.collect();
        if self.handed.is_empty() && self.heard.is_none() {
            return happened;
        }
        let jobs = match self.current() {
            Ok(jobs) => jobs,
            Err(why) => {
                self.trouble = Some(why.to_string());
                return happened;
            }
        };
        if let Some((_, heard_s)) = &mut self.heard {
            *heard_s = now_s;
        }
        let mut over = Vec::new();
        for (&request, handed) in &mut self.handed {
            let Some(job) = jobs.get(&handed.number) else {
                continue;
            };
            if job.state == "over" {
                over.push(request);
                let outcome = job.outcome.clone().unwrap_or_default();
                let outcome = match &*outcome {
                    "complete" => "completed".into(),
                    _ => outcome,
                };
                happened.push(Happened::Ended { request, outcome });
                continue;
            }
            let end_s = job.expected_end_unix_ns.map(|ns| ns.div_ceil(SECOND_NS));
            if let Some(end_s) = end_s.filter(|&end_s| end_s > handed.told_s.max(handed.until_s)) {
                handed.told_s = end_s;
                happened.push(Happened::PredictedEnd { request, end_s });
            }
        }
        for request in over {
            self.handed.remove(&request);
        }
        happened
    }
}

/// Returns the time left until `until_s`; `None` if that is past.
fn left_ns(until_s: u64) -> Option<u64> {
    let left = Duration::from_secs(until_s).checked_sub(since_1970())?;
    u64::try_from(left.as_nanos()).ok().filter(|&ns| ns > 0)
}

/// Reads a job file, which a user has named: a FIFO is not waited for, and a terminal does not
/// become that of this process.
fn job_file(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    if file.take(JOB_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > JOB_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {JOB_FILE_BYTES} bytes")));
    }
    Ok(text)
}

/// The index of a request in its array, for the service.
fn array(index: Option<u64>) -> Result<Option<Array>, String> {
    let Some(index) = index else {
        return Ok(None);
    };
    let index = u32::try_from(index)
        .map_err(|_| format!("its index {index} is too large; write one up to {}", u32::MAX))?;
    Ok(Some(Array { first: index, last: index, step: None }))
}

/// The environment of a job whose request wants so many threads.
fn environment(of_engine: &[Environment], omp_threads: Option<u64>) -> Vec<Environment> {
    let mut environment = of_engine.to_vec();
    if let Some(threads) = omp_threads {
        let name = "OMP_NUM_THREADS";
        environment.retain(|variable| variable.name != name);
        environment.push(Environment { name: name.into(), value: threads.to_string() });
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_request_are_those_of_its_programs() {
        let variable =
            |name: &str, value: &str| Environment { name: name.into(), value: value.into() };
        let of_engine = [variable("OMP_NUM_THREADS", "64"), variable("HOME", "/")];
        let told = environment(&of_engine, Some(4));
        assert_eq!(told, [variable("HOME", "/"), variable("OMP_NUM_THREADS", "4")]);
        assert_eq!(environment(&of_engine, None), of_engine);
    }

    /// A FIFO as job file is refused at once, though nobody writes to it.
    #[test]
    fn a_fifo_is_no_job_file() {
        let path = std::env::temp_dir().join(format!("pbs-engine-node-{}", std::process::id()));
        // One of an earlier process with the same number.
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let read = job_file(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap_err().to_string(), "it is no regular file");
    }

    #[test]
    fn what_is_past_has_no_time_left() {
        assert_eq!(left_ns(1_000), None);
        assert_eq!(left_ns(u64::MAX), None);
        assert!(left_ns(10_000_000_000).is_some());
    }
}
