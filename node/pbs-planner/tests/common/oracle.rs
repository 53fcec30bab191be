// SPDX-License-Identifier: GPL-2.0
//! The best plan of a job, and the proof that there is none better: depth-first
//! branch and bound, for small nets on an empty machine.
//!
//! It plans under the rules of the [checker](super::checker) and knows nothing
//! of the planner:
//!
//! 1. A task runs on one core without interruption, for its instructions at the
//!    core's rate, rounded up to ticks.
//! 2. A core runs one task at a time; tasks of no length need no core.
//! 3. All tasks of a process run on the same core.
//! 4. A task starts when all tasks before it have ended: that before it in its
//!    process, the fork, the last of the child that it joins.
//! 5. A process holds its memory, of the node of its core, from its first task's
//!    start to its last task's end; a node never gives more than it has. The amounts of
//!    resources that it holds count likewise, wherever it runs.
//!
//! The best plan ends first. Among the best there is one in which no task can
//! start earlier while all others stay. Tasks are placed in the order of their
//! starts, each at its *natural* start: when what it waits for, its core and, of
//! a first task, its memory let it. Every plan in which nothing can start earlier
//! is found so, and what can start earlier is not followed.

use super::checker::{Answer, Question};

/// Result of a search.
pub(crate) struct Best {
    /// End of the plan, in ticks; `None`: no plan ends before the limit.
    pub(crate) end_ticks: Option<u64>,
    /// Whether no plan ends earlier; false: there were too many cases to check.
    pub(crate) is_proven: bool,
    pub(crate) answer: Answer,
}

/// Looks for a plan that ends before `limit_ticks`, in so many steps at most.
/// `question` has one job, which may begin at 0.
pub(crate) fn best(question: &Question, limit_ticks: u64, most_steps: u64) -> Best {
    let mut search = Search::new(question, limit_ticks, most_steps);
    search.step();
    let tick = question.tick;
    let found = search.best_plan.take();
    let mut answer = Answer::default();
    for (task, &(core, start, end)) in found.iter().flatten().enumerate() {
        let (start, end) = (u128::from(start) * tick, u128::from(end) * tick);
        answer.tasks.push((task, core, start, end));
        let process = question.tasks[task].0;
        let held = answer.memory.iter_mut().find(|held| held.0 == process);
        match held {
            Some(held) => (held.2, held.3) = (held.2.min(start), held.3.max(end)),
            None => answer.memory.push((process, core, start, end)),
        }
    }
    Best {
        end_ticks: found.is_some().then_some(search.best_end),
        is_proven: search.steps_left > 0,
        answer,
    }
}

/// A task whose turn it may be.
#[derive(Clone, Copy)]
struct Choice {
    start: u64,
    /// No plan that goes on so ends earlier.
    least_end: u64,
    task: usize,
    core: usize,
}

/// Place of each task of a plan: core, start and end.
type Places = Vec<(usize, u64, u64)>;

struct Search<'a> {
    question: &'a Question,
    /// Per task and core.
    length: Vec<Vec<u64>>,
    /// Per task: on the fastest core.
    shortest: Vec<u64>,
    /// Per task: from its start to the end of all, as if there were cores for all.
    tail: Vec<u64>,
    /// Each task after those before it.
    order: Vec<usize>,
    /// Per process: its first and its last task, and how long it holds its memory
    /// at least.
    first: Vec<usize>,
    last: Vec<usize>,
    span: Vec<u64>,
    /// Memory of all nodes.
    all_memory: u128,
    /// Places of the tasks that have one.
    places: Vec<Option<(usize, u64, u64)>>,
    process_core: Vec<Option<usize>>,
    core_free: Vec<u64>,
    /// Per core: processes that have begun and not placed their last task.
    core_open: Vec<u32>,
    placed: usize,
    last_start: u64,
    last_task: usize,
    earliest: Vec<u64>,
    best_end: u64,
    best_plan: Option<Places>,
    steps_left: u64,
}

impl<'a> Search<'a> {
    fn new(question: &'a Question, limit: u64, steps_left: u64) -> Self {
        let tasks = question.tasks.len();
        let length: Vec<Vec<u64>> = (question.tasks.iter())
            .map(|&(_, instructions, _)| {
                let cores = question.cores.iter();
                let ticks = cores.map(|&(_, rate)| {
                    let exact = instructions * 1_000_000_000;
                    exact.div_ceil(rate * question.tick) as u64
                });
                ticks.collect()
            })
            .collect();
        let shortest: Vec<u64> =
            (length.iter()).map(|on| on.iter().copied().min().unwrap_or(0)).collect();
        let mut order: Vec<usize> = Vec::new();
        while order.len() < tasks {
            let next = (0..tasks).find(|task| {
                let before = &question.tasks[*task].2;
                !order.contains(task) && before.iter().all(|before| order.contains(before))
            });
            order.push(next.expect("no tasks wait for each other"));
        }
        let mut tail = shortest.clone();
        for &task in order.iter().rev() {
            for &before in &question.tasks[task].2 {
                tail[before] = tail[before].max(shortest[before] + tail[task]);
            }
        }
        let processes = question.processes.len();
        let (mut first, mut last) = (vec![usize::MAX; processes], vec![0; processes]);
        for (task, &(process, ..)) in question.tasks.iter().enumerate() {
            first[process] = first[process].min(task);
            last[process] = last[process].max(task);
        }
        let span = (0..processes).map(|process| {
            // The longest way from the first task's start to the last one's end.
            let mut from = vec![None; tasks];
            from[first[process]] = Some(shortest[first[process]]);
            for &task in &order {
                let before = question.tasks[task].2.iter();
                let way = before.filter_map(|&before| from[before]).max();
                from[task] = from[task].max(way.map(|way: u64| way + shortest[task]));
            }
            from[last[process]].unwrap_or(0)
        });
        Self {
            span: span.collect(),
            all_memory: question.memories.iter().sum(),
            places: vec![None; tasks],
            process_core: vec![None; processes],
            core_free: vec![0; question.cores.len()],
            core_open: vec![0; question.cores.len()],
            placed: 0,
            last_start: 0,
            last_task: 0,
            earliest: vec![0; tasks],
            best_end: limit,
            best_plan: None,
            question,
            length,
            shortest,
            tail,
            order,
            last,
            first,
            steps_left,
        }
    }

    /// Returns the time at which all predecessors of the task have ended; `None`: some have no
    /// place.
    fn ready(&self, task: usize) -> Option<u64> {
        let before = self.question.tasks[task].2.iter();
        before
            .map(|&before| Some(self.places[before]?.2))
            .try_fold(0, |most, end| Some(most.max(end?)))
    }

    /// Time from which on the memory of the core, and each resource that the process holds, has so
    /// much for good.
    fn held_from(&self, process: usize, core: usize, ready: u64) -> Option<u64> {
        let question = self.question;
        let (node, bytes) = (question.cores[core].0, question.processes[process].1);
        let of_memory = |other: usize, core: usize| {
            let is_here = question.cores[core].0 == node;
            if is_here {
                question.processes[other].1
            } else {
                0
            }
        };
        let mut from = self.free_from(question.memories[node], bytes, ready, of_memory)?;
        for &(resource, amount) in question.held.get(process).into_iter().flatten() {
            let of_resource = |other: usize, _| {
                let held = question.held[other].iter().filter(|held| held.0 == resource);
                held.map(|held| held.1).sum()
            };
            let all = question.resources[resource];
            from = from.max(self.free_from(all, amount, ready, of_resource)?);
        }
        Some(from)
    }

    /// Time from which on `amount` of `all` is free for good, by what others hold of it.
    fn free_from(
        &self,
        all: u128,
        amount: u128,
        ready: u64,
        held_by: impl Fn(usize, usize) -> u128,
    ) -> Option<u64> {
        let mut free = all.checked_sub(amount)?;
        let mut ends = Vec::new();
        for (other, at) in self.process_core.iter().enumerate() {
            let Some(core) = *at else { continue };
            let bytes = held_by(other, core);
            match self.places[self.last[other]] {
                Some((_, _, end)) if end <= ready => {}
                Some((_, _, end)) => ends.push((end, bytes)),
                None => free = free.checked_sub(bytes)?,
            }
        }
        ends.sort_unstable();
        let mut held: u128 = ends.iter().map(|end| end.1).sum();
        let mut from = ready;
        for (end, bytes) in ends {
            if held <= free {
                break;
            }
            held -= bytes;
            from = end;
        }
        Some(from)
    }

    fn natural(&self, task: usize, core: usize, ready: u64) -> Option<u64> {
        let process = self.question.tasks[task].0;
        let mut start = ready;
        if self.length[task][core] > 0 {
            start = start.max(self.core_free[core]);
        }
        if self.process_core[process].is_none() {
            start = self.held_from(process, core, start)?;
        }
        Some(start)
    }

    /// Returns the tasks and cores that can be next.
    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for task in 0..self.places.len() {
            if self.places[task].is_some() {
                continue;
            }
            let Some(ready) = self.ready(task) else {
                continue;
            };
            let process = self.question.tasks[task].0;
            let cores = match self.process_core[process] {
                Some(core) => core..core + 1,
                None => 0..self.question.cores.len(),
            };
            // Cores that nobody needs from then on are alike.
            let mut alike: Vec<(usize, u128, u64)> = Vec::new();
            for core in cores {
                let Some(start) = self.natural(task, core, ready) else {
                    continue;
                };
                if self.process_core[process].is_none() && self.core_open[core] == 0 {
                    let (node, rate) = self.question.cores[core];
                    let busy = self.core_free[core].max(start);
                    if alike.contains(&(node, rate, busy)) {
                        continue;
                    }
                    alike.push((node, rate, busy));
                }
                choices.push(Choice { start, least_end: 0, task, core });
            }
        }
        choices
    }

    /// Whether another task could start earlier for good if this one is next.
    fn leaves_a_gap(&self, next: &Choice, choices: &[Choice]) -> bool {
        if next.start < self.last_start {
            return true;
        }
        // Of two that start at once and don't need each other one is first.
        if self.placed > 0
            && next.start == self.last_start
            && next.task < self.last_task
            && !self.question.tasks[next.task].2.contains(&self.last_task)
            && self.places[self.last_task].is_some_and(|(core, _, end)| {
                core != next.core || end == next.start
            })
            && self.question.tasks[next.task].0 != self.question.tasks[self.last_task].0
            // It gives memory back just then.
            && !(self.last[self.question.tasks[self.last_task].0] == self.last_task
                && self.places[self.last_task].is_some_and(|place| place.2 == next.start))
        {
            return true;
        }
        choices.iter().any(|other| {
            let process = self.question.tasks[other.task].0;
            let end = other.start + self.length[other.task][other.core];
            other.task != next.task
                && self.process_core[process].is_some()
                && other.start < next.start
                && end <= next.start
        })
    }

    /// No plan that goes on from here ends earlier.
    fn least_end(&mut self) -> u64 {
        let mut least = 0;
        let mut earliest = std::mem::take(&mut self.earliest);
        let mut work: u128 = 0;
        for &task in &self.order {
            if let Some((_, _, end)) = self.places[task] {
                earliest[task] = end;
                least = least.max(end);
                continue;
            }
            let (process, instructions, before) = &self.question.tasks[task];
            let ready = before.iter().map(|&before| earliest[before]).max();
            let mut start = ready.unwrap_or(0).max(self.last_start);
            let mut length = self.shortest[task];
            if let Some(core) = self.process_core[*process] {
                length = self.length[task][core];
                if length > 0 {
                    start = start.max(self.core_free[core]);
                }
            }
            work += instructions;
            earliest[task] = start + length;
            least = least.max(start + length.max(self.tail[task]));
        }
        // Of every core: what it must still do.
        let mut left = self.core_free.clone();
        for (task, (process, ..)) in self.question.tasks.iter().enumerate() {
            if let (None, Some(core)) = (self.places[task], self.process_core[*process]) {
                left[core] = left[core].max(self.last_start) + self.length[task][core];
            }
        }
        least = least.max(left.into_iter().max().unwrap_or(0));
        // Of all cores: the work that is left, and from when on they can do it.
        let from = |core: usize| self.core_free[core].max(self.last_start);
        let mut speeds: Vec<(u64, u128)> = (self.question.cores.iter().enumerate())
            .map(|(core, &(_, rate))| (from(core), rate))
            .collect();
        speeds.sort_unstable();
        let exact = work * 1_000_000_000;
        let (mut done, mut rate) = (0, 0);
        let mut at = 0;
        for (from, more) in speeds {
            let until = done + u128::from(from - at.min(from)) * rate * self.question.tick;
            if until >= exact {
                break;
            }
            (done, at) = (until, from);
            rate += more;
        }
        if exact > 0 {
            let rest = (exact - done).div_ceil(rate * self.question.tick) as u64;
            least = least.max(at + rest);
        }
        // Of all memory: what processes hold for the time that they take at least.
        let mut held: u128 = 0;
        for (process, &(_, bytes)) in self.question.processes.iter().enumerate() {
            let time = match self.process_core[process] {
                None => self.span[process],
                Some(_) => earliest[self.last[process]].saturating_sub(self.last_start),
            };
            held += bytes * u128::from(time);
        }
        least = least.max(self.last_start + held.div_ceil(self.all_memory) as u64);
        self.earliest = earliest;
        least
    }

    fn step(&mut self) {
        if self.steps_left == 0 {
            return;
        }
        self.steps_left -= 1;
        if self.placed == self.places.len() {
            let ends = self.places.iter().flatten().map(|place| place.2);
            let end = ends.max().unwrap_or(0);
            if end < self.best_end {
                self.best_end = end;
                self.best_plan = Some(self.places.iter().copied().flatten().collect());
            }
            return;
        }
        let choices = self.choices();
        let kept = choices.iter().filter(|next| !self.leaves_a_gap(next, &choices));
        let mut kept: Vec<Choice> = kept.copied().collect();
        for next in &mut kept {
            let undo = self.place(next);
            next.least_end = self.least_end();
            self.take_back(next, undo);
        }
        kept.sort_by_key(|next| {
            let tail = self.tail[next.task];
            (next.least_end, next.start, std::cmp::Reverse(tail))
        });
        for next in kept {
            if next.least_end >= self.best_end {
                break;
            }
            let undo = self.place(&next);
            self.step();
            self.take_back(&next, undo);
        }
    }

    /// Returns what it takes to take it back.
    fn place(&mut self, next: &Choice) -> (u64, u64, usize) {
        let undo = (self.core_free[next.core], self.last_start, self.last_task);
        let process = self.question.tasks[next.task].0;
        let end = next.start + self.length[next.task][next.core];
        self.places[next.task] = Some((next.core, next.start, end));
        if end > next.start {
            self.core_free[next.core] = end;
        }
        if self.first[process] == next.task {
            self.process_core[process] = Some(next.core);
            self.core_open[next.core] += 1;
        }
        if self.last[process] == next.task {
            self.core_open[next.core] -= 1;
        }
        (self.last_start, self.last_task) = (next.start, next.task);
        self.placed += 1;
        undo
    }

    fn take_back(&mut self, next: &Choice, undo: (u64, u64, usize)) {
        let process = self.question.tasks[next.task].0;
        self.places[next.task] = None;
        (self.core_free[next.core], self.last_start, self.last_task) = undo;
        if self.last[process] == next.task {
            self.core_open[next.core] += 1;
        }
        if self.first[process] == next.task {
            self.process_core[process] = None;
            self.core_open[next.core] -= 1;
        }
        self.placed -= 1;
    }
}
