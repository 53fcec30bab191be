// SPDX-License-Identifier: GPL-2.0

//! Plans that set stress, and plans under which it continues to fall (Leppert 2021, 6.2.3).

use std::vec::Vec;

use crate::{Config, StressCause, Threshold};

use super::scene::Scene;
use super::signals::on;
use super::swap::tasks;

/// Two tasks of each of two processes.
const SLOTS: [(u32, u32, u64); 4] = [(1, 0, 1000), (2, 0, 1000), (1, 1, 1000), (2, 1, 1000)];

/// Four points of stress, for four ticks of 100 µs.
fn config(cause: StressCause) -> Config {
    Config {
        stress_gain_ns: 100,
        stress_cause: cause as u64,
        ..on(&[Threshold::T2Task])
    }
}

/// Process 1 is too late by its first task when three points of stress are gone.
fn late(cause: StressCause) -> Scene {
    let mut scene = Scene::ready(config(cause), tasks(&SLOTS));
    scene.wait(300_000);
    scene.run_as_told(1600);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1501"]);
    assert_eq!(scene.stress(), 1);
    scene
}

impl Scene {
    fn stress(&self) -> u64 {
        self.node.thresholds(self.now_ns).stress
    }

    /// Stress after a plan with these slots, which deals with all failures or with none.
    fn stress_after(mut self, slots: &[(u32, u32, u64)], deals: bool) -> u64 {
        let config = *self.node.config();
        let dealt_seq = match self.log.signals().last() {
            Some(&(seq, _)) if deals => seq + 1,
            _ => 0,
        };
        self.swap_with(config, tasks(slots), dealt_seq);
        self.stress()
    }
}

/// The slots, with another length of one of them.
fn with(place: usize, length_insns: u64) -> Vec<(u32, u32, u64)> {
    let mut slots = SLOTS.to_vec();
    slots[place].2 = length_insns;
    slots
}

#[test]
fn every_plan_sets_stress_where_nothing_else_is_declared() {
    assert_eq!(Config::DEFAULT.stress_cause(), StressCause::Every);
    let late = || late(StressCause::Every);
    assert_eq!(late().stress_after(&SLOTS, true), 4);
    assert_eq!(late().stress_after(&with(0, 2000), true), 4);
}

#[test]
fn plan_with_the_same_lengths_leaves_stress_as_it_is() {
    let late = || late(StressCause::NewLengths);
    for deals in [false, true] {
        assert_eq!(late().stress_after(&SLOTS, deals), 1);
        // A length of the task that runs, of a later one, and of another process.
        for place in [0, 2, 3] {
            assert_eq!(late().stress_after(&with(place, 1001), deals), 4, "{place}");
        }
    }
    // The slots are in another order, and there are two more idle ones.
    let idle = crate::wire::IDLE;
    let none = crate::wire::NO_TASK;
    let moved = [
        (2, 0, 1000),
        (1, 0, 1000),
        (idle, none, 500),
        (2, 1, 1000),
        (idle, none, 500),
        (1, 1, 1000),
    ];
    assert_eq!(late().stress_after(&moved, true), 1);
    // A process that goes changes nothing for the other; a new one does.
    assert_eq!(late().stress_after(&[SLOTS[0], SLOTS[2]], true), 1);
    let more = [SLOTS.as_slice(), &[(3, 0, 1000)]].concat();
    assert_eq!(late().stress_after(&more, true), 4);
}

#[test]
fn stress_that_is_left_falls_as_before() {
    let mut scene = late(StressCause::NewLengths);
    let config = *scene.node.config();
    scene.swap_with(config, tasks(&SLOTS), 0);
    scene.wait(99_000);
    assert_eq!(scene.stress(), 0);
}

#[test]
fn only_lengths_of_what_failed_set_stress() {
    let late = || late(StressCause::FailedLengths);
    assert_eq!(late().stress_after(&with(0, 2000), true), 4);
    assert_eq!(late().stress_after(&with(2, 2000), true), 4);
    // The failure is not dealt with, or the lengths are those of another process.
    assert_eq!(late().stress_after(&with(0, 2000), false), 1);
    assert_eq!(late().stress_after(&with(3, 2000), true), 1);
    let more = [SLOTS.as_slice(), &[(3, 0, 1000)]].concat();
    assert_eq!(late().stress_after(&more, true), 1);
}

#[test]
fn failure_of_the_node_is_one_of_every_process() {
    let config = Config {
        thresholds: Threshold::T2Node as u64,
        t2_node_lateness_cap_permille: 1000,
        ..config(StressCause::FailedLengths)
    };
    let late = || {
        let mut scene = Scene::ready(config, tasks(&SLOTS));
        scene.wait(300_000);
        scene.run_as_told(1600);
        assert_eq!(scene.log.lines().len(), 1);
        scene
    };
    assert_eq!(late().stress_after(&with(3, 2000), true), 4);
    assert_eq!(late().stress_after(&SLOTS, true), 1);
}
