// SPDX-License-Identifier: GPL-2.0
//! Requests without a place beside a service: they are tried between calls, and not in them.

mod common;

use common::*;
use pbs_cluster_planner::RequestId;
use pbs_manager::ledger::{After, NodeState, Outcome};
use pbs_manager::{Manager, Simulated, Wish};

const REQUESTS: u64 = 20;

const WIDE: &str = "name = 'wide'\n[[nodes]]\nname = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n";

fn wide(test: &str) -> Cluster {
    let path = directory(test).join("ledger");
    let manager = Manager::create(&path, WIDE, T, Simulated::default()).unwrap();
    Cluster { manager, path }
}

fn following(request: RequestId, outcome: Outcome, duration_s: u64) -> Wish {
    Wish { after: vec![After { request, outcome }], ..wish("ncpus=1", duration_s) }
}

fn searches(cluster: &Cluster) -> u64 {
    cluster.manager.planner().waiting_searches()
}

/// Requests that end together let those that follow them go at once, and those that wait are tried
/// once for all of them, after the call.
#[test]
fn requests_that_wait_are_tried_once_for_all_that_end() {
    let mut cluster = wide("waiting-ends");
    cluster.manager.defer();
    let held = cluster.submit(&wish("ncpus=1", 60));
    let first: Vec<_> = (0..REQUESTS).map(|_| cluster.submit(&wish("ncpus=8", 600))).collect();
    // One that has no place yet, and one that has.
    let released: Vec<_> = first
        .iter()
        .flat_map(|&before| {
            let waits = cluster.submit(&following(before, Outcome::NotOk, 60));
            [waits, cluster.submit(&following(before, Outcome::Any, 60))]
        })
        .collect();
    let waiting: Vec<_> =
        (0..REQUESTS).map(|_| cluster.submit(&following(held, Outcome::NotOk, 60))).collect();
    let before = searches(&cluster);
    for &id in &first {
        cluster.manager.kill(&user("u"), id).unwrap();
    }
    assert_eq!(searches(&cluster), before);
    let mut pieces = 0;
    while cluster.manager.is_settling() {
        cluster.manager.settle_some(4);
        pieces += 1;
    }
    // Each request that was held needs one search; those that are still held need none.
    assert_eq!(searches(&cluster) - before, REQUESTS);
    assert!(pieces > REQUESTS / 2, "{pieces}");
    let has_place = |id: &RequestId| cluster.row(*id).start_s.is_some();
    assert!(released.iter().all(has_place) && !waiting.iter().any(has_place));
}

/// A service is ready before it has tried the requests that wait.
#[test]
fn a_service_is_ready_before_requests_that_wait_are_tried() {
    let mut cluster = wide("waiting-open");
    let why = "broken";
    cluster.manager.nodes_out_of_use(&operator(), &["n1"], NodeState::Offline, why).unwrap();
    let waiting: Vec<_> =
        (1..REQUESTS).map(|at| cluster.submit(&wish("2:ncpus=8", 60 * at))).collect();
    let nowhere = cluster.path.with_extension("nowhere");
    let other = Manager::create(&nowhere, WIDE, T, Simulated::default()).unwrap();
    drop(std::mem::replace(&mut cluster.manager, other));
    let opened = Manager::open_deferred(&cluster.path, Simulated::default());
    cluster.manager = opened.unwrap().0;
    assert_eq!(searches(&cluster), 0);
    assert!(cluster.manager.is_settling());
    while cluster.manager.is_settling() {
        cluster.manager.settle_some(1);
    }
    assert!(searches(&cluster) >= REQUESTS - 1);
    cluster.manager.nodes_back(&operator(), &["n1"]).unwrap();
    assert!(waiting.iter().all(|id| cluster.row(*id).start_s.is_some()));
}

/// Requests that find nothing, pass after pass, do not keep others from moving up.
#[test]
fn requests_that_wait_in_vain_leave_turns_to_others() {
    let mut cluster = wide("waiting-turns");
    cluster.manager.nodes_out_of_use(&operator(), &["n1"], NodeState::Offline, "broken").unwrap();
    for at in 1..600 {
        cluster.submit(&wish("2:ncpus=8", at));
    }
    let large = cluster.submit(&wish("ncpus=8", 7200));
    let later = cluster.submit(&wish("ncpus=8", 600));
    cluster.submit(&following(large, Outcome::NotOk, 60));
    cluster.manager.defer();
    cluster.manager.look_again();
    while cluster.manager.is_settling() {
        cluster.manager.settle_some(1);
    }
    let before = searches(&cluster);
    // Its follower is released, and all that wait are tried with it.
    cluster.manager.kill(&user("u"), large).unwrap();
    while cluster.row(later).start_s != Some(T) {
        assert!(cluster.manager.is_settling());
        cluster.manager.settle_some(1);
    }
    let tried = searches(&cluster) - before;
    assert!((256..300).contains(&tried), "{tried}");
}

/// A request that did not start while nobody looked has another place, and so has what follows it.
#[test]
fn followers_move_behind_a_request_that_did_not_start() {
    let mut cluster = wide("waiting-followers");
    cluster.submit(&wish("2:ncpus=8", 600));
    let first = cluster.submit(&wish("ncpus=8", 60));
    let second = cluster.submit(&following(first, Outcome::Any, 60));
    let start_s = |cluster: &Cluster, id| cluster.row(id).start_s.unwrap();
    assert_eq!([first, second].map(|id| start_s(&cluster, id)), [T + 600, T + 660]);
    cluster.manager.defer();
    cluster.manager.wake(T + 630, &|_| None).unwrap();
    assert!(start_s(&cluster, first) >= T + 630);
    assert!(start_s(&cluster, second) >= start_s(&cluster, first) + 60);
}
