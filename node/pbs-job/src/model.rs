// SPDX-License-Identifier: GPL-2.0
//! The machine and the job request with its PB task net (Glaß 2024, tables 1
//! to 3).
//!
//! Times are nanoseconds of the planner's clock, memory is in bytes, work in
//! retired instructions.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use pbs_plan::Start;
use pbs_text::Line;

/// The step of time of machines that do not say another: a nanosecond.
pub const TICK_NS: u64 = 1;

/// Times of files are at most this, some 146 years, so that sums of a few fit
/// into 64 bits.
pub const MAX_NS: u64 = 1 << 62;

/// The memory of a process or node is at most this.
pub const MAX_MEMORY_BYTES: u64 = 1 << 56;

/// A message has at most so many bytes.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 56;

/// A link takes at most so many bytes in a second.
pub const MAX_BANDWIDTH_BYTES_PER_S: u64 = 1 << 50;

/// A core is at most this fast.
pub const MAX_RATE_INSNS_PER_S: u64 = 1 << 40;

/// Most tasks of a job. Data about a task take some hundred bytes while a job is checked and
/// planned, and a task can be written in two.
pub const MAX_TASKS: usize = 100_000;

/// Longest name of a process or task, in bytes: messages about it repeat its name.
pub const MAX_NAME_BYTES: usize = 200;

/// Shares of a core that a machine can give to independent processes at admission, in
/// thousandths. 0: there is no demand test, and the search alone admits jobs.
pub const DEMAND_PERMILLE: RangeInclusive<u64> = 0..=1000;

/// Most countable resources of a machine, and most names of resources of a job or a process.
pub const MAX_RESOURCES: usize = 64;

/// Most processes of a job that holds resources as a whole. When it hands them on, each of the next
/// processes waits for each of these.
pub const MAX_HOLDERS: usize = 64;

/// Greatest amount of a countable resource.
pub const MAX_AMOUNT: u64 = 1 << 56;

/// Greatest value and greatest penalty of a job.
pub const MAX_WORTH: u64 = 1_000_000_000_000;

const NS_PER_S: u128 = 1_000_000_000;

/// Machine for which plans are made (Glaß 2024, 5.1.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Readable name.
    pub name: Option<String>,
    /// Reservations last whole multiples of this; [`TICK_NS`], or a second
    /// where the machine comes from Glaß's files. At least 1.
    pub tick_ns: u64,
    /// In the order of the file; never empty.
    pub nodes: Vec<Node>,
    /// Links for messages between nodes, in the order of the file. Messages between two nodes
    /// without a link take no time.
    pub links: Vec<Link>,
    /// Countable resources that processes hold while they live, in the order of the file.
    pub resources: Vec<Resource>,
    /// Accelerators on which tasks can run, by kind, in the order of the file.
    pub devices: Vec<Device>,
    /// CPUs that share a part of the machine, as the file says it.
    pub sharing: Vec<Sharing>,
    /// The share of a core that independent processes may ask for at admission, in
    /// thousandths, one of [`DEMAND_PERMILLE`]; `None`: the planner's default.
    pub demand_permille: Option<u64>,
}

/// A countable resource, such as the licences of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Name of the resource, unique in the machine.
    pub name: String,
    /// Amount that all processes together may hold at any time, from 1 to [`MAX_AMOUNT`].
    pub count: u64,
    /// Indices of the nodes whose processes may hold it, ascending; empty: all nodes.
    pub nodes: Vec<usize>,
    /// Line of the file that declares the resource.
    pub line: Line,
}

/// An amount of a resource that a job or a process names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    /// Name of the resource.
    pub resource: String,
    /// Amount of it, from 1 to [`MAX_AMOUNT`].
    pub count: u64,
}

/// Accelerators of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Kind of the accelerators, unique in the machine.
    pub kind: String,
    /// The programming models that it understands; never empty.
    pub models: Vec<String>,
    /// Number of accelerators of this kind; at least 1.
    pub count: u32,
    /// The CPU, by its number in Linux, whose process waits for it.
    pub host_cpu: Option<u32>,
    /// Part of that CPU's time that a task on the accelerator takes, in parts of a thousand of the
    /// task's runtime.
    pub host_permille: u32,
    /// Bytes that are transferred to or from the accelerator in a second; `None`: transfers take no
    /// time.
    pub link_bytes_per_s: Option<u64>,
    /// Line of the file that declares the accelerators.
    pub line: Line,
}

/// CPUs that share a part of the machine: programs on them slow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Shared part of the machine, one of [`Sharing::LEVELS`].
    pub level: String,
    /// Their numbers in Linux, ascending; at least two.
    pub cpus: Vec<u32>,
    /// Line of the file that declares the group.
    pub line: Line,
}

/// A connection of two nodes, which carries one message at a time, in either
/// direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Indices of the nodes, the lesser first.
    pub nodes: [usize; 2],
    /// From when the last byte is sent until it has arrived.
    pub latency_ns: u64,
    /// Bytes that the link carries in a second; at least 1.
    pub bandwidth_bytes_per_s: u64,
    /// Line of the file that declares the link.
    pub line: Line,
}

/// Cores with a memory that they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name of the node, unique in the machine.
    pub name: String,
    /// The memory that the processes on its cores share.
    pub memory_bytes: u64,
    /// In the order of the file; never empty.
    pub cores: Vec<Core>,
    /// Line of the file that declares the node.
    pub line: Line,
}

/// Core, which executes one task at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// Name of the core, unique in the node.
    pub name: String,
    /// Number in Linux of the core, if plans for it are to be run.
    pub cpu: Option<u32>,
    /// Instructions that the core retires in a second; at least 1.
    pub rate_insns_per_s: u64,
}

/// Signals by which programs can be notified, by their names without `SIG`.
pub const NOTICE_SIGNALS: [&str; 5] = ["HUP", "INT", "TERM", "USR1", "USR2"];

/// Way in which the programs of a job save their work (Leppert 2021, 6.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Signal that asks them to do so, one of [`NOTICE_SIGNALS`].
    pub signal: String,
    /// Time that they need for it.
    pub within_ns: u64,
}

/// A job request (Glaß 2024, table 1).
///
/// Jobs that were read have been checked: what is said of the order and the
/// relations of tasks and processes holds for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Readable name, which runs of the same job share.
    pub name: String,
    /// Time before which no part of the job runs. In a file it counts from the submission
    /// ([`Job::submitted_at`]).
    pub start_ns: u64,
    /// Time by which the last task must have ended. In a file it counts from the submission as
    /// well.
    pub deadline_ns: u64,
    /// Priority: a job with a greater number is more important.
    pub priority: u32,
    /// Value and penalty: they weigh the job against others of its user.
    pub worth: Worth,
    /// Way in which its programs save their work; `None`: they cannot.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the job runs as best effort: behind every job with a promise, and without one. The
    /// deadline is then only the user's wish.
    pub best_effort: bool,
    /// The user's estimate of how long the whole job takes (the thesis's
    /// `total_runtime`).
    pub runtime_ns: Option<u64>,
    /// The user's estimate of the memory of the whole job (the thesis's
    /// `total_needed_memory`).
    pub memory_bytes: Option<u64>,
    /// The CPUs that its processes may run on, by their numbers in Linux,
    /// ascending ([`Machine::cpus`]); empty: all.
    pub cpus: Vec<u32>,
    /// Resources that the job holds from its first task to its last, by their names: its initial
    /// process holds them, beside its own.
    pub resources: Vec<Amount>,
    /// In the order of the file; never empty.
    pub processes: Vec<Process>,
    /// All tasks of all processes, in the order of the file.
    pub tasks: Vec<Task>,
}

/// Value and penalty of a job to its user (Leppert 2021, 1.1 and 2.3), in a unit of the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worth {
    /// Value that the user gains if the job keeps its deadline; at most [`MAX_WORTH`].
    pub value: u64,
    /// Value that the user loses if it does not; at most [`MAX_WORTH`].
    pub penalty: u64,
}

impl Default for Worth {
    fn default() -> Self {
        Self { value: 1, penalty: 0 }
    }
}

impl Worth {
    /// Returns the difference between the job that keeps its deadline and the job that does not.
    pub fn at_stake(self) -> u64 {
        self.value.saturating_add(self.penalty)
    }
}

/// A process of a job: tasks that are run one after the other on one core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Number of the process, unique in the job.
    pub id: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Memory that the process allocates at the start of its first task and frees at the end of its
    /// last (Glaß 2024, 4.3).
    pub memory_bytes: u64,
    /// The user's estimate of the time from its first task's start to its last
    /// task's end (the thesis's `approx_runtime`).
    pub runtime_ns: Option<u64>,
    /// Instructions that the process retires in a second in which it runs on the machine's fastest
    /// core. On slower cores it retires fewer, in proportion to their rate. `None`: as many as the
    /// core.
    pub rate_insns_per_s: Option<u64>,
    /// The CPUs that it may run on, of those of the job, by their numbers in Linux,
    /// ascending; empty: all of those.
    pub cpus: Vec<u32>,
    /// Resources that the process holds from the start of its first task to the end of its last, by
    /// their names.
    pub resources: Vec<Amount>,
    /// Way in which `pbsctl run` starts the process.
    pub start: Start,
    /// Indices into [`Job::tasks`] in the order of execution; never empty.
    pub tasks: Vec<usize>,
    /// The fork task it comes from; `None`: it is the initial process.
    pub forked_by: Option<usize>,
    /// The join task that waits for it; `None`: it is the initial process.
    pub joined_by: Option<usize>,
    /// Line of the file that declares the process.
    pub line: Line,
}

/// A stretch of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Number of the task, unique in the job.
    pub id: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Index into [`Job::processes`].
    pub process: usize,
    /// Index of the task in [`Process::tasks`].
    pub position: usize,
    /// Action of the task.
    pub action: Action,
    /// Length of the task in instructions. A task of 0 instructions takes no time and no core;
    /// calculations and communications always have some.
    pub insns: u64,
    /// The greatest memory that it uses, a part of its process's.
    pub memory_bytes: u64,
    /// The size of the message that a communication sends to its partner, which
    /// waits for it; `None`: nobody waits, as the thesis has it.
    pub message_bytes: Option<u64>,
    /// Indices of the communications whose messages it waits for.
    pub senders: Vec<usize>,
    /// Indices of the other tasks that it waits for, whatever they do.
    pub after: Vec<usize>,
    /// Indices of the tasks that say so of it.
    pub before: Vec<usize>,
    /// Line of the file that declares the task.
    pub line: Line,
}

/// The action type of a task (Glaß 2024, 5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The first task of the job.
    Start,
    /// The last task of the job.
    End,
    /// The task calculates.
    Calculation,
    /// The task sends a message. It does not wait for the receiver: the thesis assumes that all
    /// communication is asynchronous. After a synchronous message, the next task of the process
    /// waits for the receiver ([`Task::after`]). The receiver waits for the message if it has a size
    /// ([`Task::message_bytes`]).
    Communication {
        /// Index of the task that it is for, where one is named.
        partner: Option<usize>,
    },
    /// After it a child process can start.
    Fork {
        /// Index of the child process.
        child: usize,
    },
    /// The task does the remaining work of a fork, in the child and perhaps in the parent.
    ForkEnd,
    /// The task waits until a child process has ended.
    Join {
        /// Index of the child process. The thesis's own job has a join task
        /// for nobody, which only takes its time.
        child: Option<usize>,
    },
}

/// Numbers of CPUs as Linux lists them, such as `0-3,8`.
pub fn cpu_list(cpus: &[u32]) -> String {
    let cpus: BTreeSet<u32> = cpus.iter().copied().collect();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let ranges = ranges.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    ranges.collect::<Vec<_>>().join(",")
}

impl Sharing {
    /// Parts of the machine that CPUs may share, the closest first: the threads of a core, its
    /// second cache, the last one, and the memory of the node.
    pub const LEVELS: [&'static str; 4] = ["smt", "l2", "llc", "node"];
}

impl Device {
    /// Returns the time that data of this size take to or from the accelerator. A time that is too
    /// long for 64 bits is `u64::MAX`.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        let Some(rate) = self.link_bytes_per_s else {
            return 0;
        };
        let ns = (u128::from(bytes) * NS_PER_S).div_ceil(u128::from(rate.max(1)));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Linux has no CPU of a greater number.
const LAST_CPU: u32 = 8191;

/// The numbers of such a list ([`cpu_list`]), as they stand there. `None`: it is no list.
pub fn cpus_of_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > LAST_CPU {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

impl Machine {
    /// All cores with the index of their node, node by node. The place of a
    /// core in this order is its number on the machine.
    pub fn cores(&self) -> impl Iterator<Item = (usize, &Core)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(index, node)| node.cores.iter().map(move |core| (index, core)))
    }

    /// The numbers of all cores in Linux, in the order of
    /// [`cores`](Self::cores): what the machine says, or where it names none the
    /// place of the core in its node. Cores of several nodes may have the same.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.nodes.iter();
        let cores = nodes.flat_map(|node| node.cores.iter().zip(0..));
        cores.map(|(core, place)| core.cpu.unwrap_or(place))
    }

    /// Returns the time that a core of this rate takes for `insns` instructions, in whole ticks. A
    /// time that is too long for 64 bits is `u64::MAX`.
    ///
    /// See Glaß 2024, 5.1.4.4, which prints a product (Documentation/theses.rst).
    pub fn duration_ns(&self, insns: u64, rate_insns_per_s: u64) -> u64 {
        let rate = u128::from(rate_insns_per_s.max(1));
        self.whole_ticks((u128::from(insns) * NS_PER_S).div_ceil(rate))
    }

    /// Index of the link of two nodes, if they have one and are not the same.
    pub fn link(&self, from: usize, to: usize) -> Option<usize> {
        let nodes = [from.min(to), from.max(to)];
        self.links.iter().position(|link| link.nodes == nodes)
    }

    /// Index of the resource of that name.
    pub fn resource(&self, name: &str) -> Option<usize> {
        self.resources.iter().position(|resource| resource.name == name)
    }

    /// Returns the time for which a message occupies a link, in whole ticks. A time that is too
    /// long for 64 bits is `u64::MAX`.
    pub fn transfer_ns(&self, link: usize, bytes: u64) -> u64 {
        let bandwidth = u128::from(self.links[link].bandwidth_bytes_per_s.max(1));
        self.whole_ticks((u128::from(bytes) * NS_PER_S).div_ceil(bandwidth))
    }

    /// The latency of a link, in whole ticks.
    pub fn latency_ns(&self, link: usize) -> u64 {
        self.whole_ticks(self.links[link].latency_ns.into())
    }

    /// A time in whole ticks, rounded up. What is too long for 64 bits is `u64::MAX`.
    pub fn whole_ticks(&self, ns: u128) -> u64 {
        let tick_ns = u128::from(self.tick_ns.max(1));
        u64::try_from(ns.div_ceil(tick_ns) * tick_ns).unwrap_or(u64::MAX)
    }

    /// The memory of all nodes. What is too much for 64 bits is `u64::MAX`.
    pub fn memory_bytes(&self) -> u64 {
        let nodes = self.nodes.iter();
        nodes.fold(0, |sum, node| sum.saturating_add(node.memory_bytes))
    }
}

impl Node {
    /// Returns the memory of each core of the node under static memory balancing: equal parts (Glaß
    /// 2024, 5.1.1).
    pub fn core_memory_bytes(&self) -> u64 {
        self.memory_bytes / (self.cores.len() as u64).max(1)
    }
}

impl Job {
    /// The job with its times counted from then on. `None` where they no
    /// longer fit into 64 bits.
    pub fn submitted_at(mut self, now_ns: u64) -> Option<Self> {
        self.start_ns = self.start_ns.checked_add(now_ns)?;
        self.deadline_ns = self.deadline_ns.checked_add(now_ns)?;
        Some(self)
    }

    /// The CPUs that it, or a process of it, is confined to and the machine does not
    /// have, ascending.
    pub fn missing_cpus(&self, machine: &Machine) -> Vec<u32> {
        let of_processes = self.processes.iter().flat_map(|process| &process.cpus);
        let named: BTreeSet<u32> = self.cpus.iter().chain(of_processes).copied().collect();
        if named.is_empty() {
            return Vec::new();
        }
        let has: BTreeSet<u32> = machine.cpus().collect();
        named.difference(&has).copied().collect()
    }

    /// All resources that a process holds while it lives, by their names, with those of the job
    /// for the initial process.
    pub fn amounts(&self, process: usize) -> Vec<Amount> {
        let of_process = &self.processes[process];
        let mut amounts = of_process.resources.clone();
        if of_process.forked_by.is_none() {
            for amount in &self.resources {
                match amounts.iter_mut().find(|own| own.resource == amount.resource) {
                    Some(own) => own.count = own.count.saturating_add(amount.count),
                    None => amounts.push(amount.clone()),
                }
            }
            amounts.sort_unstable();
        }
        amounts
    }

    /// Whether a process holds any resource, of its own or of the job.
    pub fn is_holder(&self, process: usize) -> bool {
        let of = &self.processes[process];
        !of.resources.is_empty() || of.forked_by.is_none() && !self.resources.is_empty()
    }

    /// Whether the job or a process of it holds any resource.
    pub fn holds_resources(&self) -> bool {
        let mut processes = self.processes.iter();
        !self.resources.is_empty() || processes.any(|process| !process.resources.is_empty())
    }

    /// The first resource that the job or a process of it names and the machine does not have: the
    /// process that holds it, and its place among [`Job::amounts`].
    pub fn missing_resource(&self, machine: &Machine) -> Option<(usize, usize)> {
        if !self.holds_resources() {
            return None;
        }
        (0..self.processes.len()).find_map(|process| {
            let amounts = self.amounts(process);
            let mut names = amounts.iter().map(|amount| &amount.resource);
            let place = names.position(|name| machine.resource(name).is_none())?;
            Some((process, place))
        })
    }

    /// Index of the initial process, the only one that nobody forks.
    pub fn initial_process(&self) -> Option<usize> {
        let mut processes = self.processes.iter();
        processes.position(|process| process.forked_by.is_none())
    }

    /// The tasks that must have ended before that task starts: at most two,
    /// those whose messages it waits for, and those that it names itself.
    pub fn predecessors(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        let Task { process, position, action, ref senders, ref after, .. } = self.tasks[task];
        let process = &self.processes[process];
        let before = match position.checked_sub(1) {
            Some(before) => Some(process.tasks[before]),
            None => process.forked_by,
        };
        let joined = match action {
            Action::Join { child: Some(child) } => self.processes[child].tasks.last().copied(),
            _ => None,
        };
        let awaited = senders.iter().chain(after).copied();
        before.into_iter().chain(joined).chain(awaited)
    }

    /// The tasks that can only start after that task has ended: at most two, and
    /// those that name it.
    pub fn successors(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        let Task { process, position, action, message_bytes, ref before, .. } = self.tasks[task];
        let process = &self.processes[process];
        let after = match process.tasks.get(position + 1) {
            Some(&after) => Some(after),
            None => process.joined_by,
        };
        let forked = match action {
            Action::Fork { child } => self.processes[child].tasks.first().copied(),
            Action::Communication { partner } => partner.filter(|_| message_bytes.is_some()),
            _ => None,
        };
        let before = before.iter().copied();
        after.into_iter().chain(forked).chain(before)
    }

    /// The processes that a process forks, in the order in which it does.
    pub fn children(&self, process: usize) -> impl Iterator<Item = usize> + '_ {
        let tasks = self.processes[process].tasks.iter();
        tasks.filter_map(|&task| match self.tasks[task].action {
            Action::Fork { child } => Some(child),
            _ => None,
        })
    }

    /// All instructions of a process. What is too much for 64 bits is
    /// `u64::MAX`.
    pub fn process_insns(&self, process: usize) -> u64 {
        let tasks = self.processes[process].tasks.iter();
        tasks.fold(0, |sum, &task| sum.saturating_add(self.tasks[task].insns))
    }

    /// Whether a process only forks and joins the others: it has no program, no instructions, no
    /// memory and no resources. A file leaves such a process out.
    pub fn only_forks(&self, process: usize) -> bool {
        let it = &self.processes[process];
        it.forked_by.is_none()
            && it.memory_bytes == 0
            && it.resources.is_empty()
            && it.start.commands().is_empty()
            && self.process_insns(process) == 0
    }

    /// Subject of a message about a process: `process sort`, or `the job` for a process that only
    /// forks and joins the others.
    pub fn subject(&self, process: usize) -> String {
        if self.only_forks(process) {
            "the job".into()
        } else {
            format!("process {}", self.processes[process].label())
        }
    }
}

impl Process {
    /// Returns the name of the process, or its number if it has none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

impl Task {
    /// Returns the number of the task, with its name if it has one.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} ({name})", self.id),
            None => self.id.to_string(),
        }
    }
}
