// SPDX-License-Identifier: GPL-2.0

//! A plan that is taken over in pieces while the old one continues is the same in the end as one
//! that is taken over at once.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::MAX_PROCESSES;
use crate::{Node, Presence, StdMemory, TakeOver};

use super::fuzz::{node, part, step, Part, Step};
use super::random::cases;
use super::scene::{Log, Scene, CONFIG, RATE};
use super::swap::tasks;

/// Events between two pieces: a few, or many.
fn between() -> impl Strategy<Value = Vec<Step>> {
    let in_the_plan =
        step().prop_filter("one plan at a time", |step| !matches!(step, Step::Swap(..)));
    vec(in_the_plan, 0..6)
}

/// A change of plans: the new one, what it has dealt with, the size of a piece,
/// how many processes may be left to the last step, and what happens meanwhile.
fn change() -> impl Strategy<Value = (Part, u64, usize, usize, Vec<Vec<Step>>)> {
    let dealt_seq = prop_oneof![2 => Just(0), 1 => 0..40u64, 1 => any::<u64>()];
    (
        part(),
        dealt_seq,
        1..4usize,
        0..4usize,
        vec(between(), 0..12),
    )
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn pieces_make_the_same(
        first in part(),
        before in vec(step(), 0..60),
        changes in vec(change(), 1..4),
        after in vec(step(), 0..20),
    ) {
        let mut now_ns = 0;
        let mut log = Log::default();
        let mut old = node(&first, now_ns);
        let mut go_on = |old: &mut Node<StdMemory>, now_ns: &mut u64, steps: Vec<Step>| {
            for step in steps {
                step.tell(old, now_ns, &mut log);
                old.decide(*now_ns, &mut log);
                old.check_invariants();
            }
        };
        go_on(&mut old, &mut now_ns, before);
        for (part, dealt_seq, piece, most, meanwhile) in changes {
            let mut new = node(&part, now_ns);
            let mut at_once = node(&part, now_ns);
            let mut take_over = TakeOver::new(dealt_seq, piece).unwrap();
            let tell = |_: &Node<_>, _| {};
            let mut done = false;
            for steps in meanwhile {
                if take_over.copy(&mut old, &new) {
                    take_over.apply(&mut new);
                    new.check_invariants();
                }
                go_on(&mut old, &mut now_ns, steps);
                let mut left = 0;
                let count = |_: &Node<_>, _| left += 1;
                done = take_over.finish(&mut old, &mut new, most, now_ns, count);
                prop_assert!(left <= most);
                if done {
                    break;
                }
            }
            // However much is left, it can be done at once.
            let most = usize::MAX;
            prop_assert!(done || take_over.finish(&mut old, &mut new, most, now_ns, tell));
            at_once.begin(Some(&old), dealt_seq, now_ns);
            new.check_invariants();
            new.check_same(&at_once);
            let refused = take_over.check().is_err();
            prop_assert_eq!(refused, at_once.check_over(&old, dealt_seq).is_err());
            old = new;
        }
        go_on(&mut old, &mut now_ns, after);
    }
}

/// A scene in which the new plan is made and all is copied except later changes.
fn copied(scene: &mut Scene) -> (Node<StdMemory>, TakeOver<StdMemory>) {
    let plan = tasks(&[(1, 0, 2000), (2, 0, 2000), (2, 1, 500), (4, 0, 10)]);
    let mut new = Node::new(plan, CONFIG, RATE, 8, scene.now_ns).unwrap();
    let mut take_over = TakeOver::new(0, 1).unwrap();
    while take_over.copy(&mut scene.node, &new) {
        take_over.apply(&mut new);
    }
    (new, take_over)
}

#[test]
fn only_what_changes_is_copied_again() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (3, 1000), (3, 1000)]);
    let (mut new, mut take_over) = copied(&mut scene);
    assert!(!take_over.copy(&mut scene.node, &new));
    // Three times the same process, and one that the new plan does not have.
    scene.run(100);
    scene.run(100);
    scene.node.memory(0, 10, 20);
    scene.set(3, Presence::Blocked);
    assert!(take_over.copy(&mut scene.node, &new));
    take_over.apply(&mut new);
    assert_eq!(take_over.applied().collect::<Vec<_>>(), [0]);
    assert!(!take_over.copy(&mut scene.node, &new));
    assert_eq!(new.process(0).unwrap().retired_insns, 200);
    assert_eq!(new.process(0).unwrap().peak_vm_bytes, 10);
}

#[test]
fn last_step_takes_what_is_left_and_no_more() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (3, 1000)]);
    let (mut new, mut take_over) = copied(&mut scene);
    scene.finish(900);
    scene.run(300);
    let mut finish = |most| {
        let mut left = Vec::new();
        let tell = |_: &Node<_>, p| left.push(p);
        let done = take_over.finish(&mut scene.node, &mut new, most, scene.now_ns, tell);
        left.sort_unstable();
        (done, left)
    };
    assert_eq!(finish(1), (false, Vec::new()));
    assert_eq!(finish(2), (true, [0, 1].to_vec()));
    assert!(new.process(0).unwrap().done);
    assert_eq!(new.process(1).unwrap().retired_insns, 300);
}

#[test]
fn all_is_copied_again_when_the_plan_has_ended_meanwhile() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    let (mut new, mut take_over) = copied(&mut scene);
    for _ in 0..2 {
        scene.finish(1000);
    }
    assert!(scene.node.ended());
    let tell = |_: &Node<_>, _| {};
    assert!(!take_over.finish(&mut scene.node, &mut new, 2, scene.now_ns, tell));
    let all = MAX_PROCESSES as usize;
    assert!(take_over.finish(&mut scene.node, &mut new, all, scene.now_ns, tell));
    assert_eq!(new.process(0).unwrap().task, 0);
    assert!(!new.process(0).unwrap().done);
}
