// SPDX-License-Identifier: GPL-2.0

//! Each way to break the state of a node is found, and only by the check of the process that it is
//! about.

use super::scene::Scene;
use crate::{Node, StdMemory};

/// Process 1 has left its slot to process 2, and waits for an idle one.
fn scene() -> Scene {
    let mut scene = Scene::new(&[(1, 1_000_000), (2, 40_000_000)]);
    scene.decide();
    scene.run_as_told(2_000_000);
    scene.decide();
    assert_eq!(scene.granted(), 2);
    scene
}

#[test]
fn a_node_in_order_has_none() {
    assert_eq!(scene().node.contradiction(0, u32::MAX), None);
}

#[test]
fn each_breakage_is_found() {
    for (said, break_it) in Node::<StdMemory>::breakages() {
        let mut scene = scene();
        break_it(&mut scene.node);
        let found = scene.node.contradiction(0, u32::MAX);
        let found = found.unwrap_or_else(|| panic!("not found: {said}"));
        assert!(found.contains(said), "{said}: {found}");
    }
}

#[test]
fn a_look_is_at_its_piece_only() {
    let (_, break_it) = Node::<StdMemory>::breakages()[9];
    let mut scene = scene();
    break_it(&mut scene.node);
    assert_eq!(scene.node.contradiction(0, 1), None);
    assert!(scene.node.contradiction(1, 1).is_some());
}
