// SPDX-License-Identifier: GPL-2.0
//! The loop, closed over a node in virtual time.

mod common;

use common::{ends_ns, job, machine, simulate, Loop};
use pbs_control::{
    Answer, Cancelled, Controller, End, Grown, Measured, Missed, Options, Pace, SoFar,
};
use pbs_job::{Core, Job};
use pbs_plan::Config;
use pbs_planner::RunId;
use pbs_sim::NoAnswer;
use pbs_uapi::{Cause, Event, EventKind, Process, ProcessState, Wait, IDLE, NO_TASK};

const MS: u64 = 1_000_000;

fn options() -> Options {
    Options {
        pace: Pace::new(0, 0),
        // Who is late is sent on, and tells of it early.
        config: Some(Config { t1_spares_last_slot: 0, stress_gain_ns: 400_000, ..Config::DEFAULT }),
        ..Options::default()
    }
}

/// The urgent job's first task takes 60 % more than expected; behind it stands a
/// job that has time.
fn disturbed() -> (Controller, Vec<Vec<u64>>) {
    let mut controller = Controller::new(machine(), options(), 1, 1);
    let urgent = job("urgent", &[100_000_000; 3], 450 * MS);
    let patient = job("patient", &[100_000_000; 4], 2_000 * MS);
    controller.admit(urgent, 0).unwrap();
    controller.admit(patient, 0).unwrap();
    let mut real = vec![vec![100_000_000; 3], vec![100_000_000; 4]];
    real[0][0] = 160_000_000;
    (controller, real)
}

#[test]
fn a_new_plan_keeps_the_deadline_of_who_is_late() {
    let (mut controller, real) = disturbed();
    let alone = simulate(&mut controller.clone(), &real, &mut NoAnswer);
    assert!(ends_ns(&alone)[0].unwrap() > 450 * MS, "{alone:?}");

    let mut node = Loop::new(&mut controller);
    let plan = node.first_plan();
    let answered = common::run(&plan, &real, &mut node);
    let ends_ns = ends_ns(&answered);
    assert!(node.answers > 0);
    assert!(node.missed.is_empty(), "{:?}", node.missed);
    assert!(ends_ns[0].unwrap() <= 450 * MS, "{answered:?}");
    assert!(ends_ns[1].unwrap() <= 2_000 * MS, "{answered:?}");
}

#[test]
fn a_run_that_can_no_longer_be_in_time_goes_on() {
    let (mut controller, mut real) = disturbed();
    real[0][0] = 400_000_000;
    let mut node = Loop::new(&mut controller);
    let plan = node.first_plan();
    let simulation = common::run(&plan, &real, &mut node);
    assert!(ends_ns(&simulation).iter().all(Option::is_some));
    assert!(node.missed.iter().any(|missed| missed.by_ns > Some(0)));
}

#[test]
fn a_task_without_end_is_planned_ever_more_rarely() {
    let (mut controller, mut real) = disturbed();
    real[0][0] = 1 << 40;
    let mut node = Loop::new(&mut controller);
    let plan = node.first_plan();
    let simulation = common::run(&plan, &real, &mut node);
    // The other job has ended, and in time.
    assert!(ends_ns(&simulation)[1].unwrap() <= 2_000 * MS);
    assert!(node.answers < 100, "{}", node.answers);
}

#[test]
fn a_refused_run_leaves_no_trace() {
    let (mut controller, _) = disturbed();
    let before = controller.clone();
    let late = job("late", &[100_000_000; 9], 500 * MS);
    controller.admit(late.clone(), 0).unwrap_err();
    assert!(controller.store() == before.store());
    let earliest_ns = controller.earliest_deadline_ns(&late, 0).unwrap();
    assert!(controller.store() == before.store());
    let patient = Job { deadline_ns: earliest_ns, ..late };
    controller.clone().admit(patient, 0).unwrap();
    let plan = controller.plan(0).unwrap().unwrap();
    assert_eq!(plan.processes.len(), 2);
}

#[test]
fn no_failure_no_answer_and_not_too_soon() {
    let (mut controller, _) = disturbed();
    controller.plan(0).unwrap().unwrap();
    assert!(matches!(controller.answer(5), Ok(Answer::Nothing)));

    let mut controller =
        Controller::new(machine(), Options { pace: Pace::new(100, 1000), ..options() }, 7, 1);
    controller.admit(job("a", &[1_000_000; 3], 900 * MS), 0).unwrap();
    let plan = controller.plan(10).unwrap().unwrap();
    let late = Event {
        seq: 41,
        kind: EventKind::Late as u16,
        process: plan.processes[0].id,
        task: 0,
        retired_insns: 2_000_000,
        ..Event::default()
    };
    controller.event(&late);
    assert!(matches!(controller.answer(20), Ok(Answer::NotBefore(110))));
    let Ok(Answer::Plan { plan: next, .. }) = controller.answer(110) else {
        panic!("no plan");
    };
    assert_eq!((plan.plan_id, next.plan_id), (7, 8));
    assert_eq!(next.dealt_seq, 42);
    // As long as it is expected to become.
    assert_eq!(next.processes[0].tasks[0].planned_insns, 2_500_000);
    // What was dealt with is no reason for another plan.
    assert!(matches!(controller.answer(5000), Ok(Answer::Nothing)));
}

/// The configuration of the first plan and of the answer to a failure.
fn configs(config: Option<Config>, lead_ns: u64) -> [Option<Config>; 2] {
    let options = Options { config, lead_ns, ..options() };
    let mut controller = Controller::new(machine(), options, 1, 1);
    controller.admit(job("a", &[1_000_000; 3], 900 * MS), 0).unwrap();
    let first = controller.plan(0).unwrap().unwrap();
    controller.event(&Event {
        kind: EventKind::Late as u16,
        process: first.processes[0].id,
        retired_insns: 2_000_000,
        ..Event::default()
    });
    let Ok(Answer::Plan { plan: next, .. }) = controller.answer(20) else {
        panic!("no plan");
    };
    [first.config, next.config]
}

#[test]
fn the_node_is_told_how_long_an_answer_takes() {
    let asked = Config { max_preemptions: 7, reschedule_time_ns: 3 * MS, ..Config::DEFAULT };
    let told = Config { reschedule_time_ns: 80 * MS, ..asked };
    assert_eq!(configs(Some(asked), 80 * MS), [Some(told); 2]);
    assert_eq!(configs(Some(asked), 0), [Some(asked); 2]);
    // The node keeps what its administrator has set.
    assert_eq!(configs(None, 80 * MS), [None; 2]);
}

#[test]
fn what_has_ended_is_not_planned_again() {
    let (mut controller, _) = disturbed();
    let plan = controller.plan(0).unwrap().unwrap();
    let event = |kind: EventKind, process: usize, task: u32, retired_insns: u64| Event {
        kind: kind as u16,
        process: plan.processes[process].id,
        task,
        retired_insns,
        ..Event::default()
    };
    for (kind, process, task, insns) in [
        (EventKind::Attached, 0, 0, 0),
        (EventKind::Attached, 1, 0, 0),
        (EventKind::TaskEnded, 0, 0, 70_000_000),
        (EventKind::TaskEnded, 0, 1, 90_000_000),
        (EventKind::Early, 0, 1, 90_000_000),
    ] {
        controller.event(&event(kind, process, task, insns));
    }
    let Ok(Answer::Plan { plan: next, missed }) = controller.answer(160 * MS) else {
        panic!("no plan");
    };
    assert!(missed.is_empty());
    let tasks: Vec<_> = next.processes.iter().map(|process| process.tasks.len()).collect();
    assert_eq!(tasks, [1, 4]);
    assert_eq!(next.processes[0].tasks[0].id, 2);
    controller.event(&event(EventKind::TaskEnded, 0, 2, 90_000_000));
    controller.event(&event(EventKind::ProcessEnded, 0, 2, 0));
    assert!(!controller.is_over());
    controller.event(&event(EventKind::Ejected, 1, 0, 0));
    assert!(controller.is_over());
    let (run, _) = controller.process(plan.processes[0].id).unwrap();
    let state = controller.run(run).unwrap();
    let retired: Vec<_> = state.measured[0].iter().map(|task| task.retired_insns).collect();
    assert_eq!(retired, [70_000_000, 90_000_000, 90_000_000]);
    controller.forget(run);
    assert!(controller.run(run).is_none());
}

#[test]
fn another_controller_takes_over() {
    let mut second = Controller::new(machine(), options(), 9, 1);
    let urgent = job("urgent", &[100_000_000; 3], 1_450 * MS);
    let so_far = SoFar {
        cpu: Some(0),
        measured: vec![Measured {
            position: 0,
            expected_insns: 100_000_000,
            retired_insns: 120_000_000,
        }],
        retired_insns: 130_000_000,
        end: None,
    };
    let run = second.take_over(urgent.clone(), &[77], &[so_far]).unwrap();
    // No two processes have a number, and what fails leaves no trace.
    assert!(second.take_over(urgent, &[77], &[]).is_none());
    assert_eq!(second.number(run, 0), 77);

    second.event(&Event {
        seq: 500,
        kind: EventKind::Late as u16,
        process: 77,
        task: 1,
        retired_insns: 160_000_000,
        ..Event::default()
    });
    let Ok(Answer::Plan { plan, missed }) = second.answer(300 * MS) else {
        panic!("no plan");
    };
    assert!(missed.is_empty(), "{missed:?}");
    assert_eq!((plan.plan_id, plan.dealt_seq), (9, 501));
    let [process] = plan.processes.as_slice() else {
        panic!("{plan:?}");
    };
    let tasks = process.tasks.iter();
    let tasks: Vec<_> = tasks.map(|task| (task.id, task.planned_insns)).collect();
    // A quarter more than it has retired, and what comes by as much as what was.
    assert_eq!((process.id, tasks), (77, vec![(1, 200_000_000), (2, 140_000_000)]));
}

/// A process that waits for a process that dies is cancelled with all its remaining tasks. The
/// processes that wait for the cancelled one are cancelled as well. The others continue, under a
/// new plan.
#[test]
fn who_waits_for_a_process_that_dies_is_cancelled() {
    let job = pbs_job::job_from_toml(
        "name = \"net\"\ndeadline_ns = 900_000_000\n\
         [[process]]\nid = 1\nname = \"parent\"\nmemory_bytes = 1\n\
         tasks = [1_000_000, { action = \"fork\", child = \"left\" }, \
                  { action = \"fork\", child = \"right\" }, 2_000_000, \
                  { action = \"join\", child = \"left\" }, \
                  { action = \"fork\", child = \"last\" }, \
                  { action = \"join\", child = \"last\" }, \
                  { action = \"join\", child = \"right\" }]\n\
         [[process]]\nid = 2\nname = \"left\"\nmemory_bytes = 1\n\
         tasks = [3_000_000, 4_000_000]\n\
         [[process]]\nid = 3\nname = \"right\"\nmemory_bytes = 1\ntasks = [5_000_000]\n\
         [[process]]\nid = 4\nname = \"last\"\nmemory_bytes = 1\ntasks = [6_000_000]\n",
    )
    .unwrap();
    let mut controller = Controller::new(machine(), options(), 1, 1);
    let run = controller.admit(job, 0).unwrap().run;
    let plan = controller.plan(0).unwrap().unwrap();
    let id = |name: &str| {
        let named = |process: &&pbs_plan::Process| process.name.as_deref() == Some(name);
        plan.processes.iter().find(named).unwrap().id
    };
    let task = |name: &str, number: usize| {
        let process = plan.process(id(name)).unwrap();
        process.tasks[number].id
    };
    let event = |kind: EventKind, name: &str, task: u32, value: u64| Event {
        kind: kind as u16,
        process: id(name),
        task,
        value,
        retired_insns: 1_000_000,
        ..Event::default()
    };
    for name in ["parent", "left", "right", "last"] {
        controller.event(&event(EventKind::Attached, name, 0, 0));
    }
    for (name, number) in [("parent", 0), ("left", 0)] {
        controller.event(&event(EventKind::TaskEnded, name, task(name, number), 0));
    }
    assert!(matches!(controller.answer(100 * MS), Ok(Answer::Nothing)));
    controller.event(&event(EventKind::ProcessEnded, "left", task("left", 1), 1));
    let cancelled = controller.cancelled();
    let expected = [0, 3].map(|process| Cancelled { run, process, cut: 1 });
    assert_eq!(cancelled, expected);
    assert!(controller.cancelled().is_empty());
    let Ok(Answer::Plan { plan: next, .. }) = controller.answer(200 * MS) else {
        panic!("no plan");
    };
    let ids: Vec<_> = next.processes.iter().map(|process| process.id).collect();
    assert_eq!(ids, [id("right")]);
    assert!(next.processes[0].tasks[0].after.is_empty());
    // Its program may attach itself all the same.
    controller.event(&event(EventKind::Attached, "last", 0, 0));
    controller.event(&event(EventKind::ProcessEnded, "parent", 0, 2));
    assert!(controller.cancelled().is_empty());
    controller.event(&event(EventKind::ProcessEnded, "right", task("right", 0), 0));
    assert!(controller.is_over());
    let (cancelled, cut) = (Some(End::Cancelled), Some(End::Cut));
    let ends = [cancelled, cut, Some(End::Complete), cancelled];
    assert_eq!(controller.run(run).unwrap().ends, ends);
}

/// A process that left the class will not end under the next plan. Processes that wait for it are
/// cancelled then, unless it is back.
#[test]
fn who_waits_for_a_process_that_left_is_cancelled_with_the_next_plan() {
    let job = pbs_job::job_from_toml(
        "name = \"net\"\ndeadline_ns = 900_000_000\n\
         [[process]]\nid = 1\nname = \"parent\"\nmemory_bytes = 1\n\
         tasks = [{ action = \"fork\", child = \"child\" }, \
                  { action = \"join\", child = \"child\" }, 2_000_000]\n\
         [[process]]\nid = 2\nname = \"child\"\nmemory_bytes = 1\ntasks = [3_000_000]\n\
         [[process]]\nid = 3\nname = \"other\"\nmemory_bytes = 1\ntasks = [4_000_000]\n",
    );
    // Nobody forks parent and other, so pbsctl is the initial process, which is no
    // reason to cancel other.
    let job = job.unwrap();
    for is_back in [false, true] {
        let mut controller = Controller::new(machine(), options(), 1, 1);
        controller.admit(job.clone(), 0).unwrap();
        let plan = controller.plan(0).unwrap().unwrap();
        let id = |name: &str| {
            let named = |process: &&pbs_plan::Process| process.name.as_deref() == Some(name);
            plan.processes.iter().find(named).unwrap().id
        };
        let event = |kind: EventKind, process: u32| Event {
            kind: kind as u16,
            process,
            retired_insns: 5_000_000,
            ..Event::default()
        };
        for process in &plan.processes {
            controller.event(&event(EventKind::Attached, process.id));
        }
        controller.event(&event(EventKind::Ejected, id("child")));
        assert!(controller.cancelled().is_empty());
        if is_back {
            controller.event(&event(EventKind::Attached, id("child")));
        }
        controller.event(&event(EventKind::Late, id("other")));
        let Ok(Answer::Plan { plan: next, .. }) = controller.answer(10 * MS) else {
            panic!("no plan");
        };
        let names: Vec<_> = next.processes.iter().map(|process| process.label()).collect();
        assert_eq!(names.contains(&"parent".into()), is_back, "{names:?}");
        assert_eq!(controller.cancelled().len(), usize::from(!is_back));
    }
}

/// One of three processes has ended, one is in its second task, and one has lost its thread. All
/// events about these changes were lost.
#[test]
fn lost_events_are_made_up_for_by_what_the_kernel_says() {
    let mut controller = Controller::new(machine(), options(), 1, 1);
    for name in ["ended", "late", "gone"] {
        let job = job(name, &[100_000_000; 3], 5_000 * MS);
        controller.admit(job, 0).unwrap();
    }
    let plan = controller.plan(0).unwrap().unwrap();
    let [ended, late, gone] = [0, 1, 2].map(|index: usize| plan.processes[index].id);
    let event = |seq: u64, kind: EventKind, process: u32| Event {
        seq,
        kind: kind as u16,
        process,
        ..Event::default()
    };
    for (seq, process) in [(1, ended), (2, late), (3, gone)] {
        controller.event(&event(seq, EventKind::Attached, process));
    }
    controller.event(&Event { value: 96, ..event(4, EventKind::Overrun, IDLE) });
    let known = |process: u32, state: ProcessState, task: u32, ended_tasks: u32| Process {
        process,
        state: state as u32,
        task,
        ended_tasks,
        tasks: 3,
        next_seq: 102,
        ..Process::default()
    };
    controller.seen(&known(ended, ProcessState::Done, NO_TASK, 3));
    controller
        .seen(&Process { retired_insns: 150_000_000, ..known(late, ProcessState::Ready, 1, 1) });
    controller.seen(&known(gone, ProcessState::Absent, 0, 0));
    // It was told after the overrun and before the kernel was asked.
    controller
        .event(&Event { retired_insns: 90_000_000, ..event(100, EventKind::TaskEnded, late) });

    // A failure may have been among what was lost, so there is an answer.
    let Ok(Answer::Plan { plan: next, .. }) = controller.answer(160 * MS) else {
        panic!("no plan");
    };
    assert_eq!(next.dealt_seq, 101);
    let [process] = next.processes.as_slice() else {
        panic!("{next:?}");
    };
    let tasks = process.tasks.iter();
    let tasks: Vec<_> = tasks.map(|task| (task.id, task.planned_insns)).collect();
    assert_eq!((process.id, tasks[0]), (late, (1, 187_500_000)));
    assert_eq!(tasks.len(), 2);
    let state = |id: u32| {
        let (run, _) = controller.process(id).unwrap();
        controller.run(run).unwrap()
    };
    assert_eq!(state(ended).ends, [Some(End::Complete)]);
    assert_eq!(state(gone).ends, [Some(End::Cut)]);
    let retired = state(late).measured[0][0].retired_insns;
    assert_eq!(retired, 90_000_000);
    assert!(!controller.is_over());
    controller.seen(&known(late, ProcessState::Done, NO_TASK, 3));
    assert!(controller.is_over());
}

/// A process that only forks and joins is not in the plan, so nothing tells its end.
#[test]
fn a_process_without_instructions_ends_with_the_others() {
    let mut job = job("forks", &[0, 100_000_000, 0], 5_000 * MS);
    let mut idle = job.processes[0].clone();
    idle.tasks = vec![0, 2];
    job.processes[0].tasks = vec![1];
    job.processes.push(idle);
    for (position, &task) in [0, 2].iter().enumerate() {
        job.tasks[task].process = 1;
        job.tasks[task].position = position;
    }
    job.tasks[1].position = 0;
    let mut controller = Controller::new(machine(), options(), 1, 1);
    let so_far = [SoFar::default(), SoFar::default()];
    let run = controller.take_over(job, &[7, 8], &so_far).unwrap();
    assert_eq!(controller.run(run).unwrap().ends, [None, None]);
    controller.event(&Event {
        kind: EventKind::ProcessEnded as u16,
        process: 7,
        ..Event::default()
    });
    let ends = controller.run(run).unwrap().ends;
    assert_eq!(ends, [Some(End::Complete); 2]);
    assert!(controller.is_over());
}

/// Two jobs fit beside each other, each on its core, until the first one uses more
/// than was planned: the other one, which has not begun, waits for its end.
#[test]
fn who_uses_more_memory_is_planned_with_it() {
    let mut machine = machine();
    let core = Core { cpu: Some(1), ..machine.nodes[0].cores[0].clone() };
    machine.nodes[0].cores.push(core);
    let mut controller = Controller::new(machine, options(), 1, 1);
    let [first, second] = [(400, 3_000), (500, 5_000)].map(|(mib, deadline_ms)| {
        let mut job = job("job", &[100_000_000; 3], deadline_ms * MS);
        job.processes[0].memory_bytes = mib << 20;
        controller.admit(job, 0).unwrap().run
    });
    let plan = controller.plan(0).unwrap().unwrap();
    assert_eq!(plan.memory_bytes, 1 << 30);
    let peaks = |plan: &pbs_plan::Plan| -> Vec<u64> {
        let peaks = plan.processes.iter().map(|process| process.memory_bytes >> 20);
        peaks.collect()
    };
    assert_eq!(peaks(&plan), [400, 500]);
    assert_eq!(plan.cpus.len(), 2);
    let process = plan.processes[0].id;
    let event = |seq, kind: EventKind| Event {
        seq,
        kind: kind as u16,
        process,
        task: 0,
        ..Event::default()
    };
    controller.event(&event(0, EventKind::Attached));
    controller.event(&Event {
        reason: Cause::Memory as u16,
        memory_bytes: 600 << 20,
        retired_insns: 50_000_000,
        ..event(1, EventKind::Late)
    });
    let Ok(Answer::Plan { plan, missed }) = controller.answer(50 * MS) else {
        panic!("no plan");
    };
    assert_eq!(missed, []);
    assert_eq!(plan.dealt_seq, 2);
    // With room to grow by a quarter.
    assert_eq!(peaks(&plan), [750, 500]);
    let grown = Grown { run: first, process: 0, reserved_bytes: 400 << 20, used_bytes: 600 << 20 };
    assert_eq!(controller.grown(), [grown]);
    assert_eq!(controller.grown(), []);
    let run = |run| controller.store().run(run).unwrap();
    let (end_ns, start_ns) = (run(first).end_ns(), run(second).start_ns().unwrap());
    assert!(start_ns >= end_ns, "{start_ns} is before {end_ns}");

    // With more than the node has there is no place for it at all.
    controller.event(&Event {
        reason: Cause::Memory as u16,
        memory_bytes: 2 << 30,
        retired_insns: 60_000_000,
        ..event(2, EventKind::Late)
    });
    let Ok(Answer::Plan { missed, .. }) = controller.answer(60 * MS) else {
        panic!("no plan");
    };
    let run = first;
    assert_eq!(missed, [Missed { run, by_ns: None }]);
}

/// Two jobs that both have begun and whose memory the node has not got for both: the late
/// one finds no place and loses the core that it has for itself.
#[test]
fn a_core_of_whom_there_is_no_place_for_is_cleared() {
    let mut machine = machine();
    let core = Core { cpu: Some(5), ..machine.nodes[0].cores[0].clone() };
    machine.nodes[0].cores.push(core);
    let mut controller = Controller::new(machine, options(), 1, 1);
    let large = |name: &str| {
        let mut job = job(name, &[100_000_000; 3], 5_000 * MS);
        job.processes[0].memory_bytes = 700 << 20;
        job
    };
    for name in ["first", "second"] {
        controller.admit(large(name), 0).unwrap();
    }
    let plan = controller.plan(0).unwrap().unwrap();
    let [first, second] = [0, 1].map(|index: usize| plan.processes[index].id);
    let mut seq = 0;
    let mut hear = |kind: EventKind, process: u32, cpu: u32| {
        seq += 1;
        controller.event(&Event {
            seq,
            kind: kind as u16,
            process,
            cpu,
            retired_insns: 200_000_000,
            ..Event::default()
        });
    };
    hear(EventKind::Attached, first, 0);
    hear(EventKind::Attached, second, 5);
    // It was filled in, before its time.
    hear(EventKind::TaskEnded, second, 5);
    hear(EventKind::Late, first, 0);
    let Ok(Answer::Plan { plan: next, missed }) = controller.answer(200 * MS) else {
        panic!("no plan");
    };
    let (run, _) = controller.process(first).unwrap();
    assert_eq!(missed, [Missed { run, by_ns: None }]);
    let slots: Vec<_> = next.cpus.iter().map(|cpu| (cpu.cpu, cpu.slots.is_empty())).collect();
    assert_eq!(slots, [(0, true), (5, false)]);
    assert_eq!(next.processes.len(), 1);

    // It is over there; the next plan leaves that CPU alone.
    controller.event(&Event {
        seq: 10,
        kind: EventKind::Ejected as u16,
        process: first,
        cpu: 0,
        ..Event::default()
    });
    let plan = controller.plan(210 * MS).unwrap().unwrap();
    assert_eq!(plan.cpus.len(), 1);
}

/// A machine of two cores, and two jobs that have begun there with that many mebibytes.
fn two_running(mib: [u64; 2]) -> (Controller, [RunId; 2], [u32; 2]) {
    let mut machine = machine();
    let core = Core { cpu: Some(1), ..machine.nodes[0].cores[0].clone() };
    machine.nodes[0].cores.push(core);
    let mut controller = Controller::new(machine, options(), 1, 1);
    let runs = mib.map(|mib| {
        let mut job = job("job", &[100_000_000; 3], 5_000 * MS);
        job.processes[0].memory_bytes = mib << 20;
        controller.admit(job, 0).unwrap().run
    });
    let plan = controller.plan(0).unwrap().unwrap();
    assert_eq!(plan.cpus.len(), 2);
    let processes = runs.map(|run| controller.number(run, 0));
    for (cpu, process) in (0..).zip(processes) {
        controller.event(&Event {
            seq: u64::from(cpu),
            kind: EventKind::Attached as u16,
            process,
            cpu,
            ..Event::default()
        });
    }
    (controller, runs, processes)
}

/// The node says that it uses too much, and not whose that is: so the kernel is asked,
/// and who has more than was reserved keeps it.
#[test]
fn whose_memory_is_too_much_is_asked() {
    let (mut controller, [first, _], processes) = two_running([400, 300]);
    assert!(controller.asks().is_empty());
    controller.event(&Event {
        seq: 2,
        kind: EventKind::Late as u16,
        reason: Cause::NodeMemory as u16,
        process: processes[1],
        cpu: 1,
        memory_bytes: 1100 << 20,
        ..Event::default()
    });
    assert_eq!(controller.asks(), processes);
    assert!(controller.asks().is_empty());
    for (process, mib) in processes.into_iter().zip([420, 200]) {
        controller.seen(&pbs_uapi::Process {
            process,
            cpu: process - processes[0],
            state: ProcessState::Ready as u32,
            tasks: 3,
            peak_rss_bytes: mib << 20,
            ..pbs_uapi::Process::default()
        });
    }
    let grown = controller.grown();
    assert_eq!(grown.len(), 1, "{grown:?}");
    assert_eq!((grown[0].run, grown[0].used_bytes), (first, 420 << 20));
    let Ok(Answer::Plan { plan, missed }) = controller.answer(50 * MS) else {
        panic!("no plan");
    };
    assert_eq!(missed, []);
    let peaks = plan.processes.iter().map(|it| it.memory_bytes >> 20);
    assert_eq!(peaks.collect::<Vec<_>>(), [525, 300]);
}

/// Room to grow is given up before a place is lost: what is used now fits.
#[test]
fn room_to_grow_costs_nobody_a_place() {
    let (mut controller, _, processes) = two_running([400, 400]);
    for (seq, process) in (2..).zip(processes) {
        controller.event(&Event {
            seq,
            kind: EventKind::Late as u16,
            reason: Cause::Memory as u16,
            process,
            cpu: process - processes[0],
            memory_bytes: 500 << 20,
            ..Event::default()
        });
    }
    let Ok(Answer::Plan { plan, missed }) = controller.answer(50 * MS) else {
        panic!("no plan");
    };
    assert_eq!(missed, []);
    let peaks = plan.processes.iter().map(|it| it.memory_bytes >> 20);
    assert_eq!(peaks.collect::<Vec<_>>(), [500, 500]);
}

/// A process waits for one whose memory it gets. When that one dies, it says that it
/// waits in vain, and the new plan lets it go on.
#[test]
fn who_waits_for_memory_of_the_dead_is_planned_anew() {
    let mut controller = Controller::new(machine(), options(), 1, 1);
    let runs = [600, 700].map(|mib| {
        let mut job = job("job", &[100_000_000], 5_000 * MS);
        job.processes[0].memory_bytes = mib << 20;
        controller.admit(job, 0).unwrap().run
    });
    let plan = controller.plan(0).unwrap().unwrap();
    let [first, second] = runs.map(|run| controller.number(run, 0));
    let after = |plan: &pbs_plan::Plan| {
        let process = plan.process(second).unwrap();
        let after = process.tasks[0].after.iter();
        after.map(|after| after.process).collect::<Vec<_>>()
    };
    assert_eq!(after(&plan), [first]);
    let mut seq = 0;
    let mut hear = |kind: EventKind, process: u32, reason: u16, value: u64| {
        controller.event(&Event {
            seq,
            kind: kind as u16,
            process,
            reason,
            value,
            ..Event::default()
        });
        seq += 1;
        controller.answer(50 * MS).unwrap()
    };
    hear(EventKind::Attached, first, 0, 0);
    hear(EventKind::Attached, second, 0, 0);
    let answer = hear(EventKind::ProcessEnded, first, 0, 1);
    assert!(matches!(answer, Answer::Nothing));
    let gone = u64::from(first) << 32;
    let answer = hear(EventKind::Waits, second, Wait::Gone as u16, gone);
    let Answer::Plan { plan, .. } = answer else {
        panic!("{answer:?}");
    };
    assert!(after(&plan).is_empty());
}

/// A job that comes while others run is planned beside what is left of them.
#[test]
fn a_job_comes_into_the_running_plan() {
    let (mut controller, runs, processes) = two_running([10, 10]);
    for (cpu, process) in (0..).zip(processes) {
        controller.event(&Event {
            seq: 10 + u64::from(cpu),
            kind: EventKind::TaskEnded as u16,
            process,
            cpu,
            retired_insns: 100_000_000,
            ..Event::default()
        });
    }
    assert_eq!(controller.renew(150 * MS), []);
    // Nobody is late, so there is nothing else to answer.
    assert!(matches!(controller.answer(150 * MS), Ok(Answer::Nothing)));
    let ends = runs.map(|run| controller.run(run).unwrap().planned_end_ns.unwrap());
    let third = job("third", &[100_000_000; 2], 5_000 * MS);
    let third = controller.admit(third, 150 * MS).unwrap();
    assert!(third.planned.end_ns > ends[0], "{third:?} {ends:?}");

    let plan = controller.plan(150 * MS).unwrap().unwrap();
    let number = controller.number(third.run, 0);
    let lengths = plan.processes.iter().map(|process| {
        let tasks = process.tasks.iter().map(|task| task.planned_insns);
        (process.id, tasks.collect::<Vec<_>>())
    });
    let left = |process| (process, vec![100_000_000; 2]);
    let expected = [left(processes[0]), left(processes[1]), left(number)];
    assert_eq!(lengths.collect::<Vec<_>>(), expected);
    let tasks = plan.processes.iter().map(|process| process.tasks[0].id);
    assert_eq!(tasks.collect::<Vec<_>>(), [1, 1, 0]);
}
