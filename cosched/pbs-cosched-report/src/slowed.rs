// SPDX-License-Identifier: GPL-2.0
//! Schedules under slow-downs of tasks that run side by side (ours).

use std::collections::HashMap;

use crate::lanes::Question;
use pbs_cosched::{Slot, Timeline, Where, Workload};
use pbs_interference::{names, Entry, Key, Names, Neighbour, Sharing, Slowdowns};

use crate::names::label_of;

/// Slow-downs between the tasks of a question.
///
/// A process has the name of its graph, therefore entries name `graph`, `graph/task` or
/// `graph/task@variant`. Threads of one task do not slow each other, because the task's runtime
/// already includes that. Tasks on accelerators are not slowed either.
#[derive(Clone, Debug, Default)]
pub struct Slowed {
    slowdowns: Slowdowns,
    sharing: Sharing,
    cpus: Vec<u32>,
}

impl Slowed {
    /// Builds the slow-downs from entries, for CPUs that share resources according to `sharing`.
    pub fn new(question: &Question, entries: &[Entry<String>], sharing: Sharing) -> Self {
        let (workload, platform) = (&question.workload, &question.platform);
        let mut known = Names::default();
        for (index, task) in workload.tasks.iter().enumerate() {
            let process = &workload.processes[task.process].name;
            for variant in 0..task.variants.len() {
                let label = label_of(workload, platform, index, variant);
                let place = question.tasks.get(index).map_or(0, |of| of.task as u32);
                let own = names(None, process, place, Some(&task.name), Some(&label));
                known.add(key(workload, index, variant), own);
            }
        }
        Self {
            slowdowns: Slowdowns::new(known.resolve(entries)),
            sharing,
            cpus: question.cpus.clone(),
        }
    }

    /// Returns the number of pairs and sets that are known of the tasks.
    pub fn known(&self) -> usize {
        self.slowdowns.entries().len()
    }

    /// A timeline of tasks of those variants as it becomes: each stays where it is, behind the
    /// same tasks, begins no sooner, and advances at 1/s of those that run beside it.
    pub(crate) fn timeline(
        &self,
        workload: &Workload,
        variants: &dyn Fn(usize) -> Option<usize>,
        timeline: &Timeline,
    ) -> Timeline {
        let mut fluid = Fluid::new(self, workload, variants, timeline);
        while fluid.step() {}
        fluid.timeline()
    }
}

fn key(workload: &Workload, task: usize, variant: usize) -> Key {
    Key {
        fingerprint: workload.tasks[task].process as u64,
        task: task as u32,
        variant: variant as u32,
    }
}

/// Negligible time: a part of a nanosecond.
const NOTHING_NS: f64 = 1e-3;

struct Fluid<'a> {
    slowed: &'a Slowed,
    workload: &'a Workload,
    slots: &'a [Option<Slot>],
    keys: Vec<Key>,
    /// Tasks of each thread and accelerator, and the number of those that have ended.
    queues: Vec<(Vec<usize>, usize)>,
    /// Queues of each task.
    of: Vec<Vec<usize>>,
    /// Remaining time of each task alone; then its begin and end.
    left_ns: Vec<f64>,
    began_ns: Vec<Option<f64>>,
    ended_ns: Vec<Option<f64>>,
    running: Vec<usize>,
    now_ns: f64,
    /// Slow-downs by who runs beside whom.
    seen: HashMap<(usize, Vec<usize>), f64>,
}

impl<'a> Fluid<'a> {
    fn new(
        slowed: &'a Slowed,
        workload: &'a Workload,
        variants: &dyn Fn(usize) -> Option<usize>,
        timeline: &'a Timeline,
    ) -> Self {
        let slots = &timeline.slots[..];
        let mut order: Vec<usize> =
            (0..slots.len()).filter(|&task| slots[task].is_some()).collect();
        order.sort_by_key(|&task| slots[task].as_ref().map(|slot| (slot.start_ns, slot.end_ns)));
        let mut places: HashMap<(Option<usize>, u32), usize> = HashMap::new();
        let mut queues: Vec<(Vec<usize>, usize)> = Vec::new();
        let mut of = vec![Vec::new(); slots.len()];
        for task in order {
            let own = match slots[task].as_ref().map(|slot| &slot.place) {
                Some(Where::Threads(threads)) => {
                    threads.iter().map(|&thread| (None, thread)).collect()
                }
                Some(&Where::Device { device, instance }) => vec![(Some(device), instance)],
                None => Vec::new(),
            };
            for place in own {
                let queue = *places.entry(place).or_insert_with(|| {
                    queues.push((Vec::new(), 0));
                    queues.len() - 1
                });
                queues[queue].0.push(task);
                of[task].push(queue);
            }
        }
        let alone = |slot: &Option<Slot>| {
            let slot = slot.as_ref();
            slot.map_or(0.0, |slot| (slot.end_ns - slot.start_ns) as f64)
        };
        Self {
            slowed,
            workload,
            keys: (0..slots.len())
                .map(|task| key(workload, task, variants(task).unwrap_or(0)))
                .collect(),
            queues,
            of,
            left_ns: slots.iter().map(alone).collect(),
            began_ns: vec![None; slots.len()],
            ended_ns: vec![None; slots.len()],
            running: Vec::new(),
            now_ns: 0.0,
            seen: HashMap::new(),
            slots,
        }
    }

    /// Returns the earliest begin of a task that is the first in all its queues; `None` while a
    /// predecessor has not ended.
    fn ready_ns(&self, task: usize) -> Option<f64> {
        let slot = self.slots[task].as_ref()?;
        let mut ready_ns = slot.start_ns as f64;
        for edge in &self.workload.tasks[task].after {
            let Some(Some(before)) = self.slots.get(edge.task) else {
                continue;
            };
            let travels_ns =
                if memory(&before.place) == memory(&slot.place) { 0 } else { edge.transfer_ns };
            ready_ns = ready_ns.max(self.ended_ns[edge.task]? + travels_ns as f64);
        }
        Some(ready_ns)
    }

    /// The tasks that are the first in all their queues and do not run.
    fn heads(&self) -> Vec<usize> {
        let first = |queue: &usize| {
            let (tasks, ended) = &self.queues[*queue];
            tasks.get(*ended).copied()
        };
        let firsts = (0..self.queues.len()).filter_map(|queue| {
            let task = first(&queue)?;
            // Each once, by the first of its queues.
            let is_head = self.of[task].iter().all(|queue| first(queue) == Some(task));
            (is_head && self.of[task][0] == queue && self.began_ns[task].is_none()).then_some(task)
        });
        firsts.collect()
    }

    /// Advances until the next task begins or ends. Returns whether there was one.
    fn step(&mut self) -> bool {
        let mut until_ns = f64::INFINITY;
        for task in self.heads() {
            match self.ready_ns(task) {
                Some(ready_ns) if ready_ns <= self.now_ns + NOTHING_NS => {
                    self.began_ns[task] = Some(self.now_ns);
                    self.running.push(task);
                }
                Some(ready_ns) => until_ns = until_ns.min(ready_ns),
                None => {}
            }
        }
        let running = self.running.clone();
        let slowdowns: Vec<f64> = running.iter().map(|&task| self.slowdown(task)).collect();
        for (&task, slowdown) in running.iter().zip(&slowdowns) {
            until_ns = until_ns.min(self.now_ns + self.left_ns[task] * slowdown);
        }
        if !until_ns.is_finite() {
            return false;
        }
        let passes_ns = (until_ns - self.now_ns).max(0.0);
        self.now_ns = until_ns;
        for (&task, slowdown) in running.iter().zip(&slowdowns) {
            self.left_ns[task] -= passes_ns / slowdown;
            // Rounding of great times leaves more than of little ones.
            if self.left_ns[task] <= NOTHING_NS.max(1e-12 * until_ns) {
                self.ended_ns[task] = Some(until_ns);
                self.running.retain(|&other| other != task);
                for &queue in &self.of[task] {
                    self.queues[queue].1 += 1;
                }
            }
        }
        true
    }

    fn slowdown(&mut self, task: usize) -> f64 {
        let Some(Where::Threads(own)) = self.slots[task].as_ref().map(|slot| &slot.place) else {
            return 1.0;
        };
        let mut beside: Vec<usize> = Vec::new();
        let mut neighbours = Vec::new();
        for &other in self.running.iter().filter(|&&other| other != task) {
            let place = self.slots[other].as_ref().map(|slot| &slot.place);
            if let Some(Where::Threads(theirs)) = place {
                beside.push(other);
                neighbours.push((other, theirs));
            }
        }
        beside.sort_unstable();
        if let Some(&slowdown) = self.seen.get(&(task, beside.clone())) {
            return slowdown;
        }
        let slowed = self.slowed;
        let cpu = |thread: &u32| slowed.cpus.get(*thread as usize).copied();
        let neighbours = neighbours.into_iter().filter_map(|(other, theirs)| {
            let pairs = own.iter().filter_map(cpu).flat_map(|one| {
                let theirs = theirs.iter().filter_map(cpu);
                theirs.map(move |other| slowed.sharing.level(one, other))
            });
            Some(Neighbour { level: pairs.min()?, key: self.keys[other] })
        });
        let neighbours: Vec<Neighbour> = neighbours.collect();
        let told = slowed.slowdowns.of(self.keys[task], &neighbours);
        self.seen.insert((task, beside), told.slowdown);
        told.slowdown
    }

    fn timeline(&self) -> Timeline {
        let slots = self.slots.iter().enumerate().map(|(task, slot)| {
            let slot = slot.as_ref()?;
            let whole = |ns: f64| ns.round() as u64;
            Some(Slot {
                start_ns: self.began_ns[task].map_or(slot.start_ns, whole),
                end_ns: self.ended_ns[task].map_or(slot.end_ns, whole),
                place: slot.place.clone(),
            })
        });
        Timeline { slots: slots.collect() }
    }
}

/// The memory that data are in: the host's, or an accelerator's.
fn memory(place: &Where) -> Option<(usize, u32)> {
    match *place {
        Where::Threads(_) => None,
        Where::Device { device, instance } => Some((device, instance)),
    }
}
