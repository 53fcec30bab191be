// SPDX-License-Identifier: GPL-2.0
//! Tests of the determination, one for each feature.

mod common;

use common::{build, cpu, platform, GPU};
use pbs_cosched::{necessary, Cost, Determination, Entry, Necessity, Queues, State};

/// A process with a task of two variants, another with a waiting task.
fn two_processes() -> (pbs_cosched::Workload, pbs_cosched::Platform, Queues) {
    let mut all = build(&[0, 0]);
    all.task(0, &[], &[(GPU, 100)]);
    all.task(1, &[], &[(GPU, 10), (cpu(1), 60)]);
    let on = platform(1, &[1]);
    let queues = Queues::idle(&on);
    (all.0, on, queues)
}

#[test]
fn always_co_schedules_even_a_lone_process() {
    let (mut workload, on, mut queues) = two_processes();
    let both = Determination { always: true, ..Determination::CONTENTION };
    let asked = |workload: &_, queues: &_, determination: &_| {
        necessary(workload, &on, queues, 1, determination, &Cost::default())
    };
    assert_eq!(asked(&workload, &queues, &both), Necessity::Always);
    queues.tasks = vec![State::Absent];
    assert_eq!(asked(&workload, &queues, &both), Necessity::Always);
    workload.tasks.clear();
    assert_eq!(asked(&workload, &queues, &both), Necessity::Always);
}

#[test]
fn contention_is_another_process_in_a_desired_queue() {
    let (workload, on, mut queues) = two_processes();
    let asked = |queues: &_| {
        let determination = Determination { speedup: true, ..Determination::CONTENTION };
        necessary(&workload, &on, queues, 1, &determination, &Cost::default())
    };
    assert_eq!(asked(&queues), Necessity::Contention(false));
    let entry = |process| Entry { process, in_execution: true, runtime_ns: 9, end_ns: 9 };
    // Another queue than the desired one, and its own entry.
    queues.threads[0] = vec![entry(0)];
    queues.devices[0][0] = vec![entry(1)];
    assert!(!asked(&queues).is_necessary());
    queues.devices[0][0].push(entry(0));
    assert_eq!(asked(&queues), Necessity::Contention(true));
    assert!(asked(&queues).is_necessary());
    // The other has no waiting task any more.
    queues.tasks = vec![State::Absent];
    assert_eq!(asked(&queues), Necessity::Alone);
}

#[test]
fn contention_of_threads_is_too_few_without_others() {
    let mut all = build(&[0, 0]);
    all.task(0, &[], &[(cpu(1), 5)]);
    all.task(1, &[], &[(cpu(2), 5)]);
    let on = platform(3, &[]);
    let mut queues = Queues::idle(&on);
    let entry = Entry { process: 0, in_execution: true, runtime_ns: 9, end_ns: 9 };
    let asked = |queues: &_| {
        let cost = Cost::default();
        necessary(&all.0, &on, queues, 1, &Determination::CONTENTION, &cost).is_necessary()
    };
    queues.threads[0] = vec![entry];
    assert!(!asked(&queues));
    queues.threads[2] = vec![entry];
    assert!(asked(&queues));
}

#[test]
fn speedup_weighs_the_saving_of_desired_devices_against_the_cost() {
    let (mut workload, on, mut queues) = two_processes();
    let asked = |workload: &_, queues: &_, cost_ns| {
        let determination = Determination {
            amortization: Determination::AMORTIZATION.amortization,
            ..Determination::SPEEDUP
        };
        necessary(workload, &on, queues, 1, &determination, &Cost::constant(cost_ns))
    };
    // The GPU is free: nothing is saved.
    let free = asked(&workload, &queues, 0.0);
    assert_eq!(free, Necessity::Speedup { saved_ns: 0, cost_ns: 0 });
    assert!(!free.is_necessary());
    // Occupied: 60 on the CPU, which is free, instead of 10.
    let entry = Entry { process: 0, in_execution: true, runtime_ns: 30, end_ns: 30 };
    queues.devices[0][0] = vec![entry];
    let saved = asked(&workload, &queues, 49.0);
    assert_eq!(saved, Necessity::Speedup { saved_ns: 50, cost_ns: 49 });
    assert!(saved.is_necessary());
    assert!(!asked(&workload, &queues, 50.0).is_necessary());
    // Nothing is free: what waits least, 30 + 10 of the GPU and 35 + 60 of the CPU.
    queues.threads[0] = vec![Entry { end_ns: 35, ..entry }];
    let saved = asked(&workload, &queues, 0.0);
    assert_eq!(saved, Necessity::Speedup { saved_ns: 30, cost_ns: 0 });
    // The sum over all new tasks, and none of the other process.
    let again = workload.tasks[1].clone();
    workload.tasks.push(again);
    let saved = asked(&workload, &queues, 0.0);
    assert_eq!(saved, Necessity::Speedup { saved_ns: 60, cost_ns: 0 });
}

#[test]
fn amortization_weighs_the_wait_against_the_cost() {
    let (workload, on, mut queues) = two_processes();
    let asked = |queues: &_, cost| {
        necessary(&workload, &on, queues, 1, &Determination::AMORTIZATION, &cost)
    };
    queues.now_ns = 3;
    queues.devices[0][0] =
        vec![Entry { process: 0, in_execution: true, runtime_ns: 30, end_ns: 33 }];
    assert!(asked(&queues, Cost::constant(29.0)).is_necessary());
    assert!(!asked(&queues, Cost::constant(30.0)).is_necessary());
    // The cost is that of all waiting tasks: 4 + 2 · 3 + 7.
    let cost = Cost { a: 1.0, b: 3.0, c: 7.0 };
    assert_eq!(asked(&queues, cost), Necessity::Amortization { wait_ns: 30, cost_ns: 17 });
    assert_eq!(
        asked(&queues, cost).to_string(),
        "tasks wait 0.000 ms, co-scheduling costs 0.000 ms"
    );
}

#[test]
fn cost_is_fitted_to_own_runs() {
    let known = Cost { a: 398.4, b: 61_230.0, c: 232_973.0 };
    let runs: Vec<(usize, u64)> = (1..40).map(|n| (n * 50, known.ns(n * 50))).collect();
    let fitted = Cost::fit(&runs).unwrap();
    for (fitted, known) in [(fitted.a, known.a), (fitted.b, known.b), (fitted.c, known.c)] {
        assert!((fitted / known - 1.0).abs() < 1e-4, "{fitted} {known}");
    }
    assert!((fitted.ns(100) as f64 / 10_339_973.0 - 1.0).abs() < 1e-6);
    // Least squares, not a curve through some of them.
    let noisy: Vec<(usize, u64)> =
        [(10, 90), (10, 110), (20, 190), (20, 210), (30, 290), (30, 310)].into();
    let fitted = Cost::fit(&noisy).unwrap();
    assert_eq!([10, 20, 30].map(|n| (fitted.ns(n) + 5) / 10), [10, 20, 30]);
    // Less than a parabola needs.
    assert_eq!(Cost::fit(&[]), None);
    assert_eq!(Cost::fit(&[(5, 70), (5, 90)]), Some(Cost::constant(80.0)));
    let line = Cost::fit(&[(10, 100), (30, 300)]).unwrap();
    assert_eq!((line.a, (line.ns(20) + 5) / 10), (0.0, 20));
    assert_eq!(Cost::fit(&[(0, 4)]), Some(Cost::constant(4.0)));
    // A fit may fall below zero, a cost does not.
    assert_eq!(Cost { a: 0.0, b: -5.0, c: 10.0 }.ns(100), 0);
}
