// SPDX-License-Identifier: GPL-2.0
//! Tests: an answer takes no more work than it may, and says what it left out.

use pbs_gen::nets::{large_machine, machine, random_job, Fan, Random as Cases};
use pbs_job::{Job, Machine};

use super::*;
use crate::store::{Balancing, RunId};
use crate::validate::{earliest_deadline, Declined, Validation};
use crate::{Progress, Replan};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
/// A fifteenth of what an answer may take by default: tests are not optimised.
const MOST: u64 = Options::MAX_WORK / 15;

/// A node of 16 cores and 256 GiB.
fn node() -> Machine {
    machine(1, &[(256 * GIB, &[S; 16])])
}

/// Sizes of processes that are all unlike, 1 GiB in the middle.
fn sizes(processes: u64) -> Vec<u64> {
    let sizes = (0..processes).map(|process| GIB / 2 + process * 7919 % 1024 * (GIB / 1024));
    sizes.collect()
}

/// Jobs that wait for memory, for one core, or for nothing.
fn shapes() -> Vec<Job> {
    let unlike = Fan { memory_bytes: sizes(1000), ..Fan::of(0, 0) };
    let alone = Fan { root_insns: 0, ..Fan::of(800, GIB / 2) };
    // Each process but the last waits until one before has ended.
    let large = Fan::of(300, 100 * GIB);
    // All hold their memory while they wait: more than there is.
    let ahead = Fan { ahead_insns: S, ..Fan::of(400, GIB) };
    let ahead_unlike = Fan { ahead_insns: S, ..unlike.clone() };
    let fans =
        [Fan::of(400, GIB), Fan::of(800, GIB / 2), unlike, alone, large, ahead, ahead_unlike];
    fans.map(|fan| fan.job()).into()
}

/// `max_work` may be exceeded by what is done between two looks at it: a few tasks.
fn assert_bounded(work: &Budget, what: &str) {
    assert!(work.done() <= MOST + MOST / 10, "{what}: {}", work.done());
}

#[test]
fn random_cores_are_others_with_each_try() {
    let job = Fan::of(40, GIB / 2).job();
    let mut store = Store::new(node(), Balancing::Dynamic);
    let plan = |tries, seed, store: &mut Store| {
        let request = Request::new(RunId(0), &job);
        let strategies = vec![Strategy::RandomCores; tries];
        let options = Options { strategies, seed, ..Options::default() };
        reserve(store, &request, &options).unwrap()
    };
    let cores = |store: &Store| -> Vec<usize> {
        let run = store.run(RunId(0)).unwrap();
        run.tasks.iter().map(|task| task.core).collect()
    };
    let one = plan(1, 1, &mut store);
    let first = cores(&store);
    assert_eq!(one.strategy, Strategy::RandomCores);
    // The same seed picks the same cores, another one others.
    assert_eq!((plan(1, 1, &mut store), cores(&store)), (one.clone(), first.clone()));
    plan(1, 2, &mut store);
    assert_ne!(cores(&store), first);
    // The first of four tries is that try, and the best is no later.
    let four = plan(4, 1, &mut store);
    assert_eq!(four.attempts.len(), 4);
    assert_eq!(four.attempts[0], one.attempts[0]);
    assert!(four.attempts.iter().any(|it| it.end_ns != one.attempts[0].end_ns));
    assert!(four.end_ns <= one.end_ns);
    let best = Options { strategies: vec![Strategy::EarliestFinish], ..Options::default() };
    let best = reserve(&mut store, &Request::new(RunId(0), &job), &best).unwrap();
    assert!(best.end_ns <= four.end_ns);
}

/// A job whose deadline a random pick misses is refused, and takes nothing.
#[test]
fn random_cores_may_be_refused() {
    let job = Fan::of(64, GIB / 2).job();
    let mut store = Store::new(node(), Balancing::Dynamic);
    let options = |strategy| Options { strategies: vec![strategy], ..Options::default() };
    let request = Request::new(RunId(0), &job);
    let planned = reserve(&mut store, &request, &options(Strategy::EarliestFinish)).unwrap();
    let mut store = Store::new(node(), Balancing::Dynamic);
    let request = Request { deadline_ns: planned.end_ns, ..request };
    let refused = reserve(&mut store, &request, &options(Strategy::RandomCores)).unwrap_err();
    assert!(matches!(refused.best.lack, Lack::Time { .. }), "{refused:?}");
    assert!(store.run(RunId(0)).is_none());
    assert!(reserve(&mut store, &request, &options(Strategy::EarliestFinish)).is_ok());
}

#[test]
fn a_plan_takes_no_more_work_than_it_may() {
    let options = Options { local_search_tries: 18_000, max_work: MOST, ..Options::default() };
    for job in shapes() {
        let request = Request::new(RunId(0), &job);
        let mut store = Store::new(node(), Balancing::Dynamic);
        for deadline_ns in [u64::MAX, 350 * S, 200 * S] {
            let work = Budget::new(MOST);
            let request = Request { deadline_ns, ..request };
            let _ = reserve_within(&mut store.book(), &request, &options, &work);
            assert_bounded(&work, &format!("{} processes, {deadline_ns}", job.processes.len()));
        }
        // A process is late: all others are planned anew.
        let planned = reserve(&mut store, &request, &options).unwrap();
        let first = store.run(RunId(0)).unwrap().tasks[0];
        let mut progress = vec![Progress::Waiting; job.processes.len()];
        progress[0] = Progress::Running { core: first.core, position: 1, retired_insns: 0 };
        let deadline_ns = 2 * planned.end_ns;
        let running = [Request { deadline_ns, progress: &progress, ..request }];
        assert!(Replan::at(S).run(&mut store, &running, &[]).is_ok());
    }
}

/// The earliest deadline is asked of many plans, which take the work of three at most.
#[test]
fn an_earliest_deadline_takes_the_work_of_few_plans() {
    let mut told = 0;
    for job in shapes() {
        let mut store = Store::new(node(), Balancing::Dynamic);
        let request = Request { deadline_ns: S, ..Request::new(RunId(0), &job) };
        let options = Options { max_work: MOST, ..Options::default() };
        let work = Budget::new(MOST);
        let validation = Validation::default();
        crate::validate::find_earliest(&mut store, &request, &validation, &options, MOST, &work);
        // The last try may do as much as all before it.
        assert!(work.done() <= 3 * MOST, "{}: {}", job.processes.len(), work.done());
        let found = earliest_deadline(&mut store, &request, &validation, &options);
        let Some(deadline_ns) = found.deadline_ns else {
            assert!(found.is_cut, "{} processes", job.processes.len());
            continue;
        };
        told += 1;
        let request = Request { deadline_ns, ..request };
        assert!(crate::admit(&mut store, &request, &validation, &options).is_ok());
    }
    assert!(told >= 5, "{told}");
}

/// A search that is cut short has the best plan until then, and names what was cut.
#[test]
fn the_best_plan_until_then_is_the_answer() {
    let job = Fan { memory_bytes: sizes(1000), ..Fan::of(0, 0) }.job();
    let request = Request::new(RunId(0), &job);
    let plan = |max_work| {
        let options = Options { local_search_tries: 18_000, max_work, ..Options::default() };
        reserve(&mut Store::new(node(), Balancing::Dynamic), &request, &options)
    };
    let little = plan(MOST).unwrap();
    let cut_short = little.cut_short.expect("a search of all tries takes more");
    assert_eq!(cut_short, CutShort { strategy: Strategy::LocalSearch, max_work: MOST });
    assert_eq!(
        cut_short.to_string(),
        "local search was cut short, as the plan may take 2,666,666 steps of work"
    );
    let rules = little.attempts.iter().filter(|it| it.strategy != Strategy::LocalSearch);
    let ends: Vec<u64> = rules.filter_map(|attempt| attempt.end_ns.ok()).collect();
    assert!(ends.len() == 4 && ends.iter().all(|&end_ns| little.end_ns <= end_ns), "{ends:?}");
    // With less the rules are cut, and with still less there is no plan.
    let less = plan(MOST / 4).unwrap();
    assert!(less.end_ns >= little.end_ns && less.cut_short.is_some());
    let none = plan(1000).unwrap_err();
    assert_eq!(none.best.lack, Lack::Work);
    assert_eq!(none.cut_short.map(|cut| cut.strategy), Some(Strategy::EarliestFinish));
    let why = Declined::Reservation(none).describe(&job, 0);
    assert_eq!(
        why,
        "reservation: the search for a plan has not come further than the job; earliest finish \
         was cut short, as the plan may take 1,000 steps of work; there may be a plan"
    );
}

/// The bound changes nothing for what was quick: nets of a few processes, and a large one.
#[test]
fn quick_nets_get_the_plans_that_they_get_without_a_bound() {
    let same = |store: &Store, request: &Request<'_>| {
        let plan = |max_work| {
            let options = Options { local_search_tries: 600, max_work, ..Options::default() };
            let mut store = store.clone();
            let planned = reserve(&mut store, request, &options);
            (planned, store.run(request.run).cloned())
        };
        let bounded = plan(Options::MAX_WORK);
        assert_eq!(bounded, plan(u64::MAX));
        let (Ok(Planned { cut_short, .. }), _) = bounded else { return 0 };
        assert_eq!(cut_short, None);
        1
    };
    let mut planned = 0;
    for seed in 0..60 {
        let cases = &mut Cases::new(seed);
        let bytes = cases.of(&[300, 600, 2000]);
        let store = Store::new(machine(S, &[(bytes, &[1, 2, 3]), (300, &[2])]), Balancing::Dynamic);
        let job = random_job(cases, 8, 4, 200);
        planned += same(&store, &Request::new(RunId(0), &job));
    }
    assert!(planned > 30, "{planned}");
    let large = pbs_gen::nets::large_job(&mut Cases::new(1), 100, 2000, 4 << 30, 3 * S);
    let store = Store::new(large_machine(8, 16, 256 << 30), Balancing::Dynamic);
    assert_eq!(same(&store, &Request::new(RunId(0), &large)), 1);
}
