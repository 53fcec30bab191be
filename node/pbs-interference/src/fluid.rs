// SPDX-License-Identifier: GPL-2.0
//! Fluid timing: each task that runs advances at 1/s of those that run beside it.

use std::collections::HashMap;

use crate::{Key, Neighbour, Sharing, Slowdowns};

/// Task that is timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Key of the task in the table of slow-downs.
    pub key: Key,
    /// Time of the task alone; for a running task, the rest of it.
    pub alone_ns: u64,
    /// Earliest beginning.
    pub release_ns: u64,
    /// Tasks that must have ended before it begins, by their indices.
    pub after: Vec<usize>,
    /// Whether the task stays on its CPU; then only its turn may change.
    pub stays: bool,
}

/// Tasks of a CPU, one after the other; the first one runs already if it is fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Number of the CPU.
    pub cpu: u32,
    /// Places of its tasks.
    pub order: Vec<usize>,
    /// Number of tasks at the beginning that stay where they are.
    pub fixed: usize,
}

/// Beginnings and ends of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Beginning and end of each task; `None`: no lane has it.
    pub times: Vec<Option<(u64, u64)>>,
    /// End of the last task.
    pub makespan_ns: u64,
    /// The sum of all ends.
    pub sum_ns: u128,
}

/// Timing of many orders of the same tasks.
#[derive(Clone, Debug)]
pub struct Fluid<'a> {
    tasks: &'a [Task],
    slowdowns: &'a Slowdowns,
    sharing: &'a Sharing,
    /// Slow-downs by the CPU and the task, and the tasks beside it, by CPU.
    known: HashMap<Vec<(u32, usize)>, f64>,
}

impl<'a> Fluid<'a> {
    /// Creates a timing of these tasks.
    pub fn new(tasks: &'a [Task], slowdowns: &'a Slowdowns, sharing: &'a Sharing) -> Self {
        Self { tasks, slowdowns, sharing, known: HashMap::new() }
    }

    /// The timing of one order; `None` if it never ends, since tasks wait for each
    /// other or for one that no lane has.
    pub fn time(&mut self, lanes: &[Lane]) -> Option<Timing> {
        let mut state = State {
            next: vec![0; lanes.len()],
            running: vec![None; lanes.len()],
            times: vec![None; self.tasks.len()],
            now_ns: 0.0,
        };
        loop {
            state.begin(self.tasks, lanes);
            // Until the first that runs ends, or one that waits may begin.
            let mut until_ns = state.next_release(self.tasks, lanes);
            let rates = self.rates(lanes, &state);
            let mut first = None;
            for (lane, (running, rate)) in state.running.iter().zip(&rates).enumerate() {
                let Some((_, left_ns)) = running else {
                    continue;
                };
                let end_ns = state.now_ns + left_ns / rate;
                if end_ns < until_ns {
                    (until_ns, first) = (end_ns, Some(lane));
                }
            }
            if !until_ns.is_finite() {
                break;
            }
            state.pass(until_ns, &rates, first);
        }
        let all = lanes.iter().zip(&state.next);
        if all.clone().any(|(lane, &next)| next < lane.order.len()) {
            return None;
        }
        let times = state.times.iter().map(|times| {
            let &(from, until) = times.as_ref()?;
            Some((whole(from), whole(until)))
        });
        let times: Vec<_> = times.collect();
        let ends = times.iter().flatten().map(|&(_, end_ns)| end_ns);
        Some(Timing {
            makespan_ns: ends.clone().max().unwrap_or(0),
            sum_ns: ends.map(u128::from).sum(),
            times,
        })
    }

    /// Returns the time that the two tasks take if they begin at once, regardless of other tasks.
    pub(crate) fn pair_ns(&mut self, cpus: [u32; 2], one: usize, other: usize) -> u64 {
        let [a, b] = cpus;
        let both = [(a, one), (b, other)];
        let (first, second) = (self.slowdown(a, one, &both), self.slowdown(b, other, &both));
        let alone_ns = |place: usize| self.tasks[place].alone_ns as f64;
        // When each would end if the other did not.
        let (ends, later) = (alone_ns(one) * first, alone_ns(other) * second);
        let (sooner, longest, slowdown) = if ends <= later {
            (ends, alone_ns(other), second)
        } else {
            (later, alone_ns(one), first)
        };
        libm::round(sooner + (longest - sooner / slowdown)) as u64
    }

    /// Returns the speed of each lane.
    fn rates(&mut self, lanes: &[Lane], state: &State) -> Vec<f64> {
        let running = lanes.iter().zip(&state.running);
        let running: Vec<_> =
            running.filter_map(|(lane, running)| Some((lane.cpu, running.as_ref()?.0))).collect();
        let lanes = lanes.iter().zip(&state.running);
        lanes
            .map(|(lane, task)| match task {
                Some((task, _)) => 1.0 / self.slowdown(lane.cpu, *task, &running),
                None => 1.0,
            })
            .collect()
    }

    fn slowdown(&mut self, cpu: u32, task: usize, running: &[(u32, usize)]) -> f64 {
        if running.len() < 2 {
            return 1.0;
        }
        let mut who = Vec::with_capacity(running.len());
        who.push((cpu, task));
        who.extend(running.iter().filter(|&&(other, _)| other != cpu));
        if let Some(&slowdown) = self.known.get(&who) {
            return slowdown;
        }
        let beside = who[1..].iter().map(|&(other, place)| Neighbour {
            level: self.sharing.level(cpu, other),
            key: self.tasks[place].key,
        });
        let beside: Vec<_> = beside.collect();
        let told = self.slowdowns.of(self.tasks[task].key, &beside);
        self.known.insert(who, told.slowdown);
        told.slowdown
    }
}

fn whole(ns: f64) -> u64 {
    libm::round(ns) as u64
}

struct State {
    /// Number of ended tasks, by lane.
    next: Vec<usize>,
    /// Running task, and the rest of its time alone, by lane.
    running: Vec<Option<(usize, f64)>>,
    /// Beginning and end of the tasks that have begun, as far as they are known.
    times: Vec<Option<(f64, f64)>>,
    now_ns: f64,
}

/// Time below which a rest counts as nothing: a part of a nanosecond.
const NOTHING_NS: f64 = 1e-6;

impl State {
    fn has_ended(&self, place: usize) -> bool {
        let runs = self.running.iter().flatten();
        let mut runs = runs.map(|&(running, _)| running);
        self.times.get(place).is_some_and(Option::is_some) && runs.all(|running| running != place)
    }

    /// Whether the first of a lane may begin; if only its time has not come, when.
    fn waits(&self, tasks: &[Task], lane: &Lane, next: usize) -> Option<f64> {
        let task = tasks.get(*lane.order.get(next)?)?;
        let free = task.after.iter().all(|&place| self.has_ended(place));
        free.then_some(task.release_ns as f64)
    }

    fn begin(&mut self, tasks: &[Task], lanes: &[Lane]) {
        loop {
            let mut any = false;
            for (number, lane) in lanes.iter().enumerate() {
                if self.running[number].is_some() {
                    continue;
                }
                let at_ns = self.waits(tasks, lane, self.next[number]);
                if at_ns.is_none_or(|at_ns| at_ns > self.now_ns) {
                    continue;
                }
                let place = lane.order[self.next[number]];
                self.times[place] = Some((self.now_ns, self.now_ns));
                let left_ns = tasks[place].alone_ns as f64;
                if left_ns > 0.0 {
                    self.running[number] = Some((place, left_ns));
                } else {
                    self.next[number] += 1;
                    any = true;
                }
            }
            // One that takes no time may let others begin.
            if !any {
                return;
            }
        }
    }

    fn next_release(&self, tasks: &[Task], lanes: &[Lane]) -> f64 {
        let lanes = lanes.iter().enumerate();
        let idle = lanes.filter(|&(number, _)| self.running[number].is_none());
        let times = idle.filter_map(|(number, lane)| self.waits(tasks, lane, self.next[number]));
        times.fold(f64::INFINITY, f64::min)
    }

    /// Lets all tasks run until then, when that of the lane `first` ends. Rounding may leave something
    /// of it, the more the faster it runs, and without an end there the time would stand still.
    fn pass(&mut self, until_ns: f64, rates: &[f64], first: Option<usize>) {
        let passes_ns = (until_ns - self.now_ns).max(0.0);
        self.now_ns = until_ns;
        for (number, rate) in rates.iter().enumerate() {
            let Some((place, left_ns)) = &mut self.running[number] else {
                continue;
            };
            *left_ns -= passes_ns * rate;
            // Rounding of great times leaves more than of little ones.
            let is_first = first == Some(number);
            if is_first || *left_ns <= NOTHING_NS.max(1e-15 * until_ns) {
                if let Some(times) = &mut self.times[*place] {
                    times.1 = until_ns;
                }
                self.running[number] = None;
                self.next[number] += 1;
            }
        }
    }
}
