// SPDX-License-Identifier: GPL-2.0
//! Times in which nodes are closed.

mod common;

use common::{operator, small, user, wish, T};
use pbs_manager::ledger::{ClosedRow, NodeState, State};
use pbs_manager::Error;

/// Closed times are in the ledger until they are over or taken back. What was planned in them
/// moves, and what runs continues.
#[test]
fn closed_times_are_kept_until_they_are_over() {
    let mut cluster = small("closed-kept");
    let running = cluster.submit(&wish("2:ncpus=4", 100));
    cluster.manager.advance(T + 1).unwrap();
    let later = cluster.submit(&wish("2:ncpus=8", 100));
    let start_s = |cluster: &common::Cluster| cluster.row(later).start_s;
    let at_first = start_s(&cluster);
    let closed = |name: &str, times: &[(u64, u64)]| {
        vec![ClosedRow { name: name.into(), times: times.to_vec(), why: "maint".into() }]
    };
    let times = [(T + 900, T + 1000), (T + 50, T + 500)];
    let refused = cluster.manager.set_closed(&user("u"), closed("n1", &times));
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    let refused = cluster.manager.set_closed(&operator(), closed("n9", &times));
    assert!(matches!(refused, Err(Error::NoNode(_))), "{refused:?}");

    let replanned = cluster.manager.set_closed(&operator(), closed("n1", &times)).unwrap();
    assert_eq!((&replanned.moved[..], replanned.aborted.len()), (&[later][..], 0));
    assert_eq!(cluster.row(running).state, State::Running);
    assert!(start_s(&cluster) >= Some(T + 500), "{:?}", start_s(&cluster));
    let told = cluster.manager.details(later).unwrap().1;
    assert!(told.iter().any(|event| event.text == "node n1 is closed for a time"), "{told:?}");
    // The ledger has them, whatever else becomes of the node.
    cluster.manager.node_out(&operator(), "n1", NodeState::Offline, "look").unwrap();
    cluster.reopen();
    cluster.manager.node_back(&operator(), "n1").unwrap();
    cluster.reopen();
    assert!(start_s(&cluster) >= Some(T + 500), "{:?}", start_s(&cluster));
    let rows: Vec<_> = cluster.manager.closed().cloned().collect();
    assert_eq!((rows.len(), &*rows[0].name, &*rows[0].why), (1, "n1", "maint"));
    assert_eq!(rows[0].times, [(T + 50, T + 500), (T + 900, T + 1000)]);
    // They are taken back.
    cluster.manager.set_closed(&operator(), closed("n1", &[])).unwrap();
    assert_eq!(start_s(&cluster), at_first);
    cluster.reopen();
    assert_eq!(cluster.manager.closed().count(), 0);
}

/// Nodes that are closed together are planned round once: each request hears of it once.
#[test]
fn nodes_that_are_closed_together_move_each_request_once() {
    let mut cluster = small("closed-together");
    let wide = cluster.submit(&wish("2:ncpus=8", 100));
    let times = vec![(T + 50, T + 500)];
    let close = |name: &str| ClosedRow { name: name.into(), times: times.clone(), why: "m".into() };
    let replanned = cluster.manager.set_closed(&operator(), vec![close("n1"), close("n2")]);
    assert_eq!(replanned.unwrap().moved, [wide]);
    assert!(cluster.row(wide).start_s >= Some(T + 500), "{:?}", cluster.row(wide).start_s);
    let told = cluster.manager.details(wide).unwrap().1;
    let moved: Vec<_> = told.iter().filter(|event| event.what == "moved").collect();
    assert_eq!(moved.len(), 1, "{told:?}");
    assert_eq!(moved[0].text, "nodes n1 n2 are closed for a time");
}
