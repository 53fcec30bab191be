// SPDX-License-Identifier: GPL-2.0

//! Timeliness: the starts and ends of tasks on the clock, compared with the plan (Leppert 2021,
//! 3.3.2).

use std::vec;
use std::vec::Vec;

use crate::wire::IDLE;
use crate::{Cause, Config, Dispatch, EventKind, Fault, Node, Presence, Rate, Threshold};

use super::rates;
use super::scene::{Log, Scene, CONFIG};
use super::swap::tasks;
use super::text::{self, Cpu};

/// Tasks may be off by 100 ns; nothing else is reported.
const TIMED: Config = Config {
    timeliness_ns: 100,
    ..CONFIG
};

/// An untimely task: cause, process, task, deviation in nanoseconds.
type Untimely = (Cause, u32, u32, i64);

fn untimely(log: &Log) -> Vec<Untimely> {
    let events = log.of(EventKind::Info);
    events
        .iter()
        .map(|event| {
            let cause = match event.reason {
                8 => Cause::Start,
                9 => Cause::End,
                reason => panic!("cause {reason}"),
            };
            assert_eq!(event.level_percent, 100);
            (cause, event.process, event.task, event.value.cast_signed())
        })
        .collect()
}

fn timed(slots: &[(u32, u64)]) -> Scene {
    Scene::ready(TIMED, text::plan(slots))
}

#[test]
fn late_end_and_late_start_are_reported_once_a_task() {
    let mut scene = timed(&[(1, 1000), (2, 1000), (1, 1000), (2, 1000)]);
    // Late by as much as is allowed: by t1 to the next slot, and back with less.
    scene.finish(1090);
    scene.finish(1010);
    assert_eq!(untimely(&scene.log), []);
    scene.finish(1001);
    let event = scene.log.of(EventKind::Info)[0];
    assert_eq!(
        (event.time_ns, event.slot, event.retired_insns),
        (3101, 2, 1001)
    );
    // It starts late, too; its end is the same fact.
    scene.finish(1099);
    assert_eq!(
        untimely(&scene.log),
        [(Cause::End, 1, 1, 101), (Cause::Start, 2, 1, 101)]
    );
}

#[test]
fn early_tasks_have_negative_deviations() {
    let mut scene = timed(&[(1, 1000), (2, 1000), (1, 1000)]);
    scene.finish(700);
    scene.finish(1000);
    scene.finish(1250);
    assert_eq!(
        untimely(&scene.log),
        [
            (Cause::End, 1, 0, -300),
            (Cause::Start, 2, 0, -300),
            (Cause::Start, 1, 1, -300)
        ]
    );
}

#[test]
fn idle_slots_and_many_slots_are_part_of_the_timetable() {
    let slots: Vec<_> = (0..100)
        .map(|number| (if number % 3 == 2 { IDLE } else { 1 }, 1000 + number))
        .collect();
    let mut scene = timed(&slots);
    // Each slot takes its time: nothing is reported in any of them.
    for &(process, length) in &slots[..67] {
        if process == IDLE {
            scene.wait(length);
        } else {
            scene.finish(length);
        }
    }
    assert_eq!(untimely(&scene.log), []);
    assert_eq!(scene.node.cursor(), 67);
    scene.finish(1067 + 101);
    assert_eq!(untimely(&scene.log), [(Cause::End, 1, 45, 101)]);
}

#[test]
fn preempted_task_ends_late_by_its_own_slot() {
    let mut scene = timed(&[(1, 1000), (2, 1000), (1, 1000)]);
    // t1 ends the first slot, and the task goes on in its next one.
    scene.run_as_told(1100);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    scene.finish(300);
    // By then its next task could have begun; the moment is in the slot of that.
    scene.finish(500);
    assert_eq!(
        untimely(&scene.log),
        [(Cause::End, 1, 0, 1400), (Cause::Start, 1, 1, 400)]
    );
}

#[test]
fn process_that_waits_starts_late() {
    let mut scene = Scene::absent(TIMED, text::plan(&[(1, 1000), (2, 1000)]));
    scene.set(2, Presence::Ready);
    // Until the ceiling of the slot of the absent process: 3000.
    scene.wait(scene.left_ns().unwrap());
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    scene.set(1, Presence::Ready);
    scene.finish(1000);
    let told = untimely(&scene.log);
    assert_eq!(told[0], (Cause::Start, 2, 0, 2000));
    assert_eq!(told[1], (Cause::Start, 1, 0, 4000));
    assert_eq!(told.len(), 2);
}

#[test]
fn unallocated_time_makes_nothing_late() {
    let config = Config {
        window_period_ns: 1_000_000,
        window_unallocated_ns: 500_000,
        ceiling_extra_ns: 1_000_000,
        ..TIMED
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 400_000), (1, 400_000)]));
    scene.finish(400_000);
    scene.run(100_000);
    // The unallocated half of the window.
    scene.wait(500_000);
    scene.finish(300_000);
    assert_eq!(scene.now_ns, 1_300_000);
    assert_eq!(untimely(&scene.log), []);
}

/// Each slot takes the time of its process, and an idle slot that of the CPU.
#[test]
fn timetable_is_by_the_rates_of_the_plan() {
    let slots = [(1, 1000), (IDLE, 1000), (2, 1000), (1, 1000)];
    // Process 1 needs two nanoseconds for an instruction, the others one.
    let plan = rates::plan(&slots, 0, [500_000, 0]);
    let mut scene = Scene::ready(TIMED, plan);
    scene.now_ns += 1000;
    scene.finish(1000);
    scene.wait(1000);
    scene.finish(1000);
    scene.now_ns += 1000;
    scene.finish(1000);
    assert_eq!(scene.now_ns, 6000);
    assert_eq!(untimely(&scene.log), []);
    // A rate of the CPU that changes later moves nothing that was planned.
    let mut scene = timed(&[(1, 1000), (1, 1000)]);
    scene.node.set_rate(Rate::new(2_000_000));
    scene.finish(1000);
    scene.finish(1000);
    assert_eq!(untimely(&scene.log), []);
}

#[test]
fn deviation_is_no_failure() {
    let config = Config {
        thresholds: Threshold::ALL_BITS,
        t2_min_process_ns: 1 << 40,
        tm2_node_lower_bound_ns: 1 << 40,
        ..TIMED
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 1000), (1, 1000), (1, 1000)]));
    scene.now_ns += 10_000;
    let stress = scene.node.thresholds(scene.now_ns).stress;
    scene.finish(1000);
    let late = [(Cause::End, 1, 0, 10_000), (Cause::Start, 1, 1, 10_000)];
    assert_eq!(untimely(&scene.log), late);
    assert_eq!(scene.node.thresholds(scene.now_ns).stress, stress);
    assert_eq!(scene.log.tasks(EventKind::Late), []);
    assert_eq!(scene.log.tasks(EventKind::Early), []);
    // The plan that deals with its event deals with no failure: no time is measured.
    let dealt_seq = scene.log.next_seq();
    scene.swap_with(config, tasks(&[(1, 1, 1000), (1, 2, 1000)]), dealt_seq);
    assert_eq!(scene.node.measured_reschedule_time_ns(), None);
}

#[test]
fn nothing_is_compared_unless_it_is_configured() {
    assert_eq!(Config::DEFAULT.timeliness_ns, 0);
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.now_ns += 100_000;
    scene.finish(1000);
    scene.finish(1000);
    assert_eq!(untimely(&scene.log), []);
}

#[test]
fn nothing_is_planned_at_a_time_where_slots_float() {
    let config = Config {
        dispatch: Dispatch::Deadline as u64,
        ..TIMED
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 1000), (2, 1000)]));
    scene.now_ns += 100_000;
    scene.finish(1000);
    scene.finish(1000);
    assert_eq!(untimely(&scene.log), []);
}

#[test]
fn plan_that_follows_has_a_timetable_of_what_is_left() {
    let mut scene = timed(&[(1, 1000), (2, 1000)]);
    scene.run_as_told(600);
    // The new plan has the whole task, and gives the other process a task that has ended by then.
    let slots = [(1, 0, 1000), (2, 0, 1000), (1, 1, 1000), (2, 1, 1000)];
    scene.now_ns += 50_000;
    scene.swap_with(TIMED, tasks(&slots), 0);
    // Four hundred instructions are left of it.
    scene.finish(400);
    scene.finish(1000);
    assert_eq!(untimely(&scene.log), []);
    // 2/1 ends in the slot of 2/0: the planner does not know that yet.
    let p = scene.index(2);
    scene.node.end_task(p, scene.now_ns, &mut scene.log);
    let end_ns = scene.now_ns;
    let before = untimely(&scene.log).len();
    let slots = [
        (1, 0, 1000),
        (2, 0, 1000),
        (1, 1, 1000),
        (2, 1, 1000),
        (2, 2, 1000),
    ];
    scene.swap_with(TIMED, tasks(&slots), 0);
    // The slots of 1/0 and 2/0 pass in no time.
    assert_eq!((scene.granted(), scene.node.cursor()), (1, 2));
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    scene.finish(1101);
    assert_eq!(scene.now_ns, end_ns + 2101);
    assert_eq!(untimely(&scene.log)[before..], [(Cause::End, 2, 2, 101)]);
}

/// A task that was reported is reported again under another plan, by the times of that.
#[test]
fn plan_that_follows_reports_anew() {
    let mut scene = timed(&[(1, 1000), (1, 1000)]);
    scene.now_ns += 500;
    scene.finish(1000);
    let half = vec![(Cause::End, 1, 0, 500), (Cause::Start, 1, 1, 500)];
    assert_eq!(untimely(&scene.log), half);
    scene.run(300);
    scene.swap_with(TIMED, tasks(&[(1, 1, 1000)]), 0);
    scene.finish(900);
    assert_eq!(untimely(&scene.log)[2..], [(Cause::End, 1, 1, 200)]);
}

#[test]
fn change_of_the_configuration_makes_no_timetable() {
    let mut scene = Scene::new(&[(1, 1000), (1, 1000), (1, 1000)]);
    let refusal = scene.node.check_change(&TIMED).unwrap_err();
    assert_eq!(refusal.fault, Fault::NoTimetable);
    let refused = scene.node.configure(&TIMED, 0, &mut scene.log);
    assert_eq!(refused, Err(refusal));
    // What is there may be switched off, and on again.
    let mut scene = timed(&[(1, 1000), (1, 1000), (1, 1000)]);
    let off = Config {
        timeliness_ns: 0,
        ..TIMED
    };
    assert_eq!(scene.node.configure(&off, 0, &mut scene.log), Ok(1));
    scene.now_ns += 1000;
    scene.finish(1000);
    assert_eq!(untimely(&scene.log), []);
    assert_eq!(scene.node.configure(&TIMED, 0, &mut scene.log), Ok(1));
    scene.decide();
    scene.finish(1000);
    assert_eq!(untimely(&scene.log)[0], (Cause::End, 1, 1, 1000));
}

/// A process that was killed has ended no task at a time.
#[test]
fn killed_process_is_not_untimely() {
    let mut scene = timed(&[(1, 1000), (1, 1000)]);
    scene.run(100);
    scene.now_ns += 5000;
    scene.exit(1);
    assert_eq!(untimely(&scene.log), []);
}

/// A thread that is killed ends its task without a word of it, also where the task is one program.
#[test]
fn killed_task_is_not_untimely() {
    let mut scene = timed(&[(1, 1000), (2, 1000)]);
    scene.run(100);
    scene.now_ns += 5000;
    scene.node.die(0);
    scene.node.end_task(0, scene.now_ns, &mut scene.log);
    let ends = scene.log.of(EventKind::TaskEnded);
    assert_eq!((ends.len(), untimely(&scene.log)), (1, vec![]));
}

/// Planned gaps of messages are no part of the slots: nothing is compared with them.
#[test]
fn nothing_is_compared_where_messages_have_arrivals() {
    let cpu = Cpu {
        arrivals_ns: vec![40_000],
        ..text::net(&[(1, 1000), (2, 1000), (1, 1000)], &[(1, 1, 2, 0)])
    };
    let mut scene = Scene::ready(TIMED, text::plan_of(cpu));
    scene.finish(1000);
    scene.finish(3000);
    assert_eq!(untimely(&scene.log), []);
    let config = Config {
        timeliness_ns: 200,
        ..TIMED
    };
    assert_eq!(scene.node.configure(&config, 0, &mut scene.log), Ok(1));
}

/// The greatest plan overflows nothing.
#[test]
fn timetable_of_the_longest_slots_does_not_overflow() {
    let slots = vec![(1, 1 << 48); 20];
    let plan = text::plan(&slots);
    let mut node = Node::new(plan, TIMED, Rate::new(1), 1, 0).unwrap();
    node.set_presence(0, Presence::Ready);
    let mut log = Log::default();
    node.decide(u64::MAX - 1, &mut log);
    for _ in 0..20 {
        node.end_task(0, u64::MAX - 1, &mut log);
    }
    // The plan ends when the clock does, or earlier.
    assert_eq!(untimely(&log)[0].0, Cause::Start);
}
