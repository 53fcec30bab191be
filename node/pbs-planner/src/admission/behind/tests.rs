// SPDX-License-Identifier: GPL-2.0
//! Places behind promises with many gaps.

use pbs_gen::nets::{machine, random_job, Random};
use pbs_job::Job;

use super::*;
use crate::budget::tally;
use crate::store::{Balancing, TaskReservation};
use crate::{reserve, reserve_in};

const S: u64 = 1_000_000_000;

/// Books each gap between promises, for one run, and gives it back.
fn reserve_in_turn(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    promised: &[RunId],
    options: &Options,
) -> Result<Planned, Box<Refused>> {
    booking.remove(request.run);
    let store = booking.store();
    let ends_ns = promised_ends_ns(store, promised.iter().copied(), &Budget::unbounded());
    let from_ns = request.start_ns.max(store.now_ns());
    let mut between = Vec::new();
    for (core, end_ns) in ends_ns.into_iter().enumerate() {
        let free = store.free_slots(core, 1, from_ns..end_ns.max(from_ns));
        between.extend(free.map(|over| (core, over)));
    }
    for (core, over) in &between {
        booking.take_core(*core, over.clone()).expect("it is free");
    }
    let planned = reserve_in(booking, &request.without_deadline(), options);
    for (core, over) in between {
        booking.give_core(core, over).expect("it was taken");
    }
    planned
}

/// Five runs of best effort beside three promises.
#[test]
fn all_are_placed_at_once_as_one_after_the_other() {
    let options = Options { local_search_tries: 20, ..Options::default() };
    let mut behind = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let jobs: Vec<Job> = (0..8).map(|_| random_job(random, 4, 5, 60)).collect();
        let rates: &[u64] = &[1, 2, 2];
        let machine = machine(S, &[(400, rates), (200, &[3, 1])]);
        let mut store = Store::new(machine, Balancing::Dynamic);
        let requests = jobs.iter().enumerate();
        let requests = requests.map(|(run, job)| {
            let start_ns = random.below(20) * S;
            Request { start_ns, ..Request::new(RunId(run as u64), job) }
        });
        let requests: Vec<Request<'_>> = requests.collect();
        let (promised, others) = requests.split_at(3);
        for request in promised {
            let _ = reserve(&mut store, request, &options);
        }
        let promised: Vec<RunId> = promised.iter().map(|request| request.run).collect();
        let mut expected = store.clone();
        for request in others {
            let mut booking = expected.book();
            if reserve_in_turn(&mut booking, request, &promised, &options).is_ok() {
                booking.commit();
            }
        }
        place_behind(&mut store, others, promised, &options, &Budget::unbounded());
        assert_eq!(store, expected, "seed {seed}");
        behind += others.iter().filter(|it| store.run(it.run).is_some()).count();
    }
    assert!(behind > 200, "{behind}");
}

/// A promise with 3,000 gaps on each of two cores.
#[test]
fn gaps_between_promises_are_covered_once() {
    let random = &mut Random::new(1);
    let jobs: Vec<Job> = (0..100).map(|_| random_job(random, 1, 1, 2)).collect();
    let mut store = Store::new(machine(1, &[(1000, &[S; 2])]), Balancing::Dynamic);
    let promise = RunId(1000);
    let mut run = Run::default();
    for task in 0..6000 {
        let core = task % 2;
        let (start_ns, end_ns) = (task as u64 * 100, task as u64 * 100 + 100);
        let memory_bytes = 0;
        run.tasks.push(TaskReservation {
            task,
            process: core,
            core,
            start_ns,
            end_ns,
            memory_bytes,
        });
    }
    let mut booking = store.book();
    booking.reserve(promise, run).expect("the cores are free");
    booking.commit();
    let requests = jobs.iter().enumerate();
    let requests = requests.map(|(run, job)| Request::new(RunId(run as u64), job));
    let requests: Vec<Request<'_>> = requests.collect();
    let options = Options { local_search_tries: 20, ..Options::default() };
    let work = Budget::unbounded();
    tally::take();
    place_behind(&mut store, &requests, [promise], &options, &work);
    let done = tally::take();
    assert!(done <= work.done(), "{done} in {} steps", work.done());
    // Each gap costs as much for a hundred runs as for one.
    assert!(done < 100_000, "{done}");
    let starts = requests.iter().filter_map(|it| store.run(it.run)?.start_ns());
    assert_eq!(starts.min(), Some(599_900));
    let work = Budget::unbounded();
    let mut booking = store.book();
    tally::take();
    let found = reserve_behind_within(&mut booking, &requests[0], [promise], &options, &work);
    assert!(found.is_ok() && tally::take() <= work.done());
    // Without work there is no place, and the answer says why.
    let none = Budget::new(1000);
    let found = reserve_behind_within(&mut booking, &requests[0], [promise], &options, &none);
    assert_eq!(found.map_err(|refused| refused.best.lack), Err(crate::Lack::Work));
}
