// SPDX-License-Identifier: GPL-2.0
//! Reservations come and go, and leave nothing behind.

use pbs_gen::nets;
use pbs_job::{Link, Machine};
use pbs_planner::{
    Balancing, MessageReservation, ProcessReservation, Run, RunId, Store, TaskReservation,
};
use pbs_profile::Error;

fn machine() -> Machine {
    Machine {
        links: vec![Link {
            nodes: [0, 1],
            latency_ns: 3,
            bandwidth_bytes_per_s: 1_000_000_000,
            line: None,
        }],
        ..nets::machine(1, &[(1000, &[5, 5, 9]), (301, &[5, 5])])
    }
}

fn store() -> Store {
    Store::new(machine(), Balancing::Dynamic)
}

/// A process with two tasks and a pause in between.
fn run(core: usize, start_ns: u64, memory_bytes: u64) -> Run {
    let task = |task, from_ns, until_ns| TaskReservation {
        task,
        process: 0,
        core,
        start_ns: start_ns + from_ns,
        end_ns: start_ns + until_ns,
        memory_bytes,
    };
    Run {
        processes: vec![ProcessReservation {
            process: 0,
            node: usize::from(core > 2),
            core,
            start_ns,
            end_ns: start_ns + 30,
            memory_bytes,
            resources: Vec::new(),
        }],
        tasks: vec![task(0, 0, 10), task(1, 20, 30)],
        messages: vec![MessageReservation {
            from: 0,
            to: 1,
            link: 0,
            start_ns: start_ns + 10,
            end_ns: start_ns + 14,
            arrival_ns: start_ns + 17,
        }],
        ..Run::default()
    }
}

#[test]
fn a_run_takes_time_and_memory_and_gives_them_back() {
    let mut store = store();
    let before = store.clone();
    let mut booking = store.book();
    booking.reserve(RunId(4), run(1, 100, 400)).expect("it is free");
    booking.commit();
    assert_eq!(store.core(1).value_at(105), 0);
    assert_eq!(store.core(1).value_at(115), 1);
    assert_eq!(store.free_memory_bytes(0, 90..200), Some(600));
    assert_eq!(store.free_memory_bytes(3, 90..200), Some(301));
    assert_eq!(store.free_memory_time(100..140), 1301 * 40 - 400 * 30);
    let slots: Vec<_> = store.free_slots(1, 10, 95..200).collect();
    assert_eq!(slots, [110..120, 130..200]);
    assert_eq!(store.run(RunId(4)), Some(&run(1, 100, 400)));
    assert_ne!(store, before);
    assert!(store.remove(RunId(4)));
    assert!(!store.remove(RunId(4)));
    assert_eq!(store, before);
}

#[test]
fn what_is_refused_leaves_no_trace() {
    let mut store = store();
    let mut booking = store.book();
    booking.reserve(RunId(1), run(1, 100, 400)).expect("it is free");
    booking.commit();
    let before = store.clone();
    // The core is busy, the memory is short, there is no such core.
    let busy = Error::TooLittle { time: 100, value: 0, amount: 1 };
    let short = Error::TooLittle { time: 105, value: 600, amount: 601 };
    let none = Error::NoProfile { index: 5, profiles: 5 };
    for (refused, why) in [(run(1, 95, 1), busy), (run(2, 105, 601), short), (run(5, 0, 1), none)] {
        let mut booking = store.book();
        booking.remove(RunId(1));
        booking.reserve(RunId(1), run(1, 100, 400)).expect("it was free");
        booking.reserve(RunId(7), run(4, 3, 301)).expect("it is free");
        assert_eq!(booking.reserve(RunId(2), refused), Err(why));
        drop(booking);
        assert_eq!(store, before);
    }
}

#[test]
fn what_is_rolled_back_leaves_what_was_before() {
    let mut store = store();
    let mut booking = store.book();
    booking.reserve(RunId(1), run(0, 0, 10)).expect("it is free");
    let one = booking.store().clone();
    let mark = booking.mark();
    booking.reserve(RunId(2), run(0, 5, 10)).expect_err("they overlap");
    booking.rollback(mark);
    assert_eq!(*booking.store(), one);
    booking.reserve(RunId(2), run(0, 30, 10)).expect("it is free");
    booking.remove(RunId(1));
    booking.rollback(mark);
    assert_eq!(*booking.store(), one);
    booking.commit();
    assert_eq!(store, one);
}

#[test]
fn cores_have_a_part_of_their_own_under_static_balancing() {
    let mut store = Store::new(machine(), Balancing::Static);
    assert_eq!(store.memories().len(), 5);
    assert_eq!(store.free_memory_bytes(0, 0..1), Some(333));
    assert_eq!(store.free_memory_bytes(4, 0..1), Some(150));
    let mut booking = store.book();
    booking.reserve(RunId(1), run(0, 0, 300)).expect("it is free");
    booking.reserve(RunId(2), run(1, 40, 300)).expect("it is another part");
    assert!(booking.reserve(RunId(3), run(2, 80, 334)).is_err());
    // Of the link there is one.
    assert!(booking.reserve(RunId(3), run(2, 3, 10)).is_err());
}

#[test]
fn the_past_is_forgotten_with_the_runs_that_ended_in_it() {
    let mut store = store();
    let mut booking = store.book();
    for (id, start_ns) in [(1, 0), (2, 20), (3, 60)] {
        let core = id as usize - 1;
        booking.reserve(RunId(id), run(core, start_ns, 100)).expect("it is free");
    }
    booking.commit();
    store.forget_before(45);
    let ids: Vec<_> = store.runs().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [2, 3]);
    assert_eq!(store.core(1).value_at(0), 0);
    // Of what had begun the rest is given back.
    assert!(store.remove(RunId(2)));
    assert!(store.remove(RunId(3)));
    let mut empty = self::store();
    empty.forget_before(45);
    assert_eq!(store, empty);
}
