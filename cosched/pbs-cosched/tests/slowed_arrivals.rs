// SPDX-License-Identifier: GPL-2.0
//! Processes that arrive one after the other, whose tasks slow each other.

mod common;

use common::slowed::{assert_apart, Table, SCHEDULERS};
use common::{build, cpu, platform, Dice, GPU};
use pbs_cosched::{
    score, simulate, simulate_slowed, Cost, Determination, Options, Platform, Run, Scheduler,
    Where, Workload,
};

fn options(scheduler: Scheduler) -> Options {
    let determination = Determination::ALWAYS;
    Options { scheduler, determination, evaluations: 300, ..Options::default() }
}

fn run(workload: &Workload, on: &Platform, scheduler: Scheduler, table: &Table) -> Run {
    let run = simulate_slowed(workload, on, &options(scheduler), Some(table)).unwrap();
    judge(workload, table, &run);
    run
}

/// Panics where a task has not done its work between its start and its end, beside those that ran
/// meanwhile; where two share a place; or where one begins before its process or its predecessors.
fn judge(workload: &Workload, table: &Table, run: &Run) {
    let slots: Vec<_> = run.timeline.slots.iter().map(|slot| slot.as_ref().unwrap()).collect();
    let on_cpu = |task: usize| matches!(slots[task].place, Where::Threads(_));
    let mut times: Vec<u64> = slots.iter().flat_map(|slot| [slot.start_ns, slot.end_ns]).collect();
    times.sort_unstable();
    times.dedup();
    for (task, slot) in slots.iter().enumerate() {
        let of = &workload.tasks[task];
        assert!(slot.start_ns >= workload.processes[of.process].arrival_ns);
        assert!(of.after.iter().all(|edge| slots[edge.task].end_ns <= slot.start_ns));
        let mut done_ns = 0.0;
        for span in times.windows(2).filter(|of| slot.start_ns <= of[0] && of[1] <= slot.end_ns) {
            let runs = |other: &usize| {
                let other = slots[*other];
                other.start_ns <= span[0] && span[1] <= other.end_ns
            };
            let others = (0..slots.len()).filter(|&other| other != task && on_cpu(other));
            let slowdown = if on_cpu(task) { table.sum(task, others.filter(runs)) } else { 1.0 };
            done_ns += (span[1] - span[0]) as f64 / slowdown;
        }
        let alone_ns = of.variants[run.variants[task].unwrap()].runtime_ns as f64;
        assert!((done_ns - alone_ns).abs() < 10.0, "task {task}: {done_ns} of {alone_ns}");
        for other in &slots[..task] {
            assert_apart(slot, other);
        }
    }
}

/// The second process comes while the first one runs. Side by side, both would take 2.5 times as
/// long; one behind the other, the last one ends at 200.
#[test]
fn a_newcomer_waits_for_the_task_that_it_would_slow() {
    let mut all = build(&[0, 50]);
    all.task(0, &[], &[(cpu(1), 100)]);
    all.task(1, &[], &[(cpu(1), 100)]);
    let (workload, on) = (all.0, platform(2, &[]));
    for scheduler in SCHEDULERS {
        let found = run(&workload, &on, scheduler, &Table::all(2, 2.5));
        let slots: Vec<_> = found.timeline.slots.iter().flatten().collect();
        let times = [(slots[0].start_ns, slots[0].end_ns), (slots[1].start_ns, slots[1].end_ns)];
        assert_eq!(times, [(0, 100), (100, 200)], "{scheduler:?}");
        // The first one is not slowed any more where both lose less.
        let found = run(&workload, &on, scheduler, &Table::all(2, 1.2));
        assert_eq!(found.timeline.slots[1].as_ref().unwrap().start_ns, 50, "{scheduler:?}");
    }
    // Without co-scheduling, the newcomer takes the idle thread.
    let never = Options { determination: Determination::NEVER, ..Options::default() };
    let table = Table::all(2, 2.5);
    let found = simulate_slowed(&workload, &on, &never, Some(&table)).unwrap();
    judge(&workload, &table, &found);
    // 50 alone; then 50 that take 125 beside the other, which has 50 left and ends alone.
    let ends = found.timeline.slots.iter().flatten().map(|slot| slot.end_ns);
    assert_eq!(ends.collect::<Vec<_>>(), [175, 225]);
}

/// A random workload of three processes, with tasks of thousands of nanoseconds. Tasks wait for those
/// of processes that come no later.
fn random_case(dice: &mut Dice) -> (Workload, Platform, Table) {
    let on = platform(1 + dice.below(3) as u32, if dice.below(2) == 0 { &[] } else { &[1] });
    let second_ns = dice.below(20) * 1_000;
    let third_ns = second_ns + dice.below(40) * 1_000;
    let mut all = build(&[0, second_ns, third_ns]);
    let tasks = 6 + dice.below(6) as usize;
    let mut processes: Vec<usize> = (0..tasks).map(|_| dice.below(3) as usize).collect();
    processes.sort_unstable();
    for (number, process) in processes.into_iter().enumerate() {
        let after: Vec<(usize, u64)> =
            (0..number).filter(|_| dice.below(5) == 0).map(|before| (before, 0)).collect();
        let mut of = Vec::new();
        for _ in 0..1 + dice.below(2) {
            let place = match dice.below(3) {
                0 if !on.devices.is_empty() => GPU,
                1 => cpu(on.threads),
                _ => cpu(1),
            };
            of.push((place, 1_000 * (1 + dice.below(20))));
        }
        all.task(process, &after, &of);
    }
    let mut table = Table::all(tasks, 1.0);
    for slowdown in table.by.iter_mut().flatten() {
        *slowdown = [1.0, 2.0, 3.5, 6.0][dice.below(4) as usize];
    }
    (all.0, on, table)
}

/// All ways to decide: whether arrivals are mapped anew, wait for the decision, or take what is worse.
fn all_options(scheduler: Scheduler) -> [Options; 4] {
    let always = options(scheduler);
    [
        always,
        Options { determination: Determination::NEVER, ..always },
        Options { charge_cost: true, cost: Cost { a: 0.0, b: 500.0, c: 700.0 }, ..always },
        Options { reject_worse: false, ..always },
    ]
}

/// Whatever is mapped anew, all tasks do their work beside the others.
#[test]
fn every_task_does_its_work_beside_the_others() {
    let mut dice = Dice(0x51_0D05);
    let (mut taken, mut better, mut worse) = (0, 0, 0);
    for _ in 0..50 {
        let (workload, on, table) = random_case(&mut dice);
        for scheduler in SCHEDULERS {
            let runs = all_options(scheduler).map(|options| {
                let run = simulate_slowed(&workload, &on, &options, Some(&table)).unwrap();
                judge(&workload, &table, &run);
                run
            });
            taken += runs[0].decisions.iter().filter(|of| of.taken).count();
            let [found_ns, blind_ns, ..] =
                runs.map(|run| score(&workload, &run.timeline).makespan_ns);
            better += u32::from(found_ns < blind_ns);
            worse += u32::from(found_ns > blind_ns);
        }
    }
    assert!(taken > 100 && better > 50, "{taken} mappings, {better} better");
    assert!(worse * 4 < better, "{worse} worse, {better} better");
}

/// The past stays as it was at an arrival, whether the arrival is mapped anew or not.
#[test]
fn an_arrival_changes_nothing_of_the_past() {
    let mut dice = Dice(0x51_0D07);
    let mut compared = 0;
    for _ in 0..50 {
        let (workload, on, table) = random_case(&mut dice);
        let arrival_ns = workload.processes[2].arrival_ns;
        // The last process comes when all else is over.
        let mut later = workload.clone();
        later.processes[2].arrival_ns = 1_000_000_000;
        for scheduler in SCHEDULERS {
            for options in all_options(scheduler) {
                let run = |of: &Workload| simulate_slowed(of, &on, &options, Some(&table)).unwrap();
                let (before, after) = (run(&later), run(&workload));
                for task in (0..workload.tasks.len()).filter(|of| workload.tasks[*of].process < 2) {
                    let [one, other] =
                        [&before, &after].map(|run| run.timeline.slots[task].as_ref().unwrap());
                    if one.start_ns >= arrival_ns {
                        assert!(other.start_ns >= arrival_ns, "{options:?}");
                        continue;
                    }
                    compared += 1;
                    assert_eq!(one.place, other.place, "{options:?}");
                    assert_eq!(before.variants[task], after.variants[task]);
                    assert!(one.start_ns.abs_diff(other.start_ns) <= 1, "{options:?}");
                    if one.end_ns <= arrival_ns {
                        assert!(one.end_ns.abs_diff(other.end_ns) <= 1, "{options:?}");
                    }
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// A task that is still running though it would have ended alone keeps the tasks behind it waiting,
/// when a process comes that takes an idle thread.
#[test]
fn a_kept_plan_keeps_the_order_of_a_thread() {
    let mut all = build(&[0, 36]);
    all.task(0, &[], &[(cpu(1), 10)]);
    all.task(0, &[], &[(cpu(1), 100)]);
    all.task(0, &[], &[(cpu(1), 2)]);
    all.task(0, &[(2, 0)], &[(cpu(1), 8)]);
    all.task(1, &[], &[(cpu(1), 5)]);
    let (workload, on) = (all.0, platform(2, &[]));
    let mut table = Table::all(5, 1.0);
    (table.by[0][1], table.by[1][0]) = (3.5, 3.5);
    let never = Options { determination: Determination::NEVER, ..Options::default() };
    let found = simulate_slowed(&workload, &on, &never, Some(&table)).unwrap();
    judge(&workload, &table, &found);
    let times = found.timeline.slots.iter().flatten().map(|slot| (slot.start_ns, slot.end_ns));
    let expected = [(0, 35), (0, 125), (35, 37), (37, 45), (45, 50)];
    assert_eq!(times.collect::<Vec<_>>(), expected);
}

/// A running task is not expected to stay slow beside tasks that are mapped away.
#[test]
fn a_thread_is_free_when_its_task_is_slowed_no_more() {
    let mut all = build(&[0, 10]);
    all.task(0, &[], &[(cpu(1), 100)]);
    all.task(0, &[], &[(cpu(1), 20)]);
    all.task(0, &[(1, 0)], &[(cpu(1), 200), (GPU, 210)]);
    all.task(1, &[], &[(cpu(2), 50)]);
    let (workload, on) = (all.0, platform(2, &[1]));
    let mut table = Table::all(4, 1.0);
    (table.by[0][2], table.by[2][0]) = (3.0, 3.0);
    // Only the second arrival is mapped anew: the first one finds idle threads.
    let determination = Determination::CONTENTION;
    let options = Options { determination, ..options(Scheduler::BruteForce) };
    let found = simulate_slowed(&workload, &on, &options, Some(&table)).unwrap();
    judge(&workload, &table, &found);
    let slot = |task: usize| found.timeline.slots[task].as_ref().unwrap();
    assert_eq!((slot(0).end_ns, slot(2).end_ns), (100, 230));
    assert_eq!((slot(3).start_ns, slot(3).end_ns), (100, 150));
}

/// A scheduler that does not regard slow-downs has the same run where nothing slows anything.
#[test]
fn a_run_without_slowdowns_is_the_same() {
    let mut dice = Dice(0x51_0D06);
    for _ in 0..100 {
        let (workload, on, table) = random_case(&mut dice);
        let none = Table::all(table.by.len(), 1.0);
        let options = options(Scheduler::PlainRandom(7));
        let found = simulate_slowed(&workload, &on, &options, Some(&none)).unwrap();
        assert_eq!(found, simulate(&workload, &on, &options).unwrap());
    }
}
