// SPDX-License-Identifier: GPL-2.0
//! Runs of best effort beside those with a promise.

mod common;

use common::{ends_ns, job, machine, run, Loop};
use pbs_control::{Controller, Options, Pace};
use pbs_job::Job;
use pbs_plan::Config;
use pbs_planner::{Declined, Lack, RunId, Strategy};
use pbs_random::Random;
use pbs_uapi::{Event, EventKind};

const MS: u64 = 1_000_000;

fn controller() -> Controller {
    let options =
        Options { pace: Pace::new(0, 0), config: Some(Config::DEFAULT), ..Options::default() };
    Controller::new(machine(), options, 1, 1)
}

fn best_effort(name: &str, insns: &[u64], deadline_ns: u64) -> Job {
    Job { best_effort: true, ..job(name, insns, deadline_ns) }
}

/// From `least` to `most`.
fn between(random: &mut Random, least: u64, most: u64) -> u64 {
    least + random.below(most - least + 1)
}

/// A job of the draw: its tasks, and its deadline.
fn draw(random: &mut Random) -> (Vec<u64>, u64) {
    let tasks = (0..between(random, 2, 3)).map(|_| between(random, 10, 60) * MS);
    let tasks: Vec<u64> = tasks.collect();
    let sum_ns: u64 = tasks.iter().sum();
    (tasks, sum_ns * 2 + between(random, 0, 900) * MS)
}

/// Real lengths of the tasks: up to a fifth more or less than planned, and in one job of four up to
/// twice as much.
fn real(random: &mut Random, tasks: &[u64]) -> Vec<u64> {
    let most_permille = if random.below(4) == 0 { 2000 } else { 1200 };
    tasks.iter().map(|&insns| insns * between(random, 800, most_permille) / 1000).collect()
}

/// Best effort is placed once behind all jobs of a request, where it would be if it were placed
/// behind each of them.
#[test]
fn best_effort_is_placed_once_for_a_request() {
    let mut placed = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let (mut each, mut once) = (controller(), controller());
        let mut others = Vec::new();
        for _ in 0..4 {
            let (tasks, deadline_ns) = draw(&mut random);
            let job = best_effort("other", &tasks, deadline_ns);
            let runs = [&mut each, &mut once].map(|it| it.admit(job.clone(), 0).unwrap().run);
            assert_eq!(runs[0], runs[1]);
            others.push(runs[0]);
        }
        once.allow_work(u64::MAX, 1 << 40);
        for _ in 0..4 {
            let (tasks, deadline_ns) = draw(&mut random);
            let job = job("promised", &tasks, deadline_ns);
            let answers = [&mut each, &mut once].map(|it| it.admit(job.clone(), 0).is_ok());
            assert_eq!(answers[0], answers[1], "seed {seed}");
        }
        // In between none of it has a place.
        let has_place = |run: &RunId| once.store().run(*run).is_some_and(|run| run.end_ns() > 0);
        assert!(!others.iter().any(has_place));
        let plans = [&mut each, &mut once].map(|it| {
            let plan = it.plan(0).unwrap().unwrap();
            pbs_plan::wire::encode(&plan).bytes
        });
        assert_eq!(plans[0], plans[1], "seed {seed}");
        let places = |it: &Controller| -> Vec<_> {
            it.store().runs().map(|(run, of)| (run, of.end_ns())).collect()
        };
        assert_eq!(places(&each), places(&once), "seed {seed}");
        placed += places(&once).len();
    }
    assert!(placed > 500, "{placed}");
}

/// Admission takes the same jobs, and plans them at the same time, whatever is run as best
/// effort beside them, before and after.
#[test]
fn promises_are_the_same_beside_best_effort() {
    let mut admitted = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut alone, mut beside) = (controller(), controller());
        let mut runs: Vec<(RunId, RunId)> = Vec::new();
        for _ in 0..6 {
            if random.below(2) == 0 {
                let (tasks, deadline_ns) = draw(&mut random);
                let other = best_effort("other", &tasks, deadline_ns);
                beside.admit(other, 0).expect("there is no deadline to be missed");
            }
            let (tasks, deadline_ns) = draw(&mut random);
            let promised = job("promised", &tasks, deadline_ns);
            let earliest_ns =
                [&mut alone, &mut beside].map(|it| it.earliest_deadline_ns(&promised, 0));
            assert_eq!(earliest_ns[0], earliest_ns[1]);
            match (alone.admit(promised.clone(), 0), beside.admit(promised, 0)) {
                (Ok(one), Ok(other)) => runs.push((one.run, other.run)),
                (Err(_), Err(_)) => {}
                answers => panic!("seed {seed}: {answers:?}"),
            }
        }
        admitted += runs.len();
        let mut last_ns = 0;
        for &(one, other) in &runs {
            let places = alone.store().run(one);
            assert_eq!(places, beside.store().run(other), "seed {seed}");
            last_ns = last_ns.max(places.unwrap().end_ns());
        }
        // And best effort is behind them.
        for (id, of) in beside.store().runs() {
            if runs.iter().all(|&(_, promised)| promised != id) {
                assert!(of.tasks.iter().all(|task| task.start_ns >= last_ns), "seed {seed}");
            }
        }
    }
    assert!(admitted > 500, "{admitted}");
}

/// In the simulated node no process with a promise ends later because of one without, by
/// the first plan as well as with answers to prediction failures.
#[test]
fn a_promised_job_is_never_later_because_of_best_effort() {
    let (mut processes, mut answers, mut of_best_effort) = (0, 0, 0);
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (mut alone, mut beside) = (controller(), controller());
        let (mut of_alone, mut of_beside) = (Vec::new(), Vec::new());
        let mut promised = Vec::new();
        let mut deadlines_ns = Vec::new();
        for _ in 0..8 {
            let (tasks, deadline_ns) = draw(&mut random);
            let really = real(&mut random, &tasks);
            if random.below(3) == 0 {
                beside.admit(best_effort("other", &tasks, deadline_ns), 0).unwrap();
                of_beside.push(really);
            } else if alone.admit(job("promised", &tasks, deadline_ns), 0).is_ok() {
                beside.admit(job("promised", &tasks, deadline_ns), 0).unwrap();
                promised.push(of_beside.len());
                deadlines_ns.push(deadline_ns);
                of_alone.push(really.clone());
                of_beside.push(really);
            }
        }
        if of_alone.is_empty() {
            continue;
        }
        // Nobody answers.
        let ends = |controller: &mut Controller, real: &[Vec<u64>]| {
            let plan = controller.plan(0).unwrap().unwrap();
            ends_ns(&run(&plan, real, &mut pbs_sim::NoAnswer))
        };
        let one = ends(&mut alone.clone(), &of_alone);
        let other = ends(&mut beside.clone(), &of_beside);
        for (place, &promised) in promised.iter().enumerate() {
            processes += 1;
            let (one, other) = (one[place].unwrap(), other[promised].unwrap());
            assert!(other <= one, "seed {seed}: {other} instead of {one}");
        }
        of_best_effort += other.iter().filter(|end| end.is_some()).count() - promised.len();
        // The planner answers.
        let kept = |controller: &mut Controller, real: &[Vec<u64>], of: &[usize]| {
            let mut scheduler = Loop::new(controller);
            let plan = scheduler.first_plan();
            let ends = ends_ns(&run(&plan, real, &mut scheduler));
            let late = of.iter().zip(&deadlines_ns).map(|(&place, &deadline_ns)| {
                ends[place].unwrap_or(u64::MAX).saturating_sub(deadline_ns)
            });
            (late.collect::<Vec<u64>>(), scheduler.answers)
        };
        let all: Vec<usize> = (0..of_alone.len()).collect();
        let (one, _) = kept(&mut alone, &of_alone, &all);
        let (other, answered) = kept(&mut beside, &of_beside, &promised);
        answers += answered;
        for (one, other) in one.iter().zip(&other) {
            assert!(other <= one, "seed {seed}: late by {other} instead of {one}");
        }
    }
    let counts = [processes, answers, of_best_effort];
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
}

/// A run of best effort keeps its memory and nothing else. A job with a promise gets its time at
/// once, also on the core where that run executes.
#[test]
fn what_runs_as_best_effort_gives_up_its_time() {
    let mut controller = controller();
    let other = best_effort("other", &[400 * MS; 2], 1_000 * MS);
    let other = controller.admit(other, 0).unwrap().run;
    controller.plan(0).unwrap().unwrap();
    let process = controller.number(other, 0);
    for (seq, kind) in [(0, EventKind::Attached), (1, EventKind::Grant)] {
        let retired_insns = 100 * MS * seq;
        let kind = kind as u16;
        controller.event(&Event { seq, kind, process, retired_insns, ..Event::default() });
    }
    assert_eq!(controller.renew(120 * MS), []);
    let urgent = job("urgent", &[100 * MS; 2], 400 * MS);
    let urgent = controller.admit(urgent, 120 * MS).unwrap().run;
    let start_ns = |of| controller.planned_start_ns(of).unwrap();
    assert_eq!(start_ns(urgent), 120 * MS);
    assert!(start_ns(other) >= controller.run(urgent).unwrap().planned_end_ns.unwrap());
    let holds = &controller.store().run(other).unwrap().processes[0];
    assert_eq!(holds.start_ns, 120 * MS);
    // In the plan it has no deadline, and is behind.
    let plan = controller.plan(120 * MS).unwrap().unwrap();
    let slots = plan.cpus[0].slots.iter().filter_map(|slot| match slot {
        pbs_plan::Slot::Process { process } => Some(plan.processes[*process].id),
        pbs_plan::Slot::Idle { .. } => None,
    });
    let urgent = controller.number(urgent, 0);
    assert_eq!(slots.collect::<Vec<_>>(), [urgent, urgent, process, process]);
}

/// Best effort is refused what the machine never has, and nothing else.
#[test]
fn best_effort_is_declined_only_for_what_never_fits() {
    let mut controller = controller();
    let hopeless = best_effort("hopeless", &[900 * MS; 2], 1);
    let late = controller.admit(hopeless, 0).unwrap();
    assert!(late.planned.end_ns > 1_800 * MS);
    let mut large = best_effort("large", &[MS; 2], 1_000 * MS);
    large.processes[0].memory_bytes = 1 << 40;
    let Err(Declined::Reservation(refused)) = controller.admit(large, 0) else {
        panic!("there is no such memory");
    };
    assert!(matches!(refused.best.lack, Lack::Memory { .. }));
}

/// A job that the search has no place for is admitted where what is planned already
/// moves, and answers keep both.
#[test]
fn what_is_planned_moves_for_a_job_that_fits() {
    let mut controller = controller();
    let patient = job("patient", &[200 * MS; 2], 2_000 * MS);
    let patient = controller.admit(patient, 0).unwrap().run;
    let urgent = job("urgent", &[50 * MS; 2], 200 * MS);
    let admitted = controller.admit(urgent.clone(), 0).unwrap();
    assert_eq!(admitted.planned.strategy, Strategy::EarliestDeadline);
    assert!(admitted.planned.end_ns <= 200 * MS);
    let planned_end_ns =
        |controller: &Controller, run| controller.run(run).unwrap().planned_end_ns.unwrap();
    assert!(planned_end_ns(&controller, patient) <= 2_000 * MS);
    assert_eq!(controller.renew(10 * MS), []);
    assert!(planned_end_ns(&controller, patient) <= 2_000 * MS);
    assert!(planned_end_ns(&controller, admitted.run) <= 200 * MS);
    // More than the share is not promised.
    let mut third = job("third", &[50 * MS; 2], 200 * MS);
    third.priority = urgent.priority;
    let Err(Declined::Reservation(refused)) = controller.admit(third, 10 * MS) else {
        panic!("200 ms of 200");
    };
    let demand = refused.demand.unwrap();
    assert_eq!(demand.share_permille, 900);
    // Each task is rounded up.
    assert_eq!(demand.demand_ns() / 4, 200 * MS / 4);
}
