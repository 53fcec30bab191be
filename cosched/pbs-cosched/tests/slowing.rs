// SPDX-License-Identifier: GPL-2.0
//! Schedulers with slow-downs, beside a brute force that shares no code with the crate.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::slowed::{assert_apart, Table, SCHEDULERS};
use common::{build, cpu, judge, platform, Build, Dice, GPU};
use pbs_cosched::{
    evaluations, greedy, not_co_scheduled, schedule_slowed, score, slowed, timing, ExecutionTarget,
    GreedyOptions, Mapping, Objective, OnThreads, Platform, Queues, Scheduler, Slowing, Timeline,
    Workload,
};

fn slowed_times(workload: &Workload, on: &Platform, table: &Table, mapping: &Mapping) -> Timeline {
    let timeline = timing(workload, on, &Queues::idle(on), mapping).unwrap();
    let variant = |task: usize| mapping.choices[task].map(|choice| choice.variant);
    let times = slowed(workload, table, &variant, &timeline);
    judge_order(workload, &times);
    times
}

/// Panics where a task begins before what it waits for has ended, or two share a thread.
fn judge_order(workload: &Workload, times: &Timeline) {
    let slot = |task: usize| times.slots[task].as_ref().unwrap();
    for (task, of) in workload.tasks.iter().enumerate() {
        assert!(of.after.iter().all(|edge| slot(edge.task).end_ns <= slot(task).start_ns));
        if let Some(awaited) = times.awaited(task) {
            assert!(slot(awaited).end_ns <= slot(task).start_ns);
        }
        for other in 0..task {
            let (one, other) = (slot(task), slot(other));
            assert_apart(one, other);
        }
    }
}

/// Makespan of what a scheduler decides.
fn makespan_ns(workload: &Workload, on: &Platform, table: &Table, scheduler: &Scheduler) -> u64 {
    let objective = Objective::default();
    let mappings = if *scheduler == Scheduler::BruteForce { 2_000_000 } else { 300 };
    let (mapping, proved) = schedule_slowed(
        workload,
        on,
        &Queues::idle(on),
        scheduler,
        objective,
        table,
        &mut evaluations(mappings),
    );
    if *scheduler == Scheduler::BruteForce {
        assert_eq!(proved, Some(true));
    }
    score(workload, &slowed_times(workload, on, table, &mapping)).makespan_ns
}

/// Two tasks that take 2.5 times as long side by side: 250, or 200 one after the other.
#[test]
fn all_schedulers_hold_a_task_back_that_would_slow_another() {
    let mut all = build(&[0, 0]);
    all.task(0, &[], &[(cpu(1), 100)]);
    all.task(1, &[], &[(cpu(1), 100)]);
    let (workload, on) = (all.0, platform(2, &[]));
    let table = Table::all(2, 2.5);
    let alone = not_co_scheduled(&workload, &on, &Queues::idle(&on));
    assert_eq!(slowed_times(&workload, &on, &table, &alone).end_ns(), 250);
    for scheduler in &SCHEDULERS {
        assert_eq!(makespan_ns(&workload, &on, &table, scheduler), 200, "{scheduler:?}");
    }
    // Side by side where that costs less.
    for scheduler in &SCHEDULERS {
        let makespan_ns = makespan_ns(&workload, &on, &Table::all(2, 1.9), scheduler);
        assert_eq!(makespan_ns, 190, "{scheduler:?}");
    }
}

/// The first task slows the others, which do not slow each other: they run side by side after it.
#[test]
fn all_schedulers_let_several_tasks_wait_for_the_same() {
    let mut all = build(&[0]);
    all.heap(0, 3, &[(cpu(1), 100)]);
    let (workload, on) = (all.0, platform(2, &[]));
    let mut table = Table::all(3, 1.0);
    for other in [1, 2] {
        table.by[0][other] = 4.0;
        table.by[other][0] = 4.0;
    }
    for scheduler in &SCHEDULERS {
        assert_eq!(makespan_ns(&workload, &on, &table, scheduler), 200, "{scheduler:?}");
    }
}

/// A variant that is slower alone is faster where nothing slows it; greedy keeps its variants.
#[test]
fn variants_are_chosen_with_their_slowdowns() {
    let mut all = build(&[0, 0]);
    all.task(0, &[], &[(cpu(1), 100)]);
    all.task(1, &[], &[(cpu(1), 100), (GPU, 130)]);
    let (workload, on) = (all.0, platform(2, &[1]));
    let table = Table::all(2, 3.0);
    for scheduler in &SCHEDULERS[1..] {
        assert_eq!(makespan_ns(&workload, &on, &table, scheduler), 130, "{scheduler:?}");
    }
}

/// Brute force over events: whenever a task on the CPU ends, or a task gets its data, any set of
/// tasks that fit may begin, as any variant.
struct Reference<'a> {
    workload: &'a Workload,
    on: &'a Platform,
    table: &'a Table,
}

#[derive(Clone)]
struct World {
    now: f64,
    /// Task, variant, and what is left of it.
    running: Vec<(usize, usize, f64)>,
    begun: Vec<bool>,
    /// End of each task, and whether its data are on the accelerator.
    ended: Vec<Option<(f64, bool)>>,
    /// A task on the CPU has just ended.
    cpu_ended: bool,
}

impl Reference<'_> {
    fn makespan(&self) -> f64 {
        let tasks = self.workload.tasks.len();
        let present = self.workload.tasks.iter().map(|task| task.process);
        let arrivals = present.map(|of| self.workload.processes[of].arrival_ns);
        let first = arrivals.min().unwrap() as f64;
        let mut best = f64::INFINITY;
        let (begun, ended) = (vec![false; tasks], vec![None; tasks]);
        let world = World { now: 0.0, running: Vec::new(), begun, ended, cpu_ended: false };
        self.begin(world, 0, &mut best);
        best - first
    }

    fn place(&self, task: usize, variant: usize) -> ExecutionTarget {
        self.workload.tasks[task].variants[variant].place
    }

    /// Time at which a task has its data for a variant.
    fn ready(&self, world: &World, task: usize, variant: usize) -> Option<f64> {
        let of = &self.workload.tasks[task];
        let mut ready = self.workload.processes[of.process].arrival_ns as f64;
        let on_gpu = self.place(task, variant) == GPU;
        for edge in &of.after {
            let (end, was_on_gpu) = world.ended[edge.task]?;
            let travels = if was_on_gpu == on_gpu { 0 } else { edge.transfer_ns };
            ready = ready.max(end + travels as f64);
        }
        Some(ready)
    }

    /// Begins any of the tasks from this one on, or none of them, and goes on.
    fn begin(&self, world: World, from: usize, best: &mut f64) {
        for task in from..self.workload.tasks.len() {
            if world.begun[task] {
                continue;
            }
            for variant in 0..self.workload.tasks[task].variants.len() {
                let Some(ready) = self.ready(&world, task, variant) else { continue };
                let place = self.place(task, variant);
                let used = |of: &(usize, usize, f64)| match self.place(of.0, of.1) {
                    ExecutionTarget::Threads(threads) => threads,
                    ExecutionTarget::Device(_) => 0,
                };
                let is_room = match place {
                    ExecutionTarget::Threads(needed) => {
                        let used: u32 = world.running.iter().map(used).sum();
                        used + needed <= self.on.threads
                    }
                    ExecutionTarget::Device(_) => {
                        world.running.iter().all(|of| self.place(of.0, of.1) != GPU)
                    }
                };
                let is_now = (ready - world.now).abs() < 1e-6 || world.cpu_ended || place == GPU;
                if ready > world.now + 1e-6 || !is_room || !is_now {
                    continue;
                }
                let mut next = world.clone();
                let runtime_ns = self.workload.tasks[task].variants[variant].runtime_ns;
                next.running.push((task, variant, runtime_ns as f64));
                next.begun[task] = true;
                self.begin(next, task + 1, best);
            }
        }
        self.pass(world, best);
    }

    /// Lets time pass to the next event.
    fn pass(&self, mut world: World, best: &mut f64) {
        if world.ended.iter().all(Option::is_some) {
            *best = best.min(world.now);
            return;
        }
        let on_cpu = |of: &(usize, usize, f64)| self.place(of.0, of.1) != GPU;
        let slowdowns: Vec<f64> = world
            .running
            .iter()
            .map(|own| {
                let others = world.running.iter().filter(|other| other.0 != own.0 && on_cpu(other));
                if on_cpu(own) {
                    self.table.sum(own.0, others.map(|other| other.0))
                } else {
                    1.0
                }
            })
            .collect();
        let mut until = f64::INFINITY;
        for (of, slowdown) in world.running.iter().zip(&slowdowns) {
            until = until.min(world.now + of.2 * slowdown);
        }
        for task in (0..world.begun.len()).filter(|&task| !world.begun[task]) {
            for variant in 0..self.workload.tasks[task].variants.len() {
                let ready = self.ready(&world, task, variant);
                until = until.min(ready.filter(|at| *at > world.now + 1e-6).unwrap_or(until));
            }
        }
        if !until.is_finite() || until >= *best {
            return;
        }
        for (of, slowdown) in world.running.iter_mut().zip(&slowdowns) {
            of.2 -= (until - world.now) / slowdown;
        }
        world.now = until;
        world.cpu_ended = false;
        for (task, variant, left) in std::mem::take(&mut world.running) {
            if left > 1e-6 {
                world.running.push((task, variant, left));
            } else {
                let on_gpu = self.place(task, variant) == GPU;
                world.cpu_ended |= !on_gpu;
                world.ended[task] = Some((until, on_gpu));
            }
        }
        self.begin(world, 0, best);
    }
}

/// Tasks of thousands of nanoseconds, so that rounding changes nothing.
fn random_case(dice: &mut Dice, tasks: usize, most_variants: u64) -> (Workload, Platform, Table) {
    let on = platform(1 + dice.below(4).min(1) as u32, if dice.below(2) == 0 { &[] } else { &[1] });
    let mut all: Build = build(&[0, dice.below(2) * 7_000]);
    for number in 0..tasks {
        let mut after = Vec::new();
        for before in 0..number {
            if dice.below(4) == 0 {
                after.push((before, dice.below(3) * 2_000));
            }
        }
        let mut of = Vec::new();
        for _ in 0..1 + dice.below(most_variants) {
            let place = match dice.below(3) {
                0 if !on.devices.is_empty() => GPU,
                1 => cpu(on.threads),
                _ => cpu(1),
            };
            of.push((place, 1_000 * (1 + dice.below(20))));
        }
        all.task(dice.below(2) as usize, &after, &of);
    }
    let mut table = Table::all(tasks, 1.0);
    for slowdown in table.by.iter_mut().flatten() {
        *slowdown = [1.0, 1.5, 2.0, 3.5][dice.below(4) as usize];
    }
    (all.0, on, table)
}

#[test]
fn brute_force_with_slowdowns_finds_the_optimum_of_all_schedules() {
    let mut dice = Dice(0x51_0D04);
    let mut apart = 0;
    for number in 0..400 {
        let (tasks, variants) = if number % 4 == 0 { (4, 1) } else { (2 + number % 2, 2) };
        let (workload, on, mut table) = random_case(&mut dice, tasks, variants);
        table.only_slows = number % 8 != 1;
        let expected = Reference { workload: &workload, on: &on, table: &table }.makespan();
        let found_ns = makespan_ns(&workload, &on, &table, &Scheduler::BruteForce);
        assert!((found_ns as f64 - expected).abs() < 3.0, "{found_ns} instead of {expected}");
        for scheduler in &SCHEDULERS[..3] {
            assert!(makespan_ns(&workload, &on, &table, scheduler) >= found_ns);
        }
        let free = Table::all(tasks, 1.0);
        apart += u32::from(found_ns > makespan_ns(&workload, &on, &free, &Scheduler::BruteForce));
    }
    assert!(apart > 60, "slow-downs matter in {apart} cases only");
}

/// Counts the neighbours of tasks whose slow-downs are asked for.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Slowing for Counting {
    fn slowdown(&self, _: OnThreads<'_>, beside: &[OnThreads<'_>]) -> f64 {
        self.0.fetch_add(beside.len(), Ordering::Relaxed);
        1.0 + 0.1 * beside.len() as f64
    }

    fn only_slows(&self) -> bool {
        true
    }
}

/// Many neighbours make each schedule dear: the search tries fewer of them.
#[test]
fn the_search_of_greedy_and_heft_is_bounded_by_its_work() {
    let mut all = build(&[0]);
    for number in 0..100 {
        all.task(0, &[], &[(cpu(1), 1000 + 37 * number)]);
    }
    let (workload, on) = (all.0, platform(16, &[]));
    for scheduler in &SCHEDULERS[..2] {
        let searched = |mappings: u64| {
            let counting = Counting::default();
            schedule_slowed(
                &workload,
                &on,
                &Queues::idle(&on),
                scheduler,
                Objective::default(),
                &counting,
                &mut evaluations(mappings),
            );
            counting.0.into_inner()
        };
        let all = searched(u64::MAX);
        assert!(all < 16_000_000, "{all} neighbours");
        let (one, none) = (searched(1), searched(0));
        assert!(none < one && one < all, "{none}, {one} and {all} neighbours");
    }
}

/// A schedule with held tasks is never worse than the one that its scheduler begins with.
#[test]
fn slowdowns_in_the_search_never_worsen_a_schedule() {
    let mut dice = Dice(77);
    for _ in 0..60 {
        let (workload, on, table) = random_case(&mut dice, 7, 3);
        let idle = Queues::idle(&on);
        let ends_ns = |mapping: &Mapping| {
            let times = slowed_times(&workload, &on, &table, mapping);
            score(&workload, &times).makespan_ns
        };
        let by_times = greedy(&workload, &on, &idle, &GreedyOptions::default());
        let without_ns = ends_ns(&not_co_scheduled(&workload, &on, &idle));
        assert!(makespan_ns(&workload, &on, &table, &SCHEDULERS[0]) <= ends_ns(&by_times));
        assert!(
            makespan_ns(&workload, &on, &table, &SCHEDULERS[2])
                <= without_ns.min(ends_ns(&by_times))
        );
        // Times alone are still those of a machine.
        let scheduler = Scheduler::Evolutionary(3);
        let objective = Objective::default();
        let mut budget = evaluations(100);
        let (mapping, _) =
            schedule_slowed(&workload, &on, &idle, &scheduler, objective, &table, &mut budget);
        let timeline = timing(&workload, &on, &idle, &mapping).unwrap();
        judge(&workload, &on, &timeline, |task| mapping.choices[task].unwrap().variant);
    }
}
