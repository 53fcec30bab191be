// SPDX-License-Identifier: GPL-2.0

//! Accounts, idle time and dealing under plans that follow each other.

use std::vec::Vec;

use crate::{Config, Node, Presence, Threshold};

use super::scene::{Scene, CONFIG, RATE};
use super::signals::on;
use super::swap::tasks;

fn idle_config() -> Config {
    Config {
        tm2_node_lower_bound_ns: 400,
        tm2_node_earliness_cap_permille: 0,
        idle_is_lateness: 1,
        ..on(&[Threshold::Tm2Node])
    }
}

/// Three tasks for each of two processes.
const SLOTS: [(u32, u32, u64); 6] = [
    (1, 0, 1000),
    (2, 0, 1000),
    (1, 1, 1000),
    (2, 1, 1000),
    (1, 2, 1000),
    (2, 2, 1000),
];

#[test]
fn idle_time_counts_only_under_a_plan_that_has_it() {
    let mut scene = Scene::ready(idle_config(), tasks(&SLOTS));
    scene.finish(600);
    scene.set(2, Presence::Blocked);
    scene.wait(300);
    scene.set(2, Presence::Ready);
    // -400, 300 idle.
    let off = Config {
        idle_is_lateness: 0,
        ..idle_config()
    };
    scene.swap_with(off, tasks(&SLOTS), 0);
    scene.finish(450);
    // -950 (two active: limit -800): 1.. must be reported, as idle time does not count.
    assert_eq!(scene.node.lateness_insns(), -950);
    assert_eq!(scene.log.lines().len(), 1, "{:?}", scene.log.lines());
}

#[test]
fn idle_time_of_a_run_does_not_count_in_the_next() {
    let slots = [(1, 0, 1000), (2, 0, 1000), (1, 1, 1000)];
    let mut scene = Scene::ready(idle_config(), tasks(&slots));
    scene.finish(700); // -300
    scene.set(2, Presence::Blocked);
    scene.wait(300); // idle 300
    scene.set(2, Presence::Ready);
    scene.finish(1000);
    scene.finish(1000);
    assert!(scene.node.ended());
    scene.swap_with(idle_config(), tasks(&slots), 0);
    scene.node.set_presence(0, Presence::Ready);
    scene.node.set_presence(1, Presence::Ready);
    scene.decide();
    scene.finish(500); // -500 of -400: must be told
    assert_eq!(scene.node.lateness_insns(), -500);
    assert_eq!(scene.log.lines().len(), 1, "{:?}", scene.log.lines());
}

#[test]
fn idle_time_ends_with_the_earliness_that_it_made_up_for() {
    let slots = [
        (1, 0, 1000),
        (2, 0, 1000),
        (1, 1, 1000),
        (1, 2, 1000),
        (1, 3, 1000),
        (2, 1, 1000),
    ];
    let mut out = Vec::new();
    for touch in [false, true] {
        let mut scene = Scene::ready(idle_config(), tasks(&slots));
        scene.finish(600); // -400
        scene.set(2, Presence::Blocked);
        scene.wait(300); // 300 idle
        scene.set(2, Presence::Ready);
        scene.finish(1000);
        scene.finish(1400); // back in step
        assert_eq!(scene.node.lateness_insns(), 0);
        if touch {
            // A wait of no time at all
            scene.set(1, Presence::Blocked);
            scene.set(1, Presence::Ready);
        }
        scene.finish(100); // -900 of -800
        assert_eq!(scene.node.lateness_insns(), -900);
        out.push(scene.log.lines());
    }
    assert_eq!(out[0], out[1]);
}

#[test]
fn process_that_is_dealt_with_in_its_running_task_begins_at_nothing() {
    let mut scene = Scene::ready(on(&[Threshold::T2Process]), tasks(&SLOTS));
    scene.run_as_told(2000);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1101"]);
    for _ in 0..3 {
        let n = scene.log.0.len() as u64;
        let config = *scene.node.config();
        scene.swap_with(config, tasks(&SLOTS), n);
    }
    assert_eq!(scene.node.process_lateness_insns(0), 0);
}

#[test]
fn failure_of_the_node_is_not_dealt_with_in_the_next_run() {
    let slots = [(1, 0, 1000), (2, 0, 1000), (1, 1, 1000), (2, 1, 1000)];
    let mut scene = Scene::ready(on(&[Threshold::T2Node]), tasks(&slots));
    scene.finish(1080);
    scene.finish(1121);
    assert_eq!(scene.log.lines(), ["late node: 2.0 at 1121"]);
    scene.finish(1000);
    scene.finish(1000);
    assert!(scene.node.ended());
    let config = *scene.node.config();
    scene.swap_with(config, tasks(&slots), 0);
    scene.node.set_presence(0, Presence::Ready);
    scene.node.set_presence(1, Presence::Ready);
    scene.decide();
    scene.finish(1080);
    let n = scene.log.0.len() as u64;
    assert_eq!(scene.log.lines().len(), 1);
    // A third plan whose planner has read all events.
    scene.swap_with(config, tasks(&slots), n);
    assert_eq!(scene.node.process_lateness_insns(0), 80);
}

#[test]
fn lateness_of_a_task_that_the_new_plan_leaves_out_stays() {
    let mut scene = Scene::ready(on(&[Threshold::T2Process]), tasks(&SLOTS));
    scene.run_as_told(5000);
    let config = *scene.node.config();
    scene.swap_with(config, tasks(&[(1, 1, 1000), (2, 0, 1000)]), 0);
    assert_eq!(scene.node.process_lateness_insns(0), 4000);
    assert_eq!(scene.log.lines().len(), 1);
}

#[test]
fn answer_for_a_process_that_ended_last_is_refused() {
    let mut scene = Scene::ready(
        on(&[Threshold::T2Process]),
        tasks(&[(1, 0, 1000), (2, 0, 1000)]),
    );
    scene.finish(1000);
    let answer = Node::new(tasks(&[(2, 0, 1500)]), CONFIG, RATE, 9, 0).unwrap();
    assert_eq!(answer.check_over(&scene.node, 1), Ok(()));
    // 2.0 ends, and with it the plan.
    scene.finish(1000);
    assert!(scene.node.ended());
    assert!(answer.check_over(&scene.node, 1).is_err());
    // The same plan as a new run.
    assert_eq!(answer.check_over(&scene.node, 0), Ok(()));
}

#[test]
fn process_that_ends_before_its_answer_comes_is_done() {
    let mut scene = Scene::ready(
        on(&[Threshold::T2Process]),
        tasks(&[(1, 0, 1000), (2, 0, 1000)]),
    );
    scene.finish(1000);
    let mut new = Node::new(tasks(&[(2, 0, 1500)]), CONFIG, RATE, 9, 0).unwrap();
    new.check_over(&scene.node, 1).unwrap();
    scene.finish(1000);
    new.begin(Some(&scene.node), 1, scene.now_ns);
    assert!(new.process(0).unwrap().done);
}

#[test]
fn dealing_lasts() {
    let mut scene = Scene::ready(on(&[Threshold::T2Task]), tasks(&SLOTS));
    scene.run_as_told(1600);
    let n = scene.log.0.len() as u64;
    let config = *scene.node.config();
    scene.swap_with(config, tasks(&SLOTS), n);
    assert_eq!(scene.log.lines().len(), 1);
    scene.swap_with(config, tasks(&SLOTS), 0);
    assert_eq!(scene.log.lines().len(), 1, "{:?}", scene.log.lines());
}

#[test]
fn process_that_waits_is_not_preempted() {
    let config = Config {
        max_preemptions: 2,
        ceiling_extra_ns: 1000,
        ..on(&[Threshold::T1, Threshold::T2Preemptions])
    };
    let mut scene = Scene::ready(
        config,
        tasks(&[(1, 0, 1000), (1, 1, 1000), (1, 2, 1000), (2, 0, 1000)]),
    );
    scene.run(1050); // late, not preempted
    scene.set(1, Presence::Blocked);
    scene.wait(10_000);
    scene.wait(10_000);
    assert!(scene.log.lines().is_empty());
}

#[test]
fn killed_process_is_not_early() {
    let mut scene = Scene::ready(on(&[Threshold::Tm2Task, Threshold::Tm2Node]), tasks(&SLOTS));
    scene.run(10);
    scene.exit(1);
    assert!(scene.log.lines().is_empty());
}
