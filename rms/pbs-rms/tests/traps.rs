// SPDX-License-Identifier: GPL-2.0
//! Cases that are easily got wrong, with figures that follow from the report.
//! Documentation/features.rst names the tests of each feature.

mod driver;

use driver::{ask, next, with, Driver, GIVE_BACK_LATE};
use pbs_profile::view::{Cap, Step};
use pbs_rms::{
    Ask, Event, Kind, Limits, NodeChoice, PlacementOrder, Policy, Refusal, Update, FOREVER,
};
use Kind::{NonPreemptible, PreAllocation, Preemptible};

fn cap(steps: &[(u64, u64)]) -> Cap {
    let steps: Vec<Step> = steps.iter().map(|&(ns, nodes)| Step::new(ns, nodes)).collect();
    Cap::new(0, &steps)
}

#[test]
fn a_successor_keeps_its_nodes() {
    let mut rms = Driver::new(10);
    let app = rms.connect();
    let old = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    assert_eq!(rms.nodes(app, old), [0, 1, 2, 3]);
    let more = rms.update(40, app, old, 6, 0, &[]).expect("there is room");
    assert_eq!(rms.rms.session(app).map(|s| s.requests.len()), Some(1));
    rms.pass(40);
    assert_eq!(rms.nodes(app, more), [0, 1, 2, 3, 4, 5]);
    // The one before has lasted 40.
    let used = |rms: &Driver, at_ns| {
        let session = rms.rms.session(app).expect("it is there");
        session.account_at(at_ns).non_preemptible_node_ns
    };
    assert_eq!((used(&rms, 40), used(&rms, 50)), (4 * 40, 4 * 40 + 6 * 10));

    let few = rms.update(50, app, more, 2, 0, &[1, 2, 3]);
    assert_eq!(few, Err(Refusal::Released { named: 3, needed: 4 }));
    let foreign = rms.update(50, app, more, 2, 0, &[1, 2, 3, 7]);
    assert_eq!(foreign, Err(Refusal::NotHeld(7)));
    let twice = rms.update(50, app, more, 2, 0, &[1, 2, 3, 3]);
    assert_eq!(twice, Err(Refusal::NotHeld(3)));
    assert_eq!(rms.nodes(app, more), [0, 1, 2, 3, 4, 5]);
    let less = rms.update(50, app, more, 2, 0, &[0, 2, 4, 5]).expect("all are its own");
    rms.pass(50);
    assert_eq!(rms.nodes(app, less), [1, 3]);
    assert_eq!(rms.rms.idle(0), [0, 2, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn successors_of_a_started_request_are_booked() {
    let mut rms = Driver::new(10);
    let (app, other) = (rms.connect(), rms.connect());
    let first = rms.request(app, ask(NonPreemptible, 4, 100));
    let second = rms.request(app, next(first, ask(NonPreemptible, 6, 50)));
    rms.request(app, next(second, ask(NonPreemptible, 2, 50)));
    rms.pass(0);
    let views = rms.views(other);
    let left = cap(&[(100, 6), (50, 4), (50, 8), (FOREVER, 10)]);
    assert_eq!(views.non_preemptible, left);
    // And each of them follows by itself, on the nodes of the one before.
    rms.pass(100);
    assert_eq!(rms.nodes(app, second), [0, 1, 2, 3, 4, 5]);
    let told = rms.pass(150);
    assert!(told
        .iter()
        .any(|n| matches!(&n.event, Event::Ended { killed, .. } if killed == &[2, 3, 4, 5])));
    let third = rms.rms.session(app).map(|s| s.requests[0].id).expect("it runs");
    assert_eq!(rms.nodes(app, third), [0, 1]);
}

#[test]
fn a_child_pushes_its_parent_back() {
    let mut rms = Driver::new(8);
    let (blocker, app) = (rms.connect(), rms.connect());
    // 4 nodes are free until 20, then 2 until 30, then all.
    let first = rms.request(blocker, ask(NonPreemptible, 4, 20));
    rms.request(blocker, next(first, ask(NonPreemptible, 6, 10)));
    rms.pass(0);
    let left = cap(&[(20, 4), (10, 2), (FOREVER, 8)]);
    assert_eq!(rms.views(app).non_preemptible, left);
    let a = rms.request(app, ask(NonPreemptible, 4, 10));
    let b = rms.request(app, next(a, ask(NonPreemptible, 6, 10)));
    rms.pass(0);
    assert_eq!(rms.scheduled(app, a), Some(30));
    assert_eq!(rms.scheduled(app, b), Some(40));
}

#[test]
fn overlapping_requests_add_up() {
    // 4 nodes are free until 10, and then all: of 12 nodes both have enough, of 10 never.
    for (nodes, is_enough) in [(12, true), (10, false)] {
        let mut rms = Driver::new(nodes);
        let (blocker, app) = (rms.connect(), rms.connect());
        rms.request(blocker, ask(NonPreemptible, nodes - 4, 10));
        rms.pass(0);
        let left = cap(&[(10, 4), (FOREVER, nodes)]);
        assert_eq!(rms.views(app).non_preemptible, left);
        let a = rms.request(app, ask(NonPreemptible, 4, 10));
        let asked = with(a, ask(NonPreemptible, 8, 10));
        if is_enough {
            let b = rms.request(app, asked);
            rms.pass(0);
            assert_eq!(rms.scheduled(app, a), Some(10));
            assert_eq!(rms.scheduled(app, b), Some(10));
        } else {
            let refused = Err(Refusal::TooMany { nodes: 12, most: 10 });
            assert_eq!(rms.rms.request(app, asked.clone(), 0), refused);
            // Nor by a detour: small first, and larger while it waits.
            let update = Update {
                of: rms.request(app, Ask { nodes: 6, ..asked }),
                nodes: 8,
                duration_ns: 10,
                announce_ns: 0,
                released: Vec::new(),
            };
            assert_eq!(rms.rms.update(app, &update, 0), refused);
            assert_eq!(rms.rms.session(app).map(|s| s.requests.len()), Some(2));
        }
    }
}

#[test]
fn pre_allocated_nodes_are_not_free() {
    let mut rms = Driver::new(10);
    let (nea, other) = (rms.connect(), rms.connect());
    let all = rms.request(nea, ask(PreAllocation, 8, 1000));
    rms.request(nea, with(all, ask(NonPreemptible, 3, 1000)));
    rms.pass(0);
    let views = rms.views(other);
    assert_eq!(views.non_preemptible, cap(&[(1000, 2), (FOREVER, 10)]));
    assert_eq!(views.preemptible, cap(&[(1000, 7), (FOREVER, 10)]));
    let rigid = rms.request(other, ask(NonPreemptible, 3, 10));
    rms.pass(1);
    assert_eq!(rms.scheduled(other, rigid), Some(1000));
    let told = rms.pass(1000);
    assert!(driver::starts(&told).contains(&rigid));
}

#[test]
fn an_outgrown_pre_allocation_is_refused_and_nothing_changes() {
    let mut rms = Driver::new(16);
    let (nea, other) = (rms.connect(), rms.connect());
    let all = rms.request(nea, ask(PreAllocation, 10, FOREVER));
    let used = rms.request(nea, with(all, ask(NonPreemptible, 10, FOREVER)));
    rms.request(other, ask(PreAllocation, 6, FOREVER));
    rms.pass(0);
    let before = rms.rms.session(nea).cloned().map(|s| s.requests);
    assert_eq!(rms.update(5, nea, used, 12, 0, &[]), Err(Refusal::NoRoom));
    assert_eq!(rms.rms.session(nea).cloned().map(|s| s.requests), before);
    rms.pass(5);
    assert_eq!(rms.views(other).non_preemptible.at(5), 6);
    // With room beside it, the rest is as if pre-allocated.
    let theirs = rms.rms.session(other).map(|s| s.requests[0].id).expect("it runs");
    rms.done(6, other, theirs);
    let more = rms.update(6, nea, used, 12, 0, &[]).expect("there is room");
    rms.pass(6);
    assert_eq!(rms.nodes(nea, more).len(), 12);
    assert_eq!(rms.views(other).non_preemptible.at(6), 4);
}

#[test]
fn nodes_arrive_when_others_have_released_them() {
    let mut rms = Driver::new(10);
    let (nea, psa) = (rms.connect(), rms.connect());
    let all = rms.request(nea, ask(PreAllocation, 8, FOREVER));
    let used = rms.request(nea, with(all, ask(NonPreemptible, 3, FOREVER)));
    rms.pass(0);
    let spare = rms.request(psa, ask(Preemptible, 7, FOREVER));
    rms.pass(0);
    assert_eq!(rms.nodes(psa, spare), [3, 4, 5, 6, 7, 8, 9]);
    let more = rms.update(10, nea, used, 6, 0, &[]).expect("it is pre-allocated");
    let told = rms.pass(10);
    assert_eq!(rms.views(psa).preemptible.at(10), 4);
    assert!(driver::viewers(&told).contains(&psa) && driver::starts(&told).is_empty());
    rms.update(12, psa, spare, 4, 0, &[4, 6, 8]).expect("all are its own");
    let told = rms.pass(12);
    assert!(driver::starts(&told).contains(&more));
    assert_eq!(rms.nodes(nea, more), [0, 1, 2, 4, 6, 8]);
}

#[test]
fn a_session_that_releases_nothing_is_ended() {
    let mut rms = Driver::new(10);
    let (nea, psa) = (rms.connect(), rms.connect());
    let all = rms.request(nea, ask(PreAllocation, 8, FOREVER));
    let used = rms.request(nea, with(all, ask(NonPreemptible, 3, FOREVER)));
    rms.pass(0);
    rms.request(psa, ask(Preemptible, 7, FOREVER));
    rms.pass(0);
    let more = rms.update(10, nea, used, 6, 0, &[]).expect("it is pre-allocated");
    rms.pass(10);
    let deadline_ns = 10 + GIVE_BACK_LATE;
    assert_eq!(rms.rms.next_pass_ns(), Some(deadline_ns));
    assert!(rms.pass(deadline_ns - 1).is_empty());
    let told = rms.pass(deadline_ns);
    let violation = Event::Violation {
        cluster: 0,
        held: 7,
        allowed: 4,
        killed: vec![vec![3, 4, 5, 6, 7, 8, 9]],
    };
    assert!(told.iter().any(|n| n.app == psa && n.event == violation));
    assert!(driver::starts(&told).contains(&more));
    let closed = rms.rms.take_closed();
    assert_eq!(closed[0].account.overstayed_node_ns, 3 * u128::from(GIVE_BACK_LATE));
    assert_eq!(closed[0].account.preemptible_node_ns, 7 * u128::from(deadline_ns));
    assert_eq!(rms.rms.done(psa, more, &[], deadline_ns), Err(Refusal::UnknownSession));
}

#[test]
fn an_announced_update_is_seen_before() {
    let mut rms = Driver::new(10);
    let (app, psa) = (rms.connect(), rms.connect());
    let used = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    let soon = rms.update(0, app, used, 6, 100, &[]).expect("there is room");
    rms.pass(0);
    assert_eq!(rms.views(psa).preemptible, cap(&[(100, 6), (FOREVER, 4)]));
    // What has no end takes at each time what there is.
    let spare = rms.request(psa, ask(Preemptible, 6, FOREVER));
    let told = rms.pass(0);
    assert!(driver::starts(&told).contains(&spare));
    assert_eq!(rms.nodes(psa, spare).len(), 6);
    assert_eq!(rms.rms.next_pass_ns(), Some(100));
    rms.update(60, psa, spare, 4, 0, &[8, 9]).expect("all are its own");
    rms.pass(60);
    let told = rms.pass(100);
    assert!(driver::starts(&told).contains(&soon));
    assert_eq!(rms.nodes(app, soon), [0, 1, 2, 3, 8, 9]);
}

#[test]
fn the_order_is_that_of_connection_or_of_requests() {
    for (order, first, second) in
        [(PlacementOrder::Connection, 100, 150), (PlacementOrder::Request, 150, 100)]
    {
        let policy = Policy { order, ..driver::policy() };
        let mut rms = Driver::with(policy, &[10]);
        let (idle, queuing, blocker) = (rms.connect(), rms.connect(), rms.connect());
        rms.request(blocker, ask(NonPreemptible, 10, 100));
        rms.pass(0);
        let b = rms.request(queuing, ask(NonPreemptible, 10, 50));
        rms.pass(1);
        assert_eq!(rms.scheduled(queuing, b), Some(100));
        let a = rms.request(idle, ask(NonPreemptible, 10, 50));
        rms.pass(2);
        assert_eq!(rms.scheduled(idle, a), Some(first));
        assert_eq!(rms.scheduled(queuing, b), Some(second));
    }
}

#[test]
fn passes_keep_their_distance() {
    let policy = Policy { interval_ns: 1000, ..driver::policy() };
    let mut rms = Driver::with(policy, &[10]);
    let app = rms.connect();
    let mut passes = Vec::new();
    for at_ns in [0, 200, 900] {
        rms.now_ns = at_ns;
        rms.request(app, ask(NonPreemptible, 1, FOREVER));
        if rms.rms.next_pass_ns().is_some_and(|ns| ns <= at_ns) {
            rms.pass(at_ns);
            passes.push(at_ns);
        }
    }
    passes.extend(rms.rms.next_pass_ns());
    assert_eq!(passes, [0, 1000]);
    // Nothing came between the two passes but what the second one answers.
    let told = rms.pass(1000);
    assert_eq!(driver::starts(&told).len(), 2);
    assert_eq!(rms.rms.next_pass_ns(), None);
}

#[test]
fn limits_clip_views_and_allocations() {
    let limits = Limits { nodes: 6, requests: 3, ..Limits::default() };
    let policy = Policy { limits, ..driver::policy() };
    let mut rms = Driver::with(policy, &[10]);
    let app = rms.connect();
    rms.pass(0);
    assert_eq!(rms.views(app).non_preemptible, cap(&[(FOREVER, 6)]));
    let refused = rms.rms.request(app, ask(PreAllocation, 7, 10), 0);
    assert_eq!(refused, Err(Refusal::TooMany { nodes: 7, most: 6 }));
    let a = rms.request(app, ask(NonPreemptible, 4, 100));
    let b = rms.request(app, ask(NonPreemptible, 4, 100));
    rms.pass(0);
    assert_eq!(rms.nodes(app, a).len(), 4);
    assert_eq!(rms.scheduled(app, b), Some(100));
    rms.request(app, ask(Preemptible, 10, 100));
    let refused = rms.rms.request(app, ask(Preemptible, 1, 10), 0);
    assert_eq!(refused, Err(Refusal::TooManyRequests(3)));
}

#[test]
fn nodes_are_neighbours_where_that_is_wanted() {
    let policy = Policy { choice: NodeChoice::Contiguous, ..driver::policy() };
    let mut rms = Driver::with(policy, &[10]);
    let app = rms.connect();
    let a = rms.request(app, ask(NonPreemptible, 2, FOREVER));
    let mut near = ask(NonPreemptible, 1, FOREVER);
    near.preferred = vec![5, 7];
    let b = rms.request(app, near);
    rms.pass(0);
    assert_eq!((rms.nodes(app, a), rms.nodes(app, b)), (vec![0, 1], vec![5]));
    let c = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(1);
    assert_eq!(rms.nodes(app, c), [6, 7, 8, 9]);
}

#[test]
fn an_update_of_a_waiting_request_takes_its_place() {
    let mut rms = Driver::new(10);
    let app = rms.connect();
    rms.request(app, ask(NonPreemptible, 10, 100));
    rms.pass(0);
    let waits = rms.request(app, ask(NonPreemptible, 8, 10));
    let update =
        Update { of: waits, nodes: 3, duration_ns: 20, announce_ns: 0, released: Vec::new() };
    assert_eq!(rms.rms.update(app, &update, 1), Ok(waits));
    rms.pass(1);
    assert_eq!(rms.scheduled(app, waits), Some(100));
    rms.pass(100);
    assert_eq!(rms.nodes(app, waits).len(), 3);
}
