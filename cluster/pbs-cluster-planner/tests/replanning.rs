// SPDX-License-Identifier: GPL-2.0
//! Changes of an existing plan (Keller, 5.4 and 8).

mod common;

use std::sync::Arc;

use common::*;
use pbs_cluster_planner::{
    Cause, Machine, Planner, Policy, Refusal, Request, RequestId, Rules, SearchBudget, State, When,
};

fn settle(planner: &mut Planner, now_s: u64) -> usize {
    let mut moved = 0;
    while planner.is_backfilling() {
        moved += planner.backfill(now_s, 8);
    }
    moved
}

fn starts(planner: &Planner, ids: &[RequestId]) -> Vec<Option<u64>> {
    ids.iter().map(|&id| start(planner, id)).collect()
}

fn after(ids: &[RequestId], request: Request) -> Request {
    Request { after: ids.to_vec(), ..request }
}

#[test]
fn a_follower_starts_after_its_predecessor() {
    let mut planner = nodes(&[8]);
    let first = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    let second = planner.submit(0, &after(&[first], ask("ncpus=4", 50))).unwrap();
    let third = planner.submit(0, &after(&[second, first], ask("ncpus=1", 10))).unwrap();
    assert_eq!(starts(&planner, &[second, third]), [Some(100), Some(150)]);
    let causes = planner.why(0, third);
    assert_eq!(causes[0], (Cause::After(second), Some(150)));
    // They move up with it, in one go.
    planner.start(0, &mut Vec::new());
    planner.remove(30, first);
    settle(&mut planner, 30);
    assert_eq!(starts(&planner, &[second, third]), [Some(30), Some(80)]);
    // And back, here as its node fails.
    let mut planner = nodes(&[8, 8]);
    let other = planner.submit(0, &ask("ncpus=8", 40)).unwrap();
    let first = planner.submit(0, &ask("ncpus=6", 20)).unwrap();
    let second = planner.submit(0, &after(&[first], ask("ncpus=1", 10))).unwrap();
    assert_eq!(starts(&planner, &[other, first, second]), [Some(0), Some(0), Some(20)]);
    planner.start(0, &mut Vec::new());
    planner.start_again(first);
    let node = planner.placed(first)[0].node as usize;
    planner.node_down(5, node);
    assert_eq!(starts(&planner, &[other, first, second]), [Some(0), Some(40), Some(60)]);
    // Longer than it was to be.
    planner.start(40, &mut Vec::new());
    planner.extend(first, 2, 100).unwrap();
    assert_eq!(starts(&planner, &[first, second]), [Some(40), Some(62)]);
}

/// Within the time in which its place was told, a request keeps its nodes. There it starts earlier
/// where that is possible.
#[test]
fn a_told_place_moves_up_on_its_nodes_alone() {
    let cases = [(true, 36, 36), (false, 36, 40), (true, 20, 20), (false, 20, 40)];
    for (frees_own, now_s, start_s) in cases {
        let policy = Policy { fixed_before_s: Some(5), ..Policy::default() };
        let specs = [spec("n1", 8), spec("n2", 8)];
        let machine = Arc::new(Machine::new(vec![ncpus()], &specs));
        let mut planner = Planner::with_policy(machine, Rules::default(), policy);
        let first = planner.submit(0, &ask("ncpus=8", 40)).unwrap();
        let other = planner.submit(0, &ask("ncpus=8", 100)).unwrap();
        let next = planner.submit(0, &ask("ncpus=8", 10)).unwrap();
        planner.start(0, &mut Vec::new());
        let own = names(&planner, first);
        assert_eq!((names(&planner, next), start(&planner, next)), (own.clone(), Some(40)));
        if now_s == 20 {
            // Before that time if it is said so.
            planner.set_told(std::iter::once(next).collect());
        }
        planner.remove(now_s, if frees_own { first } else { other });
        settle(&mut planner, now_s);
        assert_eq!((names(&planner, next), start(&planner, next)), (own, Some(start_s)));
    }
}

#[test]
fn a_follower_of_an_uncertain_outcome_is_held() {
    let mut planner = nodes(&[8]);
    let first = planner.submit(0, &ask("ncpus=8", 100)).unwrap();
    let held = Request { is_held: true, ..after(&[first], ask("ncpus=8", 50)) };
    let held = planner.submit(0, &held).unwrap();
    let behind = planner.submit(0, &after(&[held], ask("ncpus=1", 10))).unwrap();
    for id in [held, behind] {
        assert_eq!(planner.state(id), Some(State::Waiting));
    }
    // It takes nobody's place.
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=8", 10)), 100);
    planner.start(0, &mut Vec::new());
    planner.remove(20, first);
    settle(&mut planner, 20);
    assert_eq!(planner.plan_waiting(20), [0; 0]);
    planner.set_held(20, held, false);
    assert_eq!(planner.plan_waiting(20), [held, behind]);
    assert_eq!(starts(&planner, &[held, behind]), [Some(30), Some(80)]);
}

#[test]
fn an_altered_request_keeps_its_followers() {
    let mut planner = nodes(&[8]);
    let first = planner.submit(0, &ask("ncpus=8", 100)).unwrap();
    let second = planner.submit(0, &after(&[first], ask("ncpus=1", 10))).unwrap();
    planner.alter(0, first, &ask("ncpus=4", 200)).unwrap();
    assert_eq!(starts(&planner, &[first, second]), [Some(0), Some(200)]);
    let late = Request { when: When::Deadline { end_s: 50, late: false }, ..ask("ncpus=4", 60) };
    assert!(planner.alter(0, first, &late).is_err());
    planner.alter(0, first, &ask("ncpus=4", 300)).unwrap();
    assert_eq!(starts(&planner, &[first, second]), [Some(0), Some(300)]);
    planner.remove(0, first);
    settle(&mut planner, 0);
    assert_eq!(starts(&planner, &[second]), [Some(0)]);
}

#[test]
fn every_removal_lets_others_move_up() {
    let mut planner = nodes(&[4]);
    let ids: Vec<_> = (0..4).map(|_| planner.submit(0, &ask("ncpus=4", 10)).unwrap()).collect();
    planner.remove(0, ids[1]);
    assert!(planner.is_backfilling());
    assert_eq!(settle(&mut planner, 0), 2);
    assert_eq!(starts(&planner, &[ids[0], ids[2], ids[3]]), [Some(0), Some(10), Some(20)]);
}

#[test]
fn backfilling_moves_no_request_to_later() {
    let mut planner = nodes(&[4, 4]);
    let wide = planner.submit(0, &ask("2:ncpus=4", 10)).unwrap();
    let ids: Vec<_> = ["2:ncpus=3", "ncpus=4", "2:ncpus=1", "ncpus=2"]
        .iter()
        .map(|rset| planner.submit(0, &ask(rset, 15)).unwrap())
        .collect();
    let before = starts(&planner, &ids);
    planner.remove(0, wide);
    settle(&mut planner, 0);
    let later = starts(&planner, &ids);
    assert!(later.iter().zip(&before).all(|(now, then)| now <= then), "{before:?} {later:?}");
    assert_eq!(later[0], Some(0), "first fit");
    assert!(!planner.is_backfilling());
    assert_eq!(settle(&mut planner, 0), 0, "it comes to an end");
}

#[test]
fn a_submission_between_backfill_steps_is_planned_at_once() {
    let mut planner = nodes(&[4]);
    let ids: Vec<_> = (0..6).map(|_| planner.submit(0, &ask("ncpus=4", 10)).unwrap()).collect();
    planner.remove(0, ids[0]);
    assert_eq!(planner.backfill(0, 2), 2);
    // A request that comes between two looks is planned at once.
    let new = planner.submit(0, &ask("ncpus=4", 5)).unwrap();
    assert_eq!(start(&planner, new), Some(20));
    settle(&mut planner, 0);
    let all = starts(&planner, &ids[1..]);
    assert_eq!(all[..2], [Some(0), Some(10)]);
}

#[test]
fn backfill_decisions_are_counted() {
    let mut planner = nodes(&[4]);
    let ids: Vec<_> = (0..5).map(|_| planner.submit(0, &ask("ncpus=4", 10)).unwrap()).collect();
    assert_eq!(planner.decisions(), 0);
    planner.remove(0, ids[2]);
    settle(&mut planner, 0);
    assert_eq!(planner.decisions(), 2, "those behind it");
}

#[test]
fn a_request_without_room_because_of_a_defect_waits() {
    let mut planner = nodes(&[4, 4]);
    planner.node_down(0, 0);
    let wide = planner.submit(0, &ask("2:ncpus=4", 10)).unwrap();
    assert_eq!(planner.state(wide), Some(State::Waiting));
    assert!(planner.submit(0, &ask("3:ncpus=4", 10)).is_err(), "never");
    assert!(planner.submit(0, &fixed("2:ncpus=4", 5, 10)).is_err());
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=4", 10)), 0);
    planner.node_up(3, 0);
    assert_eq!(start(&planner, wide), Some(10));
}

#[test]
fn a_node_that_returns_gets_work() {
    let mut planner = nodes(&[4, 4]);
    planner.node_down(0, 0);
    let ids: Vec<_> = (0..3).map(|_| planner.submit(0, &ask("ncpus=4", 10)).unwrap()).collect();
    assert_eq!(starts(&planner, &ids), [Some(0), Some(10), Some(20)]);
    planner.node_up(5, 0);
    settle(&mut planner, 5);
    assert_eq!(starts(&planner, &ids[1..]), [Some(5), Some(10)]);
}

#[test]
fn nothing_is_planned_beyond_the_horizon() {
    let policy = Policy { horizon_s: Some(100), ..Policy::default() };
    let machine = nodes(&[4]).machine().clone();
    let mut planner = Planner::with_policy(machine.into(), Rules::default(), policy);
    let ids: Vec<_> = (0..5).map(|_| planner.submit(0, &ask("ncpus=4", 40)).unwrap()).collect();
    let near = [Some(0), Some(40), Some(80), None, None];
    assert_eq!(starts(&planner, &ids), near);
    // What could never be is refused, and fixed starts are as far as one likes.
    assert!(planner.submit(0, &ask("ncpus=5", 40)).is_err());
    assert_eq!(submit(&mut planner, 0, &fixed("ncpus=4", 500, 10)), 500);
    // It is looked at again before it would have to start.
    assert_eq!(planner.next_look_s(), Some(12));
    assert_eq!(planner.plan_waiting(12), [0; 0]);
    assert_eq!(planner.next_look_s(), Some(24));
    assert_eq!(planner.plan_waiting(24), [ids[3]]);
    assert_eq!(start(&planner, ids[3]), Some(120));
    // Or as soon as somebody leaves.
    planner.start(40, &mut Vec::new());
    planner.remove(50, ids[0]);
    planner.remove(50, ids[1]);
    settle(&mut planner, 50);
    planner.plan_waiting(50);
    assert_eq!(starts(&planner, &ids[2..]), [Some(50), Some(90), Some(130)]);
    assert_eq!(planner.next_look_s(), None);
}

#[test]
fn a_running_request_gives_back_and_gets_more() {
    let mut planner = nodes(&[4, 4, 8]);
    let id = planner.submit(0, &ask("4:ncpus=2", 100)).unwrap();
    let next = planner.submit(0, &ask("4:ncpus=4", 10)).unwrap();
    assert_eq!(
        (names(&planner, id), start(&planner, next)),
        (vec!["n1".into(), "n2".into()], Some(100))
    );
    let rset = |text: &str| text.parse().unwrap();
    assert!(planner.resize(0, id, &rset("2:ncpus=2")).is_err(), "it does not run");
    planner.start(0, &mut Vec::new());
    planner.resize(20, id, &rset("2:ncpus=2")).unwrap();
    assert_eq!(names(&planner, id), ["n1"]);
    let free: Vec<_> = planner.free(0).take_while(|it| it.0 < 100).collect();
    assert_eq!(free, [(0, 8), (20, 12)]);
    // More than is free for all of its time is not given.
    let taken = planner.submit(20, &ask("ncpus=8", 80)).unwrap();
    assert_eq!(start(&planner, taken), Some(20));
    let refused = planner.resize(30, id, &rset("5:ncpus=2"));
    assert!(matches!(refused, Err(Refusal::NotInTime { .. })), "{refused:?}");
    planner.resize(30, id, &rset("4:ncpus=2")).unwrap();
    assert_eq!(names(&planner, id), ["n1", "n2"]);
    // Chunks of another kind are another request.
    let other = planner.resize(30, id, &rset("4:ncpus=3"));
    assert_eq!(other, Err(Refusal::OtherChunks));
    planner.remove(40, id);
    planner.remove(40, taken);
    settle(&mut planner, 40);
    assert_eq!(start(&planner, next), Some(40));
    planner.remove(40, next);
    let free: Vec<_> = planner.free(0).filter(|it| it.0 >= 40).collect();
    assert_eq!(free, [(40, 16)]);
}

#[test]
fn whole_nodes_are_given_back_whole() {
    let mut planner = nodes(&[4, 4]);
    let request = ask("4:ncpus=2,place=free:excl", 100);
    let id = planner.submit(0, &request).unwrap();
    planner.start(0, &mut Vec::new());
    let rset = |count| format!("{count}:ncpus=2,place=free:excl").parse().unwrap();
    planner.resize(10, id, &rset(3)).unwrap();
    assert!(planner.submit(10, &fixed("ncpus=1", 10, 5)).is_err());
    planner.resize(20, id, &rset(2)).unwrap();
    let other = planner.submit(20, &fixed("ncpus=4", 20, 5)).unwrap();
    assert_eq!(names(&planner, other), ["n2"]);
    assert!(planner.resize(22, id, &rset(3)).is_err());
    planner.remove(25, other);
    planner.resize(25, id, &rset(3)).unwrap();
    assert_eq!(names(&planner, id), ["n1", "n2"]);
    planner.remove(30, id);
    let free: Vec<_> = planner.free(0).filter(|it| it.0 >= 30).collect();
    assert_eq!(free, [(30, 8)]);
}

#[test]
fn the_plan_follows_a_request_that_runs_elsewhere() {
    let mut planner = nodes(&[4, 4, 4]);
    let on = |planner: &Planner, id| {
        let placed = planner.placed(id).iter();
        placed.map(|placed| placed.node as usize).collect::<Vec<_>>()
    };
    let first = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    let second = planner.submit(0, &ask("ncpus=4", 50)).unwrap();
    let third = planner.submit(0, &ask("2:ncpus=4,place=scatter", 20)).unwrap();
    assert_eq!(starts(&planner, &[first, second, third]), [Some(0), Some(0), Some(50)]);
    planner.start(0, &mut Vec::new());
    let (of_first, of_second) = (on(&planner, first), on(&planner, second));
    // Beside what runs it has no room, and all stays as it was.
    assert!(planner.adopt(10, third, &[of_first[0], of_second[0]]).is_none());
    assert!(planner.adopt(10, third, &of_first).is_none());
    assert_eq!(starts(&planner, &[first, second, third]), [Some(0), Some(0), Some(50)]);
    // A short one is planned on the free node, and gives way to one that runs there.
    let free: Vec<usize> =
        (0..3).filter(|node| ![of_first[0], of_second[0]].contains(node)).collect();
    let short = planner.submit(10, &ask("ncpus=4", 10)).unwrap();
    let late = planner.submit(10, &ask("ncpus=4", 80)).unwrap();
    assert_eq!((on(&planner, short), start(&planner, short)), (free.clone(), Some(10)));
    let replanned = planner.adopt(10, late, &free).unwrap();
    assert_eq!(planner.state(late), Some(State::Running { start_s: 10, end_s: 90 }));
    assert_eq!(on(&planner, late), free);
    assert!(replanned.moved.contains(&short), "{replanned:?}");
    assert!(start(&planner, short) >= Some(50), "{:?}", planner.state(short));
    // One that is believed to run elsewhere leaves that.
    planner.remove(20, late);
    planner.remove(20, third);
    planner.remove(20, short);
    settle(&mut planner, 20);
    planner.adopt(20, second, &free).unwrap();
    assert_eq!(on(&planner, second), free);
    assert_eq!(submit(&mut planner, 20, &ask("ncpus=4", 10)), 20);
}

/// Parts of a node that are out of use are not planned; who has no room beside them moves, the
/// least important first, and who runs stays.
#[test]
fn parts_of_a_node_can_be_out_of_use() {
    let mut planner = nodes(&[8, 8]);
    let ids: Vec<_> = (0..4).map(|_| planner.submit(0, &ask("ncpus=4", 10)).unwrap()).collect();
    let on_first: Vec<_> =
        ids.iter().copied().filter(|&id| names(&planner, id) == ["n1"]).collect();
    assert_eq!(on_first.len(), 2);
    let node = planner.machine().node_by_name("n1").unwrap();
    let replanned = planner.set_defect(0, node, &[(0, 3)]);
    assert_eq!((planner.available(0), planner.machine().total(0)), (13, 16));
    assert_eq!((&replanned.moved[..], replanned.waiting.len()), (&on_first[1..], 0));
    assert_eq!(start(&planner, on_first[0]), Some(0));
    assert_eq!(start(&planner, on_first[1]), Some(10));
    // A whole node is one without a defect; what no node has now waits for the repair.
    let whole = planner.submit(0, &ask("ncpus=8", 10)).unwrap();
    assert_eq!(names(&planner, whole), ["n2"]);
    let both = planner.submit(0, &ask("2:ncpus=8", 10)).unwrap();
    assert_eq!(planner.state(both), Some(State::Waiting));
    let mut started = Vec::new();
    planner.start(0, &mut started);
    assert!(planner.set_defect(0, node, &[(0, 6)]).aborted.is_empty());
    assert_eq!(planner.state(on_first[0]), Some(State::Running { start_s: 0, end_s: 10 }));
    planner.remove(5, on_first[0]);
    assert_eq!(submit(&mut planner, 5, &ask("ncpus=2", 5)), 5);
    let repaired = planner.set_defect(5, node, &[]);
    assert_eq!((planner.available(0), planner.defect(node).len()), (16, 0));
    assert_eq!(repaired.moved, [both]);
}

/// A node with a defect that goes out of use and comes back has the defect still.
#[test]
fn a_defect_outlasts_a_time_out_of_use() {
    for (is_out_first, is_back_first) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let mut planner = nodes(&[8]);
        let mut steps: Vec<(u64, &str)> =
            vec![(1, "out"), (2, "defect"), (3, "back"), (4, "repair")];
        if !is_out_first {
            steps.swap(0, 1);
        }
        if !is_back_first {
            steps.swap(2, 3);
        }
        for (now_s, step) in steps {
            match step {
                "out" => drop(planner.node_offline(now_s, 0)),
                "back" => drop(planner.node_up(now_s, 0)),
                "defect" => drop(planner.set_defect(now_s, 0, &[(0, 3)])),
                _ => drop(planner.set_defect(now_s, 0, &[])),
            }
            let has = if planner.defect(0).is_empty() { 8 } else { 5 };
            assert_eq!(planner.available(0), if planner.is_usable(0) { has } else { 0 }, "{step}");
        }
        assert_eq!(submit(&mut planner, 5, &ask("ncpus=8", 10)), 5);
    }
}

/// A reservation on a node with a defect moves to another node, or does not use the node.
#[test]
fn a_reservation_leaves_defective_parts() {
    let mut planner = nodes(&[8, 8]);
    let held = planner.reserve(0, &fixed("ncpus=8", 100, 50)).unwrap();
    let node = planner.machine().node_by_name(&names(&planner, held)[0]).unwrap();
    let replanned = planner.set_defect(0, node, &[(0, 1)]);
    assert_eq!((&replanned.moved[..], &replanned.shrunk[..]), (&[held][..], &[][..]));
    let other = planner.machine().node_by_name(&names(&planner, held)[0]).unwrap();
    assert_ne!(node, other);
    let replanned = planner.set_defect(0, other, &[(0, 1)]);
    assert_eq!((&replanned.moved[..], &replanned.shrunk[..]), (&[][..], &[held][..]));
    assert!(planner.submit_in(0, held, &ask("ncpus=1", 10)).is_err());
    planner.set_defect(0, other, &[]);
    assert!(planner.submit_in(0, held, &ask("ncpus=1", 10)).is_ok());
}

/// A closed node gets nothing that would run while it is closed. What was planned then moves, what
/// runs continues, and the other nodes are planned as before.
#[test]
fn a_closed_node_is_planned_before_and_after_its_time() {
    let mut planner = nodes(&[8, 8]);
    let node = planner.machine().node_by_name("n1").unwrap();
    let running = planner.submit(0, &ask("2:ncpus=5", 30)).unwrap();
    planner.start(0, &mut Vec::new());
    let later = planner.submit(0, &ask("2:ncpus=8", 10)).unwrap();
    assert_eq!(starts(&planner, &[later]), [Some(30)]);
    let replanned = planner.set_closed_all(0, vec![(node, vec![20..60, 50..70])]);
    assert_eq!(replanned.moved, [later]);
    let union = std::slice::from_ref(&(20..70));
    assert_eq!(planner.closed(node), union);
    assert_eq!(starts(&planner, &[running, later]), [Some(0), Some(70)]);
    // It fits before that time, but not a second longer.
    let before = planner.submit(0, &ask("2:ncpus=3", 20)).unwrap();
    let across = planner.submit(0, &ask("2:ncpus=8", 21)).unwrap();
    assert_eq!(starts(&planner, &[before, across]), [Some(0), Some(80)]);
    let other = planner.submit(0, &ask("ncpus=8", 40)).unwrap();
    assert_eq!((start(&planner, other), names(&planner, other)), (Some(30), vec!["n2".into()]));
    // The same times change nothing, and the node opens early.
    let same = planner.set_closed_all(25, vec![(node, union.to_vec())]);
    assert_eq!(same, Default::default());
    planner.remove(30, running);
    planner.set_closed_all(40, vec![(node, Vec::new())]);
    settle(&mut planner, 40);
    assert!(planner.closed(node).is_empty());
    assert_eq!(submit(&mut planner, 40, &ask("ncpus=8", 10)), 40);
}

/// A node that is out of use is named to those whom it would help, and to no others.
#[test]
fn a_node_that_is_out_of_use_is_a_cause() {
    let mut planner = nodes(&[8, 8, 2]);
    let node = |name: &str| planner.machine().node_by_name(name).unwrap();
    let (big, small) = (node("n1"), node("n3"));
    planner.node_offline(0, big);
    planner.node_offline(0, small);
    let first = planner.submit(0, &ask("ncpus=8", 50)).unwrap();
    let next = planner.submit(0, &ask("ncpus=8", 10)).unwrap();
    let causes = planner.why(0, next);
    assert!(causes.contains(&(Cause::Out(vec![big]), None)), "{causes:?}");
    let told: Vec<_> = causes.iter().map(|(of, _)| of.describe(planner.machine())).collect();
    assert!(told.contains(&"node n1, which is out of use".into()), "{told:?}");
    assert_eq!(planner.why(0, first), []);
    planner.node_up(0, big);
    settle(&mut planner, 0);
    assert_eq!(planner.why(0, next), []);
}

/// A node with a defect is named to those whom the defective parts would help, and to no others.
#[test]
fn a_node_with_a_defect_is_a_cause() {
    let mut planner = nodes(&[8, 8, 2]);
    let node = |name: &str| planner.machine().node_by_name(name).unwrap();
    let (big, small) = (node("n1"), node("n3"));
    planner.set_defect(0, big, &[(0, 2)]);
    planner.set_defect(0, small, &[(0, 1)]);
    let first = planner.submit(0, &ask("ncpus=8", 50)).unwrap();
    assert_eq!(planner.why(0, first), []);
    // Of chunks of 4 cores, n1 has room for one instead of two; for 6 cores the rest suffices.
    for (rset, named) in [("2:ncpus=8", true), ("3:ncpus=4", true), ("ncpus=6", false)] {
        let id = planner.submit(0, &ask(rset, 10)).unwrap();
        let causes = planner.why(0, id);
        let cause = (Cause::Defective(vec![big]), None);
        assert_eq!(causes.contains(&cause), named, "{rset}: {causes:?}");
        let told: Vec<_> = causes.iter().map(|(of, _)| of.describe(planner.machine())).collect();
        assert_eq!(told.contains(&"node n1, which has a defect".into()), named, "{told:?}");
        planner.remove(0, id);
    }
    let whole = planner.submit(0, &ask("ncpus=1,place=free:excl", 10)).unwrap();
    let mut both = vec![big, small];
    both.sort_unstable();
    assert!(planner.why(0, whole).contains(&(Cause::Defective(both), None)));
    planner.remove(0, whole);
    // A node that is out of use is named for that alone.
    let wide = planner.submit(0, &ask("2:ncpus=8", 10)).unwrap();
    planner.node_offline(0, big);
    let causes = planner.why(0, wide);
    assert!(causes.contains(&(Cause::Out(vec![big]), None)), "{causes:?}");
    assert!(!causes.iter().any(|(of, _)| matches!(of, Cause::Defective(_))), "{causes:?}");
    planner.node_up(0, big);
    planner.set_defect(0, big, &[]);
    settle(&mut planner, 0);
    assert_eq!(planner.why(0, wide), [(Cause::Used(0), Some(50)), (Cause::Nodes, Some(50))]);
}

/// Nodes that are closed together are planned round once: a request does not hop from one to the
/// next, and takes no place that is closed, too.
#[test]
fn nodes_that_are_closed_together_are_planned_round_once() {
    let mut planner = nodes(&[4, 4, 4, 4]);
    let ids: Vec<_> = (0..4).map(|_| planner.submit(0, &ask("ncpus=4", 10)).unwrap()).collect();
    let wide = planner.submit(0, &ask("4:ncpus=4", 10)).unwrap();
    assert_eq!(starts(&planner, &[wide]), [Some(10)]);
    let node = |name: &str| planner.machine().node_by_name(name).unwrap();
    let closed: Vec<_> = ["n1", "n2", "n3"]
        .map(|name| (node(name), std::iter::once(0..100).collect::<Vec<_>>()))
        .into();
    let replanned = planner.set_closed_all(0, closed);
    let mut moved = replanned.moved.clone();
    moved.sort_unstable();
    moved.dedup();
    assert_eq!(moved.len(), replanned.moved.len(), "{replanned:?}");
    assert_eq!(starts(&planner, &[wide]), [Some(100)]);
    let mut all = starts(&planner, &ids);
    all.sort_unstable();
    assert_eq!(all, [Some(0), Some(10), Some(20), Some(30)]);
    assert!(ids.iter().all(|&id| names(&planner, id) == ["n4"]));
}

/// Nodes that are lost together are planned round once, and give back all that they had.
#[test]
fn nodes_that_are_lost_together_are_planned_round_once() {
    let mut planner = nodes(&[4, 4, 4, 4]);
    let running = planner.submit(0, &ask("4:ncpus=1,place=scatter", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    let ids: Vec<_> = (0..4).map(|_| planner.submit(0, &ask("ncpus=3", 10)).unwrap()).collect();
    let free: Vec<_> = planner.free(0).collect();
    let lost = ["n1", "n2", "n3"].map(|name| planner.machine().node_by_name(name).unwrap());
    let replanned = planner.nodes_offline(0, &lost);
    let mut moved = replanned.moved.clone();
    moved.sort_unstable();
    moved.dedup();
    assert_eq!(moved.len(), replanned.moved.len(), "{replanned:?}");
    assert!(ids.iter().all(|&id| names(&planner, id) == ["n4"]));
    assert_eq!(planner.available(0), 4);
    assert_eq!(planner.free(0).next(), Some((0, 0)), "one core runs, and three are planned");
    planner.nodes_up(0, &lost);
    settle(&mut planner, 0);
    assert_eq!(
        (starts(&planner, &ids), starts(&planner, &[running])),
        (vec![Some(0); 4], vec![Some(0)])
    );
    assert_eq!(planner.free(0).collect::<Vec<_>>(), free);
}

/// Times in which a node is closed outlast that it is out of use, and its defects.
#[test]
fn a_closed_time_outlasts_other_changes_of_a_node() {
    let changes: [fn(&mut Planner, u64, bool); 3] = [
        |planner, now_s, is| {
            let times: Vec<_> = is.then_some(100..200).into_iter().collect();
            drop(planner.set_closed_all(now_s, vec![(0, times)]));
        },
        |planner, now_s, is| drop(planner.set_defect(now_s, 0, if is { &[(0, 3)] } else { &[] })),
        |planner, now_s, is| {
            drop(if is { planner.node_offline(now_s, 0) } else { planner.node_up(now_s, 0) });
        },
    ];
    for first in 0..3 {
        for second in (0..3).filter(|&second| second != first) {
            let third = 3 - first - second;
            for undone in [[first, second, third], [third, second, first], [second, first, third]] {
                let mut planner = nodes(&[8, 2]);
                for (now_s, of) in [first, second, third].into_iter().enumerate() {
                    changes[of](&mut planner, now_s as u64, true);
                }
                let other = planner.submit(3, &ask("ncpus=2", 500)).unwrap();
                assert_eq!(starts(&planner, &[other]), [Some(3)]);
                planner.remove(3, other);
                for (now_s, of) in undone.into_iter().enumerate() {
                    changes[of](&mut planner, now_s as u64 + 4, false);
                }
                assert_eq!(submit(&mut planner, 7, &ask("ncpus=8", 500)), 7, "{undone:?}");
            }
        }
    }
}

/// Waiting requests that ask for the same need one search in a pass, and a pass is made in pieces.
#[test]
fn equal_waiting_requests_are_searched_for_once() {
    let mut planner = nodes(&[8, 8]);
    planner.node_offline(0, 1);
    for _ in 0..20 {
        planner.submit(0, &ask("2:ncpus=8", 60)).unwrap();
        planner.submit(0, &ask("2:ncpus=7", 60)).unwrap();
    }
    let before = planner.waiting_searches();
    planner.plan_waiting_later();
    let mut pieces = 0;
    while planner.is_planning_waiting() {
        assert!(planner.plan_some_waiting(0, 8, &SearchBudget::default()).is_empty());
        pieces += 1;
    }
    assert_eq!((planner.waiting_searches() - before, pieces), (2, 6));
    planner.node_up(0, 1);
    assert!(planner.requests().all(|id| start(&planner, id).is_some()));
}

/// A pass that has no looks any more goes on from where it was.
#[test]
fn a_pass_over_waiting_requests_is_bounded() {
    let mut planner = nodes(&[8, 8]);
    planner.node_offline(0, 1);
    for duration_s in 1..40 {
        planner.submit(0, &ask("2:ncpus=8", duration_s)).unwrap();
    }
    let before = planner.waiting_searches();
    planner.plan_waiting_later();
    planner.plan_some_waiting(0, usize::MAX, &SearchBudget::of_looks(500));
    let first = planner.waiting_searches() - before;
    assert!((1..20).contains(&first) && planner.is_planning_waiting(), "{first}");
    planner.plan_some_waiting(0, usize::MAX, &SearchBudget::default());
    assert_eq!(planner.waiting_searches() - before, 39);
    assert!(!planner.is_planning_waiting());
}

/// Room that becomes free in the middle of a pass is for those first that have had their turn.
#[test]
fn what_becomes_free_in_a_pass_is_for_the_first() {
    let policy = Policy { horizon_s: Some(100), ..Policy::default() };
    let machine = Arc::new(Machine::new(vec![ncpus()], &[spec("n1", 8)]));
    let mut planner = Planner::with_policy(machine, Rules::default(), policy);
    let runs = planner.submit(0, &ask("ncpus=8", HOUR)).unwrap();
    planner.start(0, &mut Vec::new());
    let waiting: Vec<_> =
        (1..=20).map(|at| planner.submit(0, &ask("ncpus=8", 1000 + at)).unwrap()).collect();
    let budget = SearchBudget::default();
    planner.plan_waiting_later();
    assert!(planner.plan_some_waiting(0, 10, &budget).is_empty());
    planner.remove(0, runs);
    planner.plan_waiting_later();
    assert_eq!(planner.plan_some_waiting(0, 11, &budget), waiting[..1]);
    assert!(planner.is_planning_waiting());
}

/// However often something becomes free, a pass comes to its last request.
#[test]
fn a_pass_ends_however_often_something_becomes_free() {
    const WAITING: usize = 600;
    let mut planner = nodes(&[8]);
    let held = || Request { is_held: true, ..ask("ncpus=1", 10) };
    let [never, soon] = [(); 2].map(|()| planner.submit(0, &held()).unwrap());
    for _ in 0..WAITING {
        planner.submit(0, &after(&[never], ask("ncpus=1", 10))).unwrap();
    }
    let last = planner.submit(0, &after(&[soon], ask("ncpus=1", 10))).unwrap();
    planner.remove(0, soon);
    let mut tries = 0;
    while start(&planner, last).is_none() {
        planner.plan_waiting_later();
        planner.plan_some_waiting(0, 1, &SearchBudget::default());
        tries += 1;
        assert!(tries < 2 * WAITING * WAITING);
    }
    assert!(tries > WAITING, "{tries}");
}

/// A change looks at the followers of the changed request and at theirs, not at those of others.
#[test]
fn a_change_looks_only_at_followers_of_the_changed_request() {
    let mut planner = nodes(&[8, 8]);
    let [first, other] = [60, 60].map(|s| planner.submit(0, &ask("ncpus=8", s)).unwrap());
    let next = planner.submit(0, &after(&[first], ask("ncpus=1", 60))).unwrap();
    let last = planner.submit(0, &after(&[next], ask("ncpus=1", 60))).unwrap();
    for _ in 0..50 {
        planner.submit(0, &after(&[other], ask("ncpus=1", 60))).unwrap();
    }
    let checks = |planner: &mut Planner, id, duration_s| {
        let before = planner.order_checks();
        planner.alter(0, id, &ask("ncpus=8", duration_s)).unwrap();
        planner.order_checks() - before
    };
    assert_eq!(checks(&mut planner, first, 60), 1);
    assert_eq!(checks(&mut planner, first, 90), 2);
    let [next_s, last_s] = [next, last].map(|id| start(&planner, id).unwrap());
    assert!(next_s >= 90 && last_s >= next_s + 60, "{next_s} {last_s}");
    let unrelated = planner.submit(0, &ask("ncpus=8", 60)).unwrap();
    assert_eq!(checks(&mut planner, unrelated, 30), 0);
}
