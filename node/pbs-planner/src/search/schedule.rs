// SPDX-License-Identifier: GPL-2.0
//! From a code to a plan: serial schedule generation with insertion, under the
//! rules of [`attempt`](crate::reserve::attempt).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::memory::Holds;
use super::model::{Gap, Model, NONE};

/// Code from which a plan is made.
#[derive(Debug)]
pub(super) struct Code {
    /// All tasks: what comes first is placed first, once it can be.
    pub(super) list: Vec<u32>,
    /// Per process; [`NONE`]: where it would end first.
    pub(super) cores: Vec<u32>,
}

/// A plan, and what it takes to make one.
pub(super) struct Schedule {
    /// Per task.
    pub(super) start_ns: Vec<u64>,
    pub(super) end_ns: Vec<u64>,
    /// Per task: that which left the core or the memory when it began, if it waited
    /// for that one.
    pub(super) blocker: Vec<u32>,
    /// Per task: its place in the list.
    pub(super) place: Vec<u32>,
    /// Per task: how many others without a place it waits for.
    waits_for: Vec<u32>,
    /// Places in the list before the one that is looked at, of tasks that can be
    /// placed now.
    late: BinaryHeap<Reverse<u32>>,
    /// First tasks of processes that wait for memory or resources, with their memory: the least
    /// first.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Per core, of those that are used.
    gaps: Vec<Vec<Gap>>,
    /// Per core: what processes that have begun have yet to do there.
    claimed_ns: Vec<u64>,
    /// Per process that has begun: since when it holds its memory.
    opened_ns: Vec<u64>,
    is_used: Vec<bool>,
    used: Vec<u32>,
    /// Kinds of free cores that were looked at.
    seen: Vec<(u32, u32)>,
    /// Per memory and resource.
    holds: Vec<Holds>,
    /// Per process and memory or resource, once it was asked for: when other jobs leave enough.
    windows: Vec<Option<Vec<Range<u64>>>>,
    /// Per link: when it can take another message.
    links_free_ns: Vec<u64>,
}

/// Error: no plan ends in time.
struct Late;

impl Clone for Code {
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), cores: self.cores.clone() }
    }

    // Without allocation: this is done for every try.
    fn clone_from(&mut self, other: &Self) {
        self.list.clone_from(&other.list);
        self.cores.clone_from(&other.cores);
    }
}

impl Schedule {
    pub(super) fn new(model: &Model<'_>) -> Self {
        let (tasks, cores) = (model.tasks.len(), model.cores.len());
        Self {
            start_ns: vec![0; tasks],
            end_ns: vec![0; tasks],
            blocker: vec![NONE; tasks],
            place: vec![0; tasks],
            waits_for: vec![0; tasks],
            late: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            gaps: vec![Vec::new(); cores],
            claimed_ns: vec![0; cores],
            opened_ns: vec![0; model.processes.len()],
            is_used: vec![false; cores],
            used: Vec::new(),
            seen: Vec::new(),
            holds: model.memories.iter().map(|_| Holds::default()).collect(),
            windows: vec![None; model.processes.len() * model.memories.len()],
            links_free_ns: vec![0; model.links()],
        }
    }

    /// Makes the plan, and says when it ends; `None`: later than that, there is none, or no work is
    /// left for it. Processes of the code that have no core get one.
    pub(super) fn make(
        &mut self,
        model: &Model<'_>,
        code: &mut Code,
        limit_ns: u64,
    ) -> Option<u64> {
        self.begin(model, code);
        let mut last_ns = model.start_ns;
        let mut next = 0;
        for placed in 0..code.list.len() {
            // What is being executed is not interrupted.
            let begun = model.begun.get(placed).copied();
            let mut candidate = begun;
            loop {
                if model.work.is_spent() {
                    return None;
                }
                model.work.add(1);
                let task = candidate.or_else(|| self.next(code, &mut next))?;
                if self.place(model, code, task, limit_ns).ok()? {
                    last_ns = last_ns.max(self.end_ns[task as usize]);
                    self.follow(model, task, next);
                    break;
                }
                candidate = None;
                let process = model.tasks[task as usize].process;
                let bytes = model.processes[process as usize].memory_bytes;
                self.waiting.push(Reverse((bytes, task)));
            }
        }
        Some(last_ns)
    }

    fn begin(&mut self, model: &Model<'_>, code: &Code) {
        for (place, &task) in code.list.iter().enumerate() {
            self.place[task as usize] = place as u32;
        }
        self.waits_for.clone_from(&model.waits_for);
        self.late.clear();
        self.waiting.clear();
        for core in self.used.drain(..) {
            self.is_used[core as usize] = false;
            self.claimed_ns[core as usize] = 0;
        }
        for (holds, memory) in self.holds.iter_mut().zip(&model.memories) {
            holds.clear(memory);
            model.work.add(memory.steps().len() as u64);
        }
        model.work.add((model.tasks.len() + model.processes.len()) as u64);
        self.links_free_ns.fill(0);
        for (index, process) in model.processes.iter().enumerate() {
            if process.has_core.is_some() {
                self.open(model, index as u32, code.cores[index], model.start_ns);
            }
        }
    }

    /// The first of the list that can be placed and was not.
    fn next(&mut self, code: &Code, next: &mut usize) -> Option<u32> {
        if let Some(Reverse(place)) = self.late.pop() {
            return Some(code.list[place as usize]);
        }
        loop {
            let task = *code.list.get(*next)?;
            *next += 1;
            if self.waits_for[task as usize] == 0 {
                return Some(task);
            }
        }
    }

    /// Notes that `task` has its place, and finds the successors that can be placed now.
    fn follow(&mut self, model: &Model<'_>, task: u32, next: usize) {
        // Nobody asks for it again.
        self.waits_for[task as usize] = NONE;
        for &after in model.after(task) {
            let waits_for = &mut self.waits_for[after as usize];
            *waits_for = waits_for.saturating_sub(1);
            let place = self.place[after as usize];
            if *waits_for == 0 && (place as usize) < next {
                self.late.push(Reverse(place));
            }
        }
        if model.tasks[task as usize].is_last {
            self.wake(model);
        }
    }

    /// A process has given back what it held: what waits for no more memory than there is can be
    /// placed, perhaps.
    fn wake(&mut self, model: &Model<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        let most = model.core_memories().map(|index| {
            if model.memories[index].is_plenty {
                i128::MAX
            } else {
                self.holds[index].most_bytes(model.work, model.start_ns)
            }
        });
        let most = most.max().unwrap_or(0);
        while let Some(&Reverse((bytes, task))) = self.waiting.peek() {
            if i128::from(bytes) > most {
                break;
            }
            model.work.add(1);
            self.waiting.pop();
            self.late.push(Reverse(self.place[task as usize]));
        }
    }

    /// Whether all that the process holds is free at some time from `ready_ns` on, on the core or
    /// where that is [`NONE`] on any: else no place needs to be looked for.
    fn may_have_needs(&self, model: &Model<'_>, process: u32, core: u32, ready_ns: u64) -> bool {
        let bytes = model.processes[process as usize].memory_bytes;
        let has = |index: usize, amount: u64| {
            model.memories[index].is_plenty
                || self.holds[index].most_bytes(model.work, ready_ns) >= i128::from(amount)
        };
        let has_memory = match core {
            NONE => model.core_memories().any(|memory| has(memory, bytes)),
            core => has(model.cores[core as usize].memory as usize, bytes),
        };
        has_memory && model.resources(process).iter().all(|&(index, amount)| has(index, amount))
    }

    /// Whether the task has a place; if not, there is too little memory now.
    fn place(
        &mut self,
        model: &Model<'_>,
        code: &mut Code,
        task: u32,
        limit_ns: u64,
    ) -> Result<bool, Late> {
        let of = &model.tasks[task as usize];
        let (before, after) = (model.before(task), model.after(task));
        model.work.add((before.len() + after.len()) as u64);
        let ends_ns = before.iter();
        let ends_ns = ends_ns.map(|&before| self.end_ns[before as usize]);
        let mut ready_ns = ends_ns.max().unwrap_or(0).max(model.start_ns);
        let is_too_late = |end_ns: u64| end_ns.saturating_add(of.after_ns) > limit_ns;
        if is_too_late(ready_ns) {
            return Err(Late);
        }
        let mut core = code.cores[of.process as usize];
        let is_new = of.is_first && model.processes[of.process as usize].has_core.is_none();
        if is_new && !self.may_have_needs(model, of.process, core, ready_ns) {
            return Ok(false);
        }
        if core == NONE {
            match self.choose(model, of.process, ready_ns, limit_ns)? {
                Some(chosen) => core = chosen,
                None => return Ok(false),
            }
            code.cores[of.process as usize] = core;
        }
        ready_ns = self.receive(model, code, task, core, ready_ns);
        let length_ns = model.length_ns(task, core);
        let (start_ns, blocker) = if is_new {
            match self.first_place(model, of.process, core, ready_ns, limit_ns)? {
                Some(place) => place,
                None => return Ok(false),
            }
        } else if length_ns > 0 {
            self.gap(model, core, ready_ns, length_ns).ok_or(Late)?
        } else {
            (ready_ns, NONE)
        };
        let end_ns = start_ns.saturating_add(length_ns);
        if is_too_late(end_ns) {
            return Err(Late);
        }
        self.take(model, core, start_ns, end_ns, task)?;
        self.start_ns[task as usize] = start_ns;
        self.end_ns[task as usize] = end_ns;
        self.blocker[task as usize] = blocker;
        if is_new {
            self.open(model, of.process, core, start_ns);
        }
        let claimed_ns = &mut self.claimed_ns[core as usize];
        *claimed_ns = claimed_ns.saturating_sub(length_ns);
        if of.is_last {
            self.close(model, of.process, core, end_ns)?;
        }
        Ok(true)
    }

    /// Returns the time at which the messages that the task waits for have arrived. Messages of
    /// other jobs are ignored.
    fn receive(
        &mut self,
        model: &Model<'_>,
        code: &Code,
        task: u32,
        core: u32,
        ready_ns: u64,
    ) -> u64 {
        let mut ready_ns = ready_ns;
        for message in model.messages(task) {
            let sender = code.cores[model.tasks[message.from as usize].process as usize];
            let nodes = (model.cores[sender as usize].node, model.cores[core as usize].node);
            let Some(link) = model.machine.link(nodes.0, nodes.1) else {
                continue;
            };
            let free_ns = &mut self.links_free_ns[link];
            let start_ns = self.end_ns[message.from as usize].max(*free_ns);
            *free_ns = start_ns.saturating_add(model.machine.transfer_ns(link, message.bytes));
            let arrival_ns = free_ns.saturating_add(model.machine.latency_ns(link));
            ready_ns = ready_ns.max(arrival_ns);
        }
        ready_ns
    }

    /// A process begins.
    fn open(&mut self, model: &Model<'_>, process: u32, core: u32, start_ns: u64) {
        self.use_core(model, core);
        self.claimed_ns[core as usize] += model.process_ns(process, core).1;
        self.opened_ns[process as usize] = start_ns;
        for (index, amount) in model.held(process, core) {
            self.holds[index].take(model.work, amount, start_ns);
        }
    }

    /// A process ends.
    fn close(
        &mut self,
        model: &Model<'_>,
        process: u32,
        core: u32,
        end_ns: u64,
    ) -> Result<(), Late> {
        let over = self.opened_ns[process as usize]..end_ns;
        let last_task = model.last_task(process);
        let mut could_hold = true;
        for (index, amount) in model.held(process, core) {
            let holds = &mut self.holds[index];
            could_hold &= holds.give_back(model.work, amount, last_task, over.clone());
        }
        could_hold.then_some(()).ok_or(Late)
    }

    fn use_core(&mut self, model: &Model<'_>, core: u32) {
        let core = core as usize;
        if !self.is_used[core] {
            self.is_used[core] = true;
            self.used.push(core as u32);
            self.gaps[core].clone_from(&model.cores[core].gaps);
            model.work.add(model.cores[core].gaps.len() as u64);
        }
    }

    /// The core on which the whole process would end first if it could go on at
    /// once, and after all that others have yet to do there. `None`: there is too
    /// little memory now.
    fn choose(
        &mut self,
        model: &Model<'_>,
        process: u32,
        ready_ns: u64,
        limit_ns: u64,
    ) -> Result<Option<u32>, Late> {
        let mut best: Option<(u64, u32)> = None;
        let mut lacks_memory = false;
        self.seen.clear();
        for (core, of) in (0u32..).zip(&model.cores[..model.open_cores]) {
            model.work.add(1);
            if of.is_free && !self.is_used[core as usize] {
                if self.seen.contains(&(of.kind, of.memory)) {
                    continue;
                }
                self.seen.push((of.kind, of.memory));
            }
            let limit_ns = best.map_or(limit_ns, |best| limit_ns.min(best.0));
            match self.first_place(model, process, core, ready_ns, limit_ns) {
                Ok(Some((start_ns, _))) => {
                    let all_ns = model.process_ns(process, core).1;
                    let all_ns = all_ns.saturating_add(self.claimed_ns[core as usize]);
                    let end_ns = start_ns.saturating_add(all_ns);
                    if best.is_none_or(|best| end_ns < best.0) {
                        best = Some((end_ns, core));
                    }
                }
                Ok(None) => lacks_memory = true,
                Err(Late) => {}
            }
        }
        match best {
            Some((_, core)) => Ok(Some(core)),
            None if lacks_memory => Ok(None),
            None => Err(Late),
        }
    }

    /// The first time from then on at which the core is free for so long, and who
    /// was in the way until then.
    fn gap(
        &self,
        model: &Model<'_>,
        core: u32,
        ready_ns: u64,
        length_ns: u64,
    ) -> Option<(u64, u32)> {
        let gaps = if self.is_used[core as usize] {
            &self.gaps[core as usize]
        } else {
            &model.cores[core as usize].gaps
        };
        let end_ns = ready_ns.saturating_add(length_ns);
        let first = gaps.partition_point(|gap| gap.end_ns < end_ns);
        let found = gaps[first..].iter().find(|gap| {
            model.work.add(1);
            let end_ns = gap.start_ns.max(ready_ns).saturating_add(length_ns);
            end_ns <= gap.end_ns
        })?;
        let blocker = if found.start_ns < ready_ns { NONE } else { found.after };
        Some((found.start_ns.max(ready_ns), blocker))
    }

    fn take(
        &mut self,
        model: &Model<'_>,
        core: u32,
        start_ns: u64,
        end_ns: u64,
        task: u32,
    ) -> Result<(), Late> {
        if start_ns == end_ns {
            return Ok(());
        }
        self.use_core(model, core);
        let gaps = &mut self.gaps[core as usize];
        let place = gaps.partition_point(|gap| gap.end_ns < end_ns);
        // Where the first task of a process takes no time, its next may find less.
        let gap = gaps.get_mut(place).filter(|gap| gap.start_ns <= start_ns);
        let gap = gap.ok_or(Late)?;
        let rest = Gap { start_ns: end_ns, end_ns: gap.end_ns, after: task };
        if gap.start_ns < start_ns {
            gap.end_ns = start_ns;
            if rest.start_ns < rest.end_ns {
                gaps.insert(place + 1, rest);
            }
        } else if rest.start_ns < rest.end_ns {
            *gap = rest;
        } else {
            gaps.remove(place);
        }
        Ok(())
    }

    /// Returns the first time at which a process has time for its first task and all that it holds,
    /// and the task that was in the way until then. `None`: there is too little of that now.
    fn first_place(
        &mut self,
        model: &Model<'_>,
        process: u32,
        core: u32,
        ready_ns: u64,
        limit_ns: u64,
    ) -> Result<Option<(u64, u32)>, Late> {
        let (first_ns, all_ns) = model.process_ns(process, core);
        let of = &model.processes[process as usize];
        let span_ns = of.span_ns.max(all_ns);
        let first_windows = process as usize * model.memories.len();
        let (mut from_ns, mut in_the_way) = (ready_ns, NONE);
        'from: loop {
            let found = self.gap(model, core, from_ns, first_ns.max(1)).ok_or(Late)?;
            let (start_ns, blocker) = found;
            if blocker != NONE {
                in_the_way = blocker;
            }
            if start_ns.saturating_add(all_ns) > limit_ns {
                return Err(Late);
            }
            for (index, amount) in model.held(process, core) {
                let windows = self.windows[first_windows + index]
                    .get_or_insert_with(|| model.memories[index].windows(amount, of.span_ns));
                let holds = &self.holds[index];
                match holds.first_free(model.work, windows, amount, start_ns, span_ns) {
                    None => return Ok(None),
                    Some((free_ns, _)) if free_ns == start_ns => {}
                    Some((free_ns, blocker)) => {
                        (from_ns, in_the_way) = (free_ns, blocker);
                        continue 'from;
                    }
                }
            }
            return Ok(Some((start_ns, in_the_way)));
        }
    }
}
