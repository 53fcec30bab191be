// SPDX-License-Identifier: GPL-2.0
//! Data of the search: a job's open tasks, and the part of the machine that its plans may use,
//! copied once into arrays that lie side by side. With these data, making a plan takes
//! microseconds. In the store, which must be right for all jobs and at any time, it takes ten times
//! as long. The model contains no reservations: a plan that the search finds is reserved like any
//! other plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pbs_job::Machine;
use pbs_profile::Profile;

use crate::budget::Budget;
use crate::reserve::net::{self, Net};
use crate::reserve::{Progress, Request};
use crate::store::{Run, Store};

/// Cores that a search looks at, in all and for each process. On larger machines it
/// takes those that the rules have used, and some that are free first.
const MOST_CORES: usize = 64;
const CORES_A_PROCESS: usize = 4;

/// No task, no core.
pub(super) const NONE: u32 = u32::MAX;

pub(super) struct Model<'a> {
    /// Count of the steps of the search.
    pub(super) work: &'a Budget,
    pub(super) machine: &'a Machine,
    pub(super) start_ns: u64,
    /// Each after all that it waits for.
    pub(super) tasks: Vec<Task>,
    /// Per task: how many others it waits for.
    pub(super) waits_for: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
    messages: Vec<Message>,
    pub(super) processes: Vec<Process>,
    /// Cores that any process may go to, followed by those that only have some process already.
    pub(super) cores: Vec<Core>,
    /// Number of the cores that any process may go to.
    pub(super) open_cores: usize,
    /// Number of kinds of cores.
    kinds: usize,
    /// Per task and kind of core.
    length_ns: Vec<u64>,
    /// Per process and kind of core: of the task that it needs a core for first, and
    /// of all.
    process_ns: Vec<(u64, u64)>,
    /// Memories of the cores, followed by the resources that processes hold.
    pub(super) memories: Vec<Memory>,
    /// Number of the memories of cores.
    core_memories: usize,
    /// Tasks that are being executed.
    pub(super) begun: Vec<u32>,
}

pub(super) struct Task {
    /// In the job.
    pub(super) index: usize,
    pub(super) process: u32,
    before: Range<u32>,
    after: Range<u32>,
    messages: Range<u32>,
    /// From its end to the end of the job at least.
    pub(super) after_ns: u64,
    /// Whether the task is the first of its process.
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

/// A message that a task waits for.
pub(super) struct Message {
    pub(super) from: u32,
    pub(super) bytes: u64,
}

pub(super) struct Process {
    /// In the job.
    pub(super) index: usize,
    pub(super) memory_bytes: u64,
    /// Resources that it holds, by their place in [`Model::memories`], with their amounts.
    resources: Vec<(usize, u64)>,
    /// From its start to its end at least.
    pub(super) span_ns: u64,
    /// The core that has it.
    pub(super) has_core: Option<u32>,
    /// Open tasks of the process, in order.
    pub(super) tasks: Vec<u32>,
}

pub(super) struct Core {
    /// In the store.
    pub(super) index: usize,
    /// Cores of a kind are as fast as each other.
    pub(super) kind: u32,
    pub(super) node: usize,
    /// In the model.
    pub(super) memory: u32,
    /// Whether no time of the core is reserved.
    pub(super) is_free: bool,
    pub(super) gaps: Vec<Gap>,
}

/// A stretch of time in which a core is free.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The task of the model that ends when it begins, if one does.
    pub(super) after: u32,
}

/// Memory, or a resource whose amounts count as bytes do.
pub(super) struct Memory {
    /// From when on how many bytes are free, where it is not plenty.
    free: Vec<(u64, u64)>,
    /// Whether the memory is enough for all processes at any time.
    pub(super) is_plenty: bool,
}

impl Memory {
    /// Free amount of a profile, of which all processes together need `all`.
    fn new(profile: &Profile, all: u64, window: &Range<u64>) -> Self {
        let least = profile.min_over(window.clone());
        let is_plenty = least.is_some_and(|least| least >= all);
        let mut free = Vec::new();
        if !is_plenty {
            let steps = profile.steps_from(window.start);
            let steps = steps.take_while(|step| step.from < window.end);
            free.extend(steps.map(|step| (step.from.max(window.start), step.value)));
        }
        Self { free, is_plenty }
    }

    /// A memory of which other jobs leave so much from when on.
    #[cfg(test)]
    pub(super) fn of_steps(free: Vec<(u64, u64)>) -> Self {
        Self { free, is_plenty: false }
    }

    /// From when on how many bytes other jobs leave free.
    pub(super) fn steps(&self) -> &[(u64, u64)] {
        &self.free
    }

    /// Returns the stretches of time in which `bytes` are free for at least `span_ns`.
    pub(super) fn windows(&self, bytes: u64, span_ns: u64) -> Vec<Range<u64>> {
        let mut windows: Vec<Range<u64>> = Vec::new();
        let ends = self.free.iter().skip(1).map(|step| step.0);
        for (&(start_ns, free_bytes), end_ns) in self.free.iter().zip(ends.chain([u64::MAX])) {
            match windows.last_mut() {
                _ if free_bytes < bytes => {}
                Some(window) if window.end == start_ns => window.end = end_ns,
                _ => windows.push(start_ns..end_ns),
            }
        }
        windows.retain(|window| window.end - window.start >= span_ns);
        windows
    }
}

impl<'a> Model<'a> {
    /// `runs` are plans that rules have led to: their cores are looked at. Plans
    /// that end after `horizon_ns` are not.
    pub(super) fn new(
        request: &Request<'_>,
        net: &Net,
        store: &'a Store,
        runs: &[&Run],
        horizon_ns: u64,
        work: &'a Budget,
    ) -> Self {
        let mut model = Self {
            work,
            machine: store.machine(),
            start_ns: request.start_ns,
            tasks: Vec::new(),
            waits_for: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            messages: Vec::new(),
            processes: Vec::new(),
            cores: Vec::new(),
            open_cores: 0,
            kinds: 0,
            length_ns: Vec::new(),
            process_ns: Vec::new(),
            memories: Vec::new(),
            core_memories: 0,
            begun: Vec::new(),
        };
        let order = net::order(request.job, &net.open);
        let mut place = vec![NONE; request.job.tasks.len()];
        for (at, &task) in (0u32..).zip(&order) {
            place[task] = at;
        }
        let (indices, open_cores) = candidates(request, net, store, runs, horizon_ns, work);
        model.open_cores = open_cores;
        model.add_processes(request, net, &place, &indices);
        model.add_tasks(request, net, &order, &place);
        model.add_cores(net, store, &indices, horizon_ns);
        model.add_resources(net, store, horizon_ns);
        model.measure(net, store);
        model
    }

    fn add_processes(
        &mut self,
        request: &Request<'_>,
        net: &Net,
        place: &[u32],
        indices: &[usize],
    ) {
        for (index, process) in request.job.processes.iter().enumerate() {
            let open = process.tasks.iter().filter(|&&task| net.open[task]);
            let tasks: Vec<u32> = open.map(|&task| place[task]).collect();
            if tasks.is_empty() {
                continue;
            }
            let has_core = match request.progress_of(index) {
                Progress::Running { core, .. } => indices.iter().position(|&of| of == core),
                // It may hold nothing before it begins, wherever that is.
                Progress::Waiting | Progress::Attached { .. } | Progress::Ended => None,
            };
            self.processes.push(Process {
                index,
                memory_bytes: process.memory_bytes,
                resources: Vec::new(),
                span_ns: net.span_ns[index],
                has_core: has_core.map(|core| core as u32),
                tasks,
            });
        }
    }

    fn add_tasks(&mut self, request: &Request<'_>, net: &Net, order: &[usize], place: &[u32]) {
        let job = request.job;
        let mut of = vec![NONE; order.len()];
        for (index, process) in (0u32..).zip(&self.processes) {
            for &task in &process.tasks {
                of[task as usize] = index;
            }
        }
        for (at, &task) in (0u32..).zip(order) {
            let before = self.before.len() as u32;
            let after = self.after.len() as u32;
            let messages = self.messages.len() as u32;
            let open = net.predecessors(job, task).filter(|&before| net.open[before]);
            self.before.extend(open.map(|before| place[before]));
            self.waits_for.push(self.before.len() as u32 - before);
            let open = net.successors(job, task).filter(|&after| net.open[after]);
            self.after.extend(open.map(|after| place[after]));
            if self.links() > 0 {
                let senders = job.tasks[task].senders.iter();
                let open = senders.filter(|&&from| net.open[from]);
                self.messages.extend(open.map(|&from| Message {
                    from: place[from],
                    bytes: job.tasks[from].message_bytes.unwrap_or(0),
                }));
            }
            let process = of[at as usize];
            let tasks = &self.processes[process as usize].tasks;
            self.tasks.push(Task {
                index: task,
                process,
                before: before..self.before.len() as u32,
                after: after..self.after.len() as u32,
                messages: messages..self.messages.len() as u32,
                after_ns: net.rank_ns[task].saturating_sub(net.shortest_ns[task]),
                is_first: tasks.first() == Some(&at),
                is_last: tasks.last() == Some(&at),
            });
            if request.is_executed(task) && self.before(at).is_empty() {
                self.begun.push(at);
            }
        }
    }

    fn add_cores(&mut self, net: &Net, store: &Store, indices: &[usize], horizon_ns: u64) {
        let window = self.start_ns..horizon_ns;
        let all = self.processes.iter().map(|process| process.memory_bytes);
        let all_bytes = all.fold(0, u64::saturating_add);
        let lengths_ns = net.shortest_ns.iter().copied();
        let least_ns = lengths_ns.filter(|&length_ns| length_ns > 0).min().unwrap_or(0);
        let mut rates: Vec<u64> = Vec::new();
        let mut memories: Vec<usize> = Vec::new();
        for &index in indices {
            let site = store.sites()[index];
            let kind = position_or_push(&mut rates, site.rate_insns_per_s);
            let memory = position_or_push(&mut memories, site.memory);
            if memory == self.memories.len() {
                self.memories.push(Memory::new(&store.memories()[site.memory], all_bytes, &window));
            }
            let steps = store.core(index).steps_from(window.start);
            let steps = steps.take_while(|step| step.from < window.end);
            let free = steps.filter(|step| step.value > 0);
            // Shorter ones are of no use.
            let useful = free.filter(|step| step.until - step.from >= least_ns);
            let gaps = useful.map(|step| Gap {
                start_ns: step.from.max(window.start),
                end_ns: step.until.min(window.end),
                after: NONE,
            });
            let gaps: Vec<Gap> = gaps.collect();
            let is_all = |gap: &Gap| (gap.start_ns, gap.end_ns) == (window.start, window.end);
            self.cores.push(Core {
                index,
                kind: kind as u32,
                node: site.node,
                memory: memory as u32,
                is_free: gaps.first().is_some_and(is_all),
                gaps,
            });
        }
        self.kinds = rates.len();
        self.core_memories = self.memories.len();
    }

    /// Adds the resources that the processes hold.
    fn add_resources(&mut self, net: &Net, store: &Store, horizon_ns: u64) {
        let window = self.start_ns..horizon_ns;
        let mut all: BTreeMap<usize, u64> = BTreeMap::new();
        for held in self.processes.iter().flat_map(|process| &net.needs[process.index].resources) {
            let sum = all.entry(held.resource).or_default();
            *sum = sum.saturating_add(held.count);
        }
        let mut places = BTreeMap::new();
        for (resource, all) in all {
            places.insert(resource, self.memories.len());
            self.memories.push(Memory::new(store.resource(resource), all, &window));
        }
        for process in &mut self.processes {
            let held = net.needs[process.index].resources.iter();
            process.resources = held.map(|it| (places[&it.resource], it.count)).collect();
        }
    }

    /// The memories and resources that a process holds on that core, with their amounts; those of
    /// which there is plenty are left out.
    pub(super) fn held(&self, process: u32, core: u32) -> impl Iterator<Item = (usize, u64)> + '_ {
        let of = &self.processes[process as usize];
        let memory = self.cores[core as usize].memory as usize;
        let held = std::iter::once((memory, of.memory_bytes)).chain(of.resources.iter().copied());
        held.filter(|&(index, _)| !self.memories[index].is_plenty)
    }

    /// The resources that a process holds, with their amounts.
    pub(super) fn resources(&self, process: u32) -> &[(usize, u64)] {
        &self.processes[process as usize].resources
    }

    /// Places in [`Model::memories`] of the memories of cores.
    pub(super) fn core_memories(&self) -> Range<usize> {
        0..self.core_memories
    }

    fn measure(&mut self, net: &Net, store: &Store) {
        let mut cores = vec![0; self.kinds];
        for core in &self.cores {
            cores[core.kind as usize] = core.index;
        }
        for task in &self.tasks {
            let insns = net.insns[task.index];
            let lengths = cores.iter().map(|&core| store.duration_ns(core, insns));
            self.length_ns.extend(lengths);
        }
        for process in &self.processes {
            let first_insns = net.first_insns[process.index];
            let all_insns = net.process_insns[process.index];
            self.process_ns.extend(cores.iter().map(|&core| {
                let ns = |insns| store.duration_ns(core, insns);
                (ns(first_insns), ns(all_insns))
            }));
        }
    }

    pub(super) fn before(&self, task: u32) -> &[u32] {
        let of = &self.tasks[task as usize].before;
        &self.before[of.start as usize..of.end as usize]
    }

    pub(super) fn after(&self, task: u32) -> &[u32] {
        let of = &self.tasks[task as usize].after;
        &self.after[of.start as usize..of.end as usize]
    }

    pub(super) fn messages(&self, task: u32) -> &[Message] {
        let of = &self.tasks[task as usize].messages;
        &self.messages[of.start as usize..of.end as usize]
    }

    pub(super) fn links(&self) -> usize {
        self.machine.links.len()
    }

    pub(super) fn length_ns(&self, task: u32, core: u32) -> u64 {
        self.length_ns[task as usize * self.kinds + self.cores[core as usize].kind as usize]
    }

    /// Returns the time of the first task for which the process needs a core, and the time of all
    /// its tasks.
    pub(super) fn process_ns(&self, process: u32, core: u32) -> (u64, u64) {
        self.process_ns[process as usize * self.kinds + self.cores[core as usize].kind as usize]
    }

    /// From its start to the end of the job at least.
    pub(super) fn rank_ns(&self, task: u32) -> u64 {
        let kinds = task as usize * self.kinds..(task as usize + 1) * self.kinds;
        let shortest_ns = self.length_ns[kinds].iter().min().copied();
        let after_ns = self.tasks[task as usize].after_ns;
        after_ns.saturating_add(shortest_ns.unwrap_or(0))
    }

    pub(super) fn last_task(&self, process: u32) -> u32 {
        let tasks = &self.processes[process as usize].tasks;
        tasks.last().copied().unwrap_or(NONE)
    }

    /// Per process: the core that has it; of others [`NONE`].
    pub(super) fn held_cores(&self) -> impl Iterator<Item = u32> + '_ {
        let cores = self.processes.iter().map(|process| process.has_core);
        cores.map(|core| core.unwrap_or(NONE))
    }

    /// A core of each kind and memory, of those that any process may go to.
    pub(super) fn kinds_of_cores(&self) -> Vec<u32> {
        let mut kinds: Vec<(u32, u32)> = Vec::new();
        let mut cores = Vec::new();
        for (core, of) in (0u32..).zip(&self.cores[..self.open_cores]) {
            if position_or_push(&mut kinds, (of.kind, of.memory)) == cores.len() {
                cores.push(core);
            }
        }
        cores
    }
}

fn position_or_push<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    let found = all.iter().position(|other| *other == one);
    found.unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}

/// The cores that are looked at, and how many of them any process may go to: those come
/// first, both in order.
fn candidates(
    request: &Request<'_>,
    net: &Net,
    store: &Store,
    runs: &[&Run],
    horizon_ns: u64,
    work: &Budget,
) -> (Vec<usize>, usize) {
    let all = store.sites().len();
    let Some(confined) = &net.confined else {
        let cores = if all <= MOST_CORES {
            (0..all).collect()
        } else {
            some_cores(request, net, store, runs, horizon_ns, work, |_| true)
        };
        let open_cores = cores.len();
        return (cores, open_cores);
    };
    let allowed = (0..all).filter(|&core| confined.allows(core));
    let mut cores: Vec<usize> = allowed.collect();
    if cores.len() > MOST_CORES {
        let is_allowed = |core| confined.allows(core);
        cores = some_cores(request, net, store, runs, horizon_ns, work, is_allowed);
        cores.retain(|&core| confined.allows(core));
    }
    let open_cores = cores.len();
    let others = (0..all).filter(|&core| confined.uses(core) && !confined.allows(core));
    cores.extend(others);
    (cores, open_cores)
}

/// Selects some of many cores: those that the rules have used, and some of those that are allowed
/// and free first, in order.
fn some_cores(
    request: &Request<'_>,
    net: &Net,
    store: &Store,
    runs: &[&Run],
    horizon_ns: u64,
    work: &Budget,
    is_allowed: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let all = store.sites().len();
    let used = runs.iter().flat_map(|run| &run.processes);
    let mut cores: BTreeSet<usize> = used.map(|process| process.core).collect();
    let processes = request.job.processes.len();
    for process in 0..processes {
        match request.progress_of(process) {
            Progress::Running { core, .. } if core < all => _ = cores.insert(core),
            _ => {}
        }
    }
    // Where the longest process could be all at once.
    let longest_insns = net.process_insns.iter().copied().max().unwrap_or(0);
    let free = store.groups_by_rate().filter_map(|group| {
        let machine = store.machine();
        let length_ns = machine.duration_ns(longest_insns, group.rate_insns_per_s);
        let window = request.start_ns..=horizon_ns.checked_sub(length_ns)?;
        let wanted = |core| is_allowed(core as usize);
        let found = (group.gaps).earliest(work, &window, length_ns.max(1), wanted);
        found.map(|(start_ns, core)| (start_ns.saturating_add(length_ns), core as usize))
    });
    let mut free: Vec<(u64, usize)> = free.collect();
    free.sort_unstable();
    let most = MOST_CORES.min(CORES_A_PROCESS * processes).max(cores.len());
    for (_, core) in free {
        if cores.len() == most {
            break;
        }
        cores.insert(core);
    }
    cores.into_iter().collect()
}
