// SPDX-License-Identifier: GPL-2.0
//! Jobs and nodes as a batch system reports them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::str::FromStr;

use crate::demands::{Demands, Gres, Per};

/// Generic resource to which options of accelerators belong.
const GPU: &str = "gpu";

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
    /// The job was sent back, and held by that. Any other hold takes this mark away.
    Requeued,
    /// The reservation of the job has ended, and the batch system holds it for that.
    Unreserved,
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
    /// Reservations of the batch system in one of which it is to run, separated by commas; empty:
    /// none.
    pub reservation: String,
    /// Demands beside cores and memory.
    pub demands: Demands,
    /// Option that can't be planned, with the reason and what to write instead.
    pub foreign: Option<String>,
    /// Reason for which the job waits, in the batch system's words; empty: none.
    pub reason: String,
    /// Whether the batch system will never start the job as it is, for that reason.
    pub is_refused: bool,
    /// Whether a part of its request is not known yet: it is left as it is until then.
    pub is_unclear: bool,
}

impl JobSeen {
    /// A number that changes if the job asks for something else: its sizes, its demands, or the
    /// words of its user.
    pub fn asks(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let nodes = (self.nodes_wanted, self.max_nodes, self.is_exclusive);
        let cores = (self.cpus, self.min_cpus, self.tasks, self.cpus_per_task);
        (nodes, cores, self.memory).hash(&mut hasher);
        (&self.demands, &self.words, &self.reservation).hash(&mut hasher);
        hasher.finish()
    }

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
        let of_tasks = self.tasks_possible().saturating_mul(self.of_task());
        let of_gpus = self.gpus_each().saturating_mul(self.demands.cpus_per_gpu);
        let cpus = self.cpus.max(1).div_ceil(nodes).max(of_tasks);
        cpus.max(self.min_cpus).max(of_gpus)
    }

    /// Cores of a task.
    fn of_task(&self) -> u64 {
        self.cpus_per_task.max(1)
    }

    /// Number of tasks on each of its nodes, at most; 0: they share fewer cores, or are not known.
    pub(crate) fn tasks_each(&self) -> u64 {
        let is_right = self.tasks.saturating_mul(self.of_task()) <= self.cpus;
        if is_right {
            self.tasks.div_ceil(self.nodes_asked())
        } else {
            0
        }
    }

    /// Number of tasks for which each of its nodes has room: as many as its user wants on a node,
    /// even if there are fewer.
    pub(crate) fn tasks_possible(&self) -> u64 {
        self.tasks_each().max(self.demands.tasks_per_node)
    }

    /// Number of tasks on each of its nodes for which it has generic resources, at most. Tasks that
    /// share cores have their own.
    pub(crate) fn tasks_with_gres(&self) -> u64 {
        self.tasks_with_gres_on(self.nodes_asked())
    }

    /// Number of tasks on each of so many nodes for which it has generic resources, at most.
    pub(crate) fn tasks_with_gres_on(&self, nodes: u64) -> u64 {
        let tasks = self.tasks.div_ceil(nodes.max(1));
        tasks.max(self.demands.tasks_per_node).max(1)
    }

    /// Number of accelerators on each of its nodes, at most.
    pub(crate) fn gpus_each(&self) -> u64 {
        self.demands.units_each(self.tasks_with_gres(), GPU)
    }

    /// Least number of cores on each node with which the batch system gives no node more cores than
    /// are planned there; `None`: it does so anyway.
    ///
    /// Left alone, it gives the first of the nodes as many cores as are free there, and one to each
    /// other one.
    pub(crate) fn least_cpus(&self) -> Option<u64> {
        let (nodes, each) = (self.nodes_asked(), self.cpus_each());
        if nodes < 2 || each <= self.min_cpus || self.is_exclusive || self.memory == Memory::All {
            return None;
        }
        // The first node gets what the least numbers of the others leave.
        let fewest = self.tasks_each().saturating_mul(nodes).saturating_sub(self.tasks);
        let fewer = (each.saturating_sub(self.of_task())).max(self.min_cpus).max(1);
        let of_first = self.cpus.saturating_sub(fewer.saturating_mul(nodes - 1));
        Some(if fewest > 0 && of_first <= each { fewer } else { each })
    }

    /// Whether it waits for nodes, may be planned, and was given none by a commitment.
    pub(crate) fn is_to_lay_out(&self) -> bool {
        let is_waiting = matches!(self.state, JobState::Pending(_));
        is_waiting && self.foreign.is_none() && self.required.is_empty()
    }

    /// Takes as many nodes as the tasks need, where the batch system has only counted cores: it
    /// takes as few as it can, and memory and accelerators count as well.
    pub(crate) fn lay_out(&mut self, nodes: &[NodeSeen]) {
        let mut room: Vec<u64> = nodes.iter().map(|node| self.tasks_on(node)).collect();
        room.sort_unstable_by_key(|&room| Reverse(room));
        let tasks = self.tasks.max(1);
        // Of so many nodes with the most room, the last one.
        let last = |count: u64| room.get(usize::try_from(count - 1).ok()?);
        let has_room = |count: u64| last(count).is_some_and(|&room| room >= tasks.div_ceil(count));
        let from = self.nodes_wanted.max(1);
        let found = (from..=tasks.max(from)).take(nodes.len() + 1).find(|&count| has_room(count));
        self.nodes_wanted = found.unwrap_or(from);
    }

    /// Whether another job has as many nodes as this one, since it wants the same.
    pub(crate) fn is_laid_out_like(&self, other: &Self) -> bool {
        let of = |job: &Self| (job.tasks, job.cpus_per_task, job.min_cpus, job.memory);
        of(self) == of(other) && self.demands == other.demands
    }

    /// Number of its tasks for which a node has room when it is empty.
    fn tasks_on(&self, node: &NodeSeen) -> u64 {
        let of_each = |has: u64, needs: u64| has.checked_div(needs).unwrap_or(u64::MAX);
        // So many tasks are to be possible on each node, even if there are fewer.
        let limit = self.demands.tasks_per_node;
        let least = self.min_cpus.max(limit.saturating_mul(self.of_task()));
        let is_excluded = self.demands.excluded.binary_search(&node.name).is_ok();
        if node.tmp_bytes < self.demands.tmp_bytes || is_excluded {
            return 0;
        }
        if node.cpus < least || !self.demands.fit(&node.features, &node.gres) {
            return 0;
        }
        let mut most = of_each(node.cpus, self.of_task());
        if let Memory::OfCore(bytes) = self.memory {
            most = most.min(of_each(node.memory_bytes, bytes.saturating_mul(self.of_task())));
            if node.memory_bytes < bytes.saturating_mul(least) {
                return 0;
            }
        }
        if matches!(self.memory, Memory::OfNode(bytes) if node.memory_bytes < bytes) {
            return 0;
        }
        for (per, of) in &self.demands.gres {
            if *per == Per::Task {
                let has = node.gres.iter().filter(|has| {
                    has.name == of.name && (of.kind.is_none() || has.kind == of.kind)
                });
                most = most.min(of_each(has.map(|has| has.count).sum(), of.count));
            }
        }
        match limit {
            0 => most,
            limit if most < limit => 0,
            limit => limit,
        }
    }
}

/// Memory of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Memory.
    pub memory_bytes: u64,
    /// Disk space for temporary files.
    pub tmp_bytes: u64,
    /// Generic resources.
    pub gres: Vec<Gres>,
    /// Features of the node.
    pub features: Vec<String>,
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
    /// The node is kept for those who may use a reservation.
    Reserved,
}

/// Times in which the batch system keeps nodes for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// Name of the reservation.
    pub name: String,
    /// Reason, in words.
    pub why: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Times of the reservation.
    pub times: Vec<Range<u64>>,
    /// Seconds after the end of such a time by which the batch system ends jobs in the reservation;
    /// `None`: it does not end them, and they have to be over by the end.
    pub overrun_s: Option<u64>,
    /// Reason for which no job in it is left to the batch system; `None`: jobs in it use these
    /// nodes in these times alone.
    pub loose: Option<String>,
}

impl Closing {
    /// Whether its nodes are kept at a time.
    pub(crate) fn keeps_at(&self, at_s: u64) -> bool {
        self.times.iter().any(|time| time.contains(&at_s))
    }

    /// Whether a job that begins in it from now on is over by its end, or ended.
    pub(crate) fn has_room_for(&self, limit_s: u64, at_s: u64) -> bool {
        let next = self.times.iter().filter(|time| time.end > at_s).min_by_key(|time| time.start);
        let fits = |time: &Range<u64>| time.start.max(at_s).saturating_add(limit_s) <= time.end;
        self.overrun_s.is_some() || next.is_some_and(fits)
    }

    /// Whether jobs may still begin in it.
    pub(crate) fn lasts_after(&self, at_s: u64) -> bool {
        self.times.iter().any(|time| time.end > at_s)
    }
}

/// A row of a job that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Key of the job, if at least that can be read.
    pub key: Option<Key>,
    /// Text of the row, or the beginning of it.
    pub what: String,
    /// Whether the row shows a job that has not begun; `None`: that can't be read either.
    pub is_waiting: Option<bool>,
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
    /// Reservations.
    pub(crate) closed: Vec<Closing>,
    /// Messages to the operator about what the plan does not respect.
    pub(crate) remarks: Vec<String>,
    /// Cores in use, by node.
    used_cpus: HashMap<String, u64>,
}

impl World {
    /// Makes a world of those jobs and nodes.
    pub fn new(mut jobs: Vec<JobSeen>, nodes: Vec<NodeSeen>) -> Self {
        jobs.sort_by_key(|job| job.key);
        let mut used_cpus: HashMap<String, u64> = HashMap::new();
        // Cores are in use until they are cleaned.
        let is_using =
            |job: &&JobSeen| matches!(job.state, JobState::Running | JobState::Completing(_));
        for job in jobs.iter().filter(is_using) {
            for node in &job.nodes {
                *used_cpus.entry(node.clone()).or_default() += job.cpus_each();
            }
        }
        Self { jobs, nodes, used_cpus, ..Self::default() }
    }

    /// A copy of this world, with reservations, and with messages about what the plan does not
    /// respect.
    #[must_use]
    pub fn with_closed(self, closed: Vec<Closing>, remarks: Vec<String>) -> Self {
        Self { closed, remarks, ..self }
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
        Self::new(self.jobs.into_iter().chain(known).collect(), self.nodes)
            .with_unread(self.unread)
            .with_closed(self.closed, self.remarks)
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

    /// Whether on one of those nodes there is too little left for a job, as others run there or are
    /// being cleaned.
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

    fn nodes(of: &[(u64, u64, u64)]) -> Vec<NodeSeen> {
        let node = |(at, &(cpus, gib, gpus)): (usize, &(u64, u64, u64))| NodeSeen {
            name: format!("n{at}"),
            cpus,
            memory_bytes: gib << 30,
            tmp_bytes: gib << 30,
            gres: vec![Gres { name: "gpu".into(), kind: None, count: gpus }],
            features: if gpus > 2 { vec!["ib".into()] } else { Vec::new() },
            state: NodeState::Up,
            why: String::new(),
        };
        of.iter().enumerate().map(node).collect()
    }

    /// A job of so many tasks, as Slurm shows it before it is let go.
    fn job(tasks: u64, cpus_per_task: u64, nodes_wanted: u64) -> JobSeen {
        let mut slurm = crate::steer::simulated::Simulated::new(&[], 0, 1_764_000_000);
        let key = slurm.submit(7, nodes_wanted, tasks * cpus_per_task, 120, 0);
        let seen = slurm.job(key).unwrap().clone();
        JobSeen { tasks, cpus_per_task, ..seen }
    }

    #[test]
    fn tasks_have_as_many_nodes_as_they_need() {
        let nodes = nodes(&[(4, 1, 2); 4]);
        let laid_out = |mut job: JobSeen| {
            job.lay_out(&nodes);
            (job.nodes_asked(), job.cpus_each())
        };
        assert_eq!(laid_out(job(5, 1, 1)), (2, 3));
        assert_eq!(laid_out(job(3, 2, 1)), (2, 4));
        assert_eq!(laid_out(job(4, 1, 3)), (3, 2));
        // Memory of each core, of which a node has only enough for one.
        let memory = Memory::OfCore(700 << 20);
        assert_eq!(laid_out(JobSeen { memory, ..job(2, 1, 1) }), (2, 1));
        let mut of_task = job(5, 1, 1);
        let gpu = Gres { name: "gpu".into(), kind: None, count: 1 };
        of_task.demands.gres = vec![(Per::Task, gpu)];
        assert_eq!(laid_out(of_task.clone()), (3, 2));
        assert_eq!(of_task.tasks_each(), 5);
        let mut few = job(6, 1, 1);
        few.demands.tasks_per_node = 2;
        assert_eq!(laid_out(few), (3, 2));
        // There is no number of nodes that would do: it stays as it was.
        assert_eq!(laid_out(job(17, 1, 5)), (5, 4));
    }

    /// A node on which a task can't run is no room, however many cores it has.
    #[test]
    fn only_nodes_that_a_job_can_use_are_room() {
        let mut of = vec![(64, 1, 0)];
        of.extend([(4, 4, 4); 10]);
        let nodes = nodes(&of);
        let laid_out = |change: fn(&mut JobSeen)| {
            let mut job = job(5, 1, 1);
            change(&mut job);
            job.lay_out(&nodes);
            job.nodes_asked()
        };
        let gpus = |count| Gres { name: "gpu".into(), kind: None, count };
        assert_eq!(laid_out(|_| {}), 1);
        assert_eq!(laid_out(|job| job.demands.features = vec!["ib".into()]), 2);
        assert_eq!(laid_out(|job| job.memory = Memory::OfNode(2 << 30)), 2);
        assert_eq!(laid_out(|job| job.demands.tmp_bytes = 2 << 30), 2);
        assert_eq!(laid_out(|job| job.demands.excluded = vec!["n0".into()]), 2);
        let foreign = Some("--contiguous: leave it out".into());
        assert!(job(5, 1, 1).is_to_lay_out());
        assert!(!JobSeen { foreign, ..job(5, 1, 1) }.is_to_lay_out());
        for per in [Per::Node, Per::Job] {
            let mut job = job(5, 1, 1);
            job.demands.gres = vec![(per, gpus(1))];
            job.lay_out(&nodes);
            assert_eq!(job.nodes_asked(), 2);
        }
    }

    /// Tasks that share a core have their accelerators nevertheless.
    #[test]
    fn tasks_that_share_cores_have_their_own_accelerators() {
        let mut shared = JobSeen { cpus: 1, ..job(4, 1, 1) };
        let gpu = Gres { name: "gpu".into(), kind: None, count: 1 };
        shared.demands.gres = vec![(Per::Task, gpu)];
        shared.demands.cpus_per_gpu = 2;
        assert_eq!((shared.tasks_each(), shared.gpus_each(), shared.cpus_each()), (0, 4, 8));
    }

    /// Slurm gives each node the least number of cores, and the first nodes what is left.
    #[test]
    fn no_node_gives_more_cores_than_planned() {
        for tasks in 2..40 {
            for nodes in 2..=tasks.min(6) {
                for of_task in 1..=3 {
                    let job = job(tasks, of_task, nodes);
                    let each = job.cpus_each();
                    let least = job.least_cpus().unwrap_or(1);
                    let mut left = job.cpus;
                    for rest in (0..nodes).rev() {
                        let got = left.saturating_sub(least * rest).max(least);
                        assert!(got <= each, "{tasks} * {of_task} on {nodes}: {got} > {each}");
                        left = left.saturating_sub(got);
                    }
                    assert_eq!(left, 0);
                }
            }
        }
    }

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
