// SPDX-License-Identifier: GPL-2.0
//! Parts of nodes that are out of use.

mod common;

use common::{operator, small, user, wish, Cluster};
use pbs_manager::ledger::{NodeState, State};
use pbs_manager::{Error, Wish};

/// The cores that are free now.
fn cores(cluster: &Cluster) -> u64 {
    cluster.manager.planner().available(0)
}

/// Only operators report defects, of what the node has; refusals name what to write.
#[test]
fn defects_are_amounts_that_a_node_has() {
    let mut cluster = small("defect-refused");
    let manager = &mut cluster.manager;
    let refused = manager.set_defect(&user("u"), "n1", "ncpus=1", "mine");
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    for (parts, remedy) in [
        ("ncpus=9", "ncpus=9 is more than n1 has; write at most ncpus=8"),
        ("tapes=1", "tapes=1 is no amount of a resource of nodes; write parts as ncpus=2:mem=16g"),
        ("mem=1", "n1 has no mem; leave it out"),
        ("ncpus", "write them as ncpus=2:mem=16g, or none for a repaired node"),
    ] {
        let refused = manager.set_defect(&operator(), "n1", parts, "").unwrap_err().to_string();
        assert!(refused.contains(remedy), "{refused}");
    }
    let refused = manager.set_defect(&operator(), "n9", "ncpus=1", "");
    assert!(matches!(refused, Err(Error::NoNode(_))), "{refused:?}");
    assert_eq!((manager.defects().count(), cores(&cluster)), (0, 16));
}

/// A defect is in the ledger until the node is repaired, whatever else becomes of the node. What
/// was planned there moves, and what runs goes on.
#[test]
fn a_defect_is_kept_until_it_is_repaired() {
    let mut cluster = small("defect-kept");
    let ids: Vec<u64> = (0..4).map(|_| cluster.submit(&wish("ncpus=4", 100))).collect();
    let node = cluster.node_of(ids[0]);
    let later = cluster.submit(&Wish { run_s: Some(100), ..wish("2:ncpus=8", 100) });
    cluster.manager.advance(common::T + 1).unwrap();
    assert_eq!(cluster.row(ids[3]).state, State::Running);
    let parts = "ncpus=5";
    let replanned = cluster.manager.set_defect(&operator(), &node, parts, "DIMM").unwrap();
    assert!(replanned.aborted.is_empty());
    assert_eq!(replanned.waiting, [later]);
    assert!(ids.iter().all(|&id| cluster.row(id).state == State::Running));
    let told = cluster.manager.details(later).unwrap().1;
    assert!(told.iter().any(|event| event.text == format!("node {node} has a defect")));

    cluster.manager.node_out(&operator(), &node, NodeState::Offline, "look").unwrap();
    assert_eq!(cores(&cluster), 8);
    cluster.reopen();
    cluster.manager.node_back(&operator(), &node).unwrap();
    for _ in 0..2 {
        assert_eq!(cores(&cluster), 11);
        let defects: Vec<_> = cluster.manager.defects().cloned().collect();
        assert_eq!((&*defects[0].name, &*defects[0].parts, defects.len()), (&*node, parts, 1));
        assert_eq!((&*defects[0].why, defects[0].since_s), ("DIMM", common::T + 1));
        cluster.reopen();
    }
    cluster.manager.advance(common::T + 200).unwrap();
    assert_eq!(cluster.row(later).state, State::Waiting);
    let repaired = cluster.manager.set_defect(&operator(), &node, "none", "").unwrap();
    assert_eq!(repaired.moved, [later]);
    cluster.reopen();
    assert_eq!((cluster.manager.defects().count(), cores(&cluster)), (0, 16));
}

/// Requests in a reservation move with it from a node with a defect.
#[test]
fn requests_inside_move_with_their_reservation() {
    let mut cluster = small("defect-inside");
    let at = pbs_cluster_planner::When::Fixed { start_s: common::T + 50 };
    let held = cluster.manager.reserve(&user("u"), &Wish { when: at, ..wish("ncpus=8", 100) });
    let held = held.unwrap();
    let inside = cluster.submit(&Wish { within: Some(held), ..wish("ncpus=8", 20) });
    let node = cluster.node_of(held);
    assert_eq!(cluster.node_of(inside), node);
    cluster.manager.set_defect(&operator(), &node, "ncpus=1", "").unwrap();
    assert_ne!(cluster.node_of(held), node);
    assert_eq!(cluster.node_of(inside), cluster.node_of(held));
    assert_eq!(cluster.row(inside).state, State::Planned);
    cluster.reopen();
    // Those that have room are left alone.
    let stays = cluster.node_of(held);
    cluster.manager.set_defect(&operator(), &node, "ncpus=2", "").unwrap();
    assert_eq!((cluster.node_of(held), cluster.node_of(inside)), (stays.clone(), stays));
}
