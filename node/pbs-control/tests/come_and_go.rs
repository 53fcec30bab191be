// SPDX-License-Identifier: GPL-2.0
//! Runs that come to others, make room for them, and are given up.

mod common;

use common::{job, machine};
use pbs_control::{Answer, Controller, End, Options, Pace};
use pbs_job::{Core, Machine};
use pbs_plan::Plan;
use pbs_planner::RunId;
use pbs_uapi::{Event, EventKind, MAX_SLOT_INSNS};

const MS: u64 = 1_000_000;

fn controller() -> Controller {
    controller_of(machine())
}

fn controller_of(machine: Machine) -> Controller {
    let options = Options { pace: Pace::new(0, 0), ..Options::default() };
    Controller::new(machine, options, 1, 1)
}

/// Two runs on the only core, of which the first is being executed.
fn two_runs() -> (Controller, [RunId; 2]) {
    two_runs_on(machine())
}

fn two_runs_on(machine: Machine) -> (Controller, [RunId; 2]) {
    let mut controller = controller_of(machine);
    let runs = ["first", "second"].map(|name| {
        let job = job(name, &[100_000_000; 2], 5_000 * MS);
        controller.admit(job, 0).unwrap().run
    });
    controller.plan(0).unwrap().unwrap();
    controller.taken();
    for (seq, run) in (0..).zip(runs) {
        hear(&mut controller, seq, EventKind::Attached, run);
    }
    hear(&mut controller, 2, EventKind::TaskEnded, runs[0]);
    (controller, runs)
}

fn hear(controller: &mut Controller, seq: u64, kind: EventKind, run: RunId) {
    let process = controller.number(run, 0);
    controller.event(&Event {
        seq,
        kind: kind as u16,
        process,
        retired_insns: 100_000_000 * u64::from(kind == EventKind::TaskEnded),
        ..Event::default()
    });
}

fn answer(controller: &mut Controller, now_ns: u64) -> Plan {
    match controller.answer(now_ns).unwrap() {
        Answer::Plan { plan, .. } => *plan,
        other => panic!("{other:?}"),
    }
}

/// The next plan leaves out a run that was given up, and still contains its CPU. This holds also if
/// nothing else is left, and until the node has taken a plan.
#[test]
fn what_is_given_up_leaves_the_plan() {
    let (mut controller, [first, second]) = two_runs();
    let number = controller.number(second, 0);
    controller.cancel(first);
    let ends = controller.run(first).unwrap().ends;
    assert_eq!(ends, [Some(End::Cancelled)]);
    let plan = answer(&mut controller, 150 * MS);
    let ids: Vec<_> = plan.processes.iter().map(|process| process.id).collect();
    assert_eq!(ids, [number]);
    controller.taken();
    assert!(!controller.is_over());

    controller.cancel(second);
    assert!(controller.is_over());
    for _refused in 0..2 {
        assert!(controller.has_vacated());
        let plan = answer(&mut controller, 160 * MS);
        assert!(plan.processes.is_empty() && plan.cpus[0].slots.is_empty());
        controller.refused();
    }
    controller.taken();
    assert!(!controller.has_vacated());
    let nothing = controller.answer(170 * MS);
    assert!(matches!(nothing, Ok(Answer::Nothing)), "{nothing:?}");
    for run in [first, second] {
        controller.forget(run);
        assert_eq!(controller.run(run), None);
    }
    let fresh = job("third", &[100_000_000], 5_000 * MS);
    controller.admit(fresh, 200 * MS).unwrap();
}

/// To be given up twice, or when it is over or unknown, changes nothing.
#[test]
fn what_is_over_cannot_be_given_up() {
    let (mut controller, [first, _]) = two_runs();
    hear(&mut controller, 3, EventKind::ProcessEnded, first);
    controller.cancel(first);
    assert_eq!(controller.run(first).unwrap().ends, [Some(End::Complete)]);
    controller.cancel(RunId(77));
    controller.cancel(first);
}

/// Programs that come late have the rest planned anew, but not soon after another plan. Until then
/// all reservations stay.
#[test]
fn programs_that_come_late_renew_in_the_pace_of_answers() {
    let options = Options { pace: Pace::new(100 * MS, 1000 * MS), ..Options::default() };
    let mut controller = Controller::new(machine(), options, 1, 1);
    let run = controller.admit(job("late", &[100_000_000; 2], 5_000 * MS), 0).unwrap().run;
    controller.plan(0).unwrap().unwrap();
    let start_ns = |controller: &Controller| controller.planned_start_ns(run);
    let planned_ns = start_ns(&controller);
    assert_eq!(controller.renew_in_pace(50 * MS, 1_000_000), None);
    assert_eq!(start_ns(&controller), planned_ns);
    assert_eq!(controller.renew_in_pace(400 * MS, 1_000_000), Some(Vec::new()));
    assert!(start_ns(&controller) >= Some(400 * MS));
}

/// Machine on which the demand test moves nothing.
fn search_alone() -> Machine {
    Machine { demand_permille: Some(0), ..machine() }
}

/// A job gets the place of one that has executed nothing yet and has time, however
/// important that one is; what runs stays.
#[test]
fn who_has_time_makes_room() {
    let (controller, [first, second]) = two_runs_on(search_alone());
    let now_ns = 110 * MS;
    let ends = |controller: &Controller, run| controller.run(run).unwrap().planned_end_ns.unwrap();

    let mut renewed = controller.clone();
    assert_eq!(renewed.renew(now_ns), []);
    // Behind the first, where the second was.
    let deadline_ns = ends(&renewed, second) - 1;
    let mut asked = job("urgent", &[100_000_000], deadline_ns);
    asked.priority = 1;
    let before_ns = ends(&renewed, first);
    let admitted = renewed.admit(asked.clone(), now_ns).unwrap();
    assert!(admitted.planned.end_ns <= asked.deadline_ns);
    assert_eq!(ends(&renewed, first), before_ns);
    assert!(ends(&renewed, second) > asked.deadline_ns);

    // Whose own deadline does not allow it does not move.
    let mut tight = controller.clone();
    tight.renew(now_ns);
    let end_ns = ends(&tight, second);
    tight.set_deadline(second, end_ns).unwrap();
    assert!(tight.admit(asked.clone(), now_ns).is_err());
    assert_eq!(ends(&tight, second), end_ns);

    // A more important run moves as well, since its promise stands.
    let mut important = controller;
    important.renew(now_ns);
    important.set_priority(second, asked.priority + 1);
    let promised_ns = important.deadline_ns(second).unwrap();
    let admitted = important.admit(asked.clone(), now_ns).unwrap();
    assert!(admitted.planned.end_ns <= asked.deadline_ns);
    assert!(ends(&important, second) <= promised_ns);
    assert_eq!(important.deadline_ns(second), Some(promised_ns));
}

/// Jobs are on the CPUs that they are confined to in the plan of the node, also when one
/// of them takes longer than was thought; a less important one without such a wish makes
/// room on them.
#[test]
fn confined_jobs_have_their_cpus() {
    let mut machine = machine();
    let one = machine.nodes[0].cores[0].clone();
    machine.nodes[0].cores = [3, 5, 6]
        .map(|cpu| Core { name: format!("core{cpu}"), cpu: Some(cpu), ..one.clone() })
        .to_vec();
    let mut controller = Controller::new(machine, Options::default(), 1, 1);
    let mut admit = |name, cpus: &[u32], deadline_ms, priority| {
        let mut job = job(name, &[100_000_000; 2], deadline_ms * MS);
        job.cpus = cpus.to_vec();
        job.priority = priority;
        controller.admit(job, 0).map(|admitted| admitted.run)
    };
    let first = admit("first", &[5], 5_000, 0).unwrap();
    let both = ["second", "third"].map(|name| admit(name, &[5, 6], 5_000, 0).unwrap());
    let anywhere = admit("anywhere", &[], 5_000, 0).unwrap();
    // There is no time for it on 5 but that of the first.
    let urgent = admit("urgent", &[5], 300, 1).unwrap();
    assert!(admit("more urgent", &[5], 300, 1).is_err());
    assert!(admit("nowhere", &[5, 4], 5_000, 2).is_err());
    let cpu_of = |controller: &mut Controller, plan: &Plan, run| {
        let number = controller.number(run, 0);
        let index = plan.processes.iter().position(|process| process.id == number);
        plan.cpu_of(index.unwrap()).unwrap().cpu
    };
    let plan = controller.plan(0).unwrap().unwrap();
    controller.taken();
    let check = |controller: &mut Controller, plan: &Plan| {
        for run in [first, urgent] {
            assert_eq!(cpu_of(controller, plan, run), 5);
        }
        for run in both {
            assert!([5, 6].contains(&cpu_of(controller, plan, run)));
        }
        assert_eq!(cpu_of(controller, plan, anywhere), 3);
    };
    check(&mut controller, &plan);
    for (seq, run) in (0..).zip([urgent, both[0], anywhere]) {
        let cpu = cpu_of(&mut controller, &plan, run);
        let process = controller.number(run, 0);
        controller.event(&Event {
            seq,
            kind: EventKind::Attached as u16,
            cpu,
            process,
            ..Event::default()
        });
    }
    let process = controller.number(urgent, 0);
    controller.event(&Event {
        seq: 3,
        kind: EventKind::Late as u16,
        cpu: 5,
        process,
        retired_insns: 120_000_000,
        ..Event::default()
    });
    let plan = answer(&mut controller, 150 * MS);
    check(&mut controller, &plan);
}

#[test]
fn a_deadline_is_promised_if_it_can_be_kept() {
    let (mut controller, [first, _]) = two_runs();
    let end_ns = controller.run(first).unwrap().planned_end_ns.unwrap();
    assert_eq!(controller.set_deadline(first, end_ns - 1), Err(Some(end_ns)));
    assert_eq!(controller.set_deadline(first, end_ns), Ok(()));
    assert_eq!(controller.set_deadline(RunId(77), end_ns), Err(None));
}

/// A more important run that has time does not have another miss its deadline.
#[test]
fn who_has_time_does_not_go_first() {
    let mut controller = controller_of(search_alone());
    let [patient, urgent] = [("patient", 5_000), ("urgent", 700)].map(|(name, deadline_ms)| {
        let job = job(name, &[100_000_000; 2], deadline_ms * MS);
        controller.admit(job, 0).unwrap().run
    });
    controller.plan(0).unwrap();
    for (seq, run) in [(0, patient), (1, urgent)] {
        hear(&mut controller, seq, EventKind::Attached, run);
    }
    controller.set_priority(patient, 7);
    // The first task takes so long that the urgent one has to be first now.
    let process = controller.number(patient, 0);
    controller.event(&Event {
        seq: 2,
        kind: EventKind::Late as u16,
        process,
        retired_insns: 300_000_000,
        ..Event::default()
    });
    let Answer::Plan { missed, .. } = controller.answer(310 * MS).unwrap() else {
        panic!("no plan");
    };
    assert_eq!(missed, []);
}

/// A process that has a thread and no slot yet holds no memory: it gets its memory in its turn, on
/// the core where it waits.
#[test]
fn who_waits_holds_no_memory() {
    let mut controller = controller();
    let runs = ["first", "second", "third"].map(|name| {
        let mut job = job(name, &[100_000_000; 2], 5_000 * MS);
        job.processes[0].memory_bytes = 700 << 20;
        controller.admit(job, 0).unwrap().run
    });
    controller.plan(0).unwrap();
    for (seq, run) in (0..).zip(runs) {
        hear(&mut controller, seq, EventKind::Attached, run);
    }
    let process = controller.number(runs[0], 0);
    controller.event(&Event {
        seq: 3,
        kind: EventKind::Late as u16,
        process,
        retired_insns: 150_000_000,
        ..Event::default()
    });
    let Answer::Plan { missed, plan } = controller.answer(160 * MS).unwrap() else {
        panic!("no plan");
    };
    assert_eq!(missed, []);
    assert_eq!(plan.processes.len(), 3);
}

/// A task to come that is stretched beyond the longest slot makes no plan invalid: others of the
/// node would have none.
#[test]
fn the_plan_of_all_is_valid_whatever_one_stretches() {
    let mut controller = controller();
    let long = job("long", &[MS, MS, MAX_SLOT_INSNS], 1 << 61);
    let long = controller.admit(long, 0).unwrap().run;
    controller.plan(0).unwrap().unwrap();
    controller.taken();
    let process = controller.number(long, 0);
    for (seq, kind) in [(0, EventKind::Attached), (1, EventKind::TaskEnded)] {
        let retired_insns = 1_000 * MS * seq;
        let kind = kind as u16;
        controller.event(&Event { seq, kind, process, retired_insns, ..Event::default() });
    }
    assert_eq!(controller.renew(1_000 * MS), []);
    controller.admit(job("other", &[MS; 2], 1 << 62), 1_000 * MS).unwrap();
    let plan = controller.plan(1_000 * MS).unwrap().unwrap();
    assert_eq!(plan.processes.len(), 2);
    let stretched = &plan.processes.iter().find(|it| it.id == process).unwrap().tasks;
    assert_eq!(stretched.last().unwrap().planned_insns, MAX_SLOT_INSNS);
}
