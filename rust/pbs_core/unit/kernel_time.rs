// SPDX-License-Identifier: GPL-2.0

//! Time of a slot in the kernel, and in interrupts.

use crate::{EventKind, Grant, Presence};

use super::scene::Scene;

/// The granted process spends that time in the kernel, and is found there.
fn in_kernel(scene: &mut Scene, ns: u64) {
    scene.now_ns += ns;
    let p = scene.last.grant.unwrap();
    scene.node.in_kernel(p, ns, scene.now_ns);
    scene.decide();
}

/// Interrupts have the CPU for that time.
fn interrupted(scene: &mut Scene, ns: u64) {
    scene.now_ns += ns;
    scene.node.interrupted(ns, scene.now_ns);
    scene.decide();
}

#[test]
fn time_in_the_kernel_ends_a_slot_at_t1() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    // t1 is 1100, the ceiling 3000 ns, and 100 ns are free.
    in_kernel(&mut scene, 100);
    assert_eq!(scene.last.until_insns, Some(1100));
    in_kernel(&mut scene, 500);
    assert_eq!(scene.last.until_insns, Some(600));
    in_kernel(&mut scene, 599);
    assert_eq!(scene.granted(), 1);
    in_kernel(&mut scene, 1);
    assert_eq!(scene.granted(), 2);
    let ceilings = scene.log.of(EventKind::Ceiling);
    assert_eq!((ceilings.len(), ceilings[0].value), (1, 1200));
    // Nothing was retired, so that its task is not late.
    assert_eq!(ceilings[0].preemptions, 0);
    assert!(scene.log.of(EventKind::Preempted).is_empty());
}

#[test]
fn instructions_count_beside_time_in_the_kernel() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    in_kernel(&mut scene, 400);
    scene.run(700);
    assert_eq!(scene.last.until_insns, Some(100));
    scene.run(100);
    assert_eq!(scene.granted(), 2);
}

#[test]
fn a_thread_that_is_slow_in_user_space_has_until_the_ceiling() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.wait(2999);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, Some(1100));
    scene.wait(1);
    assert_eq!(scene.log.of(EventKind::Ceiling)[0].value, 3000);
}

#[test]
fn usual_time_in_the_kernel_is_part_of_the_rate() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    // It has retired as much as its rate promises, although it was in the kernel for half of the
    // time.
    scene.run(500);
    scene.node.in_kernel(0, 250, scene.now_ns);
    scene.decide();
    assert_eq!(scene.last.until_insns, Some(600));
    scene.run(600);
    assert_eq!(scene.log.of(EventKind::Preempted)[0].value, 1100);
}

#[test]
fn time_asleep_in_a_slot_is_not_time_in_the_kernel() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.set(1, Presence::Blocked);
    scene.wait(1500);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    // It is found in the call that ends its task.
    scene.run(990);
    scene.node.in_kernel(0, 990, scene.now_ns);
    scene.decide();
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, Some(110));
    // Time in the kernel after the sleep counts.
    in_kernel(&mut scene, 210);
    assert_eq!(scene.granted(), 2);
}

#[test]
fn what_is_retired_later_makes_up_for_time_in_the_kernel() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    in_kernel(&mut scene, 400);
    assert_eq!(scene.last.until_insns, Some(800));
    // Twice as much as its rate promises.
    scene.node.charge(0, 600);
    scene.now_ns += 300;
    scene.node.in_kernel(0, 0, scene.now_ns);
    scene.decide();
    // 100 are missing, and these are free.
    assert_eq!(scene.last.until_insns, Some(500));
    scene.run(500);
    assert_eq!(scene.log.of(EventKind::Preempted)[0].value, 1100);
}

#[test]
fn no_more_counts_than_the_time_in_the_kernel() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    // Slow in user space, and for a short time in the kernel.
    scene.wait(1000);
    in_kernel(&mut scene, 200);
    assert_eq!(scene.last.until_insns, Some(1000));
}

#[test]
fn time_in_the_kernel_counts_for_the_owner_alone() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000)]);
    scene.run(1100);
    scene.set(2, Presence::Blocked);
    assert_eq!(scene.granted(), 1);
    let until_ns = scene.last.until_ns;
    in_kernel(&mut scene, 100);
    assert_eq!(scene.last.until_ns, until_ns);
    // Its own next slot begins with nothing.
    scene.wait(2900);
    assert_eq!(scene.last.reason, Grant::Slot);
    assert_eq!(scene.last.until_insns, Some(1100));
}

#[test]
fn time_in_interrupts_is_given_back() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.run(500);
    // No more than 100 ns in all.
    interrupted(&mut scene, 60);
    assert_eq!(scene.last.until_ns, Some(3060));
    interrupted(&mut scene, 60);
    assert_eq!(scene.last.until_ns, Some(3100));
    // Nor is it time in the kernel.
    in_kernel(&mut scene, 200);
    assert_eq!(scene.last.until_insns, Some(500));
    scene.run(500);
    assert_eq!(scene.log.of(EventKind::Ceiling)[0].value, 1220);
}

#[test]
fn time_in_interrupts_is_not_given_to_who_fills_a_slot() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000)]);
    scene.run(1100);
    scene.set(2, Presence::Blocked);
    assert_eq!(scene.granted(), 1);
    let until_ns = scene.last.until_ns;
    interrupted(&mut scene, 100);
    assert_eq!(scene.last.until_ns, until_ns);
}
