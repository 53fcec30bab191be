// SPDX-License-Identifier: GPL-2.0
//! Jobs whose slot comes, and passes, before their start.

mod common;

use common::{job, machine};
use pbs_control::{Answer, Controller, Options, Pace};
use pbs_job::Job;
use pbs_uapi::{Event, EventKind};

const MS: u64 = 1_000_000;

/// A program sleeps in its slots until the start of its job. If a slot ends at its ceiling before
/// that, the answer is a plan with a slot at the start.
#[test]
fn a_job_that_slept_through_its_slot_has_another() {
    for ends_ns in [800 * MS, 1_200 * MS] {
        let options = Options { pace: Pace::new(0, 0), lead_ns: 100 * MS, ..Options::default() };
        let mut controller = Controller::new(machine(), options, 1, 1);
        let start_ns = 1_000 * MS;
        let one = Job { start_ns, ..job("one", &[1_000_000], 3_000 * MS) };
        let run = controller.admit(one, 0).unwrap().run;
        let plan = controller.plan(0).unwrap().unwrap();
        let process = plan.processes[0].id;
        let event = |seq, kind: EventKind, time_ns, retired_insns| Event {
            seq,
            kind: kind as u16,
            time_ns,
            process,
            retired_insns,
            ..Event::default()
        };
        controller.event(&event(0, EventKind::Attached, 700 * MS, 0));
        controller.event(&event(1, EventKind::Grant, ends_ns - 12 * MS, 0));
        assert!(!controller.is_asked());
        controller.event(&event(2, EventKind::Ceiling, ends_ns, 3_000));
        assert_eq!(controller.is_asked(), ends_ns < start_ns);
        if ends_ns < start_ns {
            let Ok(Answer::Plan { plan, missed }) = controller.answer(ends_ns + MS) else {
                panic!("no plan");
            };
            assert!(missed.is_empty(), "{missed:?}");
            assert!(plan.processes.iter().any(|planned| planned.id == process));
            let planned_ns = controller.planned_start_ns(run).unwrap();
            assert!(planned_ns >= start_ns, "{planned_ns}");
        }
    }
}
