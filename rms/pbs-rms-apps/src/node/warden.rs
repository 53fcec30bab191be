// SPDX-License-Identifier: GPL-2.0
//! Warden of the manager's CPUs: nobody keeps a CPU that the manager has taken away.
//!
//! An application that must give back a CPU ends its processes there. An application that does not,
//! or that has died, leaves jobs behind. The warden cancels these jobs by their control groups, on
//! the CPUs that their user does not have. It compares states, not events, therefore it misses
//! nothing while one of the two services is away.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pbs_node_api::{Client, Failure, Filter, Job, JobKey, Refusal};
use pbs_rms_api as rms;

/// A job that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Number of the job.
    pub number: u64,
    /// User who owned the job.
    pub uid: u32,
    /// The CPU that is not its user's.
    pub cpu: u32,
}

/// Result of a look at the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Jobs that were cancelled.
    pub cancelled: Vec<Cancelled>,
    /// Jobs that could not be cancelled, and why, in words.
    pub trouble: Option<String>,
}

/// Looks after the CPUs of a manager's clusters.
#[derive(Debug)]
pub struct Warden {
    manager: PathBuf,
    node: PathBuf,
    /// CPU of each node of each cluster; empty for clusters elsewhere.
    cpus: Vec<Vec<u32>>,
    /// Jobs that were cancelled and have not ended: another call would end those that save their
    /// work.
    ending: RefCell<BTreeSet<u64>>,
}

impl Warden {
    /// For the manager and the node's service that listen there. Of each cluster `cpus` says
    /// which CPU each node is; nothing of those that are elsewhere.
    pub fn new(manager: &Path, node: &Path, cpus: Vec<Vec<u32>>) -> Self {
        let ending = RefCell::default();
        Self { manager: manager.into(), node: node.into(), cpus, ending }
    }

    /// Cancels the jobs that are confined to a CPU of a cluster that their user does not have.
    ///
    /// # Errors
    ///
    /// In words, which of the two services does not answer. Nothing was cancelled then.
    pub fn look(&self) -> Result<Looked, String> {
        let said = |path: &Path, what: String| format!("{}: {what}", path.display());
        let of_node = |failure: Failure| said(&self.node, failure.to_string());
        let mut node = Client::connect(&self.node).map_err(of_node)?;
        let jobs = node.list(&Filter::default()).map_err(of_node)?;
        if jobs.iter().all(|job| job.cpus.is_none()) {
            return Ok(Looked::default());
        }
        // After the jobs: a job begins when its user has got the CPU, so that whoever has none
        // now does not have it any more.
        let of_manager = |failure: rms::Failure| said(&self.manager, failure.to_string());
        let manager = rms::Client::connect_to(&self.manager);
        let sessions = manager.and_then(|mut manager| manager.sessions());
        let held = self.held(&sessions.map_err(of_manager)?);
        let mut looked = Looked::default();
        let mut ending = self.ending.borrow_mut();
        ending.retain(|&number| jobs.iter().any(|job| job.number == number));
        for job in jobs.iter().filter(|job| job.state != "over") {
            let Some((uid, cpu)) = self.trespass(job, &held) else {
                continue;
            };
            if ending.contains(&job.number) {
                continue;
            }
            let key = JobKey { number: Some(job.number), name: None };
            match node.cancel(&key) {
                Ok(_) => {
                    ending.insert(job.number);
                    looked.cancelled.push(Cancelled { number: job.number, uid, cpu });
                }
                Err(Failure::Refused(refusal)) if is_over(&refusal) => {}
                Err(Failure::Refused(refusal)) => {
                    let why = trouble(job.number, uid, cpu, &refusal);
                    // The others will hardly have another reason.
                    looked.trouble.get_or_insert(why);
                }
                Err(failure) => return Err(of_node(failure)),
            }
        }
        Ok(looked)
    }

    /// Returns the user of each allocated CPU.
    fn held(&self, sessions: &[rms::Session]) -> BTreeMap<u32, u32> {
        let mut held = BTreeMap::new();
        for session in sessions {
            for request in &session.requests {
                let cluster = usize::try_from(request.cluster).ok();
                let cpus = cluster.and_then(|cluster| self.cpus.get(cluster));
                let nodes = request.held.iter();
                let of = nodes.filter_map(|&node| cpus?.get(usize::try_from(node).ok()?));
                held.extend(of.map(|&cpu| (cpu, session.uid)));
            }
        }
        held
    }

    /// A CPU of a cluster to which a job is confined and which its user does not have.
    fn trespass(&self, job: &Job, held: &BTreeMap<u32, u32>) -> Option<(u32, u32)> {
        let uid = job.uid?;
        let of_cluster = |cpu: &u32| self.cpus.iter().flatten().any(|of| of == cpu);
        let has = |cpu: &u32| held.get(cpu) == Some(&uid);
        let mut cpus = job.cpus.iter().flatten();
        let cpu = cpus.find(|cpu| of_cluster(cpu) && !has(cpu))?;
        Some((uid, *cpu))
    }
}

/// Whether a job could not be cancelled because it is over.
fn is_over(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::NoSuchJob { .. } | Refusal::NotInState { .. })
}

fn trouble(number: u64, uid: u32, cpu: u32, refusal: &Refusal) -> String {
    format!(
        "job {number} of user {uid} can't be cancelled, although the user does not have CPU {cpu}: \
         {refusal}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(uid: u32, held: &[u32]) -> rms::Session {
        rms::Session {
            uid,
            requests: vec![rms::Held { held: held.to_vec(), ..rms::Held::default() }],
            ..rms::Session::default()
        }
    }

    fn job(uid: u32, cpus: Option<&[u32]>) -> Job {
        Job { uid: Some(uid), cpus: cpus.map(<[u32]>::to_vec), ..Job::default() }
    }

    #[test]
    fn who_has_no_cpu_has_no_job_there() {
        let warden = Warden::new(Path::new("a"), Path::new("b"), vec![vec![1, 2, 3]]);
        let held = warden.held(&[session(7, &[0, 2]), session(8, &[1])]);
        let trespass = |uid, cpus| warden.trespass(&job(uid, cpus), &held);
        assert_eq!(trespass(7, Some(&[1])), None);
        assert_eq!(trespass(7, Some(&[1, 3])), None);
        assert_eq!(trespass(7, Some(&[1, 2])), Some((7, 2)));
        assert_eq!(trespass(8, Some(&[3])), Some((8, 3)));
        // Nobody's, and such that the manager does not rule.
        assert_eq!(trespass(9, Some(&[2])), Some((9, 2)));
        assert_eq!(trespass(9, Some(&[0])), None);
        assert_eq!(trespass(9, None), None);
    }

    #[test]
    fn nodes_elsewhere_are_no_cpus_of_this_machine() {
        let cpus = vec![Vec::new(), vec![5]];
        let warden = Warden::new(Path::new("a"), Path::new("b"), cpus);
        let held = warden.held(&[session(7, &[0])]);
        assert!(held.is_empty());
        let mut there = session(7, &[0, 1]);
        there.requests[0].cluster = 1;
        assert_eq!(warden.held(&[there]).keys().collect::<Vec<_>>(), [&5]);
    }

    #[test]
    fn only_a_job_that_is_over_need_not_be_cancelled() {
        assert!(is_over(&Refusal::NoSuchJob { job: "7".into() }));
        assert!(is_over(&Refusal::NotInState { what: "over".into() }));
        let others = [
            Refusal::NotPermitted { what: "cancelling job 7".into() },
            Refusal::Busy,
            Refusal::Failed { why: "no space".into() },
        ];
        for refusal in others {
            assert!(!is_over(&refusal));
            let told = trouble(7, 1000, 3, &refusal);
            assert!(told.contains("job 7") && told.contains("CPU 3"), "{told}");
            assert!(told.ends_with(&refusal.to_string()), "{told}");
        }
    }
}
