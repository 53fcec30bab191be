// SPDX-License-Identifier: GPL-2.0
//! Sessions and requests as the report describes them.  Documentation/features.rst names the tests
//! of each feature.

mod driver;

use driver::{ask, next, policy, starts, viewers, with, Driver};
use pbs_profile::view::{Cap, Step};
use pbs_rms::{
    Ask, Counters, Event, Kind, Notice, Policy, Refusal, Relation, Rms, Session, Unusable, Update,
    FOREVER,
};
use Kind::{NonPreemptible, PreAllocation, Preemptible};

fn cap(from_ns: u64, steps: &[(u64, u64)]) -> Cap {
    let steps = steps.iter().map(|&(ns, nodes)| Step::new(ns, nodes));
    Cap::new(from_ns, &steps.collect::<Vec<_>>())
}

#[test]
fn sessions_come_in_the_order_of_connection_and_end_with_all_their_requests() {
    let mut rms = Driver::new(10);
    let first = rms.rms.connect("first", 0);
    let second = rms.rms.connect("second", 0);
    assert!(first < second);
    let names = rms.rms.sessions().map(|(_, session)| session.name.clone());
    assert_eq!(names.collect::<Vec<_>>(), ["first", "second"]);
    // Both ask before the pass, the second one first.
    let late = rms.request(second, ask(NonPreemptible, 6, 100));
    let early = rms.request(first, ask(NonPreemptible, 6, 100));
    assert_eq!(starts(&rms.pass(0)), [early]);
    assert_eq!(rms.scheduled(second, late), Some(100));
    rms.rms.disconnect(first, 7).expect("it is there");
    assert_eq!(starts(&rms.pass(7)), [late]);
    let closed = rms.rms.take_closed();
    assert_eq!(closed.len(), 1);
    assert_eq!((closed[0].app, closed[0].name.as_str()), (first, "first"));
    assert_eq!(closed[0].account.non_preemptible_node_ns, 6 * 7);
    let asked = rms.rms.request(first, ask(NonPreemptible, 1, 1), 7);
    assert_eq!(asked, Err(Refusal::UnknownSession));
}

#[test]
fn a_request_has_all_its_attributes() {
    let mut rms = Driver::with(policy(), &[4, 8]);
    let app = rms.connect();
    let all = rms.request(app, Ask { cluster: 1, ..ask(PreAllocation, 6, 70) });
    let asked = Ask {
        cluster: 1,
        nodes: 3,
        duration_ns: 50,
        kind: NonPreemptible,
        relation: Relation::Coalloc(all),
        preferred: vec![7, 2],
    };
    let used = rms.request(app, asked.clone());
    let of = |rms: &Driver, place: usize| {
        let session = rms.rms.session(app).expect("it is there");
        session.requests[place].clone()
    };
    let request = of(&rms, 1);
    assert_eq!((request.id, &request.ask), (used, &asked));
    assert_eq!((request.started_ns, request.granted), (None, 0));
    rms.pass(5);
    let (marks, request) = (of(&rms, 0), of(&rms, 1));
    // A pre-allocation never has nodes.
    assert_eq!((marks.started_ns, marks.nodes.len()), (Some(5), 0));
    assert_eq!((request.started_ns, request.end_ns()), (Some(5), Some(55)));
    assert_eq!((request.granted, request.nodes), (3, vec![7, 2, 0]));

    // What has no meaning is refused, and takes no number.
    let mut refused = |asked: Ask| rms.rms.request(app, asked, 5);
    let empty = Err(Refusal::Empty);
    assert_eq!(refused(ask(NonPreemptible, 0, 5)), empty);
    assert_eq!(refused(ask(NonPreemptible, 5, 0)), empty);
    let many = Err(Refusal::TooMany { nodes: 5, most: 4 });
    assert_eq!(refused(ask(NonPreemptible, 5, 5)), many);
    let far = Ask { cluster: 2, ..ask(NonPreemptible, 1, 5) };
    assert_eq!(refused(far), Err(Refusal::UnknownCluster { cluster: 2, clusters: 2 }));
    let gone = pbs_rms::RequestId(used.0 + 1);
    let hangs = next(gone, ask(NonPreemptible, 1, 5));
    assert_eq!(refused(hangs), Err(Refusal::UnknownRequest(gone)));
    assert_eq!(rms.request(app, ask(NonPreemptible, 1, 5)), gone);
}

#[test]
fn done_names_the_released_nodes() {
    let mut rms = Driver::new(10);
    let app = rms.connect();
    let old = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    let less = rms.request(app, next(old, ask(NonPreemptible, 2, FOREVER)));
    let wrong = |named| Err(Refusal::Released { named, needed: 2 });
    assert_eq!(rms.rms.done(app, old, &[], 40), wrong(0));
    assert_eq!(rms.rms.done(app, old, &[0, 1, 2], 40), wrong(3));
    assert_eq!(rms.rms.done(app, old, &[0, 4], 40), Err(Refusal::NotHeld(4)));
    assert_eq!(rms.nodes(app, old), [0, 1, 2, 3]);
    assert_eq!(rms.rms.done(app, old, &[0, 2], 40), Ok(()));
    let told = rms.pass(40);
    assert_eq!(starts(&told), [less]);
    assert_eq!(rms.nodes(app, less), [1, 3]);
    // It has lasted until now, and not for ever.
    let session = rms.rms.session(app).expect("it is there");
    assert_eq!(session.account_at(50).non_preemptible_node_ns, 4 * 40 + 2 * 10);
    // Without a successor all nodes go back; what has not started is deleted.
    let waits = rms.request(app, ask(NonPreemptible, 9, 5));
    rms.pass(41);
    rms.done(50, app, less);
    rms.done(50, app, waits);
    assert!(rms.pass(50).iter().all(|n| starts(std::slice::from_ref(n)).is_empty()));
    assert_eq!(rms.rms.idle(0).len(), 10);
    assert_eq!(rms.rms.session(app).map(|s| s.requests.len()), Some(0));
}

#[test]
fn an_update_is_both_messages_at_once() {
    let begin = || {
        let mut rms = Driver::new(10);
        let app = rms.connect();
        let old = rms.request(app, ask(NonPreemptible, 4, FOREVER));
        rms.pass(0);
        (rms, app, old)
    };
    // In two, with a pass in between: the successor is neither started nor refused.
    let (mut rms, app, old) = begin();
    let more = rms.request(app, next(old, ask(NonPreemptible, 6, FOREVER)));
    assert!(rms.pass(10).iter().all(|n| matches!(n.event, Event::Views { .. })));
    assert_eq!((rms.scheduled(app, more), rms.nodes(app, more)), (None, vec![]));
    rms.done(20, app, old);
    assert_eq!(starts(&rms.pass(20)), [more]);
    let in_two = rms.nodes(app, more);
    // In one it is the same.
    let (mut rms, app, old) = begin();
    let more = rms.update(20, app, old, 6, 0, &[]).expect("there is room");
    assert_eq!(starts(&rms.pass(20)), [more]);
    assert_eq!(rms.nodes(app, more), in_two);
    // All of it or nothing: the first half was right.
    let before = rms.rms.session(app).map(|s| s.requests.clone());
    let wrong = rms.update(30, app, more, 2, 0, &[9, 8, 7, 6]);
    assert_eq!(wrong, Err(Refusal::NotHeld(9)));
    let wrong = rms.update(30, app, more, 2, 10, &[9, 8, 7, 6]);
    assert_eq!(wrong, Err(Refusal::NotHeld(9)));
    assert_eq!(rms.rms.session(app).map(|s| s.requests.clone()), before);
}

#[test]
fn requests_outside_a_pre_allocation_are_wrapped_in_one() {
    let mut rms = Driver::with(policy(), &[10, 6]);
    let (app, other) = (rms.connect(), rms.connect());
    let on = |cluster, request: Ask| Ask { cluster, ..request };
    let all = rms.request(app, ask(PreAllocation, 6, FOREVER));
    let used = rms.request(app, with(all, ask(NonPreemptible, 5, FOREVER)));
    // The pre-allocation is of another cluster, so this one is wrapped.
    rms.request(app, on(1, ask(NonPreemptible, 4, 100)));
    rms.pass(0);
    let free = |rms: &Driver, cluster| {
        let views = rms.rms.views(other, cluster).expect("both are there");
        views.non_preemptible
    };
    assert_eq!(free(&rms, 0), cap(0, &[(FOREVER, 4)]));
    assert_eq!(free(&rms, 1), cap(0, &[(100, 2), (FOREVER, 6)]));
    // Inside, nothing changes for others; what outgrows it takes the difference, and only as
    // long as it does.
    let used = rms.update(1, app, used, 6, 0, &[]).expect("it is inside");
    rms.pass(1);
    assert_eq!(free(&rms, 0), cap(1, &[(FOREVER, 4)]));
    let used = rms.update(2, app, used, 9, 0, &[]).expect("there is room");
    rms.pass(2);
    assert_eq!(free(&rms, 0), cap(2, &[(FOREVER, 1)]));
    assert_eq!(rms.update(3, app, used, 10, 0, &[]).map(|_| ()), Ok(()));
    rms.pass(3);
    assert_eq!(free(&rms, 0), cap(3, &[(FOREVER, 0)]));
    let used = rms.rms.session(app).expect("it is there").requests.clone();
    let used = used.iter().find(|r| r.ask.nodes == 10).expect("it runs");
    let few = rms.update(4, app, used.id, 2, 0, &used.nodes[2..]);
    few.expect("all are its own");
    rms.pass(4);
    assert_eq!(free(&rms, 0), cap(4, &[(FOREVER, 4)]));
}

#[test]
fn a_preemptible_request_may_get_fewer_nodes() {
    // A.1: a malleable one asks for more while one that evolves does, before one pass.
    let mut rms = Driver::new(10);
    let (nea, app) = (rms.connect(), rms.connect());
    let all = rms.request(nea, ask(PreAllocation, 8, FOREVER));
    let used = rms.request(nea, with(all, ask(NonPreemptible, 3, FOREVER)));
    rms.pass(0);
    let spare = rms.request(app, ask(Preemptible, 2, FOREVER));
    rms.pass(1);
    let wanted = rms.update(2, app, spare, 7, 0, &[]).expect("it may ask");
    let more = rms.update(2, nea, used, 6, 0, &[]).expect("it is inside");
    assert_eq!(starts(&rms.pass(2)), [more, wanted]);
    let session = rms.rms.session(app).expect("it is there");
    assert_eq!((session.requests[0].ask.nodes, session.requests[0].granted), (7, 4));
    assert_eq!(rms.nodes(app, wanted).len(), 4);
    // With what runs to completion it starts with what there is: its parent is not moved.
    let third = rms.connect();
    let firm = rms.request(nea, ask(NonPreemptible, 2, FOREVER));
    rms.done(3, app, wanted);
    rms.pass(3);
    let least = rms.request(third, ask(NonPreemptible, 1, FOREVER));
    let extra = rms.request(third, with(least, ask(Preemptible, 8, FOREVER)));
    assert_eq!(rms.nodes(nea, firm).len(), 2);
    assert_eq!(starts(&rms.pass(4)), [least, extra]);
    assert_eq!(rms.nodes(third, extra).len(), 10 - 6 - 2 - 1);
}

#[test]
fn a_request_that_cannot_start_with_its_parent_never_starts() {
    let mut rms = Driver::new(10);
    let (blocker, app) = (rms.connect(), rms.connect());
    let rest = rms.request(blocker, ask(NonPreemptible, 5, FOREVER));
    let all = rms.request(app, ask(PreAllocation, 4, FOREVER));
    // More than is pre-allocated, and others have the rest.
    let used = rms.request(app, with(all, ask(NonPreemptible, 6, FOREVER)));
    let told = rms.pass(0);
    assert!(starts(&told).contains(&all) && !starts(&told).contains(&used));
    assert_eq!(rms.scheduled(app, used), None);
    assert_eq!(starts(&rms.pass(50)), []);
    // A later, larger one lets it start late.
    rms.done(60, blocker, rest);
    let larger = rms.update(60, app, all, 6, 0, &[]).expect("there is room");
    let told = rms.pass(60);
    assert!(starts(&told).contains(&larger) && starts(&told).contains(&used));

    // An anchor is not moved, nor is what hangs on it: beside 6 nodes there are too few until
    // 120, and nothing is promised for then.
    let (mut rms, app) = (Driver::new(10), pbs_rms::AppId(2));
    let blocker = rms.connect();
    rms.request(blocker, ask(NonPreemptible, 6, 100));
    rms.connect();
    rms.pass(0);
    let all = rms.request(app, ask(PreAllocation, 8, FOREVER));
    let first = rms.request(app, with(all, ask(NonPreemptible, 6, 20)));
    let second = rms.request(app, with(all, ask(NonPreemptible, 4, 20)));
    rms.pass(1);
    let at = [all, first, second].map(|id| rms.scheduled(app, id));
    assert_eq!(at, [Some(100), Some(100), None]);
    assert_eq!(starts(&rms.pass(100)), [all, first]);
    assert_eq!(starts(&rms.pass(120)), [second]);
}

#[test]
fn a_pre_allocation_that_cannot_grow_is_as_it_was() {
    // The example of A.6.
    let mut rms = Driver::new(10);
    let (app, other) = (rms.connect(), rms.connect());
    let all = rms.request(app, ask(PreAllocation, 6, FOREVER));
    rms.request(other, ask(PreAllocation, 4, FOREVER));
    rms.pass(0);
    let before = rms.rms.session(app).map(|s| s.requests.clone());
    assert_eq!(rms.update(5, app, all, 8, 0, &[]), Err(Refusal::NoRoom));
    assert_eq!(rms.update(5, app, all, 8, 9, &[]), Err(Refusal::NoRoom));
    let many = Err(Refusal::TooMany { nodes: 11, most: 10 });
    assert_eq!(rms.update(5, app, all, 11, 0, &[]), many);
    assert_eq!(rms.rms.session(app).map(|s| s.requests.clone()), before);
    rms.pass(5);
    assert_eq!(rms.views(app).non_preemptible, cap(5, &[(FOREVER, 6)]));
    assert_eq!(rms.views(other).non_preemptible, cap(5, &[(FOREVER, 4)]));
}

fn seen(notices: &[Notice]) -> Vec<(pbs_rms::AppId, usize)> {
    let views = notices.iter().filter_map(|notice| match notice.event {
        Event::Views { cluster } => Some((notice.app, cluster)),
        _ => None,
    });
    views.collect()
}

#[test]
fn only_sessions_whose_view_changed_are_notified() {
    let mut rms = Driver::with(policy(), &[4, 8]);
    let app = rms.connect();
    assert_eq!(seen(&rms.pass(0)), [(app, 0), (app, 1)]);
    assert_eq!(rms.pass(0), []);
    let other = rms.connect();
    assert_eq!(seen(&rms.pass(1)), [(other, 0), (other, 1)]);
    let on_second = Ask { cluster: 1, ..ask(NonPreemptible, 3, 50) };
    let used = rms.request(app, on_second);
    // What it has itself it still could have: its own view changes for what is preempted.
    assert_eq!(seen(&rms.pass(2)), [(app, 1), (other, 1)]);
    // As time goes on the same is seen, of which less is left.
    assert_eq!(rms.pass(30), []);
    let told = rms.pass(52);
    assert!(matches!(told[0].event, Event::Ended { request, .. } if request == used));
    // Both have seen that end before.
    assert_eq!(seen(&told), []);
    // And what ends early is news.
    let used = rms.request(app, ask(NonPreemptible, 3, 50));
    rms.pass(53);
    rms.done(60, app, used);
    assert_eq!(seen(&rms.pass(60)), [(app, 0), (other, 0)]);
}

#[test]
fn gaps_are_filled_where_that_delays_nobody() {
    let mut rms = Driver::new(10);
    let mut one = |nodes, duration_ns| {
        let app = rms.connect();
        (app, rms.request(app, ask(PreAllocation, nodes, duration_ns)))
    };
    let all = [one(6, 100), one(8, 50), one(4, 101), one(4, 100), one(2, 150)];
    rms.pass(0);
    let at = all.map(|(app, id)| rms.scheduled(app, id));
    // The third would delay the second, which is planned, by 1: it comes after it. The fourth
    // does not. The last has room where the first and the fourth end.
    assert_eq!(at, [None, Some(100), Some(150), None, Some(100)]);
}

#[test]
fn non_preemptible_requests_are_placed_inside_pre_allocations() {
    let mut rms = Driver::new(16);
    let app = rms.connect();
    let all = rms.request(app, ask(PreAllocation, 8, FOREVER));
    let first = rms.request(app, with(all, ask(NonPreemptible, 5, 40)));
    let second = rms.request(app, ask(NonPreemptible, 5, 40));
    let third = rms.request(app, ask(NonPreemptible, 3, 10));
    assert_eq!(starts(&rms.pass(0)), [all, first, third]);
    // There are 8 nodes beside it, but it is to be inside, where there is room at 40.
    assert_eq!(rms.scheduled(app, second), Some(40));
    assert_eq!(starts(&rms.pass(40)), [second]);
    // What waits for a pre-allocation that waits is placed in that.
    let (blocker, late) = (rms.connect(), rms.connect());
    rms.request(blocker, ask(NonPreemptible, 8, 100));
    rms.pass(41);
    let later = rms.request(late, ask(PreAllocation, 7, 50));
    let inside = rms.request(late, ask(NonPreemptible, 7, 50));
    rms.pass(42);
    assert_eq!(rms.scheduled(late, later), Some(141));
    assert_eq!(rms.scheduled(late, inside), Some(141));
}

/// Requests that pre-allocations cannot serve are as if they had one of their size (3.2).
#[test]
fn what_a_pre_allocation_is_too_small_for_has_the_rest_beside_it() {
    let limits = pbs_rms::Limits { nodes: 14, ..pbs_rms::Limits::default() };
    for policy in [policy(), Policy { limits, ..policy() }] {
        let mut rms = Driver::with(policy, &[16]);
        let (app, other) = (rms.connect(), rms.connect());
        let marks = rms.request(app, ask(PreAllocation, 10, FOREVER));
        let large = rms.request(app, with(marks, ask(NonPreemptible, 12, 100)));
        assert_eq!(starts(&rms.pass(0)), [marks, large]);
        assert_eq!(rms.nodes(app, large).len(), 12);
        // Others have what neither of both has.
        assert_eq!(rms.views(other).non_preemptible.at(0), 4);
        assert_eq!(rms.views(other).non_preemptible.at(100), 6);
        // Another one waits until there is room for both, and is seen by others.
        let later = rms.request(app, ask(NonPreemptible, 13, 50));
        rms.pass(1);
        assert_eq!(rms.scheduled(app, later), Some(100));
        assert_eq!(rms.views(other).non_preemptible.at(100), 3);
        // What comes after it has the nodes that it leaves.
        let rest = rms.request(other, ask(NonPreemptible, 4, 300));
        rms.pass(2);
        assert_eq!(rms.scheduled(other, rest), Some(150));
        rms.done(3, app, later);
        assert_eq!(starts(&rms.pass(3)), [rest]);
        // Where others have the rest, it waits for that.
        let later = rms.request(app, ask(NonPreemptible, 13, 50));
        rms.pass(4);
        assert_eq!(rms.scheduled(app, later), Some(303));
    }
}

/// Returns the view and the number of nodes of each session that wants preemptible nodes, once all
/// have given back the nodes beyond their views.
fn parts(nodes: u64, wants: &[u64], is_strict: bool) -> Vec<(u64, u64)> {
    let policy = Policy { is_strict, ..policy() };
    let mut rms = Driver::with(policy, &[u32::try_from(nodes).expect("few")]);
    let apps: Vec<_> = wants.iter().map(|_| rms.connect()).collect();
    for (&app, &wanted) in apps.iter().zip(wants) {
        if wanted > 0 {
            rms.request(app, ask(Preemptible, wanted, FOREVER));
        }
    }
    rms.pass(0);
    let part = |&app| {
        let session = rms.rms.session(app).expect("it is there");
        let held = session.requests.iter().map(|r| r.nodes.len() as u64);
        (rms.views(app).preemptible.at(0), held.sum())
    };
    apps.iter().map(part).collect()
}

#[test]
fn sessions_see_their_share_or_the_rest_of_others() {
    assert_eq!(parts(12, &[3, 5, 0], false), [(7, 3), (9, 5), (4, 0)]);
    // Strictly, those two see 6 each, and one that comes would be one of three.
    assert_eq!(parts(12, &[3, 5, 0], true), [(6, 3), (6, 5), (4, 0)]);
    // Nobody has more than its part there, whatever another leaves.
    assert_eq!(parts(10, &[3, 9], true), [(5, 3), (5, 5)]);
    // Active are those that want something: of none, one has all.
    assert_eq!(parts(12, &[0, 0], false), [(12, 0), (12, 0)]);
    assert_eq!(parts(12, &[12, 0], false), [(12, 12), (6, 0)]);
}

#[test]
fn a_session_that_becomes_active_takes_its_share() {
    let mut rms = Driver::new(12);
    let (first, second) = (rms.connect(), rms.connect());
    let spare = rms.request(first, ask(Preemptible, 12, FOREVER));
    rms.pass(0);
    assert_eq!(rms.views(second).preemptible.at(0), 6);
    let late = rms.request(second, ask(Preemptible, 6, FOREVER));
    let told = rms.pass(1);
    assert_eq!(viewers(&told), [first]);
    assert_eq!(rms.views(first).preemptible.at(1), 6);
    rms.update(2, first, spare, 6, 0, &[0, 1, 2, 3, 4, 5]).expect("all are its own");
    assert!(starts(&rms.pass(2)).contains(&late));
    // Inactive again, it leaves all to the first.
    rms.done(3, second, late);
    rms.pass(3);
    assert_eq!(rms.views(first).preemptible.at(3), 12);
    assert_eq!(rms.views(second).preemptible.at(3), 6);
}

#[test]
fn an_announcement_may_be_changed_until_it_takes_effect() {
    let mut rms = Driver::new(10);
    let (app, other) = (rms.connect(), rms.connect());
    let used = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    let soon = rms.update(0, app, used, 6, 100, &[]).expect("room");
    rms.pass(0);
    // The horizon of what can be predicted moves on: it is 7, as soon.
    let update =
        Update { of: soon, nodes: 7, duration_ns: FOREVER, announce_ns: 0, released: Vec::new() };
    assert_eq!(rms.rms.update(app, &update, 40), Ok(soon));
    rms.pass(40);
    let left = cap(40, &[(60, 6), (FOREVER, 3)]);
    assert_eq!(rms.views(other).preemptible, left);
    assert_eq!(starts(&rms.pass(100)), [soon]);
    assert_eq!(rms.nodes(app, soon).len(), 7);
}

/// Returns the state that outlives a crash.
fn kept(rms: &Rms) -> (Counters, Vec<(pbs_rms::AppId, Session)>) {
    let sessions = rms.sessions().map(|(app, session)| {
        let text = serde_json::to_string(session).expect("plain values");
        (app, serde_json::from_str(&text).expect("its own"))
    });
    (rms.counters(), sessions.collect())
}

#[test]
fn sessions_and_nodes_outlive_a_crash() {
    let mut rms = Driver::new(10);
    let (nea, psa) = (rms.connect(), rms.connect());
    let all = rms.request(nea, ask(PreAllocation, 8, FOREVER));
    let used = rms.request(nea, with(all, ask(NonPreemptible, 3, FOREVER)));
    rms.request(psa, ask(Preemptible, 7, FOREVER));
    rms.pass(0);
    // It waits for nodes when the manager dies.
    let more = rms.update(5, nea, used, 6, 0, &[]).expect("it is inside");
    rms.pass(5);
    let (counters, sessions) = kept(&rms.rms);
    let restored = Rms::restore(policy(), counters.clone(), sessions.clone(), 6);
    let mut again = Driver { rms: restored.expect("it was right before"), now_ns: 6 };
    assert_eq!(again.nodes(nea, more), [0, 1, 2]);
    // All hear their views anew, and who keeps too much can answer: nobody was there before.
    assert_eq!(viewers(&again.pass(6)), [nea, psa]);
    assert_eq!(again.views(psa).preemptible.at(6), 4);
    assert_eq!(again.pass(10), []);
    let told = again.pass(11);
    let is_violation = |n: &Notice| matches!(n.event, Event::Violation { .. });
    assert!(told.iter().any(|n| n.app == psa && is_violation(n)));
    assert_eq!(starts(&told), [more]);
    assert_eq!(again.nodes(nea, more).len(), 6);
    // No number is given twice.
    let later = again.connect();
    assert!(later > psa);
    assert!(again.request(later, ask(NonPreemptible, 1, 1)) > more);

    // What can't have been is refused: a node with two owners.
    let mut twice = sessions;
    let stolen = twice[0].1.requests[1].nodes[0];
    twice[1].1.requests[0].nodes[0] = stolen;
    let refused = Rms::restore(policy(), counters, twice, 6);
    assert_eq!(refused.err(), Some(Unusable::Contradiction(psa)));
}
