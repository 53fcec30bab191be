// SPDX-License-Identifier: GPL-2.0
//! Processes that are placed by their deadlines, in the store.
//!
//! All that can move on a core is placed again with each process that is added to it:
//! by preemptive EDF, in the time that is not reserved for others.

use std::ops::Range;

use super::demand::DemandTest;
use super::edf::{earliest_deadline_first, Overload, Work};
use super::independent::is_independent;
use crate::budget::{tally, Budget};
use crate::reserve::net::{order, Net};
use crate::store::{Booking, Interruption, Needs, Run, Store};
use crate::{ProcessReservation, Progress, Request, RunId, TaskReservation};

/// Steps of work that a task or a free stretch of a core counts as: each is looked at, ordered,
/// given back and booked.
pub(super) const STEPS: u64 = 16;

/// Stretches of a task, as they were before they were moved.
type Moved = (usize, Vec<Range<u64>>);

/// Reason why processes could not be placed by their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPlaced {
    /// The core has too little time.
    Overload { core: usize, overload: Overload },
    /// Enough time is free, but too little memory or too little of a resource during that time, or
    /// no core.
    NoRoom,
    /// The time suffices only if a task is interrupted, which the node would not do.
    Interrupted,
}

/// A run that is being placed.
pub(crate) struct Placing<'a> {
    pub(crate) request: Request<'a>,
    net: Net,
    /// Per process: its core, once it is known.
    cores: Vec<Option<usize>>,
    /// Per task: the stretches in which it is executed.
    stretches: Vec<Vec<Range<u64>>>,
    /// Moves, the last at the end.
    moved: Vec<Moved>,
}

impl<'a> Placing<'a> {
    /// Returns the remaining work of a run. Its processes keep the cores and places that they have
    /// in `run`, if they have any there.
    pub(crate) fn new(
        request: Request<'a>,
        store: &Store,
        run: Option<&Run>,
        work: &Budget,
    ) -> Self {
        let tasks = request.job.tasks.len() as u64;
        work.add(STEPS * tasks);
        tally::add(tasks);
        let request = request.not_before(store.now_ns());
        let net = Net::new(&request, store);
        let job = request.job;
        let mut cores = vec![None; job.processes.len()];
        let mut stretches = vec![Vec::new(); job.tasks.len()];
        for process in run.iter().flat_map(|run| &run.processes) {
            cores[process.process] = Some(process.core);
        }
        for (run, task) in run.iter().flat_map(|run| run.tasks.iter().map(move |it| (run, it))) {
            if net.insns[task.task] > 0 {
                stretches[task.task] = run.stretches(task).collect();
            }
        }
        for (process, core) in cores.iter_mut().enumerate() {
            if let Progress::Attached { core: own } | Progress::Running { core: own, .. } =
                request.progress_of(process)
            {
                *core = Some(own);
            }
        }
        Self { request, net, cores, stretches, moved: Vec::new() }
    }

    pub(crate) fn run(&self) -> RunId {
        self.request.run
    }

    /// The deadline by which its work is placed: none, if it is to be behind all others.
    fn order_ns(&self) -> u64 {
        if self.request.is_last {
            u64::MAX
        } else {
            self.request.deadline_ns
        }
    }

    pub(crate) fn core(&self, process: usize) -> Option<usize> {
        self.cores[process]
    }

    pub(crate) fn is_on(&self, core: usize) -> bool {
        self.cores.contains(&Some(core))
    }

    /// The processes that have work left.
    pub(crate) fn working(&self) -> impl Iterator<Item = usize> + '_ {
        let processes = 0..self.cores.len();
        processes.filter(|&process| self.net.process_insns[process] > 0)
    }

    /// The cores that the process may be on, the fastest first.
    pub(crate) fn candidates(&self, process: usize, store: &Store) -> Vec<usize> {
        if let Some(core) = self.cores[process] {
            return vec![core];
        }
        let allows = |&core: &usize| {
            let confined = self.net.confined.as_ref();
            confined.is_none_or(|confined| confined.allows_process(process, core))
        };
        let mut cores: Vec<usize> = (0..store.sites().len()).filter(allows).collect();
        cores.sort_by_key(|&core| std::cmp::Reverse(store.sites()[core].rate_insns_per_s));
        cores
    }

    /// Moves a process to a core, where it has no place yet.
    pub(crate) fn put(&mut self, process: usize, core: Option<usize>) {
        self.cores[process] = core;
        self.clear(process);
    }

    /// Gives up all places of the run.
    pub(crate) fn clear_all(&mut self) {
        self.stretches.iter_mut().for_each(Vec::clear);
    }

    /// Takes the memory and resources of processes that have begun, which they keep. Returns what
    /// was taken.
    pub(crate) fn hold_needs(&self, booking: &mut Booking<'_>) -> Vec<(usize, Range<u64>, Needs)> {
        let Request { job, start_ns, deadline_ns, .. } = self.request;
        let mut held = Vec::new();
        for index in 0..job.processes.len() {
            let needs = &self.net.needs[index];
            let core = match self.request.progress_of(index) {
                Progress::Running { core, .. } => core,
                _ if self.request.holds_without_thread(index, needs) => 0,
                _ => continue,
            };
            let over = start_ns..deadline_ns.max(start_ns);
            if booking.take_needs(core, over.clone(), needs).is_ok() {
                held.push((core, over, needs.clone()));
            }
        }
        held
    }

    /// Gives back what is reserved for the run on that core, and all that its processes hold.
    pub(crate) fn leave(&self, booking: &mut Booking<'_>, core: usize) -> Result<(), NotPlaced> {
        let mut run = self.reservations(booking.store());
        run.processes.clear();
        run.tasks.retain(|task| task.core != core && task.start_ns < task.end_ns);
        let stays = |it: &Interruption| run.tasks.iter().any(|task| task.task == it.task);
        run.interruptions.retain(stays);
        if run.tasks.is_empty() {
            booking.remove(self.run());
            return Ok(());
        }
        booking.reserve(self.run(), run).map_err(|_| NotPlaced::NoRoom)
    }

    fn clear(&mut self, process: usize) {
        for &task in &self.request.job.processes[process].tasks {
            self.stretches[task].clear();
        }
    }

    /// Takes the tasks of a process from their places, to move them.
    fn move_away(&mut self, process: usize) {
        for &task in &self.request.job.processes[process].tasks {
            self.moved.push((task, std::mem::take(&mut self.stretches[task])));
        }
    }

    /// Returns the number of moves, to which [`Placing::move_back`] can return.
    fn moves(&self) -> usize {
        self.moved.len()
    }

    /// Moves all tasks back that were moved since there were so many moves.
    pub(crate) fn move_back(&mut self, moves: usize) {
        while self.moved.len() > moves {
            let Some((task, stretches)) = self.moved.pop() else { return };
            self.stretches[task] = stretches;
        }
    }

    /// The tasks of a process that take time, with how long they take.
    fn lengths(&self, process: usize, store: &Store, test: &DemandTest) -> Vec<(usize, u64)> {
        let Some(core) = self.cores[process] else { return Vec::new() };
        let tasks = self.request.job.processes[process].tasks.iter();
        let open = tasks.filter(|&&task| self.net.insns[task] > 0);
        open.map(|&task| (task, test.duration_ns(store, core, self.net.insns[task]))).collect()
    }

    fn is_executed(&self, process: usize) -> bool {
        matches!(self.request.progress_of(process), Progress::Running { retired_insns: 1.., .. })
    }

    /// All reservations, once all processes have their place.
    fn reservations(&self, store: &Store) -> Run {
        let Request { job, start_ns, .. } = self.request;
        let begins = self.stretches.iter().filter_map(|it| Some(it.first()?.start));
        let first_ns = begins.min().unwrap_or(start_ns);
        let mut times_ns = vec![(first_ns, first_ns); job.tasks.len()];
        for task in order(job, &self.net.open) {
            times_ns[task] = match &self.stretches[task][..] {
                [first, .., last] => (first.start, last.end),
                [only] => (only.start, only.end),
                // It takes no time, and has its place when all before it have ended.
                [] => {
                    let before = job.predecessors(task).filter(|&task| self.net.open[task]);
                    let end_ns = before.map(|task| times_ns[task].1).max().unwrap_or(first_ns);
                    (end_ns.max(first_ns), end_ns.max(first_ns))
                }
            };
        }
        let mut run = Run::default();
        // A process without work is where another one is.
        let any = self.cores.iter().flatten().next().copied().unwrap_or(0);
        for (index, process) in job.processes.iter().enumerate() {
            let open = process.tasks.iter().filter(|&&task| self.net.open[task]);
            let (starts, ends): (Vec<u64>, Vec<u64>) = open.map(|&task| times_ns[task]).unzip();
            let (Some(first_ns), Some(&end_ns)) = (starts.into_iter().min(), ends.iter().max())
            else {
                continue;
            };
            let core = self.cores[index].unwrap_or(any);
            let needs = &self.net.needs[index];
            let holds = matches!(self.request.progress_of(index), Progress::Running { .. })
                || self.request.holds_without_thread(index, needs);
            run.processes.push(ProcessReservation {
                process: index,
                node: store.sites()[core].node,
                core,
                start_ns: if holds { start_ns.min(first_ns) } else { first_ns },
                end_ns,
                memory_bytes: process.memory_bytes,
                resources: needs.resources.clone(),
            });
            for &task in process.tasks.iter().filter(|&&task| self.net.open[task]) {
                let (start_ns, end_ns) = times_ns[task];
                run.tasks.push(TaskReservation {
                    task,
                    process: index,
                    core,
                    start_ns,
                    end_ns,
                    memory_bytes: job.tasks[task].memory_bytes,
                });
                let pairs = self.stretches[task].windows(2);
                run.interruptions.extend(pairs.map(|pair| Interruption {
                    task,
                    start_ns: pair[0].end,
                    end_ns: pair[1].start,
                }));
            }
        }
        run.tasks.sort_unstable_by_key(|task| task.task);
        run.interruptions.sort_unstable_by_key(|it| (it.task, it.start_ns));
        run
    }
}

/// Places all work of those runs on the core by its deadline. Nothing of the runs is
/// reserved before; where a run has places on other cores, those remain.
fn place_core(
    store: &Store,
    placings: &mut [&mut Placing<'_>],
    core: usize,
    test: &DemandTest,
    work: &Budget,
) -> Result<(), NotPlaced> {
    let mut members = Vec::new();
    let mut all = Vec::new();
    for (place, placing) in placings.iter().enumerate() {
        let here = placing.working().filter(|&process| placing.core(process) == Some(core));
        for process in here {
            let lengths = placing.lengths(process, store, test);
            all.push(Work {
                release_ns: placing.request.start_ns,
                deadline_ns: placing.order_ns(),
                length_ns: lengths.iter().fold(0, |sum, &(_, ns)| sum.saturating_add(ns)),
            });
            members.push((place, process, lengths));
        }
    }
    let free = store.free_slots(core, 1, store.now_ns()..u64::MAX).inspect(|_| work.add(STEPS));
    work.add(STEPS * members.len() as u64);
    let of_work = earliest_deadline_first(&all, free)
        .map_err(|overload| NotPlaced::Overload { core, overload })?;
    for ((place, process, lengths), stretches) in members.into_iter().zip(of_work) {
        let placing = &mut *placings[place];
        if !test.interrupts && is_interrupted(placing, process, &lengths, &stretches) {
            return Err(NotPlaced::Interrupted);
        }
        placing.move_away(process);
        let mut stretches = stretches.into_iter();
        let mut left = stretches.next().unwrap_or(0..0);
        for (task, mut length_ns) in lengths {
            while length_ns > 0 {
                let end_ns = left.end.min(left.start.saturating_add(length_ns));
                if end_ns > left.start {
                    placing.stretches[task].push(left.start..end_ns);
                    length_ns -= end_ns - left.start;
                    left.start = end_ns;
                }
                if left.is_empty() {
                    let Some(next) = stretches.next() else { break };
                    left = next;
                }
            }
        }
    }
    Ok(())
}

/// Whether a stretch ends within a task, or one that is being executed goes on later.
fn is_interrupted(
    placing: &Placing<'_>,
    process: usize,
    lengths: &[(usize, u64)],
    stretches: &[Range<u64>],
) -> bool {
    let waits = stretches.first().is_some_and(|first| first.start > placing.request.start_ns);
    if waits && placing.is_executed(process) {
        return true;
    }
    let ends = lengths.iter().scan(0, |sum, &(_, length_ns)| {
        *sum += length_ns;
        Some(*sum)
    });
    let ends: Vec<u64> = ends.collect();
    let mut sum_ns = 0;
    stretches.iter().any(|stretch| {
        sum_ns += stretch.end - stretch.start;
        ends.binary_search(&sum_ns).is_err()
    })
}

/// Reserves what those runs are placed at.
fn book(booking: &mut Booking<'_>, placings: &[&mut Placing<'_>]) -> Result<(), NotPlaced> {
    for placing in placings {
        let run = placing.reservations(booking.store());
        booking.reserve(placing.run(), run).map_err(|_| NotPlaced::NoRoom)?;
    }
    Ok(())
}

/// Returns the remaining work of a run that may move: its processes are independent and have
/// places.
pub(crate) fn movable<'a>(
    store: &Store,
    request: &Request<'a>,
    work: &Budget,
) -> Option<Placing<'a>> {
    let run = store.run(request.run)?;
    let movable = run.messages.is_empty() && is_independent_within(request, work);
    movable.then(|| Placing::new(*request, store, Some(run), work))
}

/// Returns the remaining work of a run whose processes are independent, on the cores that they
/// have.
pub(crate) fn unplaced<'a>(
    store: &Store,
    request: &Request<'a>,
    work: &Budget,
) -> Option<Placing<'a>> {
    let run = store.run(request.run);
    let is_alone = run.is_none_or(|run| run.messages.is_empty());
    let movable = is_alone && is_independent_within(request, work);
    movable.then(|| {
        let mut placing = Placing::new(*request, store, run, work);
        placing.clear_all();
        placing
    })
}

fn is_independent_within(request: &Request<'_>, work: &Budget) -> bool {
    let tasks = request.job.tasks.len() as u64;
    work.add(STEPS * tasks);
    tally::add(tasks);
    is_independent(request.job)
}

/// Places all that can move on a core, with what is asked for. If it fails, the placings and the
/// booking are as they were before.
pub(crate) fn place_with<'a>(
    booking: &mut Booking<'_>,
    asked: &mut Placing<'a>,
    others: &mut [Placing<'a>],
    core: usize,
    test: &DemandTest,
    work: &Budget,
) -> Result<(), NotPlaced> {
    work.add(others.iter().map(|other| other.cores.len() as u64).sum());
    let here = others.iter_mut().filter(|other| other.is_on(core));
    let mut here: Vec<&mut Placing<'a>> = here.collect();
    here.push(asked);
    let mark = booking.mark();
    let moves: Vec<usize> = here.iter().map(|placing| placing.moves()).collect();
    let placed = place_all(booking, &mut here, core, test, work);
    if placed.is_err() {
        booking.rollback(mark);
        for (placing, moves) in here.into_iter().zip(moves) {
            placing.move_back(moves);
        }
    }
    placed
}

/// Places those runs anew on that core. If it fails, the booking is to be rolled back.
pub(crate) fn place_all(
    booking: &mut Booking<'_>,
    placings: &mut [&mut Placing<'_>],
    core: usize,
    test: &DemandTest,
    work: &Budget,
) -> Result<(), NotPlaced> {
    let mark = booking.mark();
    let placed = place_again(booking, placings, core, test, work);
    booking.count_since(mark, work);
    placed
}

fn place_again(
    booking: &mut Booking<'_>,
    placings: &mut [&mut Placing<'_>],
    core: usize,
    test: &DemandTest,
    work: &Budget,
) -> Result<(), NotPlaced> {
    for placing in placings.iter() {
        if work.is_spent() {
            work.cut();
            return Err(NotPlaced::NoRoom);
        }
        // What a run has on the core is given up, and all of it is booked again.
        let tasks = placing.request.job.tasks.len() as u64;
        work.add(STEPS * tasks);
        tally::add(tasks);
        placing.leave(booking, core)?;
    }
    place_core(booking.store(), placings, core, test, work)?;
    book(booking, placings)
}
