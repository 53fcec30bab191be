// SPDX-License-Identifier: GPL-2.0
//! Bound of the work of an answer.

mod common;

use common::{job, machine};
use pbs_control::{Answer, Controller, Options, Pace};
use pbs_plan::Config;
use pbs_planner::plan_building::planner_config;
use pbs_uapi::{Cause, Event, EventKind};

const MS: u64 = 1_000_000;

/// Steps that an answer to the lateness of so many jobs takes, if a try may take `max_work`. All
/// jobs have a place in the answer.
fn steps(jobs: u64, max_work: u64) -> u64 {
    let config = Some(planner_config(Config::DEFAULT));
    let mut options = Options { pace: Pace::new(0, 0), config, ..Options::default() };
    options.replanning.max_work = max_work;
    let mut controller = Controller::new(machine(), options, 1, 1);
    let runs: Vec<_> = (1..=jobs)
        .map(|number| {
            let job = job(&format!("job{number}"), &[10 * MS; 3], 40 * MS * number);
            controller.admit(job, 0).unwrap().run
        })
        .collect();
    controller.plan(0).unwrap().unwrap();
    let mut seq = 0;
    for &run in &runs {
        let process = controller.number(run, 0);
        for (kind, retired_insns) in [(EventKind::Attached, 0), (EventKind::Late, 30 * MS)] {
            let reason = Cause::Task as u16;
            let kind = kind as u16;
            controller.event(&Event {
                seq,
                kind,
                reason,
                process,
                retired_insns,
                ..Event::default()
            });
            seq += 1;
        }
    }
    let Answer::Plan { plan, missed } = controller.answer(30 * MS * jobs).unwrap() else {
        panic!("tasks beyond t2 are answered");
    };
    assert_eq!(plan.processes.len(), runs.len());
    assert!(missed.iter().all(|missed| missed.by_ns.is_some()), "{missed:?}");
    controller.answer_steps()
}

#[test]
fn an_answer_with_many_tries_has_a_bound() {
    let enough = steps(150, 1_000_000);
    let bounded = steps(150, 3_000);
    assert!(enough > 100_000, "{enough} steps are few");
    // Two tries, and a place for each job, with what is given back for it.
    assert!(bounded < 2 * 3_000 + 150 * 300, "{bounded} of {enough} steps");
}
