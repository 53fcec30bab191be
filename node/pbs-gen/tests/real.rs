// SPDX-License-Identifier: GPL-2.0
//! Real execution: the scatter of lengths, and the scenarios.

#[allow(dead_code)]
mod common;

use common::{idle, plan, real, small, tasks};
use pbs_gen::{Parameters, Scenario, Span};
use pbs_plan::{Plan, Process, Slot};

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (mean, (squares.sum::<f64>() / values.len() as f64).sqrt())
}

/// 100,000 tasks, all of one length.
fn many(task_sigma_permille: u64) -> Parameters {
    Parameters {
        processes: 10,
        tasks: Span::new(10_000, 10_000),
        task_insns: Span::new(1_000_000_000, 1_000_000_000),
        idle_permille: 500,
        idle_insns: Span::new(1_000_000_000, 1_000_000_000),
        task_sigma_permille,
        ..Parameters::default()
    }
}

fn deviations(plan: &Plan) -> Vec<f64> {
    tasks(plan).map(|(_, task)| real(task) as f64 / task.planned_insns as f64 - 1.0).collect()
}

/// Leppert 2021, figure 9.
#[test]
fn deviations_are_normally_distributed() {
    for task_sigma_permille in [50, 100, 200] {
        let sigma = task_sigma_permille as f64 / 1000.0;
        let plan = plan(&many(task_sigma_permille));
        let tasks = deviations(&plan);
        assert_eq!(tasks.len(), 100_000);
        let idle: Vec<_> = idle(&plan)
            .into_iter()
            .map(|(planned, real)| real as f64 / planned as f64 - 1.0)
            .collect();
        assert_eq!(idle.len(), 100_000);
        for values in [&tasks, &idle] {
            // Four standard errors.
            let (mean, deviation) = moments(values);
            let count = values.len() as f64;
            assert!(mean.abs() < 4.0 * sigma / count.sqrt(), "{mean}");
            let error = sigma / (2.0 * count).sqrt();
            assert!((deviation - sigma).abs() < 4.0 * error, "{deviation}");
            // The shares within one, two and three sigma are those of the
            // normal distribution.
            for (width, share) in [(1.0, 0.682_689), (2.0, 0.954_500), (3.0, 0.997_300)] {
                let within = values.iter().filter(|value| value.abs() < width * sigma);
                let found = within.count() as f64 / count;
                let error = (share * (1.0 - share) / count).sqrt();
                assert!((found - share).abs() < 4.0 * error, "{width}: {found}");
            }
        }
    }
}

#[test]
fn without_sigma_all_is_exact() {
    let plan = plan(&many(0));
    assert!(deviations(&plan).iter().all(|&deviation| deviation == 0.0));
    assert!(idle(&plan).iter().all(|(planned, real)| planned == real));
}

#[test]
fn no_task_is_shorter_than_an_instruction() {
    let plan = plan(&many(1000));
    let shortest = tasks(&plan).map(|(_, task)| real(task)).min();
    assert_eq!(shortest, Some(1));
    // One in six is below what one sigma leaves.
    let cut = tasks(&plan).filter(|(_, task)| real(task) == 1).count();
    assert!((15_000..17_000).contains(&cut), "{cut}");
}

#[test]
fn deviations_of_a_seed_are_in_proportion() {
    let scaled = |sigma: u64| {
        deviations(&plan(&Parameters {
            task_sigma_permille: sigma,
            task_insns: Span::new(1_000_000_000, 1_000_000_000),
            ..small()
        }))
    };
    for (small, large) in scaled(50).into_iter().zip(scaled(100)) {
        assert!((2.0 * small - large).abs() < 1e-8, "{small} {large}");
    }
}

/// A plan of the scenario whose lengths do not scatter.
fn exact(scenario: Scenario, deviation_permille: Option<u64>) -> Plan {
    plan(&Parameters { scenario, deviation_permille, task_sigma_permille: 0, ..small() })
}

/// Thousandths by which each task of the process is late.
fn lateness(process: &Process) -> Vec<i64> {
    let tasks = process.tasks.iter();
    tasks
        .map(|task| {
            let late = real(task) as f64 / task.planned_insns as f64 - 1.0;
            (late * 1000.0).round() as i64
        })
        .collect()
}

fn all_lateness(plan: &Plan) -> Vec<i64> {
    plan.processes.iter().flat_map(lateness).collect()
}

#[test]
fn normal_hits_nobody() {
    let plan = exact(Scenario::Normal, None);
    assert!(all_lateness(&plan).iter().all(|&late| late == 0));
    assert!(plan.processes.iter().all(|process| process.name.is_none()));
}

#[test]
fn one_over_hits_one_process() {
    for (asked, expected) in [(None, 3000), (Some(500), 500)] {
        let plan = exact(Scenario::OneOver, asked);
        let (over, others): (Vec<_>, Vec<_>) =
            plan.processes.iter().partition(|process| process.name.as_deref() == Some("over"));
        assert_eq!(over.len(), 1);
        assert!(lateness(over[0]).iter().all(|&late| late == expected));
        assert!(others.into_iter().flat_map(lateness).all(|late| late == 0));
    }
}

#[test]
fn all_slightly_late_and_early_node_hit_everybody() {
    let late = exact(Scenario::AllSlightlyLate, None);
    assert!(all_lateness(&late).iter().all(|&late| late == 150));
    let early = exact(Scenario::EarlyNode, None);
    assert!(all_lateness(&early).iter().all(|&late| late == -300));
    let gone = exact(Scenario::EarlyNode, Some(1000));
    assert!(tasks(&gone).all(|(_, task)| real(task) == 1));
}

#[test]
fn long_tasks_are_late_and_short_ones_follow() {
    let parameters = Parameters {
        scenario: Scenario::LongThenShort,
        tasks: Span::new(25, 25),
        task_sigma_permille: 0,
        ..small()
    };
    let plan = plan(&parameters);
    let named = |process: &&Process| process.name.as_deref() == Some("stacking");
    let process = plan.processes.iter().find(named).unwrap();
    for (number, (task, late)) in process.tasks.iter().zip(lateness(process)).enumerate() {
        let (planned_insns, name, expected) =
            if number % 10 == 0 { (5_000_000, Some("long"), 300) } else { (200_000, None, 0) };
        assert_eq!(task.planned_insns, planned_insns);
        assert_eq!(task.name.as_deref(), name);
        assert_eq!(late, expected);
    }
    let others = plan.processes.iter().filter(|process| !named(process));
    assert!(others.flat_map(lateness).all(|late| late == 0));
}

#[test]
fn one_task_is_rogue_or_endless() {
    for (scenario, name) in [(Scenario::RogueTask, "rogue"), (Scenario::EndlessLoop, "endless")] {
        let plan = exact(scenario, None);
        let hit: Vec<_> =
            tasks(&plan).filter(|(_, task)| task.name.as_deref() == Some(name)).collect();
        let [(_, task)] = hit[..] else {
            panic!("{scenario}: {hit:?}");
        };
        let expected = match scenario {
            Scenario::RogueTask => 4 * task.planned_insns,
            _ => 1 << 40,
        };
        assert_eq!(real(task), expected);
        let late = tasks(&plan).filter(|(_, task)| real(task) != task.planned_insns);
        assert_eq!(late.count(), 1);
    }
    // Not always the same one.
    let places = (0..40).map(|seed| {
        let plan = plan(&Parameters { scenario: Scenario::RogueTask, seed, ..small() });
        let found = tasks(&plan).position(|(_, task)| task.name.is_some());
        found.unwrap()
    });
    let places: std::collections::BTreeSet<_> = places.collect();
    assert!(places.len() > 10, "{places:?}");
}

/// An endless task is a thousand times too long whatever was planned.
#[test]
fn endless_is_beyond_long_plans_too() {
    let plan = plan(&Parameters {
        scenario: Scenario::EndlessLoop,
        task_insns: Span::new(1 << 38, 1 << 38),
        idle_insns: Span::new(1 << 38, 1 << 38),
        ..small()
    });
    let longest = tasks(&plan).map(|(_, task)| real(task)).max();
    assert_eq!(longest, Some(1000 << 38));
    assert_eq!(pbs_plan::check(&plan), Ok(()));
}

/// Only the workers scatter: a coordinator that is preempted would wait a round
/// longer.
#[test]
fn the_coordinator_is_exact() {
    let plan = plan(&Parameters { scenario: Scenario::ScatterGather, ..small() });
    let [coordinator, workers @ ..] = &plan.processes[..] else {
        panic!("processes");
    };
    assert!(lateness(coordinator).iter().all(|&late| late == 0));
    assert!(workers.iter().flat_map(lateness).any(|late| late != -200));
}

/// Leppert 2021, figure 7.
#[test]
fn workers_are_early_and_the_coordinator_waits() {
    let plan = exact(Scenario::ScatterGather, None);
    let [coordinator, workers @ ..] = &plan.processes[..] else {
        panic!("processes");
    };
    assert_eq!(coordinator.label(), "coordinator");
    assert!(lateness(coordinator).iter().all(|&late| late == 0));
    for (number, worker) in (1..).zip(workers) {
        assert_eq!(worker.label(), format!("worker-{number}"));
        assert_eq!(worker.tasks.len(), coordinator.tasks.len());
        assert!(lateness(worker).iter().all(|&late| late == -200));
        assert!(worker.tasks.iter().all(|task| task.wait_insns.is_none()));
    }
    // It waits for what is planned between its slots, and its own task is long
    // enough that the ceiling of its slot bears it.
    let mut since_insns = 0;
    let mut collected = 0;
    for (slot, placed) in plan.cpus[0].slots.iter().zip(plan.place(&plan.cpus[0])) {
        if *slot != (Slot::Process { process: 0 }) {
            since_insns += placed.length_insns;
            continue;
        }
        let task = &coordinator.tasks[collected];
        if collected == 0 {
            assert_eq!(task.wait_insns, None);
        } else {
            assert_eq!(task.wait_insns, Some(since_insns));
            let works = workers.iter().map(|worker| worker.tasks[collected - 1].planned_insns);
            let twice_early = 2 * works.sum::<u64>() / 5;
            assert!(task.planned_insns >= twice_early.min(5_000_000));
        }
        collected += 1;
        since_insns = 0;
    }
    assert_eq!(collected, coordinator.tasks.len());
}

/// Peaks have a stream of their own: all else is as without them.
#[test]
fn peaks_of_memory_scatter_around_the_planned_ones() {
    let without = Parameters { processes: 1000, tasks: Span::new(1, 1), ..Parameters::default() };
    let with = Parameters {
        memory_bytes: Span::new(1_000_000, 2_000_000),
        memory_sigma_permille: 100,
        ..without
    };
    let (without, with) = (plan(&without), plan(&with));
    assert_eq!(
        tasks(&without).map(|it| it.1).collect::<Vec<_>>(),
        tasks(&with).map(|it| it.1).collect::<Vec<_>>()
    );
    let peaks = |process: &Process| (process.memory_bytes, process.real_memory_bytes);
    assert!(without.processes.iter().all(|it| peaks(it) == (0, None)));
    let processes = with.processes.iter();
    let relative: Vec<_> = processes
        .map(|process| {
            assert!((1_000_000..=2_000_000).contains(&process.memory_bytes));
            process.real_memory_bytes.unwrap() as f64 / process.memory_bytes as f64 - 1.0
        })
        .collect();
    let (mean, deviation) = moments(&relative);
    assert!(mean.abs() < 4.0 * 0.1 / 1000f64.sqrt(), "{mean}");
    assert!((deviation - 0.1).abs() < 4.0 * 0.1 / 2000f64.sqrt(), "{deviation}");
}
