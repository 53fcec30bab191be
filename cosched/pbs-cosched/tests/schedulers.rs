// SPDX-License-Identifier: GPL-2.0
//! The other schedulers, what is taken and what runs, feature by feature.

mod common;

use common::{build, cpu, platform, thesis_example, GPU};
use pbs_cosched::{
    accept, brute_force, enhanced_random, evaluations, evolutionary, greedy, plain_random,
    simulate, timing, Determination, EnhancedOptions, ExecutionTarget, GreedyOptions, Necessity,
    Objective, Options, Queues, Reason, Scheduler, Score,
};

#[test]
fn plain_random_takes_each_variant_that_fits() {
    let mut all = build(&[0]);
    all.task(0, &[], &[(GPU, 1), (cpu(1), 2), (cpu(9), 3), (cpu(2), 4)]);
    let on = platform(2, &[1]);
    let mut seen = [0; 4];
    for seed in 0..600 {
        let mapping = plain_random(&all.0, &on, &Queues::idle(&on), seed);
        seen[mapping.choices[0].unwrap().variant] += 1;
    }
    assert_eq!(seen[2], 0);
    assert!([0, 1, 3].iter().all(|&at| (150..250).contains(&seen[at])), "{seen:?}");
}

#[test]
fn enhanced_random_keeps_the_best_of_the_allowed() {
    // A chain of two and two lone tasks: depth 2, so the GPU may be used twice.
    let mut all = build(&[0]);
    let of = [(GPU, 1), (cpu(1), 10)];
    all.chain(0, 2, &of);
    all.heap(0, 2, &of);
    let on = platform(2, &[1]);
    let queues = Queues::idle(&on);
    let runtimes = |min_iterations, seed| {
        let options = EnhancedOptions { min_iterations, max_iterations: 2000 };
        let objective = Objective::Sum;
        let mapping = enhanced_random(&all.0, &on, &queues, objective, &options, seed);
        let timeline = timing(&all.0, &on, &queues, &mapping).unwrap();
        pbs_cosched::score(&all.0, &timeline).runtimes_ns
    };
    let sum =
        |min_iterations| (0..40).map(|seed| runtimes(min_iterations, seed)).collect::<Vec<_>>();
    let (one, many) = (sum(1), sum(200));
    assert!(many.iter().all(|&ns| ns == 22), "two on the GPU at most: {many:?}");
    assert!(one.iter().all(|&ns| ns >= 22) && one.iter().any(|&ns| ns > 22));
    // None is allowed: greedy decides, without trying in vain.
    let mut all = build(&[0]);
    all.heap(0, 9, &of);
    let options = EnhancedOptions { min_iterations: 1, max_iterations: u32::MAX };
    let mapping = enhanced_random(&all.0, &on, &queues, Objective::Sum, &options, 1);
    assert_eq!(mapping, greedy(&all.0, &on, &queues, &GreedyOptions::default()));
}

#[test]
fn each_iteration_of_a_loop_is_mapped_by_itself() {
    let (workload, on) = thesis_example(true);
    let options =
        Options { scheduler: Scheduler::Greedy(GreedyOptions::default()), ..Options::default() };
    let run = simulate(&workload, &on, &options).unwrap();
    let first_process: Vec<ExecutionTarget> = (0..5)
        .map(|task| workload.tasks[task].variants[run.variants[task].unwrap()].place)
        .collect();
    assert_eq!(first_process, [cpu(8), GPU, GPU, GPU, GPU]);
}

#[test]
fn evolutionary_is_bounded_repeatable_and_better_with_time() {
    let (workload, on) = thesis_example(false);
    let queues = Queues::idle(&on);
    let asked = std::cell::Cell::new(0);
    let best = |most| {
        let mut left = evaluations(most);
        asked.set(0);
        let mapping = evolutionary(&workload, &on, &queues, Objective::Makespan, 7, &mut || {
            asked.set(asked.get() + 1);
            left()
        });
        timing(&workload, &on, &queues, &mapping).unwrap().end_ns()
    };
    let none = best(0);
    assert_eq!(asked.get(), 1);
    let some = best(3000);
    assert_eq!(asked.get(), 3001);
    assert!(some < none, "{some} {none}");
    assert_eq!(some, best(3000));
}

#[test]
fn started_tasks_keep_their_variant() {
    let mut all = build(&[0, 5]);
    all.chain(0, 2, &[(GPU, 10), (cpu(1), 100)]);
    all.task(1, &[], &[(GPU, 1)]);
    let on = platform(1, &[1]);
    for scheduler in [
        Scheduler::Greedy(GreedyOptions::default()),
        Scheduler::PlainRandom(3),
        Scheduler::EnhancedRandom(EnhancedOptions::default(), 3),
        Scheduler::Evolutionary(3),
        Scheduler::Heft,
        Scheduler::BruteForce,
    ] {
        let options =
            Options { determination: Determination::ALWAYS, scheduler, ..Options::default() };
        let run = simulate(&all.0, &on, &options).unwrap();
        let first = run.timeline.slots[0].as_ref().unwrap();
        if scheduler != Scheduler::PlainRandom(3) {
            assert_eq!((first.start_ns, first.end_ns, run.variants[0]), (0, 10, Some(0)));
        }
        assert!(run.decisions.iter().all(|of| of.necessity == Necessity::Always));
        assert_eq!(run.decisions[1].waiting, 2);
    }
}

#[test]
fn no_schedule_worse_than_none_is_accepted() {
    let score = |misses, makespan_ns, turnarounds_ns, runtimes_ns| Score {
        misses,
        makespan_ns,
        turnarounds_ns,
        runtimes_ns,
    };
    let old = score(1, 100, 150, 80);
    let by = |new, objective| {
        let verdict = accept(old, new, objective);
        (verdict.accepted, verdict.reason)
    };
    let lexicographic = Objective::Lexicographic;
    // A tie keeps what is there.
    assert_eq!(by(old, lexicographic), (false, Reason::Equal));
    assert_eq!(by(score(0, 900, 900, 0), lexicographic), (true, Reason::Misses(1, 0)));
    assert_eq!(by(score(2, 1, 1, 0), lexicographic), (false, Reason::Misses(1, 2)));
    assert_eq!(by(score(1, 101, 1, 0), lexicographic), (false, Reason::MakespanNs(100, 101)));
    assert_eq!(by(score(1, 99, 999, 0), lexicographic), (true, Reason::MakespanNs(100, 99)));
    assert_eq!(by(score(1, 100, 151, 0), lexicographic), (false, Reason::TurnaroundsNs(150, 151)));
    assert_eq!(by(score(9, 100, 999, 0), Objective::Makespan), (true, Reason::Equal));
    assert_eq!(by(score(0, 1, 1, 81), Objective::Sum), (false, Reason::RuntimesNs(80, 81)));
}

#[test]
fn brute_force_takes_few_tasks_and_stops_on_request() {
    let mut all = build(&[0]);
    all.heap(0, 11, &[(cpu(1), 1)]);
    let on = platform(1, &[]);
    let queues = Queues::idle(&on);
    let objective = Objective::default();
    assert_eq!(brute_force(&all.0, &on, &queues, objective, &mut || true), None);
    all.0.tasks.pop();
    let found = brute_force(&all.0, &on, &queues, objective, &mut || true).unwrap();
    assert!(found.proved);
    let (workload, on) = thesis_example(false);
    let queues = Queues::idle(&on);
    let found = brute_force(&workload, &on, &queues, objective, &mut evaluations(3)).unwrap();
    assert!(!found.proved && found.mapping.choices.iter().all(Option::is_some));
}
