// SPDX-License-Identifier: GPL-2.0
//! Jobs and nodes as a batch system reports them.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Key of a job. Numbers are reused after a crash: therefore the time of submission belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Number of the job, or of its array.
    pub job: u32,
    /// Index in the array.
    pub index: Option<u32>,
    /// Time of the submission.
    pub submit_s: u64,
}

impl Key {
    /// Name in the batch system: `7`, `7_3`.
    pub fn name(self) -> String {
        match self.index {
            None => self.job.to_string(),
            Some(index) => format!("{}_{index}", self.job),
        }
    }
}

/// `7@1764000000`, `7_3@1764000000`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name(), self.submit_s)
    }
}

/// The text is not one that [`Key`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoKey;

impl FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let (name, submit) = text.split_once('@').ok_or(NoKey)?;
        let (job, index) = match name.split_once('_') {
            None => (name, None),
            Some((job, index)) => (job, Some(index.parse().map_err(|_| NoKey)?)),
        };
        Ok(Self {
            job: job.parse().map_err(|_| NoKey)?,
            index,
            submit_s: submit.parse().map_err(|_| NoKey)?,
        })
    }
}

/// Hold of a pending job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The job is not held.
    No,
    /// The user of the job can let it go.
    User,
    /// Only an operator can.
    Admin,
}

/// Progress of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// The job has not begun.
    Pending(Hold),
    /// The job has its nodes.
    Running,
    /// The job is over, and its nodes are being cleaned; the outcome, if that is known already.
    Completing(Option<String>),
    /// The job is over; the outcome.
    Over(String),
}

/// A job as the batch system reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSeen {
    /// Key of the job.
    pub key: Key,
    /// User of the job.
    pub user: String,
    /// Account of the job.
    pub account: String,
    /// Name of the job.
    pub name: String,
    /// Progress of the job.
    pub state: JobState,
    /// Number of nodes that it requests.
    pub nodes_wanted: u64,
    /// Greatest number of nodes that it may get; `None`: not known.
    pub max_nodes: Option<u64>,
    /// Number of cores in all.
    pub cpus: u64,
    /// Least number of cores on each node.
    pub min_cpus: u64,
    /// Number of tasks; 0: not known.
    pub tasks: u64,
    /// Number of cores of each task.
    pub cpus_per_task: u64,
    /// Requested memory.
    pub memory: Memory,
    /// Whether the job has its nodes for itself.
    pub is_exclusive: bool,
    /// Longest run time; `None`: without limit.
    pub limit_s: Option<u64>,
    /// Time at which it began, or is to begin at the earliest.
    pub start_s: Option<u64>,
    /// Time at which it ended; for a running job, the time at which its limit is over, if that is
    /// known.
    pub end_s: Option<u64>,
    /// Nodes that it has, or had.
    pub nodes: Vec<String>,
    /// Nodes that it must have, from a committed plan: users can't name nodes.
    pub required: Vec<String>,
    /// Dependencies of its start, as the batch system writes them; empty: none.
    pub after: String,
    /// Words of its user to the planner.
    pub words: String,
    /// Requests that can't be planned.
    pub foreign: Option<String>,
}

impl JobSeen {
    /// Number of nodes that its user requests.
    ///
    /// A commitment sets this number, after which the batch system may show a greater one.
    pub(crate) fn nodes_asked(&self) -> u64 {
        let most = self.max_nodes.filter(|&most| most > 0 && !self.required.is_empty());
        self.nodes_wanted.min(most.unwrap_or(u64::MAX)).max(1)
    }

    /// Number of cores on each of its nodes, at most.
    ///
    /// The batch system counts cores in all only roughly until the number of nodes is set.
    pub(crate) fn cpus_each(&self) -> u64 {
        let nodes = self.nodes_asked();
        let of_task = self.cpus_per_task.max(1);
        // Fewer cores than tasks share them.
        let tasks = Some(self.tasks).filter(|tasks| tasks.saturating_mul(of_task) <= self.cpus);
        let of_tasks = tasks.map_or(0, |tasks| tasks.div_ceil(nodes) * of_task);
        self.cpus.max(1).div_ceil(nodes).max(of_tasks).max(self.min_cpus)
    }
}

/// Memory of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All memory of its nodes.
    All,
    /// Memory on each node.
    OfNode(u64),
    /// Memory for each core.
    OfCore(u64),
}

/// A node as the batch system reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Name of the node.
    pub name: String,
    /// Number of cores.
    pub cpus: u64,
    /// State of the node.
    pub state: NodeState,
    /// Reason of the state, in words.
    pub why: String,
}

/// Whether a node can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The node can be used.
    Up,
    /// The node gets no new jobs; running ones continue.
    Drained,
    /// The node can't be used, and its jobs do not run any more.
    Down,
}

/// A row of a job that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Key of the job, if at least that can be read.
    pub key: Option<Key>,
    /// Text of the row, or the beginning of it.
    pub what: String,
}

/// All jobs and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Jobs that are not over, and the last of those that are; in the order of their keys.
    pub(crate) jobs: Vec<JobSeen>,
    /// Nodes that are planned.
    pub(crate) nodes: Vec<NodeSeen>,
    /// Rows of jobs that can't be read.
    pub(crate) unread: Vec<Unread>,
    /// Cores in use, by node.
    used_cpus: HashMap<String, u64>,
}

impl World {
    /// Makes a world of those jobs and nodes.
    pub fn new(mut jobs: Vec<JobSeen>, nodes: Vec<NodeSeen>) -> Self {
        jobs.sort_by_key(|job| job.key);
        let mut used_cpus: HashMap<String, u64> = HashMap::new();
        for job in jobs.iter().filter(|job| job.state == JobState::Running) {
            for node in &job.nodes {
                *used_cpus.entry(node.clone()).or_default() += job.cpus_each();
            }
        }
        Self { jobs, nodes, unread: Vec::new(), used_cpus }
    }

    /// A copy of this world, with rows of jobs that cannot be read.
    #[must_use]
    pub fn with_unread(self, unread: Vec<Unread>) -> Self {
        Self { unread, ..self }
    }

    /// A copy of this world, in which a job whose row cannot be read is as it was before.
    pub(crate) fn after(self, before: &Self) -> Self {
        let keys = self.unread.iter().filter_map(|unread| unread.key);
        let known: Vec<_> = keys.filter_map(|key| before.job(key).cloned()).collect();
        if known.is_empty() {
            return self;
        }
        Self::new(self.jobs.into_iter().chain(known).collect(), self.nodes).with_unread(self.unread)
    }

    /// All jobs.
    pub fn jobs(&self) -> &[JobSeen] {
        &self.jobs
    }

    /// A job.
    pub(crate) fn job(&self, key: Key) -> Option<&JobSeen> {
        let at = self.jobs.binary_search_by_key(&key, |job| job.key).ok()?;
        self.jobs.get(at)
    }

    /// Whether on one of those nodes there is too little left for a job, as others run there.
    pub(crate) fn is_blocked(&self, key: Key, nodes: &[String]) -> bool {
        let Some(job) = self.job(key) else {
            return false;
        };
        nodes.iter().any(|name| {
            let seen = self.nodes.iter().find(|node| node.name == *name);
            let used = self.used_cpus.get(name);
            seen.zip(used).is_some_and(|(node, used)| used + job.cpus_each() > node.cpus)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_and_read() {
        for text in ["7@1764000000", "7_3@1764000000"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "7", "x@1", "7_@1", "7@", "-7@1", "7_3_4@1"] {
            assert_eq!(text.parse::<Key>(), Err(NoKey), "{text}");
        }
    }
}
