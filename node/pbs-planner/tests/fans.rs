// SPDX-License-Identifier: GPL-2.0
//! Processes that wait for one long task begin when their work can, and spread over all cores.

mod common;

use common::checker::check;
use common::nets::{machine, Fan};
use common::question_and_answer;
use pbs_job::{Action, Job};
use pbs_planner::{reserve, Balancing, Options, Request, RunId, Store, Strategy};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
const RUN: RunId = RunId(0);

/// 16 cores and 256 GiB.
fn node() -> Store {
    Store::new(machine(1, &[(256 * GIB, &[S; 16])]), Balancing::Dynamic)
}

fn assert_valid(store: &Store, job: &Job) {
    let (question, answer) = question_and_answer(store, &[(RUN, job, 0, u64::MAX)]);
    assert_eq!(check(&question, &answer), Ok(()));
}

/// Each rule alone: the root takes 100 s, the others 10 s each on all cores, and the last 1 s.
#[test]
fn every_rule_spreads_what_waits_for_one_task() {
    let rules = Strategy::ALL.into_iter().filter(|rule| *rule != Strategy::LocalSearch);
    for rule in rules {
        for (processes, end_s) in [(16, 111), (64, 141), (400, 351)] {
            let job = Fan::of(processes, GIB).job();
            let mut store = node();
            let options = Options { strategies: vec![rule], ..Options::default() };
            let planned = reserve(&mut store, &Request::new(RUN, &job), &options).unwrap();
            assert_eq!(planned.end_ns, end_s * S, "{rule}, {processes} processes");
            assert_valid(&store, &job);
        }
    }
}

/// A process holds no memory while it only waits, but one that has begun does, and so does one
/// that others wait for.
#[test]
fn a_process_begins_with_its_work() {
    let starts = |job: &Job| -> Vec<u64> {
        let mut store = node();
        reserve(&mut store, &Request::new(RUN, job), &Options::default()).unwrap();
        assert_valid(&store, job);
        let processes = &store.run(RUN).unwrap().processes;
        let parts = 2..job.processes.len() - 1;
        parts.map(|process| processes[process].start_ns / S).collect()
    };
    assert_eq!(starts(&Fan::of(8, GIB).job()), [100; 8]);
    let ahead = Fan { ahead_insns: S, ..Fan::of(8, GIB) };
    assert_eq!(starts(&ahead.job()), [0; 8]);
    // Another waits for the first task of the first part.
    let mut job = Fan::of(8, GIB).job();
    let begin = job.processes[2].tasks[0];
    assert!(matches!(job.tasks[begin].action, Action::ForkEnd));
    let waiting = job.processes[3].tasks[1];
    job.tasks[begin].before.push(waiting);
    job.tasks[waiting].after.push(begin);
    let starts = starts(&job);
    assert_eq!((starts[0], &starts[1..]), (0, &[100; 7][..]));
}
