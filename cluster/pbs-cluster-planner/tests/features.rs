// SPDX-License-Identifier: GPL-2.0
//! Features of OpenCCS, one test for each.

mod common;

use common::*;
use pbs_cluster_planner::{
    Cause, Limit, Limited, NodeSpec, Planner, Refusal, Request, Rules, State, When,
};
use pbs_site::{Share, Whom};

fn by_user(request: Request, user: &str, group: &str) -> Request {
    Request { user: user.into(), group: group.into(), ..request }
}

#[test]
fn job_wide_resources_belong_to_no_node() {
    let mut planner = on(&[("sw=g03", Some(2))], &[spec("n1", 8)], Rules::default());
    let licensed = ask("ncpus=1,sw=g03", 10);
    assert_eq!(submit(&mut planner, 0, &licensed), 0);
    assert_eq!(submit(&mut planner, 0, &licensed), 0);
    assert_eq!(submit(&mut planner, 0, &licensed), 10);
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=1", 10)), 0);
    assert!(planner.submit(0, &ask("ncpus=1,sw=g04", 10)).is_err());
}

#[test]
fn attributes_choose_nodes() {
    let linux = NodeSpec {
        words: vec![("arch".into(), "linux".into()), ("rack".into(), "8".into())],
        ..spec("n2", 4)
    };
    let mut planner = on(&[], &[spec("n1", 4), linux], Rules::default());
    for rset in ["ncpus=1:arch=linux", "ncpus=1:rack=8"] {
        let id = planner.submit(0, &ask(rset, 10)).unwrap();
        assert_eq!(names(&planner, id), ["n2"]);
    }
    assert!(planner.submit(0, &ask("ncpus=1:arch=vms", 10)).is_err());
    assert!(planner.submit(0, &ask("ncpus=1:colour=red", 10)).is_err());
    // None of it is what a node without it has.
    let id = planner.submit(0, &ask("4:ncpus=1:arch=no:colour=f:tesla=0", 10)).unwrap();
    assert_eq!(names(&planner, id), ["n1"]);
    assert!(planner.submit(0, &ask("ncpus=5:arch=no", 10)).is_err());
}

#[test]
fn defective_resources_are_not_available() {
    let mut planner = nodes(&[4, 8]);
    assert_eq!(planner.available(0), 12);
    planner.node_down(0, 1);
    assert_eq!((planner.available(0), planner.machine().total(0)), (4, 12));
    planner.node_up(0, 1);
    assert_eq!(planner.available(0), 12);
}

#[test]
fn numbers_of_requests_and_of_arrays_are_limited() {
    let me = Whom::User("me".into());
    let most = |of, least| Limit {
        items: Some(Share { least: Some(least), permille: None }),
        ..limit(me.clone(), of, ALWAYS)
    };
    let rules = Rules {
        limits: vec![most(Limited::Requests, 3), most(Limited::ArrayRequests, 1)],
        ..Rules::default()
    };
    let mut planner = with_rules(&[4], rules);
    let mine = by_user(ask("ncpus=1", 10), "me", "g");
    let of_array = Request { is_of_array: true, ..mine.clone() };
    let first = planner.submit(0, &of_array).unwrap();
    let refused = planner.submit(0, &of_array).unwrap_err();
    assert!(matches!(refused, Refusal::TooMany { of: Limited::ArrayRequests, most: 1, .. }));
    let said =
        "at most 1 requests of arrays may be unfinished at once (limit of user:me on arrayjobs)";
    assert!(refused.to_string().starts_with(said), "{refused}");
    planner.submit(0, &mine).unwrap();
    planner.submit(0, &mine).unwrap();
    let refused = planner.submit(0, &mine).unwrap_err().to_string();
    assert!(refused.starts_with("at most 3 requests may be unfinished"), "{refused}");
    assert!(refused.contains("(limit of user:me on jobs)"), "{refused}");
    planner.remove(0, first);
    planner.submit(0, &mine).unwrap();
}

#[test]
fn user_and_group_limits_hold_together() {
    let most = |consumer, least| Limit {
        items: Some(Share { least: Some(least), permille: None }),
        ..limit(consumer, Limited::Resource(0), ALWAYS)
    };
    let rules = Rules {
        limits: vec![most(Whom::User("a".into()), 3), most(Whom::Group("g".into()), 4)],
        ..Rules::default()
    };
    let mut planner = with_rules(&[16], rules);
    let of = |user| by_user(ask("ncpus=2", 10), user, "g");
    assert_eq!(submit(&mut planner, 0, &of("a")), 0);
    // The user's limit, then the group's.
    let id = planner.submit(0, &of("a")).unwrap();
    assert_eq!(start(&planner, id), Some(10));
    assert_eq!(planner.why(0, id)[0], (Cause::Items(Whom::User("a".into()), 0), Some(10)));
    assert_eq!(submit(&mut planner, 0, &of("b")), 0);
    let id = planner.submit(0, &of("b")).unwrap();
    assert_eq!(start(&planner, id), Some(10));
    assert_eq!(planner.why(0, id)[0], (Cause::Items(Whom::Group("g".into()), 0), Some(10)));
    assert_eq!(submit(&mut planner, 0, &by_user(ask("ncpus=2", 10), "b", "h")), 0);
}

#[test]
fn exclusive_requests_take_whole_nodes() {
    let mut planner = nodes(&[4, 4]);
    planner.submit(0, &ask("ncpus=1", 10)).unwrap();
    let id = planner.submit(0, &ask("ncpus=1,place=free:excl", 10)).unwrap();
    assert_eq!((start(&planner, id), names(&planner, id)), (Some(0), vec!["n2".into()]));
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=4", 10)), 10);
}

#[test]
fn shared_requests_run_beside_others() {
    let mut planner = nodes(&[4]);
    planner.submit(0, &ask("ncpus=2", 10)).unwrap();
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=2,place=free:shared", 10)), 0);
}

#[test]
fn unknown_or_excessive_requests_are_refused() {
    let mut planner = nodes(&[4, 4]);
    let refused = planner.submit(0, &ask("ncpus=1:gpu=1", 10)).unwrap_err();
    assert_eq!(refused.to_string(), "the cluster has no gpu");
    let refused = planner.submit(0, &ask("9:ncpus=1", 10)).unwrap_err();
    assert_eq!(refused.to_string(), "9 ncpus are wanted, of 8 that there are");
    let refused = planner.submit(0, &ask("ncpus=5", 10)).unwrap_err();
    assert_eq!(refused.to_string(), "no node can host chunk 1");
    assert_eq!(planner.requests().count(), 0);
}

#[test]
fn best_effort_requests_never_starve() {
    let mut planner = nodes(&[4]);
    planner.submit(0, &ask("ncpus=3", 100)).unwrap();
    let large = planner.submit(0, &ask("ncpus=4", 10)).unwrap();
    let told_s = start(&planner, large).unwrap();
    // Small ones come for ever, and the large one's time stays until it runs.
    let mut started = Vec::new();
    for now_s in (2..=told_s).step_by(2) {
        let id = planner.submit(now_s, &ask("ncpus=1", 7)).unwrap();
        planner.start(now_s, &mut started);
        planner.backfill(now_s, usize::MAX);
        if now_s % 10 == 0 {
            planner.remove(now_s, id);
        }
        assert!(start(&planner, large).is_some_and(|start_s| start_s <= told_s), "{now_s}");
    }
    assert!(started.contains(&large), "it never ran: {started:?}");
}

#[test]
fn a_fixed_start_is_kept_or_the_request_is_refused() {
    let mut planner = nodes(&[4]);
    planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    let at = |start_s| Request { when: When::Fixed { start_s }, ..ask("ncpus=1", 10) };
    let refused = planner.submit(0, &at(95)).unwrap_err();
    assert_eq!(refused, Refusal::NotThen { earliest_start_s: Some(100) });
    let refused = planner.submit(120, &at(119)).unwrap_err();
    assert_eq!(refused, Refusal::Past { time_s: 119 });
    let id = planner.submit(0, &at(150)).unwrap();
    assert_eq!(start(&planner, id), Some(150));
    // It stays where it is whoever leaves.
    planner.remove(0, 1);
    planner.backfill(0, usize::MAX);
    assert_eq!(start(&planner, id), Some(150));
}

#[test]
fn a_deadline_is_kept_early_or_late() {
    let mut planner = nodes(&[4]);
    planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    planner.submit(0, &fixed("ncpus=4", 180, 10)).unwrap();
    let by = |end_s, late| Request { when: When::Deadline { end_s, late }, ..ask("ncpus=1", 10) };
    assert!(planner.submit(0, &by(109, false)).is_err());
    assert_eq!(submit(&mut planner, 0, &by(110, false)), 100);
    assert_eq!(submit(&mut planner, 0, &by(185, true)), 170);
    assert_eq!(submit(&mut planner, 0, &by(300, true)), 290);
}

#[test]
fn a_slot_aware_request_starts_at_its_time_or_later() {
    let mut planner = nodes(&[4]);
    let request = Request { when: When::After { start_s: 50 }, ..ask("ncpus=4", 10) };
    assert_eq!(submit(&mut planner, 0, &request), 50);
    assert_eq!(submit(&mut planner, 0, &request), 60);
}

#[test]
fn a_provisional_request_is_dropped_unless_it_is_confirmed() {
    let mut planner = nodes(&[4]);
    let request = Request { when: When::Provisional { until_s: 20 }, ..ask("ncpus=4", 100) };
    let kept = planner.submit(0, &request).unwrap();
    let dropped = planner.submit(0, &request).unwrap();
    assert!(planner.confirm(kept));
    assert_eq!(planner.unconfirmed(19), [0; 0]);
    assert_eq!(planner.unconfirmed(20), [dropped]);
    assert!(planner.remove(20, dropped));
    assert_eq!(planner.next_drop_s(), None);
    assert_eq!((planner.state(kept).is_some(), planner.state(dropped)), (true, None));
}

#[test]
fn a_broken_agreement_is_reported() {
    let mut planner = nodes(&[4]);
    planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    let by = |end_s| Request { when: When::Agreement { end_s }, ..ask("ncpus=4", 10) };
    let kept = planner.submit(0, &by(110)).unwrap();
    let broken = planner.submit(0, &by(110)).unwrap();
    assert_eq!((planner.violation_s(kept), planner.violation_s(broken)), (None, Some(10)));
}

#[test]
fn accepted_requests_are_renegotiated() {
    let mut planner = nodes(&[4]);
    planner.submit(0, &ask("ncpus=3", 100)).unwrap();
    let id = planner.submit(0, &ask("ncpus=2", 10)).unwrap();
    assert_eq!(start(&planner, id), Some(100));
    // Refused, and all is as it was.
    let too_much = ask("ncpus=5", 10);
    assert!(planner.alter(0, id, &too_much).is_err());
    assert_eq!(start(&planner, id), Some(100));
    planner.alter(0, id, &ask("ncpus=1", 10)).unwrap();
    assert_eq!(start(&planner, id), Some(0));
}

#[test]
fn the_reason_against_an_earlier_start_is_given() {
    let mut planner = nodes(&[4, 4]);
    planner.submit(0, &ask("ncpus=3", 100)).unwrap();
    planner.submit(0, &ask("ncpus=3", 50)).unwrap();
    let id = planner.submit(0, &ask("ncpus=2", 10)).unwrap();
    assert_eq!(start(&planner, id), Some(50));
    // Two cores are free all along, but not on one node.
    assert_eq!(planner.why(0, id), [(Cause::Nodes, Some(50))]);
    let id = planner.submit(0, &ask("2:ncpus=3", 10)).unwrap();
    let why = planner.why(0, id);
    assert!(
        why.contains(&(Cause::Used(0), Some(60))) || why.contains(&(Cause::Nodes, Some(100))),
        "{why:?}"
    );
}

#[test]
fn cores_are_kept_for_requests_with_accelerators() {
    let host = NodeSpec { has: vec![16, 2], kept: Some((1, 2)), ..spec("gpu", 16) };
    let mut planner = on(&[("tesla", None)], &[host], Rules::default());
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=14", 10)), 0);
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=1:tesla=1", 10)), 0);
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=1", 10)), 10);
    assert!(planner.submit(0, &ask("ncpus=15", 10)).is_err());
    assert!(planner.submit(0, &ask("ncpus=1,place=free:excl", 10)).is_err());
    planner.submit(0, &ask("ncpus=1:tesla=1,place=free:excl", 10)).unwrap();
}

#[test]
fn gates_admit_only_requests_that_need_the_node() {
    let smp =
        NodeSpec { only_if: Some("ncpus>=17 | duration<=12h".parse().unwrap()), ..spec("smp", 32) };
    let mut planner = on(&[], &[smp], Rules::default());
    planner.submit(0, &ask("ncpus=17", DAY)).unwrap();
    planner.submit(0, &ask("ncpus=1", 12 * HOUR)).unwrap();
    assert!(planner.submit(0, &ask("ncpus=16", 12 * HOUR + 1)).is_err());
    // Of each chunk by itself.
    assert!(planner.submit(0, &ask("2:ncpus=9", DAY)).is_err());
}

#[test]
fn backfilling_goes_by_priority_then_time_of_submission() {
    let mut planner = nodes(&[4]);
    let first = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    let low = planner.submit(0, &ask("ncpus=4", 10)).unwrap();
    let high = Request { priority: 1, ..ask("ncpus=4", 10) };
    let high = planner.submit(0, &high).unwrap();
    planner.remove(0, first);
    planner.backfill(0, usize::MAX);
    // The more important one looks first; the other one's place is not its to take.
    assert_eq!((start(&planner, low), start(&planner, high)), (Some(10), Some(0)));
}

#[test]
fn a_request_that_lost_its_node_displaces_less_important_ones() {
    let mut planner = nodes(&[4, 4]);
    planner.submit(0, &ask("2:ncpus=4", 10)).unwrap();
    planner.start(0, &mut Vec::new());
    let important = Request { priority: 5, ..ask("ncpus=4", 10) };
    let important = planner.submit(0, &important).unwrap();
    let other = planner.submit(0, &ask("ncpus=4", 10)).unwrap();
    let node = planner.placed(important)[0].node as usize;
    assert_eq!((start(&planner, important), start(&planner, other)), (Some(10), Some(10)));
    planner.node_offline(5, node);
    assert_eq!((start(&planner, important), start(&planner, other)), (Some(10), Some(20)));
}

#[test]
fn an_offline_node_ends_its_requests() {
    let mut planner = nodes(&[4, 4]);
    let running = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    let node = planner.placed(running)[0].node as usize;
    planner.node_offline(10, node);
    assert!(matches!(planner.state(running), Some(State::Running { .. })));
    assert_eq!(submit(&mut planner, 10, &ask("ncpus=4", 5)), 10);
    assert_eq!(submit(&mut planner, 10, &ask("ncpus=4", 5)), 15);
    // What it gives back is not for others, until the node is.
    planner.remove(20, running);
    assert_eq!(submit(&mut planner, 20, &ask("ncpus=4", 5)), 20);
    let waits = planner.submit(20, &ask("2:ncpus=4", 5)).unwrap();
    assert_eq!(planner.state(waits), Some(State::Waiting));
    planner.node_up(30, node);
    assert_eq!(start(&planner, waits), Some(30));
    assert_eq!((planner.available(0), planner.busy_cores(31)), (8, 8));
}

#[test]
fn a_failed_allocation_takes_the_node_out() {
    let mut planner = nodes(&[4, 4]);
    let id = planner.submit(0, &ask("ncpus=4", 10)).unwrap();
    planner.start(0, &mut Vec::new());
    let node = planner.placed(id)[0].node as usize;
    planner.start_again(id);
    let replanned = planner.node_down(0, node);
    assert_eq!((replanned.moved, start(&planner, id)), (vec![id], Some(0)));
    assert_ne!(planner.placed(id)[0].node as usize, node);
}

#[test]
fn an_early_end_gives_back_the_rest() {
    let mut planner = nodes(&[4]);
    let first = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    let next = planner.submit(0, &ask("ncpus=4", 10)).unwrap();
    planner.remove(40, first);
    assert_eq!(planner.backfill(40, usize::MAX), 1);
    assert_eq!(start(&planner, next), Some(40));
}

#[test]
fn a_late_request_is_aborted_or_extended_a_little() {
    let mut planner = nodes(&[4]);
    let id = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    assert_eq!(planner.overdue(99), [0; 0]);
    assert_eq!(planner.overdue(100), [id]);
    assert_eq!(planner.extend(id, 11, 100), Err(Refusal::TooLong { most_s: 110 }));
    planner.extend(id, 4, 100).unwrap();
    planner.submit(0, &fixed("ncpus=1", 108, 10)).unwrap();
    planner.extend(id, 4, 100).unwrap();
    assert!(matches!(planner.extend(id, 2, 100), Err(Refusal::NotLonger(_))));
    assert_eq!((planner.overdue(107), planner.overdue(108)), (vec![], vec![id]));
    planner.remove(108, id);
    assert_eq!(planner.busy_cores(109), 1);
}

#[test]
fn a_reservation_is_a_cluster_of_its_own() {
    let mut planner = nodes(&[4, 4]);
    let held = planner.reserve(0, &fixed("2:ncpus=3", 100, 100)).unwrap();
    // Others go around it.
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=2", 150)), 200);
    let inside = |planner: &mut Planner, rset: &str, duration_s| {
        let id = planner.submit_in(0, held, &ask(rset, duration_s)).ok()?;
        start(planner.inside(held).unwrap(), id)
    };
    assert_eq!(inside(&mut planner, "ncpus=3", 60), Some(100));
    assert_eq!(inside(&mut planner, "ncpus=3", 50), Some(100));
    assert_eq!(inside(&mut planner, "ncpus=3", 50), Some(150));
    // Neither beyond its nodes nor beyond its time.
    assert_eq!(inside(&mut planner, "ncpus=4", 10), None);
    assert_eq!(inside(&mut planner, "2:ncpus=3", 50), None);
}

/// Locked users have nothing in a reservation, either.
#[test]
fn users_are_locked_inside_reservations() {
    let locks = [(Whom::User("u".into()), vec![100..150, 300..400])].into();
    let mut planner = with_rules(&[4], Rules { locks, ..Rules::default() });
    let held = planner.reserve(0, &fixed("ncpus=4", 100, 100)).unwrap();
    let mut within = |user: &str, duration_s| {
        let request = Request { user: user.into(), ..ask("ncpus=1", duration_s) };
        let id = planner.submit_in(0, held, &request).ok()?;
        start(planner.inside(held).unwrap(), id)
    };
    assert_eq!(within("v", 50), Some(100));
    assert_eq!(within("u", 50), Some(150));
    assert_eq!(within("u", 51), None);
}
