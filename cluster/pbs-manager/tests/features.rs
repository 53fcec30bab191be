// SPDX-License-Identifier: GPL-2.0
//! Features of a cluster beyond its planner, one test for each.

mod common;

use common::*;
use pbs_cluster_planner::When;
use pbs_manager::ledger::{Access, After, NodeState, Outcome, State};
use pbs_manager::{Change, Error, Manager, Wish};

#[test]
fn an_array_is_accepted_whole_or_not_at_all() {
    let mut cluster = small("array-accepted");
    let mine = |array: std::ops::RangeInclusive<u64>| Wish {
        array: Some(array.collect()),
        ..wish("ncpus=4", 10)
    };
    let ids = cluster.manager.submit(&user("u"), &mine(3..=12)).unwrap();
    assert_eq!(ids.len(), 10);
    let (row, _) = cluster.manager.details(ids[9]).unwrap();
    assert_eq!((row.array_index, row.start_s), (Some(12), Some(T + 20)));
    // The site lets nobody have more than 12.
    let before = cluster.rows();
    let refused = cluster.manager.submit(&user("u"), &mine(0..=2));
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    assert_eq!(cluster.rows(), before);
    cluster.reopen();
    assert_eq!(cluster.rows(), before);
    assert_eq!(cluster.manager.submit(&user("u"), &mine(0..=1)).unwrap().len(), 2);
}

#[test]
fn an_array_has_the_numbers_that_it_names() {
    let mut cluster = small("array-numbers");
    let some = Wish { array: Some(vec![1, 3, 9]), ..wish("ncpus=1", 10) };
    let ids = cluster.manager.submit(&user("u"), &some).unwrap();
    let numbers: Vec<_> = ids.iter().map(|&id| cluster.row(id).array_index).collect();
    assert_eq!(numbers, [Some(1), Some(3), Some(9)]);
}

#[test]
fn a_duration_of_zero_is_no_alteration() {
    let mut cluster = small("alter-zero");
    let id = cluster.submit(&wish("ncpus=1", 100));
    let zero = Change { duration_s: Some(0), ..Change::default() };
    let refused = cluster.manager.alter(&user("u"), id, &zero).unwrap_err();
    assert!(refused.to_string().contains("at least a second"), "{refused}");
    assert_eq!(cluster.row(id).duration_s, 100);
}

#[test]
fn conditions_that_exclude_each_other_are_refused() {
    let mut cluster = small("contradiction");
    let id = cluster.submit(&wish("ncpus=1", 100));
    let after = |outcome| After { request: id, outcome };
    let follows = |after| Wish { after, ..wish("ncpus=1", 10) };
    let both = follows(vec![after(Outcome::Ok), after(Outcome::NotOk)]);
    let refused = cluster.manager.submit(&user("u"), &both).unwrap_err();
    assert!(refused.to_string().contains("can't both complete and fail"), "{refused}");
    // A condition that is there twice is one.
    let twice = follows(vec![after(Outcome::Ok), after(Outcome::Ok), after(Outcome::Any)]);
    let twice = cluster.submit(&twice);
    assert_eq!(cluster.row(twice).after, [after(Outcome::Ok), after(Outcome::Any)]);
}

#[test]
fn requests_that_may_restart_are_restarted() {
    let mut cluster = small("restartable");
    let again = Wish { is_restartable: true, ..wish("ncpus=8", 100) };
    let again = cluster.submit(&again);
    let once = cluster.submit(&wish("ncpus=8", 100));
    cluster.manager.advance(T + 10).unwrap();
    let op = operator();
    for node in ["n1", "n2"] {
        cluster.manager.node_out(&op, node, NodeState::Down, "smoke").unwrap();
    }
    assert_eq!(
        cluster.row(once).outcome.unwrap(),
        format!("node {} failed", cluster.node_of(once))
    );
    assert_eq!(cluster.row(again).state, State::Waiting);
    cluster.reopen();
    assert_eq!(cluster.row(again).state, State::Waiting);
    cluster.manager.node_back(&op, "n2").unwrap();
    let row = cluster.row(again);
    assert_eq!((row.state, row.start_s), (State::Planned, Some(T + 10)));
    cluster.manager.advance(T + 110).unwrap();
    assert_eq!(cluster.row(again).outcome.unwrap(), "completed");
}

#[test]
fn an_unconfirmed_request_is_dropped() {
    let mut cluster = small("unconfirmed-request");
    let provisional =
        |until_s| Wish { when: When::Provisional { until_s }, ..wish("16:ncpus=1", 100) };
    let dropped = cluster.submit(&provisional(T + 20));
    let kept = cluster.submit(&provisional(T + 20));
    let last = cluster.submit(&wish("16:ncpus=1", 10));
    cluster.manager.confirm(&user("u"), kept).unwrap();
    cluster.reopen();
    cluster.manager.advance(T + 30).unwrap();
    assert_eq!(cluster.row(dropped).outcome.unwrap(), "not confirmed in time");
    assert_eq!(cluster.row(kept).start_s, Some(T + 20));
    assert_eq!(cluster.row(last).start_s, Some(T + 120));
}

#[test]
fn everybody_sees_planned_starts() {
    let mut cluster = small("everybody-sees");
    let first = cluster.submit(&wish("16:ncpus=1", 100));
    let second = cluster.submit(&wish("ncpus=1", 50));
    let rows = cluster.rows();
    let starts: Vec<_> = rows.iter().map(|row| (row.id, row.start_s, row.end_s)).collect();
    assert_eq!(starts, [(first, Some(T), Some(T + 100)), (second, Some(T + 100), Some(T + 150))]);
}

#[test]
fn the_reason_against_an_earlier_start_is_given() {
    let mut cluster = small("reason-against");
    cluster.submit(&wish("16:ncpus=1", 100));
    let second = cluster.submit(&wish("ncpus=1", 50));
    let before = cluster.rows();
    let causes = cluster.manager.why(second).unwrap();
    assert!(causes.iter().all(|&(_, start_s)| start_s == Some(T + 100)), "{causes:?}");
    assert!(!causes.is_empty());
    assert_eq!(cluster.rows(), before);
}

#[test]
fn requests_move_up_at_once() {
    let mut cluster = small("requests-move");
    let first = cluster.submit(&wish("16:ncpus=1", 100));
    let second = cluster.submit(&wish("16:ncpus=1", 50));
    cluster.manager.advance(T + 10).unwrap();
    cluster.manager.kill(&user("u"), first).unwrap();
    assert_eq!(cluster.row(second).start_s, Some(T + 10));
    cluster.manager.advance(T + 10).unwrap();
    assert_eq!(cluster.row(second).state, State::Running);
}

#[test]
fn a_request_is_altered_or_stays_as_it_was() {
    let mut cluster = small("request-altered");
    cluster.submit(&wish("16:ncpus=1", 100));
    let second = cluster.submit(&wish("16:ncpus=1", 50));
    let third = cluster.submit(&wish("16:ncpus=1", 10));
    let late =
        Change { when: Some(When::Deadline { end_s: T + 120, late: false }), ..Change::default() };
    let before = cluster.rows();
    let refused = cluster.manager.alter(&user("u"), second, &late);
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    assert_eq!(cluster.rows(), before);
    let refused = cluster.manager.alter(&user("v"), second, &late);
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    let short = Change { duration_s: Some(20), ..late };
    cluster.manager.alter(&user("u"), second, &short).unwrap();
    assert_eq!(cluster.row(second).end_s, Some(T + 120));
    assert_eq!(cluster.row(third).start_s, Some(T + 120));
    cluster.reopen();
    assert_eq!(cluster.row(second).when, format!("deadline {}", T + 120));
}

#[test]
fn an_early_end_is_given_back() {
    let mut cluster = small("early-end");
    let early = Wish { run_s: Some(30), ..wish("16:ncpus=1", 100) };
    let early = cluster.submit(&early);
    let second = cluster.submit(&wish("16:ncpus=1", 50));
    cluster.manager.advance(T + 35).unwrap();
    let row = cluster.row(early);
    assert_eq!((row.end_s, row.outcome.as_deref()), (Some(T + 30), Some("completed")));
    assert_eq!(cluster.row(second).start_s, Some(T + 30));
}

#[test]
fn a_late_request_is_aborted_or_extended_a_little() {
    let mut cluster = small("late-request");
    let long = Wish { run_s: Some(105), ..wish("ncpus=8", 100) };
    let (aborted, extended) = (cluster.submit(&long), cluster.submit(&long));
    let refused = cluster.manager.extend(&user("u"), extended, 5);
    assert!(matches!(refused, Err(Error::Wrong(_))), "{refused:?}");
    cluster.manager.advance(T + 90).unwrap();
    cluster.manager.extend(&user("u"), extended, 10).unwrap();
    cluster.reopen();
    let refused = cluster.manager.extend(&user("u"), extended, 1);
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    cluster.manager.advance(T + 200).unwrap();
    let end = |id| {
        let row = cluster.row(id);
        (row.end_s.unwrap() - T, row.outcome.unwrap())
    };
    assert_eq!(end(aborted), (100, "aborted at its end".into()));
    assert_eq!(end(extended), (105, "completed".into()));
}

#[test]
fn users_are_notified_before_the_end() {
    let mut cluster = small("users-notified");
    let told = Wish { notify_s: Some(20), ..wish("ncpus=8", 100) };
    let told = cluster.submit(&told);
    cluster.manager.advance(T + 79).unwrap();
    let heard = |cluster: &Cluster| {
        let (_, events) = cluster.manager.details(told).unwrap();
        let notified = events.into_iter().filter(|event| event.what == "notified");
        notified.map(|event| event.time_s - T).collect::<Vec<_>>()
    };
    assert!(heard(&cluster).is_empty());
    cluster.reopen();
    cluster.manager.advance(T + 100).unwrap();
    assert_eq!(heard(&cluster), [80]);
}

/// Neither no group nor a group that a user names makes the user a member of it.
#[test]
fn a_reservation_is_for_its_owner_and_members_of_its_group() {
    let mut cluster = small("reservation-members");
    let reserve = |cluster: &mut Cluster, group: &str| {
        let of_group = Wish { group: group.into(), ..wish("ncpus=8", 100) };
        cluster.manager.reserve(&user("u"), &of_group).unwrap()
    };
    let within = |cluster: &mut Cluster, held, name: &str, group: &str| {
        let (name, group) = (name.to_string(), group.to_string());
        let caller = user(&name);
        let wish = Wish { within: Some(held), user: name.into(), group, ..wish("ncpus=1", 10) };
        cluster.manager.submit(&caller, &wish)
    };
    for group in ["", "g"] {
        let held = reserve(&mut cluster, group);
        assert!(within(&mut cluster, held, "u", "other").is_ok());
        let refused = within(&mut cluster, held, "v", group);
        assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    }
    let listed = "[[user]]\nname = 'u'\n[[user]]\nname = 'v'\ngroups = ['g', 'h']\n";
    cluster.reopen_with(&format!("{SITE}{listed}[[user]]\nname = 'w'\n"));
    let held = cluster.rows().iter().rfind(|row| row.is_reservation).unwrap().id;
    assert!(within(&mut cluster, held, "v", "g").is_ok());
    for (name, group) in [("v", "h"), ("w", "g")] {
        let refused = within(&mut cluster, held, name, group);
        assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    }
}

/// The number of a job is no reservation, and the refusal says how one is made.
#[test]
fn no_request_is_planned_in_a_job() {
    let mut cluster = small("within-job");
    let job = cluster.submit(&wish("ncpus=8", 100));
    let refused =
        cluster.manager.submit(&user("u"), &Wish { within: Some(job), ..wish("ncpus=1", 9) });
    let told = refused.unwrap_err().to_string();
    let expected = format!("request {job} is a job, and no reservation; reserve nodes with pbsctl");
    assert!(told.starts_with(&expected), "{told}");
    let refused =
        cluster.manager.submit(&user("u"), &Wish { within: Some(99), ..wish("ncpus=1", 9) });
    assert!(matches!(refused, Err(Error::NoRequest(99))), "{refused:?}");
}

#[test]
fn requests_in_a_reservation_end_with_it() {
    let mut cluster = small("requests-reservation");
    let held = Wish { when: When::Fixed { start_s: T + 50 }, ..wish("2:ncpus=8", 100) };
    let held = cluster.manager.reserve(&user("u"), &held).unwrap();
    let within = |duration_s| Wish { within: Some(held), ..wish("ncpus=8", duration_s) };
    let first = cluster.submit(&within(60));
    let second = cluster.submit(&within(90));
    let refused = cluster.manager.submit(&user("u"), &within(50));
    assert!(matches!(refused, Err(Error::Declined(_))), "{refused:?}");
    let other = Wish { user: "v".into(), group: "h".into(), ..within(1) };
    let refused = cluster.manager.submit(&user("v"), &other);
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    cluster.reopen();
    let third = cluster.submit(&within(40));
    cluster.manager.advance(T + 100).unwrap();
    assert_eq!(cluster.row(first).state, State::Running);
    cluster.reopen();
    assert_eq!(cluster.row(third).start_s, Some(T + 110));
    cluster.manager.advance(T + 120).unwrap();
    cluster.manager.kill(&user("u"), held).unwrap();
    for id in [second, third] {
        assert_eq!(cluster.row(id).outcome.unwrap(), "its reservation is over");
    }
    assert_eq!(cluster.row(first).outcome.unwrap(), "completed");
    assert_eq!(cluster.rows(), []);
}

#[test]
fn use_by_each_user_is_recorded() {
    let mut cluster = small("use-by-each");
    let short = Wish { run_s: Some(7), ..wish("2:ncpus=3", 100) };
    let id = cluster.submit(&short);
    cluster.manager.advance(T + 50).unwrap();
    cluster.reopen();
    let rows = cluster.manager.rows().unwrap();
    let row = rows.iter().find(|row| row.id == id).unwrap();
    assert_eq!((row.start_s, row.end_s, row.cores), (Some(T), Some(T + 7), 6));
    let others = cluster.manager.kill(&user("v"), id);
    assert_eq!(others, Err(Error::NoRequest(id)));
}

#[test]
fn cores_and_memory_are_reported() {
    let mut cluster = small("cores-memory");
    for (rset, run_s) in [("2:ncpus=3", 10), ("2:ncpus=3", 30), ("ncpus=8", 20)] {
        cluster.submit(&Wish { run_s: Some(run_s), ..wish(rset, 100) });
    }
    cluster.manager.advance(T + 100).unwrap();
    let usages = cluster.manager.usage().unwrap();
    let of = |cores| {
        let of = &usages.cores[&cores];
        (of.requests, of.core_s, of.asked_core_s)
    };
    assert_eq!(of(6), (2, 6 * 40, 6 * 200));
    assert_eq!(of(8), (1, 8 * 20, 8 * 100));
    // What is planned takes memory, and gives it back when it is past.
    let idle = cluster.manager.planner().memory();
    assert!(idle.nodes.vectors >= 2 && idle.system.vectors >= 1);
    for _ in 0..8 {
        cluster.submit(&wish("ncpus=5", 50));
    }
    let planned = cluster.manager.planner().memory();
    assert_eq!(planned.nodes.vectors, idle.nodes.vectors);
    assert!(planned.nodes.slots > idle.nodes.slots, "{planned:?}");
    assert!(planned.nodes.bytes >= idle.nodes.bytes, "{planned:?}");
    assert!(planned.system.slots > idle.system.slots, "{planned:?}");
    cluster.manager.advance(T + 1000).unwrap();
    let over = cluster.manager.planner().memory();
    assert_eq!(over.system.slots, idle.system.slots);
}

#[test]
fn only_operators_take_nodes_out() {
    let mut cluster = small("only-operators");
    let refused = cluster.manager.node_out(&user("u"), "n1", NodeState::Offline, "mine");
    assert!(matches!(refused, Err(Error::NotPermitted(_))), "{refused:?}");
    let refused = cluster.manager.node_out(&operator(), "n7", NodeState::Offline, "?");
    assert_eq!(refused.unwrap_err(), Error::NoNode("n7".into()));
    let running = cluster.submit(&wish("2:ncpus=8", 100));
    cluster.manager.advance(T + 1).unwrap();
    cluster.manager.node_out(&operator(), "n1", NodeState::Offline, "disk").unwrap();
    let next = cluster.submit(&wish("ncpus=8", 10));
    assert_eq!(cluster.row(next).start_s, Some(T + 100));
    cluster.reopen();
    assert_eq!(cluster.manager.node_state("n1"), Some(NodeState::Offline));
    let both = cluster.submit(&wish("2:ncpus=8", 10));
    assert_eq!(cluster.row(both).state, State::Waiting);
    cluster.manager.advance(T + 105).unwrap();
    assert_eq!(cluster.row(running).outcome.unwrap(), "completed");
    cluster.manager.node_back(&operator(), "n1").unwrap();
    assert_eq!(cluster.row(both).start_s, Some(T + 110));
}

#[test]
fn the_failure_of_its_last_node_ends_a_reservation_that_runs_and_moves_one_that_does_not() {
    let mut cluster = small("moves");
    let at = |start_s| Wish { when: When::Fixed { start_s }, ..wish("ncpus=8", 100) };
    let now = cluster.manager.reserve(&user("u"), &at(T)).unwrap();
    cluster.manager.advance(T + 1).unwrap();
    let later = cluster.manager.reserve(&user("u"), &at(T + 200)).unwrap();
    let inside = |within| Wish { within: Some(within), ..wish("ncpus=1", 10) };
    let (in_now, in_later) = (cluster.submit(&inside(now)), cluster.submit(&inside(later)));
    let (of_now, of_later) = (cluster.node_of(now), cluster.node_of(later));
    cluster.manager.node_out(&operator(), &of_later, NodeState::Down, "").unwrap();
    assert_eq!(cluster.row(in_later).state, State::Planned);
    assert_ne!(cluster.node_of(later), of_later);
    cluster.reopen();
    let again = cluster.submit(&inside(later));
    if of_now != of_later {
        cluster.manager.node_out(&operator(), &of_now, NodeState::Down, "").unwrap();
    }
    assert_eq!(cluster.row(now).outcome.unwrap(), format!("node {of_now} failed"));
    assert_eq!(cluster.row(in_now).outcome.unwrap(), "its reservation is over");
    // With its last node the reservation waits, and the requests in it end.
    let held = cluster.node_of(later);
    cluster.manager.node_out(&operator(), &held, NodeState::Down, "").unwrap();
    assert_eq!(cluster.row(later).state, State::Waiting);
    for id in [in_later, again] {
        let outcome = cluster.row(id).outcome.unwrap();
        assert!(outcome.starts_with("its reservation has moved, and has no place"), "{outcome}");
    }
    cluster.manager.advance(T + 1000).unwrap();
    assert!(cluster.rows().iter().all(|row| row.state == State::Waiting));
}

#[test]
fn another_site_plans_anew_what_has_no_place() {
    let mut cluster = small("site");
    let running = cluster.submit(&wish("ncpus=8", 100));
    let planned = cluster.submit(&wish("2:ncpus=8", 10));
    cluster.manager.advance(T + 1).unwrap();
    let gone = cluster.node_of(running);
    let text = SITE.replace("count = 2", "count = 3").replace("n%d", "m%d");
    let recovered = cluster.reopen_with(&text);
    assert_eq!((recovered.moved, recovered.lost), (vec![planned], vec![running]));
    assert_eq!(cluster.row(running).outcome.unwrap(), "its place is no more");
    assert_eq!(cluster.row(planned).start_s, Some(T + 1));
    assert!(gone.starts_with('n') && cluster.node_of(planned).starts_with('m'));
}

#[test]
fn a_predicted_end_is_granted_where_it_can_be() {
    for (end_s, others, expected) in [
        (T + 108, false, (T + 108, "completed")),
        // The site allows a tenth.
        (T + 111, false, (T + 100, "aborted at its end")),
        // And others have been promised the cores.
        (T + 108, true, (T + 100, "aborted at its end")),
    ] {
        let path = directory("predicted").join("ledger");
        let mut engine = Observed::default();
        let mut manager = Manager::create(&path, SITE, T, &mut engine).unwrap();
        let long = Wish { run_s: Some(end_s - T), ..wish("2:ncpus=8", 100) };
        let id = manager.submit(&user("u"), &long).unwrap()[0];
        if others {
            manager.submit(&user("u"), &wish("2:ncpus=8", 10)).unwrap();
        }
        manager.advance(T + 10).unwrap();
        drop(manager);
        engine.predicted = Some((id, end_s));
        let (mut manager, _) = Manager::open(&path, Access::Write, &mut engine).unwrap();
        manager.advance(T + 20).unwrap();
        manager.advance(T + 200).unwrap();
        let (row, events) = manager.details(id).unwrap();
        assert_eq!((row.end_s.unwrap(), row.outcome.as_deref().unwrap()), expected);
        let told = events.iter().filter(|event| event.text.contains("as predicted"));
        assert_eq!(told.count(), 1, "{events:?}");
        drop(manager);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
