// SPDX-License-Identifier: GPL-2.0
//! What a batch system says of its jobs and nodes.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// A job. Numbers are given again after a crash, so when it was submitted belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its number, or that of its array.
    pub job: u32,
    /// Which of the array.
    pub index: Option<u32>,
    /// When it was submitted.
    pub submit_s: u64,
}

impl Key {
    /// As the batch system calls it: `7`, `7_3`.
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

/// Whether a pending job waits for somebody to let it go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It does not.
    No,
    /// Its user can.
    User,
    /// Only an operator can.
    Admin,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It has not begun.
    Pending(Hold),
    /// It has its nodes.
    Running,
    /// It is over, and its nodes are being cleaned; how it ended, if that is known already.
    Completing(Option<String>),
    /// It is over; how.
    Over(String),
}

/// A job as the batch system says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSeen {
    /// Which.
    pub key: Key,
    /// Whose.
    pub user: String,
    /// On whose account.
    pub account: String,
    /// What its user calls it.
    pub name: String,
    /// How far it is.
    pub state: JobState,
    /// On so many nodes.
    pub nodes_wanted: u64,
    /// So many cores in all.
    pub cpus: u64,
    /// So much memory.
    pub memory: Memory,
    /// It shares its nodes with nobody.
    pub is_exclusive: bool,
    /// So long at most; `None`: without limit.
    pub limit_s: Option<u64>,
    /// When it began, or is to begin at the earliest.
    pub start_s: Option<u64>,
    /// When it ended, if it did.
    pub end_s: Option<u64>,
    /// Those that it has, or had.
    pub nodes: Vec<String>,
    /// Those that it has to have: a plan that was committed, or its user's wish.
    pub required: Vec<String>,
    /// What has to be over before it starts, as the batch system writes it; empty: nothing.
    pub after: String,
    /// What its user says to the planner.
    pub words: String,
    /// What it asks for that can't be planned.
    pub foreign: Option<String>,
}

impl JobSeen {
    /// So many cores on each of its nodes, at most.
    pub(crate) fn cpus_each(&self) -> u64 {
        self.cpus.max(1).div_ceil(self.nodes_wanted.max(1))
    }
}

/// Memory of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All that its nodes have.
    All,
    /// So much on each node.
    OfNode(u64),
    /// So much for each core.
    OfCore(u64),
}

/// A node as the batch system says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Which.
    pub name: String,
    /// So many cores.
    pub cpus: u64,
    /// How it is.
    pub state: NodeState,
    /// Why, in words.
    pub why: String,
}

/// Whether a node can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It can.
    Up,
    /// It gets nothing new; what runs there goes on.
    Drained,
    /// It can't, and what ran there does not any more.
    Down,
}

/// All that there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Jobs that are not over, and the last of those that are; in the order of their keys.
    pub(crate) jobs: Vec<JobSeen>,
    /// Nodes that are planned.
    pub(crate) nodes: Vec<NodeSeen>,
    /// Cores in use, by node.
    used_cpus: HashMap<String, u64>,
}

impl World {
    /// Of those jobs and nodes.
    pub fn new(mut jobs: Vec<JobSeen>, nodes: Vec<NodeSeen>) -> Self {
        jobs.sort_by_key(|job| job.key);
        let mut used_cpus: HashMap<String, u64> = HashMap::new();
        for job in jobs.iter().filter(|job| job.state == JobState::Running) {
            for node in &job.nodes {
                *used_cpus.entry(node.clone()).or_default() += job.cpus_each();
            }
        }
        Self { jobs, nodes, used_cpus }
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
