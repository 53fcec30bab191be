// SPDX-License-Identifier: GPL-2.0
//! Times in which nodes are closed.

mod common;

use common::{operator, small, user, wish, T};
use pbs_cluster_planner::When;
use pbs_manager::ledger::{ClosedRow, NodeState, State};
use pbs_manager::{Error, Manager, Simulated, Wish};

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

/// A reservation that moves when nodes are closed takes its requests with it, also if another one
/// had to make room before.
#[test]
fn requests_move_with_their_reservation_among_closed_nodes() {
    let site = "name = 'a'\n\
        [[nodes]]\nname = 'small'\nhas = 'ncpus=2'\n\
        [[nodes]]\nname = 'n%d'\ncount = 4\nhas = 'ncpus=4'\n";
    let path = common::directory("closed-reservations").join("ledger");
    let manager = Manager::create(&path, site, T, Simulated::default()).unwrap();
    let mut cluster = common::Cluster { manager, path };
    let fixed = |rset: &str, start_s: u64| Wish {
        when: When::Fixed { start_s: T + start_s },
        user: "op".into(),
        ..wish(rset, 100)
    };
    let first = cluster.manager.submit(&operator(), &fixed("ncpus=2", 100)).unwrap()[0];
    assert_eq!(cluster.node_of(first), "small");
    let narrow = cluster.manager.reserve(&operator(), &fixed("ncpus=2", 100)).unwrap();
    let wide = cluster.manager.reserve(&operator(), &fixed("2:ncpus=4", 150)).unwrap();
    let inside = Wish { within: Some(wide), user: "op".into(), ..wish("ncpus=4", 20) };
    let inside = cluster.manager.submit(&operator(), &inside).unwrap()[0];
    cluster.manager.kill(&operator(), first).unwrap();
    let held = |cluster: &common::Cluster, id| -> Vec<String> {
        cluster.row(id).nodes.iter().map(|part| part.node.clone()).collect()
    };
    let (of_narrow, of_wide) = (held(&cluster, narrow), held(&cluster, wide));
    let closed = |name: &str, end_s: u64| ClosedRow {
        name: name.into(),
        times: vec![(T + 50, T + end_s)],
        why: "maint".into(),
    };
    // The wide one has room on the narrow one's node once that has left.
    let all = vec![closed(&of_wide[0], 300), closed(&of_narrow[0], 140), closed(&of_wide[1], 300)];
    cluster.manager.set_closed(&operator(), all).unwrap();
    assert_eq!(held(&cluster, narrow), ["small"]);
    let now = held(&cluster, wide);
    assert!(now.iter().all(|name| !of_wide.contains(name)), "{now:?}");
    let row = cluster.row(inside);
    assert_eq!((row.state, row.start_s), (State::Planned, Some(T + 150)));
    assert!(now.contains(&row.nodes[0].node), "{row:?}");
    cluster.reopen();
    cluster.manager.advance(T + 180).unwrap();
    assert_eq!(cluster.row(inside).outcome.as_deref(), Some("completed"));
}

/// Without the planner over Slurm nobody updates closed times: they are not obeyed for ever.
#[test]
fn closed_times_end_where_nobody_updates_them() {
    let mut cluster = small("closed-opened");
    let close = |name: &str| ClosedRow {
        name: name.into(),
        times: vec![(T, T + 500)],
        why: "maint".into(),
    };
    let mut closed = vec![close("n1"), close("n2")];
    cluster.manager.set_closed(&operator(), closed.clone()).unwrap();
    let waiting = cluster.submit(&wish("ncpus=8", 100));
    assert_eq!(cluster.row(waiting).start_s, Some(T + 500));
    cluster.manager.defer();
    let told = cluster.manager.open_all().unwrap();
    assert!(told.starts_with("nodes n1 n2 are open again: "), "{told}");
    assert_eq!(cluster.manager.open_all(), None);
    while cluster.manager.is_settling() {
        cluster.manager.settle_some(4);
    }
    cluster.manager.write().unwrap();
    assert_eq!(cluster.row(waiting).start_s, Some(T));
    cluster.reopen();
    assert_eq!(cluster.manager.closed().count(), 0);
    // A node that the site does not have any more is forgotten, too.
    closed[1].times[0].1 = T + 600;
    cluster.manager.set_closed(&operator(), closed).unwrap();
    let smaller = "name = 'small'\n[[nodes]]\nname = 'n%d'\ncount = 1\nhas = 'ncpus=8'\n";
    cluster.reopen_with(smaller);
    cluster.manager.defer();
    assert!(cluster.manager.open_all().is_some());
    cluster.manager.write().unwrap();
    cluster.reopen();
    assert_eq!(cluster.manager.closed().count(), 0);
}
