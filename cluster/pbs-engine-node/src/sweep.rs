// SPDX-License-Identifier: GPL-2.0
//! Jobs that an earlier process of the service has started, and that the ledger does not run.
//!
//! A request may have been ended while its owner's thread had not cancelled its job yet, and then
//! the process was stopped. The number of the request and its start are in the name of the job.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::sleep;

use pbs_cluster_planner::RequestId;
use pbs_node_api::{Failure, Filter, JobKey, Lasting, Refusal};
use rustix::process::geteuid;

use crate::desk::{lock, Reports, POLL};

/// First word of the names of jobs that the service starts. Those of a user who serves a ledger
/// have another.
pub(crate) const PREFIX: &str = "clusterd";

/// Start of each request that has its nodes. A request is in it before it is handed over.
pub(crate) type Running = Arc<Mutex<HashMap<RequestId, u64>>>;

/// The thread: cancels such jobs once, as soon as the service of the node answers.
pub(crate) fn sweep(socket: &Path, running: &Mutex<HashMap<RequestId, u64>>, reports: &Reports) {
    let mut service = Lasting::new(socket);
    let mut told = None;
    while let Err(why) = cancel_others(&mut service, running) {
        let why = format!("jobs of an earlier service are not cancelled yet: {why}");
        if told.as_ref() != Some(&why) {
            reports.tell(&why);
        }
        told = Some(why);
        sleep(POLL);
    }
}

/// Cancels all jobs of the service that do not belong to a running request. An operator's call
/// cancels those of all users.
fn cancel_others(
    service: &mut Lasting,
    running: &Mutex<HashMap<RequestId, u64>>,
) -> Result<(), Failure> {
    let uid = geteuid();
    let uid = (!uid.is_root()).then_some(uid.as_raw());
    let open = service.ask(|client| client.list(&Filter { uid, ..Filter::default() }))?;
    for job in open.into_iter().filter(|job| job.state != "over") {
        let Some((request, from_s)) = request_of(&job.name) else {
            continue;
        };
        if lock(running).get(&request) == Some(&from_s) {
            continue;
        }
        let key = JobKey { number: Some(job.number), name: None };
        match service.ask(|client| client.cancel(&key)) {
            // It may be over already.
            Ok(_)
            | Err(Failure::Refused(Refusal::NotInState { .. } | Refusal::NoSuchJob { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The request and its start by the name of its job; `None`: the job is another one.
fn request_of(name: &str) -> Option<(RequestId, u64)> {
    let of = name.strip_prefix(PREFIX)?.strip_prefix('-')?;
    // The service adds the index in an array.
    let of = of.split('[').next()?;
    let (request, from_s) = of.split_once('-')?;
    Some((request.parse().ok()?, from_s.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_the_names_of_jobs() {
        assert_eq!(request_of("clusterd-7-1000"), Some((7, 1000)));
        assert_eq!(request_of("clusterd-7-1000[3]"), Some((7, 1000)));
        for other in ["cluster-7-1000", "clusterd-7", "clusterd-7-x", "clusterd-a-1", "sort"] {
            assert_eq!(request_of(other), None, "{other}");
        }
    }
}
