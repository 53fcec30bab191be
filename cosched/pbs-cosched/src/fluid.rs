// SPDX-License-Identifier: GPL-2.0
//! Times of tasks that slow each other.

use std::collections::HashMap;

use crate::mapping::Timeline;
use crate::model::Workload;
use crate::queues::{memory, Slot, Where};
use crate::slowing::{OnThreads, Slowing};

/// Returns a timeline with slow-downs; `variant` is the variant of each task.
///
/// Each task stays on its threads or its accelerator, behind the tasks that are before it there. Tasks
/// that have started or ended at [`Slowing::since_ns`] are not moved.
/// Tasks begin no sooner than before, and advance at 1/s beside tasks that slow it by s.
pub fn slowed(
    workload: &Workload,
    slowing: &dyn Slowing,
    variant: &dyn Fn(usize) -> Option<usize>,
    timeline: &Timeline,
) -> Timeline {
    slowed_with_work(workload, slowing, variant, timeline).0
}

/// Returns what [`slowed`] does, and the pairs of neighbours that it went through.
pub(crate) fn slowed_with_work(
    workload: &Workload,
    slowing: &dyn Slowing,
    variant: &dyn Fn(usize) -> Option<usize>,
    timeline: &Timeline,
) -> (Timeline, usize) {
    let mut fluid = Fluid::new(slowing, workload, variant, timeline);
    while fluid.step() {}
    (fluid.timeline(), fluid.pairs)
}

/// Returns what is left of each task at a time, in nanoseconds of its time alone; `None`: the task
/// has no slot.
pub(crate) fn left_at(
    workload: &Workload,
    slowing: &dyn Slowing,
    variant: &dyn Fn(usize) -> Option<usize>,
    timeline: &Timeline,
    at_ns: u64,
) -> Vec<Option<u64>> {
    let mut fluid = Fluid::new(slowing, workload, variant, timeline);
    fluid.stop_ns = at_ns as f64;
    while fluid.step() {}
    let left = timeline.slots.iter().zip(&fluid.left_ns);
    left.map(|(slot, left_ns)| slot.as_ref().map(|_| left_ns.round() as u64)).collect()
}

/// Negligible time: a part of a nanosecond.
const NOTHING_NS: f64 = 1e-3;

struct Fluid<'a> {
    slowing: &'a dyn Slowing,
    workload: &'a Workload,
    planned: &'a Timeline,
    variants: Vec<Option<usize>>,
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
    /// Time at which nothing goes on.
    stop_ns: f64,
    /// Slow-downs by the task and the tasks beside it.
    seen: HashMap<(usize, Vec<usize>), f64>,
    /// Pairs of neighbours so far, which most of the time is spent on.
    pairs: usize,
}

impl<'a> Fluid<'a> {
    fn new(
        slowing: &'a dyn Slowing,
        workload: &'a Workload,
        variant: &dyn Fn(usize) -> Option<usize>,
        planned: &'a Timeline,
    ) -> Self {
        let slots = &planned.slots[..];
        let since_ns = slowing.since_ns();
        let has_ended = |slot: &Slot| slot.end_ns <= since_ns;
        let goes_on = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| !has_ended(slot));
        let mut order: Vec<usize> =
            (0..slots.len()).filter(|&task| goes_on(&slots[task])).collect();
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
            slot.map_or(0.0, |slot| {
                (slot.end_ns.saturating_sub(slot.start_ns.max(since_ns))) as f64
            })
        };
        let begun = |slot: &Slot| (slot.start_ns < since_ns).then_some(slot.start_ns as f64);
        let ended = |slot: &Slot| has_ended(slot).then_some(slot.end_ns as f64);
        let began_ns: Vec<Option<f64>> = slots.iter().map(|slot| begun(slot.as_ref()?)).collect();
        let running = (0..slots.len()).filter(|&task| goes_on(&slots[task]));
        Self {
            slowing,
            workload,
            variants: (0..slots.len()).map(variant).collect(),
            queues,
            of,
            left_ns: slots.iter().map(alone).collect(),
            running: running.filter(|&task| began_ns[task].is_some()).collect(),
            began_ns,
            ended_ns: slots.iter().map(|slot| ended(slot.as_ref()?)).collect(),
            now_ns: since_ns as f64,
            stop_ns: f64::INFINITY,
            seen: HashMap::new(),
            pairs: 0,
            planned,
        }
    }

    fn slot(&self, task: usize) -> Option<&'a Slot> {
        self.planned.slots.get(task)?.as_ref()
    }

    /// Returns the earliest begin of a task that is the first in all its queues; `None` while a
    /// predecessor has not ended.
    fn ready_ns(&self, task: usize) -> Option<f64> {
        let slot = self.slot(task)?;
        let mut ready_ns = slot.start_ns as f64;
        for edge in &self.workload.tasks[task].after {
            let Some(before) = self.slot(edge.task) else {
                continue;
            };
            let travels_ns =
                if memory(&before.place) == memory(&slot.place) { 0 } else { edge.transfer_ns };
            ready_ns = ready_ns.max(self.ended_ns[edge.task]? + travels_ns as f64);
        }
        if let Some(awaited) = self.planned.awaited(task) {
            if self.slot(awaited).is_some() {
                ready_ns = ready_ns.max(self.ended_ns[awaited]?);
            }
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
        if self.now_ns >= self.stop_ns {
            return false;
        }
        let mut until_ns = self.stop_ns;
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

    /// The task, if it runs on threads.
    fn on_threads(&self, task: usize) -> Option<OnThreads<'a>> {
        match &self.slot(task)?.place {
            Where::Threads(threads) => {
                Some(OnThreads { task, variant: self.variants[task], threads })
            }
            Where::Device { .. } => None,
        }
    }

    fn slowdown(&mut self, task: usize) -> f64 {
        let Some(own) = self.on_threads(task) else {
            return 1.0;
        };
        let others = self.running.iter().filter(|&&other| other != task);
        let mut beside: Vec<OnThreads<'a>> =
            others.filter_map(|&other| self.on_threads(other)).collect();
        if beside.is_empty() {
            return 1.0;
        }
        self.pairs += beside.len();
        beside.sort_unstable_by_key(|other| other.task);
        let key = (task, beside.iter().map(|other| other.task).collect());
        if let Some(&slowdown) = self.seen.get(&key) {
            return slowdown;
        }
        let slowdown = self.slowing.slowdown(own, &beside);
        self.seen.insert(key, slowdown);
        slowdown
    }

    fn timeline(&self) -> Timeline {
        let slots = self.planned.slots.iter().enumerate().map(|(task, slot)| {
            let slot = slot.as_ref()?;
            let whole = |ns: f64| ns.round() as u64;
            Some(Slot {
                start_ns: self.began_ns[task].map_or(slot.start_ns, whole),
                end_ns: self.ended_ns[task].map_or(slot.end_ns, whole),
                place: slot.place.clone(),
            })
        });
        Timeline {
            slots: slots.collect(),
            waits: self.planned.waits.clone(),
            // Slow-downs move tasks away from the transfers that were planned.
            transfers: Vec::new(),
        }
    }
}
