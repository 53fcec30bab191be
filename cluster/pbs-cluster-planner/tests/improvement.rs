// SPDX-License-Identifier: GPL-2.0
//! Better plans on the nodes of a planner, under its rules.

mod common;

use std::collections::BTreeMap;

use common::*;
use pbs_cluster_planner::optimise::{Budget, Improvement, Improving, Objective, EARLIER_ORDERS};
use pbs_cluster_planner::{Limited, Planner, Request, RequestId, Rules, Standing, When};
use pbs_gen::{Random, Stream};
use pbs_site::{Promise, Share, Whom};

fn improving(seed: u64) -> Improving {
    let budget = Budget { orders: 60, placements: 1_000 };
    Improving { objective: Objective::default(), budget, seed }
}

fn free(rset: &str, duration_s: u64) -> Request {
    Request { promise: Promise::None, ..ask(rset, duration_s) }
}

/// Seeks a better plan to the end, and takes it. Returns the number of requests that moved.
fn improve(planner: &mut Planner, now_s: u64, with: &Improving) -> usize {
    let Some(mut found) = planner.improvement(now_s, with, &|_| None) else {
        return 0;
    };
    while found.run(u64::MAX) {}
    planner.take_improvement(now_s, found).0
}

fn plan(planner: &Planner) -> BTreeMap<RequestId, Standing> {
    planner.requests().filter_map(|id| Some((id, planner.standing(id)?))).collect()
}

/// Returns the greatest use of each node, and of the user u1 on all of them.
fn most_used(planner: &Planner, users: &BTreeMap<RequestId, &str>) -> (Vec<u64>, u64) {
    let times: Vec<u64> = plan(planner).values().filter_map(|of| of.start_s).collect();
    let mut most = (vec![0; planner.machine().node_count()], 0);
    for time_s in times {
        let (mut of_nodes, mut of_user) = (vec![0; most.0.len()], 0);
        for (id, of) in plan(planner) {
            let over = of.start_s.map(|start_s| start_s..start_s + of.duration_s);
            if !over.is_some_and(|over| over.contains(&time_s)) {
                continue;
            }
            for (node, amounts) in planner.used_by(id) {
                of_nodes[node] += amounts[0];
                of_user += if users[&id] == "u1" { amounts[0] } else { 0 };
            }
        }
        for (most, used) in most.0.iter_mut().zip(&of_nodes) {
            *most = (*most).max(*used);
        }
        most.1 = most.1.max(of_user);
    }
    most
}

const USER_CORES: u64 = 6;

fn limited() -> Rules {
    let items = Some(Share { least: Some(USER_CORES), permille: None });
    let of_user = limit(Whom::User("u1".into()), Limited::Resource(0), ALWAYS);
    Rules { limits: vec![pbs_cluster_planner::Limit { items, ..of_user }], ..Rules::default() }
}

#[test]
fn improved_plans_keep_rules_and_promises() {
    let mut random = Random::new(1, Stream::Trace);
    let (mut improved, mut moved_later) = (0, 0);
    for seed in 0..60 {
        let mut planner = with_rules(&[4, 4, 2], limited());
        let mut users = BTreeMap::new();
        let mut wishes = BTreeMap::new();
        for _ in 0..20 {
            let duration_s = 10 * (1 + random.below(20));
            let rset = ["ncpus=1", "ncpus=2", "ncpus=4", "2:ncpus=2", "ncpus=3"][random.index(5)];
            let user = ["u1", "u2", "u3"][random.index(3)];
            let when = match random.below(6) {
                0 => {
                    When::Deadline { end_s: 300 + random.below(1_500), late: random.below(2) == 0 }
                }
                1 => When::Fixed { start_s: random.below(1_000) },
                2 => When::After { start_s: random.below(500) },
                3 => When::Agreement { end_s: 100 + random.below(1_000) },
                _ => When::BestEffort,
            };
            let promise = Promise::ALL[random.index(3)];
            let request = Request { when, promise, user: user.into(), ..ask(rset, duration_s) };
            // A request without a place in its time is declined.
            if let Ok(id) = planner.submit(0, &request) {
                users.insert(id, user);
                wishes.insert(id, request);
            }
        }
        let mut started = Vec::new();
        planner.start(0, &mut started);
        let before = plan(&planner);
        let moved = improve(&mut planner, 0, &improving(seed));
        let after = plan(&planner);
        improved += usize::from(moved > 0);
        assert_eq!(before.len(), after.len());
        assert_eq!(before == after, moved == 0, "a plan is taken as a whole, or not at all");
        for (id, wish) in &wishes {
            let (old_s, new_s) = (before[id].start_s.unwrap(), after[id].start_s.unwrap());
            let end_s = new_s + after[id].duration_s;
            moved_later += usize::from(new_s > old_s);
            assert!(new_s <= old_s || wish.promise != Promise::Start, "{wish:?} at {new_s}");
            match wish.when {
                When::Deadline { end_s: deadline_s, late } => {
                    assert!(end_s <= deadline_s && (!late || before[id] == after[id]));
                }
                When::Fixed { .. } => assert_eq!(before[id], after[id]),
                When::After { start_s } => assert!(new_s >= start_s),
                _ => {}
            }
            if started.contains(id) {
                assert_eq!(before[id], after[id], "what runs does not move");
            }
        }
        let (of_nodes, of_user) = most_used(&planner, &users);
        let has = |node: usize| planner.machine().has(node, 0);
        assert!((0..3).all(|node| of_nodes[node] <= has(node)), "{of_nodes:?}");
        assert!(of_user <= USER_CORES, "u1 has {of_user} cores at once");
    }
    assert!(improved > 30 && moved_later > 30, "{improved} plans, {moved_later} later");
}

#[test]
fn short_request_goes_first_unless_the_start_is_promised() {
    for (promise, starts) in [(Promise::None, [50, 10]), (Promise::Start, [10, 1_010])] {
        let mut planner = nodes(&[4, 4]);
        submit(&mut planner, 0, &ask("2:ncpus=4", 10));
        let long = Request { promise, ..ask("2:ncpus=4", 1_000) };
        let ids = [long, free("2:ncpus=4", 40)].map(|of| planner.submit(0, &of).unwrap());
        let mut started = Vec::new();
        planner.start(0, &mut started);
        improve(&mut planner, 0, &improving(1));
        assert_eq!(ids.map(|id| start(&planner, id)), starts.map(Some), "{promise:?}");
    }
}

#[test]
fn requests_that_depend_on_others_stay() {
    let mut planner = nodes(&[4]);
    submit(&mut planner, 0, &free("ncpus=4", 500));
    let followed = planner.submit(0, &free("ncpus=4", 400)).unwrap();
    let follower = Request { after: vec![followed], ..free("ncpus=4", 300) };
    let follower = planner.submit(0, &follower).unwrap();
    let held = planner.reserve(0, &free("ncpus=4", 200)).unwrap();
    let short = planner.submit(0, &free("ncpus=4", 10)).unwrap();
    let starts = [followed, follower, held].map(|id| start(&planner, id));
    improve(&mut planner, 0, &improving(1));
    assert_eq!([followed, follower, held].map(|id| start(&planner, id)), starts);
    assert_eq!(start(&planner, short), Some(0), "it changes places with the first one");
}

/// A plan with a long request before short ones.
fn improvable() -> Planner {
    let mut planner = nodes(&[4]);
    for duration_s in [500, 400, 300, 200, 100, 50] {
        submit(&mut planner, 0, &free("ncpus=4", duration_s));
    }
    planner
}

fn searched(planner: &Planner) -> Improvement {
    let mut found = planner.improvement(0, &improving(1), &|_| None).unwrap();
    while found.run(u64::MAX) {}
    found
}

#[test]
fn plan_that_has_changed_is_not_replaced() {
    let mut planner = improvable();
    let found = searched(&planner);
    submit(&mut planner, 0, &free("ncpus=1", 10));
    let before = plan(&planner);
    assert_eq!(planner.take_improvement(0, found).0, 0);
    assert_eq!(plan(&planner), before);
    // Causes are looked up without a change.
    let found = searched(&planner);
    planner.why(0, 6);
    assert!(planner.take_improvement(0, found).0 > 0);
}

#[test]
fn search_in_pieces_has_the_same_plan() {
    let mut planner = improvable();
    let mut pieces = planner.improvement(0, &improving(1), &|_| None).unwrap();
    let mut count = 0;
    while pieces.run(1) {
        count += 1;
    }
    assert!(count > 50);
    let mut other = planner.clone();
    let found = searched(&other);
    assert_eq!((found.orders(), found.placements()), (pieces.orders(), pieces.placements()));
    assert!(planner.take_improvement(0, pieces).0 > 0);
    other.take_improvement(0, found);
    assert_eq!(plan(&planner), plan(&other));
}

/// A step of a search changes the place of one request, however many nodes it has.
#[test]
fn step_of_a_search_moves_one_request() {
    let planner = improvable();
    let mut found = planner.improvement(0, &improving(1), &|_| None).unwrap();
    for _ in 0..planner.requests().count() {
        found.run(1);
        assert_eq!(found.placements(), 0, "the places of the plan are given back first");
    }
    let mut before = 0;
    while found.run(1) {
        assert!(found.placements() - before <= 1);
        before = found.placements();
    }
}

/// The best order of a search goes on in a search of a plan that has changed.
#[test]
fn search_tries_the_best_order_of_an_earlier_one() {
    let mut planner = improvable();
    let found = searched(&planner);
    let order = found.best_order();
    assert_eq!(order, [6, 5, 4, 3, 2, 1]);
    let new = planner.submit(0, &free("ncpus=4", 1_000)).unwrap();
    let budget = Budget { orders: EARLIER_ORDERS, placements: 1_000 };
    let short = Improving { budget, ..improving(1) };
    let mut next = planner.improvement(0, &short, &|_| None).unwrap();
    next.try_order(&order);
    // Until it is scored, the earlier order is the best one.
    assert_eq!(next.best_order(), order);
    while next.run(u64::MAX) {}
    assert_eq!(next.orders(), EARLIER_ORDERS);
    assert!(planner.take_improvement(0, next).0 > 0);
    let first = [6, 5, 4, 3, 2, 1, new].map(|id| start(&planner, id).unwrap());
    assert!(first.is_sorted(), "{first:?}");
}

#[test]
fn plan_that_comes_too_late_is_not_taken_in_part() {
    let mut planner = nodes(&[4]);
    submit(&mut planner, 0, &ask("ncpus=2", 100));
    let mut started = Vec::new();
    planner.start(0, &mut started);
    let ids = [free("ncpus=4", 500), free("ncpus=2", 100)].map(|of| planner.submit(10, &of));
    let [wide, narrow] = ids.map(Result::unwrap);
    assert_eq!([wide, narrow].map(|id| start(&planner, id)), [Some(100), Some(600)]);
    // The narrow one can start now, and the wide one behind it.
    let searched = |planner: &Planner| {
        let mut found = planner.improvement(10, &improving(1), &|_| None).unwrap();
        while found.run(u64::MAX) {}
        found
    };
    let mut late = planner.clone();
    let found = searched(&late);
    assert_eq!(late.take_improvement(15, found).0, 0);
    assert_eq!(plan(&late), plan(&planner));
    let found = searched(&planner);
    assert_eq!(planner.take_improvement(10, found).0, 2);
    assert_eq!([wide, narrow].map(|id| start(&planner, id)), [Some(110), Some(10)]);
}
