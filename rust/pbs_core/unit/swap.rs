// SPDX-License-Identifier: GPL-2.0

//! A new plan while one runs.

use std::vec;

use crate::wire::{IDLE, NO_TASK};
use crate::{EventKind, Grant, Node, Plan, Presence, StdMemory};

use super::scene::{Scene, CONFIG, RATE};
use super::text::{self, Cpu};

impl Scene {
    fn swap(&mut self, plan: Plan<StdMemory>) {
        self.swap_with(CONFIG, plan, 0);
    }
}

/// A plan with slots (process, task, length).
pub(super) fn tasks(slots: &[(u32, u32, u64)]) -> Plan<StdMemory> {
    let mut processes = vec![];
    for &(process, _, _) in slots {
        if process != IDLE && !processes.contains(&(process, 0)) {
            processes.push((process, 0));
        }
    }
    processes.sort_unstable();
    let slots = slots
        .iter()
        .map(|&(process, task, length)| (length, process, task));
    text::plan_of(Cpu {
        cpu: 0,
        processes,
        slots: slots.collect(),
        edges: vec![],
        deadlines: vec![],
        arrivals_ns: vec![],
    })
}

#[test]
fn running_task_keeps_its_counts() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000), (2, 1000)]);
    scene.run(1100);
    scene.finish(950);
    assert_eq!(scene.granted(), 1);
    scene.node.memory(0, 7000, 70);
    scene.run(50);
    // Task 0 of process 1 has 1150 of 1000 and one preemption.
    scene.swap(tasks(&[(3, 0, 500), (1, 0, 400), (1, 1, 700), (2, 1, 800)]));
    let info = scene.node.process(0).unwrap();
    assert_eq!((info.id, info.task, info.planned_insns), (1, 0, 400));
    assert_eq!((info.retired_insns, info.preemptions), (1150, 1));
    assert_eq!((info.task_peak_vm_bytes, info.peak_rss_bytes), (7000, 70));
    let info = scene.node.process(1).unwrap();
    assert_eq!((info.id, info.task, info.retired_insns), (2, 1, 0));
    assert_eq!(info.lateness_insns, -50);
    assert_eq!(info.presence, Presence::Ready);
    // The new process is absent; process 1 was behind, and still is.
    assert_eq!(
        (scene.granted(), scene.last.reason),
        (1, Grant::BlockedSlot)
    );
    assert_eq!(scene.log.tasks(EventKind::Absent), [(3, 0)]);
    scene.wait(2000);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::Slot));
    assert_eq!(scene.last.until_insns, Some(440));
    assert_eq!(scene.node.counts().get(EventKind::Preempted), 1);
}

#[test]
fn task_that_the_new_plan_leaves_out_is_left() {
    let mut scene = Scene::new(&[(1, 1000), (1, 1000), (2, 1000)]);
    scene.run(400);
    scene.swap(tasks(&[(1, 1, 300), (1, 5, 300), (2, 7, 10)]));
    let info = scene.node.process(0).unwrap();
    assert_eq!((info.task, info.retired_insns), (1, 0));
    let info = scene.node.process(1).unwrap();
    assert_eq!((info.task, info.planned_insns), (7, 10));
    // Tasks before the current one are done: process 1 continues with 5.
    scene.finish(300);
    scene.swap(tasks(&[(1, 0, 300), (1, 1, 300), (1, 5, 300), (2, 7, 10)]));
    assert_eq!(scene.node.process(0).unwrap().task, 5);
    // Its slots for tasks that are done are over at once.
    assert_eq!((scene.granted(), scene.node.cursor()), (1, 2));
}

#[test]
fn process_without_tasks_in_the_new_plan_is_done() {
    let mut scene = Scene::new(&[(1, 1000), (1, 1000), (2, 1000)]);
    scene.finish(1000);
    scene.swap(tasks(&[(1, 0, 1000), (2, 0, 1000)]));
    assert!(scene.node.process(0).unwrap().done);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.node.unfinished(), 1);
}

#[test]
fn done_process_goes_on_with_tasks_that_are_new() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.finish(900);
    scene.swap(tasks(&[(1, 0, 1000), (1, 1, 1000), (2, 0, 1000)]));
    let info = scene.node.process(0).unwrap();
    assert_eq!(
        (info.task, info.done, info.lateness_insns),
        (1, false, -100)
    );
}

#[test]
fn dead_process_is_absent_with_its_rest() {
    let mut scene = Scene::new(&[(1, 1000), (1, 1000), (1, 1000), (2, 1000)]);
    scene.run(500);
    scene.exit(1);
    assert_eq!(scene.granted(), 2);
    scene.swap(tasks(&[(1, 0, 10), (1, 1, 10), (1, 2, 10), (2, 0, 1000)]));
    let info = scene.node.process(0).unwrap();
    assert_eq!((info.presence, info.task), (Presence::Absent, 1));
    assert!(!info.done);
}

#[test]
fn ended_plan_can_be_run_again() {
    let slots = [(1, 0, 1000), (2, 0, 1000), (1, 1, 1000)];
    let mut scene = Scene::absent(CONFIG, tasks(&slots));
    for _ in 0..2 {
        for id in [1, 2] {
            scene.set(id, Presence::Ready);
        }
        for length in [1000, 900, 800] {
            scene.finish(length);
        }
        assert!(scene.node.ended());
        assert_eq!(scene.node.process_lateness_insns(0), -200);
        for id in [1, 2] {
            scene.exit(id);
        }
        scene.swap(tasks(&slots));
    }
    let order = [(1, 0), (2, 0), (1, 1), (1, 0), (2, 0), (1, 1)];
    assert_eq!(scene.log.tasks(EventKind::TaskEnded), order);
    assert_eq!(scene.node.process(0).unwrap().task, 0);
    assert_ne!(scene.node.process(0).unwrap().task, NO_TASK);
}

#[test]
fn plans_in_quick_succession_leave_unallocated_time() {
    let config = crate::Config {
        window_period_ns: 100_000_000,
        window_unallocated_ns: 5_000_000,
        ..CONFIG
    };
    let plan = || text::plan(&[(1, 1 << 40)]);
    let mut scene = Scene::absent(config, plan());
    scene.set(1, Presence::Ready);
    let mut unallocated_ms = 0;
    for _ in 0..1000 {
        scene.wait(1_000_000);
        unallocated_ms += u32::from(scene.last.unallocated);
        let mut node = Node::new(plan(), config, RATE, 8, scene.now_ns).unwrap();
        node.begin(Some(&scene.node), 0, scene.now_ns);
        scene.node = node;
        scene.decide();
    }
    assert_eq!(unallocated_ms, 50);
}

/// Tasks whose slots passed under the plan before fill gaps before their new slots, and no other
/// tasks do.
#[test]
fn task_that_was_behind_fills_gaps_under_the_next_plan() {
    let slots = [(1, 1000), (1, 500), (1, 400), (2, 1000), (1, 300)];
    let mut scene = Scene::new(&slots);
    // Task 0 of process 1 takes its first three slots, and does not end.
    scene.run_as_told(1000);
    while scene.granted() == 1 {
        scene.run_as_told(100);
    }
    assert_eq!((scene.granted(), scene.node.cursor()), (2, 3));
    let next = [
        (IDLE, 900),
        (2, 1000),
        (1, 1000),
        (1, 500),
        (1, 400),
        (1, 300),
    ];
    let plan = || text::plan(&next);
    scene.swap(plan());
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    scene.finish(50);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    // Another plan in between changes nothing.
    scene.swap(text::plan(&next));
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    scene.finish(50);
    scene.finish(50);
    // The slot of the last task had not passed.
    assert_eq!(scene.granted(), IDLE);
    scene.wait(900);
    assert_eq!((scene.granted(), scene.last.reason), (2, Grant::Slot));
    scene.finish(1000);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::Slot));
}
