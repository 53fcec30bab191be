// SPDX-License-Identifier: GPL-2.0

//! Snapshots of a node, from which the same node continues.

use std::string::ToString;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::IDLE;
use crate::{
    Config, Dispatch, EventKind, IdlePolicy, Node, Plan, Presence, Replay, SnapshotError,
    StdMemory, Threshold,
};

use super::fuzz::{part, plan, Part};
use super::random::cases;
use super::record::{begun, told, Recorded};
use super::scene::{Scene, CONFIG};
use super::text::{self, Cpu};

/// The words of a snapshot.
fn saved(node: &Node<StdMemory>) -> Vec<u64> {
    let mut words = Vec::new();
    node.save(|word| words.push(word));
    words
}

/// The plan of a node that is recorded.
fn plan_of(recorded: &Recorded) -> Plan<StdMemory> {
    let (part, _) = recorded.plans.last().unwrap();
    plan(part)
}

fn run(first: &Part, all: Vec<super::record::Told>) -> Recorded {
    let mut recorded = Recorded::new(first);
    for told in all {
        recorded.tell(told);
    }
    recorded
}

proptest! {
    #![proptest_config(cases(400))]

    /// Any node continues from its snapshot, event for event, under every policy and over later
    /// plans.
    #[test]
    fn a_restored_node_continues_alike(
        first in part(),
        before in vec(told(), 0..120),
        after in vec(told(), 1..120),
    ) {
        let mut recorded = run(&first, before);
        let words = saved(&recorded.node);
        prop_assert!(words.len() <= recorded.node.most_words());
        recorded.node.check_words();
        let config = *recorded.node.config();
        let restored = Node::restore(plan_of(&recorded), config, &words);
        let restored = restored.map_err(|error| TestCaseError::fail(error.to_string()))?;
        restored.check_same(&recorded.node);
        restored.check_invariants();
        prop_assert_eq!(&saved(&restored), &words);

        recorded.node.tap_mut().0 = Some(Vec::new());
        let events_before = recorded.log.0.len();
        for told in after {
            recorded.tell(told);
        }
        let inputs = recorded.inputs();
        let mut replay = Replay::new(true);
        replay.resume(restored);
        for input in &inputs {
            let replayed = replay.next(input, |number| begun(&recorded.plans, number));
            prop_assert_eq!(replayed, Ok(crate::Replayed::Same));
        }
        replay.node().unwrap().check_same(&recorded.node);
        let events = replay.take_events();
        let emitted = &recorded.log.0[events_before..];
        prop_assert!(events.iter().map(|(_, event)| event).eq(emitted.iter()));
    }

    /// A snapshot with a changed word or a missing end is refused.
    #[test]
    fn a_changed_snapshot_is_refused(
        first in part(),
        before in vec(told(), 0..60),
        at in any::<prop::sample::Index>(),
        bit in 0..64u64,
    ) {
        let recorded = run(&first, before);
        let config = *recorded.node.config();
        let mut words = saved(&recorded.node);
        let restore = |words: &[u64]| Node::restore(plan_of(&recorded), config, words).err();
        prop_assert!(restore(&words[..at.index(words.len())]).is_some());
        *at.get_mut(&mut words) ^= 1_u64 << bit;
        prop_assert_eq!(restore(&words), Some(SnapshotError::Changed));
    }

    /// Whatever a snapshot contains, nothing panics: neither the restoration nor what follows.
    #[test]
    fn any_snapshot(
        first in part(),
        before in vec(told(), 0..60),
        changes in vec((any::<prop::sample::Index>(), word()), 1..4),
        after in vec(told(), 1..60),
    ) {
        let mut recorded = run(&first, before);
        let mut words = saved(&recorded.node);
        words.pop();
        for (at, word) in changes {
            *at.get_mut(&mut words) = word;
        }
        let config = *recorded.node.config();
        if let Ok(node) = Node::restore_unchecked(plan_of(&recorded), config, &words) {
            recorded.node.tap_mut().0 = Some(Vec::new());
            for told in after {
                recorded.tell(told);
            }
            let mut replay = Replay::new(true);
            replay.resume(node);
            for input in &recorded.inputs() {
                let _ = replay.next(input, |number| begun(&recorded.plans, number));
            }
        }
    }
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..8u64,
        Just(u32::MAX.into()),
        Just(u64::MAX),
        Just(1 << 63),
        any::<u64>()
    ]
}

/// Nodes of many processes, with tasks that wait, under both dispatches: no part of a snapshot is
/// longer than its share of the bound, by which the kernel reserves room.
#[test]
fn no_snapshot_is_longer_than_its_bound() {
    for dispatch in Dispatch::ALL {
        for processes in [1, 10, 300] {
            let config = Config {
                dispatch: dispatch as u64,
                thresholds: Threshold::ALL_BITS,
                idle_policy: IdlePolicy::Pieces as u64,
                t2_spacer_ns: 11,
                t2_task_signaling_limit_ns: 1_000_001,
                t2_min_process_ns: 0,
                sigma_t2_permille: 1200,
                ..CONFIG
            };
            let slots = (0..processes).flat_map(|id| [(id, 100), (id, 100), (IDLE, 50)]);
            let slots: Vec<_> = slots.collect();
            let edges = (1..processes).map(|id| (id, 1, id - 1, 1));
            let mut scene = Scene::ready(
                config,
                text::plan_of(Cpu {
                    edges: edges.collect(),
                    ..Cpu::numbered(0, &slots)
                }),
            );
            // Each is preempted, late and signalled, and moves on to a task that may wait.
            for step in 0..4 * u64::from(processes) {
                scene.node.check_words();
                match scene.last.grant {
                    Some(_) if step % 3 == 2 => {
                        scene.finish(500);
                    }
                    Some(_) => scene.run(300),
                    None => scene.wait(scene.left_ns().unwrap_or(100)),
                }
                assert!(saved(&scene.node).len() <= scene.node.most_words());
            }
            assert!(!scene.log.of(EventKind::Late).is_empty());
        }
    }
}

/// A node in the middle of a slot, and its plan.
fn scene() -> (Scene, impl Fn() -> Plan<StdMemory>) {
    let slots = [(1, 1000), (2, 1000), (1, 500)];
    let mut scene = Scene::ready(CONFIG, text::plan(&slots));
    scene.run(300);
    (scene, move || text::plan(&slots))
}

#[test]
fn a_restored_node_is_in_the_middle_of_its_slot() {
    let (mut scene, plan) = scene();
    let words = saved(&scene.node);
    scene.node = Node::restore(plan(), CONFIG, &words).unwrap();
    assert_eq!(scene.granted(), 1);
    // 300 of 1,000 are done.
    scene.finish(700);
    assert_eq!(scene.granted(), 2);
    let lines = scene.log.lines();
    assert!(lines.is_empty(), "{lines:?}");
    scene.set(2, Presence::Blocked);
    scene.node.check_invariants();
}

#[test]
fn refusals_say_what_is_wrong() {
    let (scene, plan) = scene();
    let words = saved(&scene.node);
    let refusal = |plan: Plan<StdMemory>, config: Config, words: &[u64]| {
        let (_, words) = words.split_last().unwrap();
        Node::restore_unchecked(plan, config, words)
            .err()
            .unwrap()
            .to_string()
    };
    let with = |at: usize, word: u64| {
        let mut words = words.clone();
        words[at] = word;
        refusal(plan(), CONFIG, &words)
    };
    assert_eq!(
        with(0, 11),
        "the snapshot has version 11, not 10; replay it with the pbsctl that recorded it"
    );
    let other = refusal(text::plan(&[(1, 10)]), CONFIG, &words);
    assert_eq!(
        other,
        "the snapshot is that of another plan: the number of its processes is 2"
    );
    let short = refusal(plan(), CONFIG, &words[..words.len() - 1]);
    assert_eq!(short, "the snapshot is too long or too short");
    let long = [&words[..], &[0]].concat();
    assert_eq!(
        refusal(plan(), CONFIG, &long),
        "the snapshot is too long or too short"
    );
    // A node whose slots float has a place for each process.
    let floating = Config {
        dispatch: Dispatch::Deadline as u64,
        ..CONFIG
    };
    let other = refusal(plan(), floating, &words);
    assert_eq!(other, "the snapshot is too long or too short");
    // Word 10 is whether the plan has ended.
    assert_eq!(
        with(10, 2),
        "word 10 of the snapshot has a value that does not exist"
    );
    // Word 11 is the period, and word 12 its execution time.
    assert_eq!(
        with(12, u64::MAX),
        "the snapshot contradicts itself: a window is longer than its period, or has no length"
    );
}
