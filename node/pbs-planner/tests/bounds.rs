// SPDX-License-Identifier: GPL-2.0
//! Lower bounds of plans, and the distance of the search from them.

mod common;

use common::nets::{machine, random_job, Random};
use common::random_machine;
use pbs_job::Job;
use pbs_planner::{
    admit, earliest_deadline, lower_bound, reserve, Aim, Balancing, Limit, Options, Request, RunId,
    Store, Strategy, Validation,
};

const S: u64 = 1_000_000_000;

/// Small nets on small machines, with memory that is sometimes scarce.
fn nets(most: u64) -> impl Iterator<Item = (u64, Store, Job)> {
    (0..most).map(|seed| {
        let random = &mut Random::new(seed);
        let balancing = random.of(&[Balancing::Static, Balancing::Dynamic, Balancing::Blind]);
        let store = Store::new(random_machine(random), balancing);
        let job = random_job(random, 3 + (seed % 8) as usize, 4, 200);
        (seed, store, job)
    })
}

fn request(job: &Job, deadline_ns: u64) -> Request<'_> {
    Request { deadline_ns, ..Request::new(RunId(0), job) }
}

#[test]
fn no_plan_ends_before_its_bound() {
    let (mut planned, mut met) = (0, [0; 3]);
    for (seed, mut store, job) in nets(200) {
        let request = request(&job, u64::MAX);
        let bound = lower_bound(&store, &request);
        let options = Options { local_search_tries: 2000, ..Options::default() };
        let Ok(plan) = reserve(&mut store, &request, &options) else {
            continue;
        };
        assert!(plan.end_ns >= bound.end_ns, "seed {seed}: {bound:?}");
        planned += 1;
        met[bound.limit as usize] += u32::from(plan.end_ns == bound.end_ns);
    }
    println!("{planned} plans; at the bound of path, cores, memory: {met:?}");
    assert!(planned > 150 && met[Limit::Path as usize] > 20 && met[Limit::Cores as usize] > 5);
}

#[test]
fn memory_bounds_a_job_too() {
    // One process, whose tasks take 5 s each and which holds all that there is.
    let random = &mut Random::new(0);
    let mut job = random_job(random, 0, 1, 1);
    job.processes[0].memory_bytes = 600;
    for task in &mut job.tasks {
        task.insns = 5;
    }
    let tasks_s = 5 * job.tasks.len() as u64;
    let store = Store::new(machine(S, &[(600, &[1, 1, 1])]), Balancing::Dynamic);
    let bound = lower_bound(&store, &request(&job, u64::MAX));
    // That is as long as its path, which is told.
    assert_eq!((bound.end_ns, bound.limit), (tasks_s * S, Limit::Path));
    let store = Store::new(machine(S, &[(300, &[1, 1, 1])]), Balancing::Dynamic);
    let bound = lower_bound(&store, &request(&job, u64::MAX));
    assert_eq!((bound.end_ns, bound.limit), (2 * tasks_s * S, Limit::Memory));
    let blind = Store::new(machine(S, &[(300, &[1, 1, 1])]), Balancing::Blind);
    let bound = lower_bound(&blind, &request(&job, u64::MAX));
    assert_eq!(bound.limit, Limit::Path);
}

/// Deadlines that a long search keeps: the rules alone keep few of them that are not
/// the rules' own, and the search by default most.
#[test]
fn search_keeps_deadlines_that_no_rule_keeps() {
    let with = |local_search_tries, strategies: &[Strategy], seed| Options {
        local_search_tries,
        strategies: strategies.to_vec(),
        seed,
        ..Options::default()
    };
    let rules = &Strategy::ALL[..4];
    let (mut hard, mut kept) = (0, 0);
    for (seed, store, job) in nets(100) {
        let anyhow = request(&job, u64::MAX);
        let long = with(1500, &Strategy::ALL, 1);
        let Ok(best) = reserve(&mut store.clone(), &anyhow, &long) else {
            continue;
        };
        let tight = request(&job, best.end_ns);
        let alone = reserve(&mut store.clone(), &tight, &with(0, rules, 0));
        if alone.is_ok() {
            continue;
        }
        hard += 1;
        let mut tried = store.clone();
        let aim = Options { aim: Aim::Deadline, ..Options::default() };
        match admit(&mut tried, &tight, &Validation::default(), &aim) {
            Ok(planned) => {
                assert!(planned.end_ns <= best.end_ns, "seed {seed}");
                kept += 1;
            }
            Err(_) => assert!(tried == store, "seed {seed}: a declined job leaves a trace"),
        }
    }
    println!("{kept} of {hard} deadlines that no rule keeps");
    assert!(hard >= 12 && kept * 2 > hard, "{kept} of {hard}");
}

/// The earliest deadline that is told is not later than the best plan.
#[test]
fn told_deadlines_are_those_of_the_best_plan_or_earlier() {
    let mut told = 0;
    for (seed, store, job) in nets(40) {
        let Ok(best) = reserve(&mut store.clone(), &request(&job, u64::MAX), &Options::default())
        else {
            continue;
        };
        let early = request(&job, 1);
        let validation = Validation::default();
        let earliest =
            earliest_deadline(&mut store.clone(), &early, &validation, &Options::default());
        let earliest_ns = earliest.deadline_ns.expect("there is a plan");
        assert!(earliest_ns <= best.end_ns, "seed {seed}: {earliest_ns} {}", best.end_ns);
        let asked = request(&job, earliest_ns);
        let admitted = admit(&mut store.clone(), &asked, &validation, &Options::default());
        assert!(admitted.is_ok(), "seed {seed}");
        told += 1;
    }
    assert!(told > 30);
}
