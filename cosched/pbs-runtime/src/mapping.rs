// SPDX-License-Identifier: GPL-2.0
//! Translation of the shared memory for the co-scheduler, and its decisions.
//!
//! Other processes wrote most of the shared memory. Numbers are limited to possible values.
//! Variants of missing devices are left out. A process whose tasks wait for each other is left out
//! with all of them.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use pbs_cosched::{
    accept, check, direct_dependencies, not_co_scheduled, schedule, score, timing, Edge,
    ExecutionTarget, Fault, Objective, Platform, Process, Queues, Recorded, Scheduler, Slot, State,
    Variant, Where, Workload,
};
use pbs_csi::{Device, Entry, Owner, Placement, Snapshot, Waiting};

use crate::model::Model;

/// Maximum time of anything, in ns: thirteen days.
const LONGEST_NS: u64 = 1 << 50;
/// Mappings that a search tries at most, for each task and in all.
const MAPPINGS_PER_TASK: u64 = 200;
const MOST_MAPPINGS: u64 = 5_000;
/// A search takes at most this part of the time that the tasks need without it.
const SEARCH_PART: u64 = 20;
/// Maximum number of threads, and of accelerators of a type.
const MOST_UNITS: u32 = 1024;

/// A workload made of what is in shared memory.
pub(crate) struct View {
    pub(crate) workload: Workload,
    pub(crate) platform: Platform,
    pub(crate) queues: Queues,
    /// Owner of each process of the workload.
    pub(crate) owners: Vec<Owner>,
    /// Index of each waiting task of the workload among the given ones.
    given: Vec<Option<usize>>,
    /// Index in the CSI of each task's variants.
    variants: Vec<Vec<u32>>,
    /// Local meaning of each device in shared memory.
    places: Vec<Option<On>>,
}

#[derive(Clone, Copy)]
enum On {
    Threads,
    Device(usize),
}

impl View {
    /// Without tasks that wait.
    fn empty(devices: &[Device], now_ns: u64) -> Self {
        let mut platform = Platform::default();
        let mut places = Vec::with_capacity(devices.len());
        for device in devices {
            let of_cpu = Model::ALL.iter().filter(|model| model.is_of_cpu());
            let is_cpu =
                of_cpu.fold(0, |set, model| set | 1 << model.number()) & device.models != 0;
            let count = device.count.min(MOST_UNITS);
            if is_cpu && platform.threads == 0 {
                platform.threads = count;
                places.push(Some(On::Threads));
            } else if is_cpu || count == 0 {
                places.push(None);
            } else {
                places.push(Some(On::Device(platform.devices.len())));
                platform.devices.push(pbs_cosched::DeviceType {
                    name: device.name.clone(),
                    count,
                    ..pbs_cosched::DeviceType::default()
                });
            }
        }
        let mut queues = Queues::idle(&platform);
        queues.now_ns = now_ns;
        Self {
            workload: Workload::default(),
            platform,
            queues,
            owners: Vec::new(),
            given: Vec::new(),
            variants: Vec::new(),
            places,
        }
    }

    /// Tasks that wait, with their CSIs, and those in execution.
    pub(crate) fn new(
        devices: &[Device],
        waiting: &[Waiting],
        in_execution: &[Entry],
        now_ns: u64,
    ) -> Self {
        let mut left_out = HashSet::new();
        loop {
            let mut view = Self::empty(devices, now_ns);
            for entry in in_execution {
                view.add_running(entry);
            }
            view.add_waiting(waiting, &mut left_out);
            let Err(mut faults) = check(&view.workload, &view.platform) else {
                return view;
            };
            // Nobody's times alone are out of bounds, and sums saturate: one who says long
            // ones does not keep others from being co-scheduled.
            faults.retain(|fault| *fault != Fault::TooLong);
            if faults.is_empty() {
                return view;
            }
            let before = left_out.len();
            for fault in faults {
                left_out.extend(fault_tasks(&fault).iter().filter_map(|&task| {
                    let process = view.workload.tasks.get(task)?.process;
                    view.owners.get(process).copied()
                }));
            }
            if left_out.len() == before {
                // Nobody is to blame: then nothing of it can be used.
                return Self::empty(devices, now_ns);
            }
        }
    }

    fn process(&mut self, owner: Owner, arrival_ns: u64) -> usize {
        let arrival_ns = arrival_ns.min(self.queues.now_ns);
        if let Some(index) = self.owners.iter().position(|of| *of == owner) {
            let process = &mut self.workload.processes[index];
            process.arrival_ns = process.arrival_ns.min(arrival_ns);
            return index;
        }
        self.owners.push(owner);
        self.workload.processes.push(Process {
            name: format!("{}-{}", owner.pid, owner.start_ticks),
            owner: u64::from(owner.pid),
            arrival_ns,
            deadline_ns: None,
        });
        self.owners.len() - 1
    }

    fn place(&self, device: u32, units: u32) -> Option<ExecutionTarget> {
        match *self.places.get(device as usize)?.as_ref()? {
            On::Threads => {
                let is_there = (1..=self.platform.threads).contains(&units);
                is_there.then_some(ExecutionTarget::Threads(units))
            }
            On::Device(device) => Some(ExecutionTarget::Device(device)),
        }
    }

    /// A task in execution: on what it runs is taken until its end.
    fn add_running(&mut self, entry: &Entry) {
        let Some(on) = entry.device.and_then(|of| *self.places.get(of as usize)?) else {
            return;
        };
        let now_ns = self.queues.now_ns;
        let end_ns = entry.expected_end_ns.clamp(now_ns, now_ns + LONGEST_NS);
        let process = self.process(entry.owner, entry.registered_ns);
        let queued = pbs_cosched::Entry {
            process,
            in_execution: true,
            runtime_ns: entry.runtime_ns.min(LONGEST_NS),
            end_ns,
        };
        let (place, taken) = match on {
            On::Threads => {
                let units = entry.units.clamp(1, self.platform.threads.max(1));
                let threads = self.threads_of(entry.instance, units);
                for &thread in &threads {
                    self.queues.threads[thread as usize].push(queued);
                }
                (ExecutionTarget::Threads(units), Where::Threads(threads))
            }
            On::Device(device) => {
                let queues = &mut self.queues.devices[device];
                let instance = entry.instance.filter(|of| (*of as usize) < queues.len());
                let instance = instance.unwrap_or(0);
                queues[instance as usize].push(queued);
                (ExecutionTarget::Device(device), Where::Device { device, instance })
            }
        };
        let runtime_ns = entry.runtime_ns.min(LONGEST_NS);
        self.workload.tasks.push(pbs_cosched::Task {
            name: entry.task.to_string(),
            process,
            after: Vec::new(),
            variants: vec![Variant { model: String::new(), place, runtime_ns }],
        });
        self.queues.tasks.push(State::Started(Slot {
            start_ns: end_ns.saturating_sub(runtime_ns),
            end_ns,
            place: taken,
        }));
        self.given.push(None);
        self.variants.push(Vec::new());
    }

    /// The threads that a task runs on; where it has no certain ones, those with the
    /// shortest queues.
    fn threads_of(&self, first: Option<u32>, units: u32) -> Vec<u32> {
        let all = self.platform.threads;
        match first.filter(|first| first.saturating_add(units) <= all) {
            Some(first) => (first..first + units).collect(),
            None => {
                let mut threads: Vec<u32> = (0..all).collect();
                threads.sort_by_key(|&thread| self.queues.threads[thread as usize].len());
                threads.truncate(units as usize);
                threads
            }
        }
    }

    /// Tasks that wait. A transfer is none, but stands for what is behind it (§5.3.2).
    fn add_waiting(&mut self, waiting: &[Waiting], left_out: &mut HashSet<Owner>) {
        let edges = loop {
            let recorded = recorded(waiting, left_out);
            let circle = match direct_dependencies(&recorded) {
                Ok(edges) => break edges,
                Err(circle) => circle,
            };
            // Names are of one owner; each turn leaves out one more.
            let owner = waiting.iter().find(|of| {
                let own = key(of.entry.owner, of.entry.task);
                circle.contains(&own)
            });
            match owner {
                Some(of) => left_out.insert(of.entry.owner),
                None => break Vec::new(),
            };
        };
        let is_in = |of: &Waiting| !left_out.contains(&of.entry.owner);
        // Of each one that was recorded, its index in the workload.
        let mut indices: Vec<Option<usize>> = Vec::with_capacity(edges.len());
        let known = waiting.iter().enumerate().filter(|(_, of)| is_in(of));
        for (given, of) in known {
            let variants = self.fitting(of);
            if of.csi.is_transfer || variants.is_empty() {
                indices.push(None);
                continue;
            }
            let process = self.process(of.entry.owner, of.entry.registered_ns);
            let (numbers, variants) = variants.into_iter().unzip();
            indices.push(Some(self.workload.tasks.len()));
            self.workload.tasks.push(pbs_cosched::Task {
                name: of.entry.task.to_string(),
                process,
                after: Vec::new(),
                variants,
            });
            self.queues.tasks.push(State::Waiting);
            self.given.push(Some(given));
            self.variants.push(numbers);
        }
        let running: HashMap<(usize, String), usize> = self
            .workload
            .tasks
            .iter()
            .enumerate()
            .filter(|(task, _)| self.given[*task].is_none())
            .map(|(index, task)| ((task.process, task.name.clone()), index))
            .collect();
        for (number, edges) in edges.iter().enumerate() {
            let Some(task) = indices[number] else {
                continue;
            };
            let Some(of) = self.given[task].map(|given| &waiting[given]) else {
                continue;
            };
            let transfer_ns = of.csi.transfer_ns.min(LONGEST_NS);
            let process = self.workload.tasks[task].process;
            let direct = edges.iter().filter_map(|edge| {
                let before = indices[edge.task]?;
                let transfer_ns = edge.transfer_ns.max(transfer_ns);
                Some(Edge { task: before, transfer_ns })
            });
            let started = of.csi.dependencies.iter().filter_map(|before| {
                let before = *running.get(&(process, before.to_string()))?;
                Some(Edge { task: before, transfer_ns })
            });
            let after = direct.chain(started).collect();
            self.workload.tasks[task].after = after;
        }
    }

    /// The variants for devices that are there, with their numbers.
    fn fitting(&self, of: &Waiting) -> Vec<(u32, Variant)> {
        let variants = of.csi.variants.iter().zip(0..);
        variants
            .filter_map(|(variant, number)| {
                let model = Model::of(variant.model)?;
                let place = self.place(variant.device, variant.threads)?;
                let runtime_ns = variant.runtime_ns.clamp(1, LONGEST_NS);
                let own = Variant { model: model.name().into(), place, runtime_ns };
                Some((number, own))
            })
            .collect()
    }

    /// Adds what waits to the queues, in their order, as a process finds them that has come.
    pub(crate) fn queue_waiting(&mut self, entries: &[Entry]) {
        let mut entries: Vec<&Entry> =
            entries.iter().filter(|of| of.state == pbs_csi::State::Waiting).collect();
        entries.sort_by_key(|of| of.place());
        for entry in entries {
            let Some(on) = entry.device.and_then(|of| *self.places.get(of as usize)?) else {
                continue;
            };
            let process = self.process(entry.owner, entry.registered_ns);
            let runtime_ns = entry.runtime_ns.min(LONGEST_NS);
            let now_ns = self.queues.now_ns;
            let end = |queue: &[pbs_cosched::Entry]| {
                queue.last().map_or(now_ns, |last| last.end_ns).max(now_ns)
            };
            let queued = |begin_ns: u64| pbs_cosched::Entry {
                process,
                in_execution: false,
                runtime_ns,
                end_ns: begin_ns.saturating_add(runtime_ns),
            };
            match on {
                On::Threads => {
                    let units = entry.units.clamp(1, self.platform.threads.max(1)) as usize;
                    let mut threads: Vec<usize> = (0..self.queues.threads.len()).collect();
                    threads.sort_by_key(|&thread| end(&self.queues.threads[thread]));
                    threads.truncate(units);
                    let last = threads.last().map(|&last| end(&self.queues.threads[last]));
                    for thread in threads {
                        self.queues.threads[thread].push(queued(last.unwrap_or(now_ns)));
                    }
                }
                On::Device(device) => {
                    let queues = &mut self.queues.devices[device];
                    if let Some(queue) = queues.iter_mut().min_by_key(|queue| end(queue)) {
                        queue.push(queued(end(queue)));
                    }
                }
            }
        }
    }

    /// Returns the index of a process in the workload.
    pub(crate) fn index(&self, owner: Owner) -> Option<usize> {
        self.owners.iter().position(|of| *of == owner)
    }
}

/// Bound of a search.
struct Budget {
    mappings: u64,
    until: Instant,
}

impl Budget {
    /// A search for that many tasks, which need so long without it.
    fn new(tasks: usize, needed_ns: u64) -> Self {
        let mappings = MAPPINGS_PER_TASK.saturating_mul(tasks as u64).min(MOST_MAPPINGS);
        let search = Duration::from_nanos((needed_ns / SEARCH_PART).min(LONGEST_NS));
        Self { mappings, until: Instant::now() + search }
    }

    fn lasts(&mut self) -> bool {
        self.mappings = self.mappings.saturating_sub(1);
        self.mappings > 0 && Instant::now() < self.until
    }
}

/// Decides on the waiting tasks as master. Returns nothing if the schedule is not better than
/// letting each process continue on its own.
pub(crate) fn decide(
    snapshot: &Snapshot,
    scheduler: &Scheduler,
    objective: Objective,
    keep_going: &mut dyn FnMut() -> bool,
) -> Vec<Placement> {
    let view =
        View::new(&snapshot.devices, &snapshot.waiting, &snapshot.in_execution, snapshot.now_ns);
    let (workload, platform, queues) = (&view.workload, &view.platform, &view.queues);
    let alone = not_co_scheduled(workload, platform, queues);
    let alone_times = timing(workload, platform, queues, &alone);
    let needed_ns = alone_times.as_ref().map_or(0, |of| of.end_ns().saturating_sub(queues.now_ns));
    let mut budget = Budget::new(workload.tasks.len(), needed_ns);
    let mut keep_going = || budget.lasts() && keep_going();
    let own = schedule(workload, platform, queues, scheduler, objective, &mut keep_going);
    let own_value = timing(workload, platform, queues, &own).map(|of| score(workload, &of));
    let alone_value = alone_times.map(|of| score(workload, &of));
    let mapping = match (own_value, alone_value) {
        (Ok(with), Ok(without)) if accept(without, with, objective).accepted => own,
        (Ok(_), Err(_)) => own,
        (_, Ok(_)) => alone,
        (Err(_), Err(_)) => return Vec::new(),
    };
    let order = mapping.order();
    let mut placements = Vec::with_capacity(order.len());
    for (task, behind) in order.into_iter().zip(0..) {
        let (Some(choice), Some(given)) = (mapping.choices[task], view.given[task]) else {
            continue;
        };
        let waiting = &snapshot.waiting[given];
        let Some(&best_index) = view.variants[task].get(choice.variant) else {
            continue;
        };
        let Some(variant) = waiting.csi.variants.get(best_index as usize) else {
            continue;
        };
        placements.push(Placement {
            slot: waiting.entry.slot,
            owner: waiting.entry.owner,
            task: waiting.entry.task,
            best_index,
            round: choice.round,
            priority: u64::from(u32::MAX) - behind,
            device: variant.device,
            units: variant.threads.max(1),
            runtime_ns: variant.runtime_ns,
        });
    }
    placements
}

fn key(owner: Owner, task: u64) -> String {
    format!("{}.{}-{task}", owner.pid, owner.start_ticks)
}

/// Returns the records of waiting tasks with their dependencies, without those of some owners.
fn recorded(waiting: &[Waiting], left_out: &HashSet<Owner>) -> Vec<Recorded> {
    let waiting = waiting.iter();
    let waiting = waiting.filter(|of| !left_out.contains(&of.entry.owner));
    let recorded = waiting.map(|of| {
        let name = |task: &u64| key(of.entry.owner, *task);
        let transfer_ns = of.csi.transfer_ns.min(LONGEST_NS);
        Recorded {
            name: name(&of.entry.task),
            after: of.csi.dependencies.iter().map(name).collect(),
            before: Vec::new(),
            transfer_ns: of.csi.is_transfer.then_some(transfer_ns),
        }
    });
    recorded.collect()
}

fn fault_tasks(fault: &Fault) -> Vec<usize> {
    match fault {
        Fault::Cycle(tasks) => tasks.clone(),
        Fault::NoSuchPredecessor { task, .. }
        | Fault::NoSuchProcess { task }
        | Fault::NoVariant { task }
        | Fault::NothingFits { task }
        | Fault::SameName { task, .. }
        | Fault::NotWaiting { task }
        | Fault::NoSuchVariant { task, .. }
        | Fault::TooLarge { task, .. }
        | Fault::BeforeItsPredecessor { task, .. } => vec![*task],
        Fault::TooLong => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
