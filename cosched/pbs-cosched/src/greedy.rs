// SPDX-License-Identifier: GPL-2.0
//! The round-based greedy scheduler (§5.4).
//!
//! Round after round, accelerators go to ready tasks that urgently need them, then to others
//! that can use them; the rest share the threads of the CPU.  The thesis compares each task
//! with each other; here queues ordered by priority make it O((n + e) log n).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::check::fits;
use crate::mapping::{Choice, Hold, Mapping};
use crate::model::{ExecutionTarget, Platform, Task, Workload};
use crate::queues::{Queues, State, Where};

/// Criterion by which a task wins an accelerator (§5.4.2).  Equal tasks are ranked by submission,
/// then by the smaller owner, then by the smaller number of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Most direct successors.
    Successors,
    /// Least runtime there.
    Runtime,
    /// The oldest.
    #[default]
    Age,
}

/// Options of the greedy scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyOptions {
    /// Criterion when several tasks urgently need an accelerator (§4.4.1).
    pub contention: Priority,
    /// Criterion for leftovers: free accelerators, and the larger share of the CPU.
    pub leftovers: Priority,
    /// A task that is alone in its round stays where its predecessor ran, unless it gains more
    /// than the transfer costs (§5.4.3; the criterion is ours).
    pub stickiness: bool,
}

impl Default for GreedyOptions {
    fn default() -> Self {
        Self { contention: Priority::Age, leftovers: Priority::Age, stickiness: true }
    }
}

/// Maps all waiting tasks; of a workload that [`check`](crate::check()) accepts, each of them.
///
/// What runs has won its devices for the first round: they are given out, and tasks that wait
/// for it are ready, from the second.
pub fn greedy(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    options: &GreedyOptions,
) -> Mapping {
    let mut rounds = Rounds::new(workload, platform, queues, options);
    rounds.run();
    rounds.mapping
}

/// Tasks, best first: what decides, then the rank among equals, then the task.
type Contest = BinaryHeap<Reverse<(u64, u32, usize)>>;

struct Rounds<'a> {
    workload: &'a Workload,
    platform: &'a Platform,
    queues: &'a Queues,
    options: &'a GreedyOptions,
    successors: Vec<Vec<usize>>,
    /// Place among equals.
    rank: Vec<u32>,
    /// Number of predecessors of each task that are not allocated yet.
    open: Vec<usize>,
    ready: BTreeSet<usize>,
    /// Ready tasks with a CPU variant.
    ready_for_cpu: u32,
    /// Contest of each accelerator type: tasks without another option, and tasks that can use it.
    urgent: Vec<Contest>,
    able: Vec<Contest>,
    cpu: Contest,
    /// The round that is under way, and who got something in it.
    round: u32,
    given: Vec<usize>,
    mapping: Mapping,
}

impl<'a> Rounds<'a> {
    fn new(
        workload: &'a Workload,
        platform: &'a Platform,
        queues: &'a Queues,
        options: &'a GreedyOptions,
    ) -> Self {
        let tasks = workload.tasks.len();
        let mut by_rank: Vec<usize> = (0..tasks).collect();
        by_rank.sort_by_key(|&task| {
            let of = workload.processes.get(workload.tasks[task].process);
            of.map_or((0, 0, task), |of| (of.arrival_ns, of.owner, task))
        });
        let mut rank = vec![0; tasks];
        for (place, task) in (0..).zip(by_rank) {
            rank[task] = place;
        }
        let contests = || platform.devices.iter().map(|_| Contest::new()).collect();
        Self {
            workload,
            platform,
            queues,
            options,
            successors: workload.successors(),
            rank,
            open: vec![0; tasks],
            ready: BTreeSet::new(),
            ready_for_cpu: 0,
            urgent: contests(),
            able: contests(),
            cpu: Contest::new(),
            round: 1,
            given: Vec::new(),
            mapping: Mapping { choices: vec![None; tasks] },
        }
    }

    fn run(&mut self) {
        // Who waits for a task that runs is let go with the first round's winners.
        let mut running = Vec::new();
        for (task, of) in self.workload.tasks.iter().enumerate() {
            if self.runs(task) {
                running.push(task);
            }
            let waits_for = |edge: &&crate::Edge| {
                edge.task < self.open.len()
                    && (self.queues.waits(edge.task) || self.runs(edge.task))
            };
            self.open[task] = of.after.iter().filter(waits_for).count();
        }
        for task in 0..self.open.len() {
            if self.open[task] == 0 && self.queues.waits(task) {
                self.make_ready(task);
            }
        }
        loop {
            self.give_out();
            let mut given = std::mem::take(&mut self.given);
            given.append(&mut running);
            if given.is_empty() && self.round > 1 {
                return;
            }
            for task in given {
                for at in 0..self.successors[task].len() {
                    let next = self.successors[task][at];
                    self.open[next] -= 1;
                    if self.open[next] == 0 && self.queues.waits(next) {
                        self.make_ready(next);
                    }
                }
            }
            self.round += 1;
        }
    }

    fn runs(&self, task: usize) -> bool {
        self.queues.slot(task).is_some_and(|slot| slot.end_ns > self.queues.now_ns)
    }

    /// One round.
    fn give_out(&mut self) {
        let mut threads = self.platform.threads;
        let mut free: Vec<u32> = self.platform.devices.iter().map(|of| of.count).collect();
        if self.round == 1 {
            let busy = |queue: &Vec<crate::Entry>| {
                queue.iter().any(|entry| entry.in_execution && entry.end_ns > self.queues.now_ns)
            };
            let of = |queues: &Vec<Vec<crate::Entry>>| {
                queues.iter().filter(|queue| busy(queue)).count() as u32
            };
            threads = threads.saturating_sub(of(&self.queues.threads));
            for (free, queues) in free.iter_mut().zip(&self.queues.devices) {
                *free = free.saturating_sub(of(queues));
            }
        }
        if self.options.stickiness && self.ready.len() == 1 {
            if let Some((task, variant)) = self.sticky() {
                let there = match self.workload.tasks[task].variants[variant].place {
                    ExecutionTarget::Threads(needed) => needed <= threads,
                    ExecutionTarget::Device(device) => free[device] > 0,
                };
                if there {
                    self.give(task, variant);
                }
                return;
            }
        }
        for (device, free) in free.iter_mut().enumerate() {
            while *free > 0 {
                let Some(task) = self.winner(|rounds| &mut rounds.urgent[device]) else {
                    break;
                };
                self.give_device(task, device, free);
            }
        }
        for (device, free) in free.iter_mut().enumerate() {
            while *free > 0 {
                let Some(task) = self.winner(|rounds| &mut rounds.able[device]) else {
                    break;
                };
                self.give_device(task, device, free);
            }
        }
        self.share_threads(threads);
    }

    /// Shares the CPU evenly among the remaining tasks.  A task without a variant for so few
    /// threads gets as many as it needs, if they are left (ours: otherwise it would never run).
    fn share_threads(&mut self, threads: u32) {
        let sharing = self.ready_for_cpu;
        let mut left = threads;
        let mut losers = Vec::new();
        for place in 0..sharing.min(threads) {
            let share = if sharing > threads {
                1
            } else {
                threads / sharing + u32::from(place < threads % sharing)
            };
            let Some(task) = self.winner(|rounds| &mut rounds.cpu) else {
                break;
            };
            let of = &self.workload.tasks[task];
            let grant = share.max(fewest_threads(of).unwrap_or(share));
            match fastest_of_cpu(of, grant) {
                Some((variant, used)) if used <= left => {
                    left -= used;
                    self.give(task, variant);
                }
                _ => losers.push(task),
            }
        }
        for task in losers {
            let entry = self.entry(task, self.options.leftovers, None);
            self.cpu.push(entry);
        }
    }

    /// The best ready task of a contest, taken out of it.
    fn winner(&mut self, contest: impl Fn(&mut Self) -> &mut Contest) -> Option<usize> {
        loop {
            let Reverse((_, _, task)) = contest(self).pop()?;
            if self.ready.contains(&task) {
                return Some(task);
            }
        }
    }

    fn give_device(&mut self, task: usize, device: usize, free: &mut u32) {
        if let Some(variant) = fastest_on(&self.workload.tasks[task], device) {
            *free -= 1;
            self.give(task, variant);
        }
    }

    fn give(&mut self, task: usize, variant: usize) {
        let place = self.given.len() as u32;
        self.mapping.choices[task] =
            Some(Choice { variant, round: self.round, place, hold: Hold::default() });
        self.given.push(task);
        self.ready.remove(&task);
        if self.cpu_fits(task) {
            self.ready_for_cpu -= 1;
        }
    }

    fn cpu_fits(&self, task: usize) -> bool {
        fewest_threads(&self.workload.tasks[task])
            .is_some_and(|fewest| fewest <= self.platform.threads)
    }

    fn make_ready(&mut self, task: usize) {
        self.ready.insert(task);
        let fits_cpu = self.cpu_fits(task);
        let of = &self.workload.tasks[task];
        let on = |device: usize| {
            let place = ExecutionTarget::Device(device);
            fits(self.platform, place) && of.variants.iter().any(|of| of.place == place)
        };
        let devices: Vec<usize> = (0..self.platform.devices.len()).filter(|&at| on(at)).collect();
        if fits_cpu {
            self.ready_for_cpu += 1;
            let entry = self.entry(task, self.options.leftovers, None);
            self.cpu.push(entry);
        }
        if let (false, &[device]) = (fits_cpu, devices.as_slice()) {
            let entry = self.entry(task, self.options.contention, Some(device));
            self.urgent[device].push(entry);
        } else {
            for device in devices {
                let entry = self.entry(task, self.options.leftovers, Some(device));
                self.able[device].push(entry);
            }
        }
    }

    /// Returns the rank of a task in the contest for a device, or for the CPU.
    fn entry(
        &self,
        task: usize,
        priority: Priority,
        device: Option<usize>,
    ) -> Reverse<(u64, u32, usize)> {
        let of = &self.workload.tasks[task];
        let worth = match priority {
            Priority::Successors => u64::MAX - self.successors[task].len() as u64,
            Priority::Age => 0, // The rank begins with it.
            Priority::Runtime => {
                let variant = match device {
                    Some(device) => fastest_on(of, device),
                    None => fastest_of_cpu(of, self.platform.threads).map(|(variant, _)| variant),
                };
                variant.map_or(u64::MAX, |variant| of.variants[variant].runtime_ns)
            }
        };
        Reverse((worth, self.rank[task], task))
    }

    /// The one ready task and its variant, if it had better stay where its predecessor ran.
    fn sticky(&self) -> Option<(usize, usize)> {
        let task = *self.ready.first()?;
        let of = &self.workload.tasks[task];
        // The predecessor whose data are the dearest to move.
        let (transfer_ns, device) = of
            .after
            .iter()
            .filter_map(|edge| Some((edge.transfer_ns, self.device_of(edge.task)?)))
            .max()?;
        let stay = self.fastest_at(of, |place| device_of(place) == device)?;
        let moved = self.fastest_at(of, |place| device_of(place) != device);
        let runtime_ns = |variant: usize| of.variants[variant].runtime_ns;
        let better = moved
            .is_none_or(|moved| runtime_ns(stay) <= runtime_ns(moved).saturating_add(transfer_ns));
        better.then_some((task, stay))
    }

    /// The accelerator type a task runs on, or the CPU; nothing if it is not decided.
    fn device_of(&self, task: usize) -> Option<Option<usize>> {
        if let Some(State::Started(slot)) = self.queues.tasks.get(task) {
            return Some(match slot.place {
                Where::Threads(_) => None,
                Where::Device { device, .. } => Some(device),
            });
        }
        let choice = (*self.mapping.choices.get(task)?)?;
        Some(device_of(self.workload.tasks[task].variants[choice.variant].place))
    }

    fn fastest_at(&self, of: &Task, there: impl Fn(ExecutionTarget) -> bool) -> Option<usize> {
        let variants = of.variants.iter().enumerate();
        variants
            .filter(|(_, of)| there(of.place) && fits(self.platform, of.place))
            .min_by_key(|(_, of)| of.runtime_ns)
            .map(|(variant, _)| variant)
    }
}

fn device_of(place: ExecutionTarget) -> Option<usize> {
    match place {
        ExecutionTarget::Threads(_) => None,
        ExecutionTarget::Device(device) => Some(device),
    }
}

fn fewest_threads(task: &Task) -> Option<u32> {
    let threads = task.variants.iter().filter_map(|of| match of.place {
        ExecutionTarget::Threads(threads) if threads > 0 => Some(threads),
        _ => None,
    });
    threads.min()
}

/// The fastest variant with at most so many threads, and how many it has.
fn fastest_of_cpu(task: &Task, at_most: u32) -> Option<(usize, u32)> {
    let variants = task.variants.iter().enumerate().filter_map(|(variant, of)| match of.place {
        ExecutionTarget::Threads(threads) if (1..=at_most).contains(&threads) => {
            Some((of.runtime_ns, threads, variant))
        }
        _ => None,
    });
    variants.min().map(|(_, threads, variant)| (variant, threads))
}

fn fastest_on(task: &Task, device: usize) -> Option<usize> {
    let on = task
        .variants
        .iter()
        .enumerate()
        .filter(|(_, of)| of.place == ExecutionTarget::Device(device));
    on.min_by_key(|(_, of)| of.runtime_ns).map(|(variant, _)| variant)
}
