// SPDX-License-Identifier: GPL-2.0

//! Variants that the thesis considers and does not choose: idle slots for nobody and for preempted
//! tasks (3.2.3), t1 by the state of the node (3.1.2), the least progress (3.3.6), and constants of
//! tm2_task that mirror nothing (3.3.8).

use crate::wire::IDLE;
use crate::{Config, Grant, IdlePolicy, T1State, Threshold};

use super::scene::{Scene, CONFIG};
use super::signals::{buffered, on};
use super::text;
use super::AtOne;

fn idle(policy: IdlePolicy) -> Config {
    Config {
        idle_policy: policy as u64,
        ..CONFIG
    }
}

/// Process 1 is preempted in its slot, and an idle slot follows.
fn late(policy: IdlePolicy) -> Scene {
    let slots = [(1, 100), (IDLE, 100), (1, 100), (9, 1000)];
    let mut scene = Scene::ready(idle(policy), text::plan(&slots));
    scene.run(110);
    scene
}

#[test]
fn idle_slot_for_nobody_stays_idle() {
    let scene = late(IdlePolicy::Latest);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    let mut scene = late(IdlePolicy::Nobody);
    assert_eq!(scene.last.grant, None);
    assert_eq!(scene.node.cursor(), 1);
    scene.wait(100);
    // Its next slot is its own.
    assert_eq!((scene.granted(), scene.node.cursor()), (1, 2));
}

#[test]
fn only_preempted_tasks_fill_idle_slots() {
    // The task that was preempted ends in the idle slot; the next one of its process, whose
    // slot has passed, was not preempted.
    let slots = [(1, 100), (1, 100), (IDLE, 1000), (9, 1000)];
    let scene = |policy| {
        let mut scene = Scene::ready(idle(policy), text::plan(&slots));
        scene.run(110);
        scene.run(110);
        assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
        scene.finish(10);
        scene
    };
    let latest = scene(IdlePolicy::Latest);
    assert_eq!((latest.granted(), latest.node.cursor()), (1, 2));
    let preempted = scene(IdlePolicy::Preempted);
    assert_eq!((preempted.last.grant, preempted.node.cursor()), (None, 2));
}

/// t1 of the second slot, when process 1 has retired so much in the first.
fn second_t1_insns(state: T1State, retired_insns: u64) -> Option<u64> {
    let config = Config {
        t1_state: state as u64,
        sigma_t1_permille: 1400,
        no_preemption_ns: 10,
        ..on(&[Threshold::T1])
    };
    let slots = [(1, 1000), (2, 1000), (1, 1000), (2, 1000)];
    let mut scene = Scene::ready(config, text::plan(&slots));
    scene.finish(retired_insns);
    assert_eq!(scene.node.cursor(), 1);
    scene.node.slot_t1_insns()
}

#[test]
fn t1_shrinks_with_the_lateness_of_the_node() {
    assert_eq!(second_t1_insns(T1State::Ignored, 1050), Some(1400));
    assert_eq!(second_t1_insns(T1State::Lateness, 1000), Some(1400));
    assert_eq!(second_t1_insns(T1State::Lateness, 900), Some(1400));
    // t2_node is a tenth of what has begun: half of the way to it, and beyond it.
    assert_eq!(second_t1_insns(T1State::Lateness, 1050), Some(1250));
    assert_eq!(second_t1_insns(T1State::Lateness, 1399), Some(1100));
}

#[test]
fn t1_is_divided_by_the_load() {
    let config = |no_preemption_ns| Config {
        t1_state: T1State::Load as u64,
        sigma_t1_permille: 1400,
        no_preemption_ns,
        ..CONFIG
    };
    let t1_insns = |config: Config, active| {
        let policy = config.at_one();
        policy.t1_in_state_insns(1000, policy.t1_insns(1000), (0, 0), active)
    };
    for (active, expected) in [(0, 1400), (1, 1400), (2, 1200), (4, 1100), (100, 1010)] {
        assert_eq!(t1_insns(config(10), active), expected, "{active}");
    }
    assert_eq!(t1_insns(config(150), 4), 1150);
    assert_eq!(second_t1_insns(T1State::Load, 1000), Some(1400));
}

/// Slots and tasks of 1,000 under a policy that is strict, of which t1 and t2_task alone count.
fn strict() -> Config {
    Config {
        idle_policy: IdlePolicy::Strict as u64,
        ..on(&[Threshold::T1, Threshold::T2Task])
    }
}

#[test]
fn plan_without_tolerance_ends_slots_at_their_length() {
    let slots = [(1, 1000), (2, 1000), (IDLE, 1000), (9, 1000)];
    let mut scene = Scene::ready(strict(), text::plan(&slots));
    scene.run(1000);
    assert_eq!(
        (scene.granted(), scene.node.slot_t1_insns()),
        (1, Some(1001))
    );
    scene.run(1);
    assert_eq!((scene.granted(), scene.node.cursor()), (2, 1));
    scene.finish(1000);
    // The idle slot is the late process's, as under the policy of the thesis.
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    scene.run(1);
    assert!(scene.log.lines().is_empty());
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1003"]);
}

#[test]
fn thresholds_of_every_policy_are_in_order() {
    for policy in IdlePolicy::ALL {
        for lengths in [1, 2, 999, 1000, 1_000_000, 1 << 48] {
            let config = Config {
                idle_policy: policy as u64,
                ..Config::DEFAULT
            };
            let policy = config.at_one();
            let (t1_insns, t2_insns) = (policy.t1_insns(lengths), policy.t2_task_insns(lengths));
            assert!(lengths <= t1_insns && t1_insns < t2_insns, "{t1_insns}");
        }
    }
}

/// Process 1 is too late by its task in its first slot, and process 2 has a slot after it.
fn failed(suspends_failed: u64) -> Scene {
    let config = Config {
        suspends_failed,
        ..on(&[Threshold::T2Task])
    };
    let slots = [(1, 1000), (2, 1000), (1, 1000)];
    let mut scene = Scene::ready(config, text::plan(&slots));
    scene.run_as_told(1501);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1501"]);
    scene
}

#[test]
fn process_that_failed_waits_for_the_next_plan() {
    assert_eq!(failed(0).granted(), 1);
    let mut scene = failed(1);
    // Process 2 is not behind and has no slot yet.
    assert_eq!(scene.last.grant, None);
    // A plan lets it continue, whether or not it deals with the failure.
    for dealt_seq in [0, scene.log.next_seq()] {
        let config = *scene.node.config();
        let slots = [(1, 2000), (2, 1000), (1, 1000)];
        scene.swap_with(config, text::plan(&slots), dealt_seq);
        assert_eq!(scene.granted(), 1);
    }
}

#[test]
fn slot_of_a_suspended_process_is_filled() {
    let config = Config {
        suspends_failed: 1,
        ..on(&[Threshold::T1, Threshold::T2Preemptions])
    };
    let config = Config {
        max_preemptions: 2,
        ..config
    };
    // Process 1 is preempted twice and fails; its third slot goes to process 2, which is behind.
    let slots = [(1, 1000), (2, 100), (1, 1000), (1, 1000), (2, 1000)];
    let mut scene = Scene::ready(config, text::plan(&slots));
    scene.run(1100);
    assert_eq!(scene.granted(), 2);
    scene.run(110);
    scene.run(1100);
    assert_eq!(scene.log.lines(), ["late preemptions: 1.0 at 2200"]);
    assert_eq!(scene.node.cursor(), 3);
    assert_eq!(
        (scene.granted(), scene.last.reason),
        (2, Grant::BlockedSlot)
    );
}

#[test]
fn process_that_fails_when_it_is_granted_does_not_keep_the_cpu() {
    // Stress holds the failure back until the process has lost the CPU.
    let config = Config {
        suspends_failed: 1,
        stress_gain_ns: 1000,
        stress_reset: 4,
        nominal_tick_ns: 100_000,
        capacity_buffer_permille: 1000,
        t2_min_process_ns: 50,
        ..on(&[Threshold::T1, Threshold::T2Process])
    };
    let slots = [(1, 1000), (2, 2_000_000), (1, 1000), (1, 1000)];
    let mut scene = Scene::ready(config, text::plan(&slots));
    scene.run(1100);
    assert_eq!((scene.granted(), scene.log.lines().len()), (2, 0));
    scene.finish(2_000_000);
    while scene.last.again {
        scene.wait(0);
    }
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1100"]);
    assert_eq!(scene.last.grant, None);
}

#[test]
fn process_has_a_least_progress() {
    let config = |least_progress_permille| Config {
        least_progress_permille,
        t2_min_process_ns: 0,
        reschedule_time_ns: 0,
        ..CONFIG
    };
    let limit_insns = |least, retired_insns| {
        let progress = crate::Progress {
            begun_insns: 0,
            planned_insns: 1000,
            retired_insns,
            buffer_insns: 10_000,
        };
        config(least).at_one().t2_process_insns(&progress, 1, 0)
    };
    let whole_insns = limit_insns(0, 1000);
    assert!(whole_insns > 100);
    assert_eq!(limit_insns(0, 0), 0);
    assert_eq!(limit_insns(250, 0), whole_insns / 4);
    assert_eq!(limit_insns(250, 250), whole_insns / 4);
    assert_eq!(limit_insns(250, 500), whole_insns / 2);
    assert_eq!(limit_insns(1000, 0), whole_insns);
}

#[test]
fn signal_with_a_least_progress_comes_at_its_instruction() {
    // Without it the failure is at another place: the threshold is higher by then.
    let at_insns = |least_progress_permille| {
        let config = Config {
            least_progress_permille,
            t2_min_process_ns: 0,
            ..on(&[Threshold::T2Process])
        };
        let mut scene = buffered(config, &[(1, 100), (9, 10_000)], &[20_000, 0]);
        scene.run_as_told(9000);
        let (_, event) = scene.log.signals()[0];
        // It is the first instruction beyond the limit.
        let limit_insns = event.value;
        assert_eq!(event.lateness_insns as u64, limit_insns + 1);
        limit_insns
    };
    assert!(at_insns(0) <= at_insns(1000));
}

#[test]
fn constants_of_tm2_are_declared_or_mirrored() {
    let base = Config {
        sigma_t2_permille: 1500,
        t2_spacer_ns: 20,
        t2_task_signaling_limit_ns: 1000,
        preemption_limit_ns: 10,
        no_preemption_ns: 10,
        ..CONFIG
    };
    let tm2_insns = |config: Config, length| config.at_one().tm2_task_insns(length);
    assert_eq!(tm2_insns(base, 1000), 500);
    let sigma = Config {
        sigma_tm2_permille: 800,
        ..base
    };
    assert_eq!(tm2_insns(sigma, 1000), 800);
    let spacer = Config {
        tm2_spacer_ns: 300,
        ..sigma
    };
    assert_eq!(tm2_insns(spacer, 1000), 700);
    let limit = Config {
        tm2_task_signaling_limit_ns: 5000,
        ..base
    };
    assert_eq!(tm2_insns(base, 10_000), 9000);
    assert_eq!(tm2_insns(limit, 10_000), 5000);
    // t2_task stays as it was.
    assert_eq!(
        limit.at_one().t2_task_insns(10_000),
        base.at_one().t2_task_insns(10_000)
    );
}
