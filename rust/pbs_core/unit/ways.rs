// SPDX-License-Identifier: GPL-2.0

//! Treatment of a task that is preempted again (Leppert 2021, 3.2.3): the example of the thesis, a
//! task of 1000 that is preempted after 1020, is pushed into a slot of 5, and is a failure not
//! before 1200.

use std::iter;
use std::vec::Vec;

use crate::{Config, EventKind, PreemptionWay, Threshold};

use super::scene::{Scene, CONFIG};
use super::text;

fn config(way: PreemptionWay) -> Config {
    Config {
        sigma_t1_permille: 1020,
        no_preemption_ns: 0,
        sigma_t2_permille: 1200,
        t2_spacer_ns: 1,
        max_preemptions: 4,
        thresholds: Threshold::T1 as u64
            | Threshold::T2Task as u64
            | Threshold::T2Preemptions as u64,
        preemption_way: way as u64,
        ..CONFIG
    }
}

/// A slot of 1000 and so many of 5, with one of another process between each two.
fn stacking(config: Config, short: usize) -> Scene {
    let mut slots = Vec::from([(1, 1000)]);
    slots.extend(iter::repeat_n([(2, 50), (1, 5)], short).flatten());
    slots.push((2, 50));
    Scene::ready(config, text::plan(&slots))
}

/// Process 1 retires `insns` as its first task, as far as it may; process 2 runs as planned.
/// Returns the instructions that 1 retired in each of its slots.
fn parts(scene: &mut Scene, mut insns: u64) -> Vec<u64> {
    let mut parts = Vec::new();
    while insns != 0 {
        if scene.granted() == 2 {
            scene.finish(50);
            continue;
        }
        let slot = scene.node.cursor();
        let mut part = 0;
        while insns != 0 && scene.granted() == 1 && scene.node.cursor() == slot {
            let step_insns = scene.last.until_insns.unwrap_or(insns).min(insns);
            part += step_insns;
            insns -= step_insns;
            if insns == 0 {
                scene.finish(step_insns);
            } else {
                scene.run(step_insns);
            }
        }
        parts.push(part);
    }
    parts
}

/// Preemptions with which the first task ended.
fn preemptions(scene: &Scene) -> u32 {
    let ended = scene.log.of(EventKind::TaskEnded);
    let first = ended.iter().find(|event| event.process == 1).unwrap();
    first.preemptions
}

#[test]
fn stacked_from_slot_to_slot() {
    for way in [
        PreemptionWay::Capped,
        PreemptionWay::NextSlot,
        PreemptionWay::EverySlot,
    ] {
        let mut scene = stacking(config(way), 20);
        let mut expected = Vec::from([1020]);
        // 80 are left, 5 in each slot.
        expected.extend([5; 16]);
        assert_eq!(parts(&mut scene, 1100), expected);
        assert_eq!(preemptions(&scene), 16);
    }
}

#[test]
fn no_preemption_makes_room_in_short_slots() {
    let config = Config {
        no_preemption_ns: 20,
        t2_spacer_ns: 21,
        ..config(PreemptionWay::Capped)
    };
    let mut scene = stacking(config, 20);
    assert_eq!(parts(&mut scene, 1100), [1020, 25, 25, 25, 5]);
    assert_eq!(preemptions(&scene), 4);
}

#[test]
fn preempted_once_it_goes_on_to_its_end() {
    let mut scene = stacking(config(PreemptionWay::Once), 20);
    assert_eq!(parts(&mut scene, 1100), [1020, 80]);
    assert_eq!(preemptions(&scene), 1);
    assert_eq!(scene.log.lines(), [""; 0]);
    // The slot is used up: the task that it was for is pushed along, uncharged.
    let preempted = scene.log.of(EventKind::Preempted);
    assert_eq!(preempted.len(), 2);
    assert_eq!((preempted[1].task, preempted[1].value), (1, 5));
    assert_eq!(preempted[1].preemptions, 0);
}

#[test]
fn preempted_once_it_goes_on_to_t2() {
    let mut scene = stacking(config(PreemptionWay::Once), 20);
    // In the slot that it was pushed into it is reported to be beyond t2, and preempted.
    assert_eq!(parts(&mut scene, 1300)[..4], [1020, 181, 5, 5]);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1201"]);
    assert_eq!(scene.log.of(EventKind::Preempted)[1].value, 181);
}

#[test]
fn who_is_spared_gives_back_what_it_owes() {
    let mut scene = stacking(config(PreemptionWay::Once), 20);
    scene.run(1020);
    scene.node.owe(0, 3);
    scene.finish(50);
    assert_eq!((scene.granted(), scene.last.until_insns), (1, Some(178)));
}

#[test]
fn who_ends_in_time_leaves_the_slot_its_t1() {
    // It needs two instructions more, and three are left of the slot.
    let mut scene = stacking(config(PreemptionWay::Once), 20);
    assert_eq!(parts(&mut scene, 1022), [1020, 2]);
    assert_eq!((scene.granted(), scene.last.until_insns), (1, Some(3)));
    assert_eq!(scene.node.slot_t1_insns(), Some(5));
}

#[test]
fn ceiling_leaves_room_for_who_is_preempted_once() {
    for (way, room_insns) in [(PreemptionWay::Once, 181), (PreemptionWay::Capped, 5)] {
        let mut scene = stacking(config(way), 20);
        scene.run(1020);
        scene.finish(50);
        assert_eq!(scene.granted(), 1);
        let ceiling_ns = 2 * room_insns + 1000;
        assert_eq!(scene.last.until_ns, Some(scene.now_ns + ceiling_ns));
    }
}

#[test]
fn which_preemption_is_a_failure() {
    for (way, told) in [
        (PreemptionWay::Capped, Some((4, 1035))),
        (PreemptionWay::NextSlot, Some((2, 1025))),
        (PreemptionWay::EverySlot, None),
        (PreemptionWay::Once, None),
    ] {
        let mut scene = stacking(config(way), 20);
        parts(&mut scene, 1100);
        let late = scene.log.of(EventKind::Late);
        let got = late.first().map(|event| (event.value, event.retired_insns));
        assert_eq!(got, told, "{}", way.name());
        assert_eq!(late.len(), usize::from(told.is_some()));
    }
}

#[test]
fn t1_that_is_off_or_spares_a_slot_preempts_nobody() {
    for way in PreemptionWay::ALL {
        let off = Config {
            thresholds: 0,
            ..config(way)
        };
        let mut scene = stacking(off, 3);
        assert_eq!(parts(&mut scene, 1100), [1100]);
        let spared = Config {
            t1_spares_last_slot: 1,
            ..config(way)
        };
        let mut scene = stacking(spared, 1);
        assert_eq!(parts(&mut scene, 1500), [1020, 480]);
    }
}
