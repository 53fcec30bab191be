// SPDX-License-Identifier: GPL-2.0

//! Measured times of rescheduling (Leppert 2021, 3.3.3), and information that a plan has dealt
//! with (6.2.3).

use std::vec::Vec;

use crate::{Config, StressCause, Threshold};

use super::scene::Scene;
use super::signals::on;
use super::swap::tasks;

/// Three tasks of each of two processes.
const SLOTS: [(u32, u32, u64); 6] = [
    (1, 0, 1000),
    (2, 0, 1000),
    (1, 1, 1000),
    (2, 1, 1000),
    (1, 2, 1000),
    (2, 2, 1000),
];

impl Scene {
    /// Swaps in the same plan, which deals with all events so far, or with none.
    fn answer(&mut self, deals: bool) {
        let config = *self.node.config();
        let dealt_seq = if deals { self.log.next_seq() } else { 0 };
        self.swap_with(config, tasks(&SLOTS), dealt_seq);
    }

    /// Makes the running task late, and lets time pass.
    fn fail_and_wait(&mut self, wait_ns: u64) {
        self.run_as_told(1600);
        self.wait(wait_ns);
    }
}

fn start(measured: u64) -> Scene {
    let config = Config {
        reschedule_time_measured: measured,
        reschedule_time_ns: 77,
        ..on(&[Threshold::T2Task])
    };
    Scene::ready(config, tasks(&SLOTS))
}

#[test]
fn time_from_a_failure_to_its_plan_is_measured() {
    let mut scene = start(1);
    assert_eq!(scene.node.measured_reschedule_time_ns(), None);
    assert_eq!(scene.node.policy().reschedule_time_insns, 77);
    scene.run_as_told(1500);
    scene.run(1);
    let failed_ns = scene.log.signals()[0].1.time_ns;
    scene.wait(5000);
    scene.answer(true);
    let first_ns = scene.now_ns - failed_ns;
    assert!(first_ns >= 5000);
    assert_eq!(scene.node.measured_reschedule_time_ns(), Some(first_ns));
    // The rate of the scene is an instruction in a nanosecond.
    assert_eq!(scene.node.policy().reschedule_time_insns, first_ns);
    // The average with a second one.
    scene.finish(0);
    scene.finish(0);
    scene.run_as_told(1500);
    scene.run(1);
    let failed_ns = scene.log.signals().last().unwrap().1.time_ns;
    scene.wait(9000);
    scene.answer(true);
    let mean_ns = (first_ns + scene.now_ns - failed_ns) / 2;
    assert_eq!(scene.node.measured_reschedule_time_ns(), Some(mean_ns));
}

#[test]
fn measured_time_changes_no_threshold_unless_it_is_declared() {
    let mut scene = start(0);
    scene.fail_and_wait(5000);
    scene.answer(true);
    assert!(scene.node.measured_reschedule_time_ns().is_some());
    assert_eq!(scene.node.policy().reschedule_time_insns, 77);
}

#[test]
fn plan_that_deals_with_nothing_ends_no_measurement() {
    let mut scene = start(1);
    scene.fail_and_wait(5000);
    let failed_ns = scene.log.signals()[0].1.time_ns;
    scene.answer(false);
    assert_eq!(scene.node.measured_reschedule_time_ns(), None);
    scene.wait(3000);
    scene.answer(true);
    let since_ns = scene.now_ns - failed_ns;
    assert_eq!(scene.node.measured_reschedule_time_ns(), Some(since_ns));
}

#[test]
fn time_between_plans_is_measured() {
    let mut scene = start(0);
    assert_eq!(scene.node.plan_interval_ns(), None);
    for wait_ns in [1000, 3000] {
        scene.wait(wait_ns);
        scene.answer(false);
    }
    assert_eq!(scene.node.plan_interval_ns(), Some(2000));
    // Of more than eight, recent ones are the greater part.
    for _ in 0..100 {
        scene.wait(10_000);
        scene.answer(false);
    }
    assert!(scene.node.plan_interval_ns().unwrap() > 9990);
}

/// The stress right after each of some plans, which come after these times.
fn stress_after_plans(volatile_interval_ns: u64, cause: StressCause, waits_ns: &[u64]) -> Vec<u64> {
    let config = Config {
        volatile_interval_ns,
        stress_reset: 40,
        stress_gain_ns: 1,
        nominal_tick_ns: 1_000_000_000,
        stress_cause: cause as u64,
        ..on(&[Threshold::T2Task])
    };
    let mut scene = Scene::ready(config, tasks(&SLOTS));
    let mut stress = Vec::from([scene.node.thresholds(scene.now_ns).stress]);
    for &wait_ns in waits_ns {
        scene.wait(wait_ns);
        scene.answer(false);
        stress.push(scene.node.thresholds(scene.now_ns).stress);
    }
    stress
}

#[test]
fn plans_that_come_often_set_more_stress() {
    let stress =
        |volatile_ns, waits_ns| stress_after_plans(volatile_ns, StressCause::Every, waits_ns);
    assert_eq!(Config::DEFAULT.volatile_interval_ns, 0);
    assert_eq!(stress(0, &[1000, 1000]), [40; 3]);
    // As often as is declared, or seldom: the state is not volatile.
    assert_eq!(stress(1000, &[1000, 2000]), [40; 3]);
    // A quarter, half and all of STRESS_RESET more: the average counts.
    assert_eq!(stress(1000, &[750, 250]), [40, 50, 60]);
    assert_eq!(stress(1000, &[0, 0]), [40, 80, 80]);
    // The state calms down.
    assert_eq!(stress(1000, &[0, 2000]), [40, 80, 40]);
    // A plan with the same lengths sets no stress, whatever the state is.
    assert_eq!(
        stress_after_plans(1000, StressCause::NewLengths, &[0, 0]),
        [40; 3]
    );
}

#[test]
fn stress_of_a_volatile_state_raises_t2_process() {
    let config = Config {
        volatile_interval_ns: 1000,
        stress_reset: 40,
        stress_gain_ns: 10,
        nominal_tick_ns: 1_000_000_000,
        t2_min_process_ns: 0,
        reschedule_time_ns: 0,
        ..on(&[Threshold::T2Process])
    };
    let mut scene = Scene::ready(config, tasks(&SLOTS));
    let before_insns = scene.node.process_limit_insns(0, scene.now_ns);
    scene.answer(false);
    let after_insns = scene.node.process_limit_insns(0, scene.now_ns);
    assert_eq!(after_insns - before_insns, 400);
}

/// Process 1 is late by 26 of 100, which was reported as a quarter.
fn informed(info_is_dealt: u64) -> Scene {
    let config = Config {
        info_is_dealt,
        ..on(&[Threshold::T2Process, Threshold::Info])
    };
    let mut scene = Scene::ready(config, tasks(&SLOTS));
    scene.run_as_told(1026);
    assert_eq!(levels(&scene), [25]);
    scene
}

fn levels(scene: &Scene) -> std::vec::Vec<u32> {
    let signals = scene.log.signals();
    signals.iter().map(|(_, it)| it.level_percent).collect()
}

#[test]
fn information_that_is_dealt_with_is_not_told_again() {
    let mut scene = informed(1);
    scene.answer(true);
    scene.run_as_told(20);
    assert_eq!(levels(&scene), [25]);
    // The next level is, and the failure.
    scene.run_as_told(10);
    assert_eq!(levels(&scene), [25, 50]);
    scene.answer(true);
    scene.answer(true);
    scene.run_as_told(10);
    assert_eq!(levels(&scene), [25, 50]);
    scene.run_as_told(50);
    assert_eq!(levels(&scene), [25, 50, 75, 100]);
}

#[test]
fn information_that_is_not_dealt_with_is_told_again() {
    // The plan does not deal with it, or the configuration does not want that.
    for (info_is_dealt, deals) in [(1, false), (0, true)] {
        let mut scene = informed(info_is_dealt);
        scene.answer(deals);
        scene.run_as_told(1);
        assert_eq!(levels(&scene), [25, 25]);
    }
}

#[test]
fn failure_is_told_again_though_its_information_is_dealt_with() {
    let mut scene = informed(1);
    let dealt_seq = scene.log.next_seq();
    scene.run_as_told(100);
    assert_eq!(levels(&scene), [25, 50, 75, 100]);
    // The plan was made when a quarter was known.
    let config = *scene.node.config();
    scene.swap_with(config, tasks(&SLOTS), dealt_seq);
    scene.run_as_told(1);
    assert_eq!(levels(&scene), [25, 50, 75, 100, 100]);
}
