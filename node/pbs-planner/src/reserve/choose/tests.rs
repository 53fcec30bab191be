// SPDX-License-Identifier: GPL-2.0
//! The order of gaps gives what asking every core gives.

use pbs_job::{job_from_toml, Core, Machine, Node};

use super::*;
use crate::reserve::{Lack, Request};
use crate::strategies::{reserve_within, Options, Strategy};
use crate::{Balancing, RunId};

/// A small generator of its own, so that a failure can be repeated.
fn next(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) % end
}

fn store(state: &mut u64) -> Store {
    let nodes = (0..1 + next(state, 3)).map(|node| Node {
        name: node.to_string(),
        memory_bytes: 100 + next(state, 100),
        cores: (0..1 + next(state, 4))
            .map(|core| Core {
                name: core.to_string(),
                cpu: None,
                rate_insns_per_s: (1 + next(state, 3)) * 500_000_000,
            })
            .collect(),
        line: None,
    });
    let machine = Machine { name: None, tick_ns: 1, nodes: nodes.collect(), ..Machine::default() };
    let balancing = match next(state, 2) {
        0 => Balancing::Static,
        _ => Balancing::Dynamic,
    };
    let mut store = Store::new(machine, balancing);
    let cores = store.sites().len() as u64;
    let mut booking = store.book();
    for _ in 0..60 {
        let core = next(state, cores) as usize;
        let start_ns = next(state, 300);
        // What does not fit is left out.
        let _ = booking.take_core(core, start_ns..start_ns + 1 + next(state, 20));
        let over = start_ns..start_ns + 1 + next(state, 60);
        let _ = booking.take_memory(core, over, 1 + next(state, 60));
    }
    booking.commit();
    store
}

#[test]
fn the_best_core_is_that_of_a_look_at_every_core() {
    let mut state = 5;
    let (mut found, mut none) = (0, 0);
    for _ in 0..150 {
        let store = store(&mut state);
        for _ in 0..20 {
            let task_insns = next(&mut state, 25);
            let needs = Needs { memory_bytes: next(&mut state, 120), ..Needs::default() };
            let want = Want {
                ready_ns: next(&mut state, 300),
                deadline_ns: 50 + next(&mut state, 600),
                task_insns,
                process_insns: task_insns + next(&mut state, 40),
                needs: &needs,
                span_ns: next(&mut state, 100),
                goal: [Goal::TaskEnd, Goal::ProcessEnd][next(&mut state, 2) as usize],
            };
            let ends = |place: CoreInterval| {
                let process_ns = store.duration_ns(place.core, want.process_insns);
                match want.goal {
                    Goal::TaskEnd => (place.end_ns, place.start_ns + process_ns),
                    Goal::ProcessEnd => (place.start_ns + process_ns, place.end_ns),
                }
            };
            // All, or some, or none.
            let left_out = next(&mut state, 5) as usize;
            let is_allowed = |core: usize| left_out == 0 || core % 4 >= left_out;
            let work = Budget::unbounded();
            let cores = (0..store.sites().len()).filter(|&core| is_allowed(core));
            let each = cores.filter_map(|core| on_core(&store, &want, core, &work).ok());
            let expected = each.map(ends).min();
            let claims = Claims::new(&store);
            let best = best(&store, &want, &claims, &work, is_allowed);
            assert_eq!(best.ok().map(ends), expected, "{want:?}");
            match expected {
                Some(_) => found += 1,
                None => none += 1,
            }
        }
    }
    assert!(found > 500 && none > 100, "{found} found, {none} not");
}

/// A core with 5,000 gaps of 9 ns.
fn gaps() -> Store {
    let node = Node {
        name: "n".into(),
        memory_bytes: 1000,
        cores: vec![Core { name: "c".into(), cpu: None, rate_insns_per_s: 1_000_000_000 }],
        line: None,
    };
    let machine = Machine { name: None, tick_ns: 1, nodes: vec![node], ..Machine::default() };
    let mut store = Store::new(machine, Balancing::Dynamic);
    let mut booking = store.book();
    for start_ns in (0..50_000).step_by(10) {
        booking.take_core(0, start_ns..start_ns + 1).expect("the core is free");
    }
    booking.commit();
    store
}

/// Processes whose second tasks are longer by 1 ns than each of the gaps: a question for each of
/// them looks at all gaps.
#[test]
fn questions_count_the_gaps_that_they_look_at() {
    let processes = "[[process]]\nmemory_bytes = 0\ntasks = [1, 10]\n";
    let mut text = String::from("name = \"j\"\ndeadline_ns = 100_000\n");
    for id in 1..=100 {
        text += &processes.replace("memory", &format!("id = {id}\nmemory"));
    }
    let job = job_from_toml(&text).expect("a valid job");
    let request = Request::new(RunId(0), &job);
    let options = Options { strategies: vec![Strategy::EarliestFinish], ..Options::default() };
    let mut store = gaps();
    let mut booking = store.book();
    let work = Budget::new(10_000_000);
    tally::take();
    let planned = reserve_within(&mut booking, &request, &options, &work);
    let done = tally::take();
    assert_eq!(planned.map(|planned| planned.end_ns), Ok(50_991));
    assert!(done > 500_000 && done <= work.done(), "{done} in {} steps", work.done());
    let few = Budget::new(100_000);
    let refused = reserve_within(&mut booking, &request, &options, &few);
    let refused = refused.expect_err("there is too little work");
    assert_eq!(refused.best.lack, Lack::Work);
    // No more than a question after the last step.
    assert!(tally::take() < 100_000);
}

/// Memory of which there is enough again and again, but always for too short a time.
#[test]
fn a_search_for_memory_ends_with_the_work() {
    let mut store = gaps();
    let mut booking = store.book();
    for start_ns in (0..50_000).step_by(10) {
        booking.take_memory(0, start_ns..start_ns + 1, 1000).expect("it is free");
    }
    let needs = Needs { memory_bytes: 1, ..Needs::default() };
    let want = Want {
        ready_ns: 0,
        deadline_ns: 50_000,
        task_insns: 1,
        process_insns: 1,
        needs: &needs,
        span_ns: 10,
        goal: Goal::TaskEnd,
    };
    let (store, claims) = (booking.store(), Claims::new(booking.store()));
    let few = Budget::new(1000);
    let found = best(store, &want, &claims, &few, |_| true);
    assert_eq!(found, Err(Nowhere::Work));
    assert_eq!(on_core(store, &want, 0, &few), Err(Nowhere::Work));
    let work = Budget::unbounded();
    let found = best(store, &want, &claims, &work, |_| true);
    assert_eq!(found, on_core(store, &want, 0, &work));
    assert!(found.is_ok());
}
