// SPDX-License-Identifier: GPL-2.0
//! Optimised plans over whole workloads.

use std::sync::Arc;

use pbs_cluster_planner::optimise::{Budget, Improving, Objective};
use pbs_cluster_planner::{Machine, Rules};
use pbs_cluster_sim::metrics::Metrics;
use pbs_cluster_sim::workload::add_deadlines;
use pbs_cluster_sim::{
    check, replay, Easy, Estimates, Expect, Express, Learner, Lublin, Optimised, Optimising,
    Outcome, Planned, Policy, Promise, SjfEasy, TraceJob,
};
use pbs_gen::{Random, Stream};
use pbs_site::Site;

const BUDGET: Budget = Budget { orders: 50, placements: 2_000 };

fn with(promise: Promise, expect: Expect, seed: u64) -> Optimising {
    Optimising {
        objective: Objective::default(),
        budget: BUDGET,
        promise,
        expect,
        express: None,
        seed,
    }
}

fn random_jobs(random: &mut Random) -> Vec<TraceJob> {
    let jobs = (0..60).map(|_| {
        let requested_s = 1 + random.below(100);
        // Some are killed at the end of their time.
        let run_s = 1 + random.below(requested_s + 10);
        TraceJob {
            user: random.below(4),
            ..TraceJob::new(random.below(300), run_s, requested_s, 1 + random.below(8))
        }
    });
    jobs.collect()
}

fn outcomes(jobs: &[TraceJob], cores: u64, policy: &mut dyn Policy) -> Vec<Outcome> {
    let outcomes = replay(jobs, policy, |_| ()).unwrap();
    assert_eq!(check(jobs, &outcomes, cores), Ok(()));
    assert!(outcomes.iter().all(|of| of.start_s.is_some()));
    outcomes
}

#[test]
fn no_promised_start_is_broken() {
    let mut random = Random::new(1, Stream::Trace);
    for seed in 0..100 {
        let jobs = random_jobs(&mut random);
        for expect in [Expect::Limit, Expect::Learned(Learner::LastTwo)] {
            let mut policy = Optimised::new(8, with(Promise::Start, expect, seed));
            outcomes(&jobs, 8, &mut policy);
            assert_eq!(policy.broken_promises(), Some(0));
        }
    }
    let jobs = lublin(1);
    let mut policy =
        Optimised::new(256, with(Promise::Start, Expect::Learned(Learner::LastTwo), 1));
    outcomes(&jobs, 256, &mut policy);
    assert_eq!(policy.broken_promises(), Some(0));
}

#[test]
fn plans_without_a_promise_run_all_jobs() {
    let mut random = Random::new(2, Stream::Trace);
    for seed in 0..100 {
        let jobs = random_jobs(&mut random);
        for expect in [Expect::Limit, Expect::Learned(Learner::LastTwo)] {
            let mut policy = Optimised::new(8, with(Promise::None, expect, seed));
            outcomes(&jobs, 8, &mut policy);
            assert_eq!(policy.broken_promises(), None);
            outcomes(&jobs, 8, &mut SjfEasy::new(8, expect));
        }
    }
}

#[test]
fn equal_seeds_have_equal_schedules() {
    let jobs = lublin(2);
    let run = |seed| {
        let mut policy = Optimised::new(256, with(Promise::None, Expect::Limit, seed));
        (outcomes(&jobs, 256, &mut policy), policy.work())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn lublin(seed: u64) -> Vec<TraceJob> {
    Lublin { jobs: 1_000, cores: 256, load_percent: 90, accuracy_percent: 22, seed }.generate()
}

#[test]
fn optimised_plans_slow_jobs_down_less_than_easy() {
    for seed in 1..=3 {
        let jobs = lublin(seed);
        let mean = |policy: &mut dyn Policy| {
            let metrics = Metrics::of(&jobs, &outcomes(&jobs, 256, policy), 256);
            (metrics.wait_s.mean, metrics.bounded_slowdown.mean)
        };
        let easy = mean(&mut Easy::new(256));
        let shortest_first = mean(&mut SjfEasy::new(256, Expect::Limit));
        for promise in [Promise::None, Promise::Start] {
            let planned = mean(&mut Optimised::new(256, with(promise, Expect::Limit, 1)));
            assert!(planned.0 <= easy.0 && planned.1 <= 0.8 * easy.1, "{planned:?} {easy:?}");
            assert!(planned.1 <= shortest_first.1, "{planned:?} {shortest_first:?}");
        }
    }
}

/// Jobs of which half have a deadline, of more core time than there is.
fn overloaded(load_percent: u64, seed: u64) -> Vec<TraceJob> {
    let lublin = Lublin { jobs: 600, cores: 256, load_percent, accuracy_percent: 22, seed };
    let mut jobs = lublin.generate();
    add_deadlines(&mut jobs, 50, 200, seed);
    jobs.iter().map(|job| job.with(Estimates::Perfect)).collect()
}

#[test]
fn accepted_deadlines_are_kept_and_more_than_under_easy() {
    for (load_percent, seed) in [(100, 1), (130, 2)] {
        let jobs = overloaded(load_percent, seed);
        let run = |policy: &mut dyn Policy| {
            let outcomes = replay(&jobs, policy, |_| ()).unwrap();
            assert_eq!(check(&jobs, &outcomes, 256), Ok(()));
            Metrics::of(&jobs, &outcomes, 256)
        };
        let easy = run(&mut Easy::new(256));
        let with = with(Promise::Deadline, Expect::Limit, 1);
        let objective = Objective { missed_deadline: 864_000.0, ..Objective::default() };
        let express = Some(Express { cores: 51, most_s: 600 });
        let mut policy = Optimised::new(256, Optimising { objective, express, ..with });
        let optimised = run(&mut policy);
        assert_eq!(policy.broken_promises(), Some(0));
        let Metrics { deadlines, deadlines_accepted, deadlines_kept, .. } = optimised;
        assert_eq!(deadlines_kept, deadlines_accepted, "of {deadlines}");
        let points = 100.0 * (deadlines_kept as f64 - easy.deadlines_kept as f64);
        let points = points / deadlines as f64;
        println!(
            "load {load_percent} %: {deadlines_kept} of {deadlines}, EASY {points:+.1} points"
        );
        assert!(points >= 20.0, "{points} points at a load of {load_percent} %");
        // Only jobs with a deadline are declined.
        let without = jobs.len() - deadlines;
        assert_eq!(optimised.jobs, without + deadlines_accepted);
    }
}

fn machine(nodes: &[u64]) -> Arc<Machine> {
    let names = (1..).map(|number| format!("[[nodes]]\nname='n{number}'\n"));
    let nodes = names.zip(nodes).map(|(name, cores)| format!("{name}has='ncpus={cores}'\n"));
    let site = Site::from_toml(&nodes.collect::<String>()).unwrap();
    Arc::new(Machine::of_site(&site))
}

fn planned(nodes: &[u64], promise: pbs_site::Promise) -> Planned {
    let improving = Improving { objective: Objective::default(), budget: BUDGET, seed: 1 };
    Planned::new(machine(nodes), Rules::default(), usize::MAX).improved(improving, promise)
}

/// The planner, which declines jobs with deadlines that it can't keep; optimised or not.
fn keeping_deadlines(nodes: &[u64], is_optimised: bool) -> Planned {
    let planned = Planned::new(machine(nodes), Rules::default(), 10).keeping_deadlines();
    if !is_optimised {
        return planned;
    }
    let objective = Objective { missed_deadline: 864_000.0, ..Objective::default() };
    let budget = Budget { orders: 20, placements: 500 };
    planned.improved(Improving { objective, budget, seed: 1 }, Promise::Deadline)
}

#[test]
fn plans_on_nodes_are_improved_and_keep_promised_starts() {
    let mut random = Random::new(3, Stream::Trace);
    let (mut slower, mut faster) = (0.0, 0.0);
    for _ in 0..20 {
        let jobs = random_jobs(&mut random);
        let mean = |policy: &mut dyn Policy| {
            Metrics::of(&jobs, &outcomes(&jobs, 8, policy), 8).bounded_slowdown.mean
        };
        let mut promised = planned(&[4, 2, 2], Promise::Start);
        slower += mean(&mut promised);
        assert_eq!(promised.broken_promises(), Some(0));
        let mut free = planned(&[4, 2, 2], Promise::None);
        faster += mean(&mut free);
        assert!(free.work().is_some_and(|work| work.orders > 0));
    }
    println!("bounded slowdown: {faster:.1} without promises, {slower:.1} with them");
    assert!(faster < 0.9 * slower, "{faster} {slower}");
}

#[test]
fn the_shortest_job_overtakes_first() {
    // Two of four cores are busy until 100 s, and the first of the queue wants all four.
    let jobs = [
        TraceJob::new(0, 100, 100, 2),
        TraceJob::new(1, 50, 50, 4),
        TraceJob::new(2, 60, 60, 2),
        TraceJob::new(2, 20, 20, 2),
        TraceJob::new(2, 20, 99, 1),
    ];
    let starts = |policy: &mut dyn Policy| -> Vec<u64> {
        outcomes(&jobs, 4, policy).iter().map(|of| of.start_s.unwrap()).collect()
    };
    assert_eq!(starts(&mut Easy::new(4)), [0, 100, 2, 62, 150]);
    assert_eq!(starts(&mut SjfEasy::new(4, Expect::Limit)), [0, 100, 22, 2, 150]);
}

/// On nodes, a job with a deadline finds room among jobs that may wait, where the plan as it stands
/// has none. Accepted deadlines are kept.
#[test]
fn deadlines_on_nodes_are_kept_by_better_plans() {
    let job = |requested_s, cores, deadline_s| TraceJob {
        deadline_s,
        ..TraceJob::new(0, requested_s, requested_s, cores)
    };
    let jobs = [job(10, 8, None), job(1_000, 8, None), job(1_000, 4, None), job(20, 8, Some(100))];
    let ran = [true, false].map(|is_optimised| {
        let mut policy = keeping_deadlines(&[4, 4], is_optimised);
        let outcomes = replay(&jobs, &mut policy, |_| ()).unwrap();
        assert_eq!(check(&jobs, &outcomes, 8), Ok(()));
        (policy.declined().len(), outcomes[3].start_s)
    });
    assert_eq!(ran, [(0, Some(10)), (1, None)]);

    let jobs = overloaded(200, 1);
    let jobs = &jobs[..160];
    let kept = [true, false].map(|is_optimised| {
        let mut policy = keeping_deadlines(&[64; 4], is_optimised);
        let outcomes = replay(jobs, &mut policy, |_| ()).unwrap();
        let metrics = Metrics::of(jobs, &outcomes, 256);
        assert_eq!(metrics.deadlines_kept, metrics.deadlines_accepted);
        metrics.deadlines_kept
    });
    println!("deadlines kept: {}, and {} without a search", kept[0], kept[1]);
    assert!(kept[0] > kept[1], "{kept:?}");
}
