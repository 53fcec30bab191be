// SPDX-License-Identifier: GPL-2.0

//! Grants that are reported, and the time of the report.

use std::vec::Vec;

use crate::wire::{IDLE, NO_SLOT};
use crate::{Event, EventKind, Grant, Presence};

use super::scene::Scene;

/// Process 2 has its slot, and process 1 is behind.
fn scene() -> Scene {
    let mut scene = Scene::new(&[(1, 1_000_000), (2, 1_000_000), (1, 1_000_000)]);
    scene.run(1_100_000);
    assert_eq!(scene.log.grants(), [(1, 0), (2, 1)]);
    scene
}

/// The grants after the first two.
fn more(scene: &Scene) -> Vec<Event> {
    scene.log.of(EventKind::Grant).split_off(2)
}

#[test]
fn grant_that_another_one_follows_soon_is_not_told() {
    let mut scene = scene();
    for _ in 0..10 {
        scene.run(5_000);
        scene.set(2, Presence::Blocked);
        assert_eq!(scene.granted(), 1);
        scene.run(5_000);
        scene.set(2, Presence::Ready);
        assert_eq!(scene.granted(), 2);
    }
    // Nor is the one that was reported already, however long it lasts.
    scene.run(200_000);
    assert!(more(&scene).is_empty());
    let grants = scene.node.counts().get(EventKind::Grant);
    assert_eq!(grants, 2);
}

#[test]
fn grant_that_lasts_is_told_as_it_was_decided() {
    let mut scene = scene();
    scene.run(5_000);
    scene.set(2, Presence::Blocked);
    scene.run(99_999);
    assert!(more(&scene).is_empty());
    scene.run(1);
    let told = more(&scene);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].process, told[0].slot), (1, 1));
    assert_eq!(told[0].reason, Grant::BlockedSlot as u16);
    assert_eq!(told[0].time_ns, 1_105_000);
    // Not what it has retired since.
    assert_eq!(told[0].retired_insns, 1_100_000);
    assert_eq!(told[0].lateness_insns, 100_000);
    assert_eq!(told[0].node_lateness_insns, 100_000);
    // Once.
    scene.run(200_000);
    assert_eq!(more(&scene).len(), 1);
    // The owner continues.
    scene.set(2, Presence::Ready);
    scene.wait(100_000);
    assert_eq!(more(&scene)[1].process, 2);
}

/// A lasting grant is reported even if the node is not asked meanwhile.
#[test]
fn grant_that_has_lasted_is_told_when_another_one_follows() {
    let mut scene = scene();
    scene.set(2, Presence::Blocked);
    let p = scene.index(1);
    scene.node.charge(p, 100_000);
    scene.now_ns += 100_000;
    scene.set(2, Presence::Ready);
    let told = more(&scene);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].process, told[0].time_ns), (1, 1_100_000));
}

#[test]
fn grant_is_told_before_anything_else() {
    let mut scene = scene();
    scene.set(2, Presence::Blocked);
    scene.finish(7_000);
    let kinds: Vec<_> = scene.log.0.iter().rev().take(2).collect();
    assert_eq!(kinds[0].kind, EventKind::TaskEnded);
    assert_eq!(kinds[0].retired_insns, 1_107_000);
    assert_eq!((kinds[1].kind, kinds[1].process), (EventKind::Grant, 1));
    assert_eq!(
        (kinds[1].time_ns, kinds[1].retired_insns),
        (1_100_000, 1_100_000)
    );
    assert_eq!(kinds[1].lateness_insns, 100_000);
    // Process 1 is not behind any more: no process runs.
    assert_eq!(scene.granted(), IDLE);
    scene.node.tell_untold(&mut scene.log);
    let told = more(&scene);
    assert_eq!((told.len(), told[1].process), (2, IDLE));
    assert_eq!(told[1].time_ns, 1_107_000);
}

#[test]
fn wait_that_lasts_is_told() {
    let mut scene = scene();
    scene.set(1, Presence::Blocked);
    scene.set(2, Presence::Blocked);
    scene.wait(50_000);
    scene.set(2, Presence::Ready);
    assert!(more(&scene).is_empty());
    scene.set(2, Presence::Blocked);
    scene.wait(100_000);
    scene.set(2, Presence::Ready);
    let told = more(&scene);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].process, told[0].time_ns), (IDLE, 1_150_000));
}

#[test]
fn first_grant_of_a_slot_is_told_at_once() {
    let mut scene = scene();
    scene.set(2, Presence::Blocked);
    scene.set(2, Presence::Ready);
    scene.finish(1_000);
    // The end of the task is reported, with nothing before it.
    assert_eq!(scene.log.grants()[2..], [(1, 2)]);
    scene.finish(1_000);
    scene.finish(1_000);
    assert!(scene.node.ended());
    assert_eq!(scene.log.grants()[3..], [(IDLE, NO_SLOT)]);
}
