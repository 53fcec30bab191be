// SPDX-License-Identifier: GPL-2.0
//! Allocations of Slurm's jobs on this node, as its daemons report them.
//!
//! Each step of a Slurm job has a process of root's on the node (`slurmstepd`). When the step
//! begins, it reports the job's resources; when the step ends, it reports that. A process that is
//! killed reports nothing more: therefore a step also ends with the process that has reported it.
//!
//! All allocations are stored in one file on a file system that does not outlive the boot, like the
//! jobs of Slurm; a restarted service continues with that file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pbs_job::Job;
use pbs_node_api::Refusal;
use pbs_socket::{journal, Caller};
use serde::{Deserialize, Serialize};

use crate::process::Process;
use crate::topology::Topology;

/// Allocations at once: more than any node has cores for.
const MOST_ALLOCATIONS: usize = 4096;
/// Steps of one that are not over.
const MOST_STEPS: usize = 4096;

/// Report of a step that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The number of Slurm's job, which is that of the allocation.
    pub job: u32,
    /// The number of the step in it.
    pub step: u32,
    /// User of the job.
    pub uid: u32,
    /// The cores of the job on this node, by Slurm's numbers.
    pub cores: Vec<u32>,
    /// The memory of the job on this node.
    pub memory_bytes: Option<u64>,
    /// Latest end of the job.
    pub until_unix_s: Option<u64>,
}

/// An allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Allocation {
    uid: u32,
    cpus: BTreeSet<u32>,
    memory_bytes: Option<u64>,
    until_unix_s: Option<u64>,
    /// Steps that are not over, and the processes that have reported them.
    steps: BTreeMap<u32, Process>,
}

impl Allocation {
    fn has_memory(&self, number: u32, job: &Job) -> Result<(), Refusal> {
        let asked_bytes = job.processes.iter().map(|it| it.memory_bytes);
        let asked_bytes = asked_bytes.fold(0, u64::saturating_add);
        match self.memory_bytes {
            Some(bytes) if asked_bytes > bytes => Err(Refusal::Declined {
                job: job.name.clone(),
                why: format!(
                    "its processes need {asked_bytes} bytes of memory together, and allocation \
                     {number} has {bytes}"
                ),
                earliest_deadline_ns: None,
            }),
            _ => Ok(()),
        }
    }
}

/// All allocations.
#[derive(Debug)]
pub struct Allocations {
    file: PathBuf,
    topology: Topology,
    kept: BTreeMap<u32, Allocation>,
}

impl Allocations {
    /// Reads the allocations that another service has left in that file, as far as they have not
    /// ended.
    pub fn open(file: &Path, topology: Topology) -> Self {
        let kept = match fs::read(file) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                // Their jobs are cancelled then.
                let file = file.display();
                journal::warning(&format!(
                    "{file}: the allocations cannot be read: {error}; their jobs are cancelled"
                ));
                BTreeMap::new()
            }),
            Err(_) => BTreeMap::new(),
        };
        Self { file: file.into(), topology, kept }
    }

    /// A step begins; the answer is the CPUs of its job. To say so twice changes nothing.
    ///
    /// # Errors
    ///
    /// The caller is not root, has ended, or says what can't be.
    pub fn allocate(&mut self, caller: &Caller, step: &Step) -> Result<Vec<u32>, Refusal> {
        for_root(caller)?;
        // Who has waited long for the answer may have gone, and would not say that it ends.
        let process = Process::of(caller.pid);
        let process = process.ok_or_else(|| failed("the calling process has ended".into()))?;
        let number = step.job;
        let cpus = self.topology.cpus_of(&step.cores);
        let cpus = cpus.map_err(|core| failed(format!("this node has no core {core}")))?;
        if cpus.is_empty() {
            return Err(failed(format!("allocation {number} has no core on this node")));
        }
        // One core is never given to two: who came first has it.
        let holder = self.kept.iter().find(|(other, kept)| {
            **other != number && kept.cpus.intersection(&cpus).next().is_some()
        });
        if let Some((holder, _)) = holder {
            return Err(failed(format!("a core of allocation {number} is allocated to {holder}")));
        }
        let is_known = self.kept.contains_key(&number);
        if !is_known && self.kept.len() >= MOST_ALLOCATIONS {
            return Err(failed(format!(
                "there are already {MOST_ALLOCATIONS} allocations, the most"
            )));
        }
        let kept = self.kept.entry(number).or_insert_with(|| Allocation {
            uid: step.uid,
            cpus: cpus.clone(),
            memory_bytes: step.memory_bytes,
            until_unix_s: step.until_unix_s,
            steps: BTreeMap::new(),
        });
        if (kept.uid, &kept.cpus) != (step.uid, &cpus) {
            return Err(failed(format!(
                "allocation {number} has another user or other cores, and has not ended"
            )));
        }
        if kept.steps.len() >= MOST_STEPS && !kept.steps.contains_key(&step.step) {
            return Err(failed(format!(
                "allocation {number} already has {MOST_STEPS} steps, the most"
            )));
        }
        // What another step has not said is as it was.
        kept.memory_bytes = step.memory_bytes.or(kept.memory_bytes);
        kept.until_unix_s = step.until_unix_s.or(kept.until_unix_s);
        kept.steps.insert(step.step, process);
        self.write();
        Ok(cpus.into_iter().collect())
    }

    /// A step is over; whether its allocation is so with it. Of one that is not known
    /// nothing is to be done.
    ///
    /// # Errors
    ///
    /// The caller is not root.
    pub fn deallocate(&mut self, caller: &Caller, job: u32, step: u32) -> Result<bool, Refusal> {
        for_root(caller)?;
        let Some(kept) = self.kept.get_mut(&job) else {
            return Ok(false);
        };
        kept.steps.remove(&step);
        let is_over = kept.steps.is_empty();
        if is_over {
            self.kept.remove(&job);
        }
        self.write();
        Ok(is_over)
    }

    /// Steps whose process has ended are over. The answer is which allocations are so with
    /// them.
    pub fn look(&mut self) -> Vec<u32> {
        let mut changed = false;
        for kept in self.kept.values_mut() {
            let before = kept.steps.len();
            kept.steps.retain(|_, process| process.lives());
            changed |= kept.steps.len() != before;
        }
        let is_over = |kept: &Allocation| kept.steps.is_empty();
        let over = self.kept.iter().filter(|(_, kept)| is_over(kept));
        let over: Vec<_> = over.map(|(number, _)| *number).collect();
        self.kept.retain(|_, kept| !is_over(kept));
        if changed {
            self.write();
        }
        over
    }

    /// Whether the caller may have that job be planned in that allocation.
    ///
    /// # Errors
    ///
    /// It is not his, or is over, which is the same to him; or the job needs more memory
    /// than it has.
    pub fn may_have(&self, caller: &Caller, number: u32, job: &Job) -> Result<(), Refusal> {
        let kept = self.kept.get(&number).filter(|it| it.uid == caller.uid);
        let kept = kept.ok_or_else(|| Refusal::NotPermitted {
            what: format!(
                "a job in allocation {number}, which your user does not have on this node"
            ),
        })?;
        kept.has_memory(number, job)
    }

    /// Whether an allocation, if there is one of that number, has the memory of that job.
    ///
    /// # Errors
    ///
    /// It has less.
    pub fn has_memory(&self, number: u32, job: &Job) -> Result<(), Refusal> {
        let kept = self.kept.get(&number);
        kept.map_or(Ok(()), |kept| kept.has_memory(number, job))
    }

    /// Whether there is that allocation.
    pub fn has(&self, number: u32) -> bool {
        self.kept.contains_key(&number)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The allocations for the node.
    pub fn of_node(&self) -> BTreeMap<u32, pbs_node::Allocation> {
        let of_node = |kept: &Allocation| pbs_node::Allocation {
            cpus: kept.cpus.clone(),
            until_unix_ns: kept.until_unix_s.map(|s| s.saturating_mul(1_000_000_000)),
        };
        let kept = self.kept.iter();
        kept.map(|(&number, kept)| (number, of_node(kept))).collect()
    }

    /// Writes the file. If that fails, the allocations hold for this service all the same.
    fn write(&self) {
        let written = || {
            let new = self.file.with_extension("new");
            let text = serde_json::to_vec(&self.kept)?;
            let mut file = only_ours(&new)?;
            file.write_all(&text)?;
            // Whoever reads it finds the one or the other.
            fs::rename(&new, &self.file)
        };
        if let Err(error) = written() {
            let file = self.file.display();
            journal::warning(&format!("{file}: the allocations cannot be stored: {error}"));
        }
    }
}

fn only_ours(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

fn for_root(caller: &Caller) -> Result<(), Refusal> {
    match caller.uid {
        0 => Ok(()),
        _ => Err(Refusal::NotPermitted { what: "declaring allocations, which is for root".into() }),
    }
}

fn failed(why: String) -> Refusal {
    Refusal::Failed { why }
}
