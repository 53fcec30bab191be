// SPDX-License-Identifier: GPL-2.0
//! Resource usage vectors (Keller, 4.1), which are profiles here.

mod common;

use common::*;
use pbs_cluster_planner::{Planner, Policy, Rules, When};
use pbs_profile::{intersection, Profile, FOREVER};

/// Builds a profile from steps: each value holds from its time on.
fn vector(steps: &[(u64, u64)]) -> Profile {
    let mut profile = Profile::new(0);
    for (index, &(from_s, value)) in steps.iter().enumerate() {
        let until_s = steps.get(index + 1).map_or(FOREVER, |next| next.0);
        profile.add(from_s..until_s, value).unwrap();
    }
    profile
}

fn steps(profile: &Profile) -> Vec<(u64, u64)> {
    profile.iter().map(|step| (step.from, step.value)).collect()
}

#[test]
fn points_of_the_plan_have_a_least_distance() {
    let policy = Policy { min_dist_s: 60, ..Policy::default() };
    let machine = nodes(&[8]).machine().clone();
    let mut planner = Planner::with_policy(machine.into(), Rules::default(), policy);
    assert_eq!(submit(&mut planner, 7, &ask("ncpus=8", 100)), 60);
    // 100 s are booked as 120, and 7 s as 60.
    assert_eq!(submit(&mut planner, 7, &ask("ncpus=8", 7)), 180);
    assert_eq!(submit(&mut planner, 7, &fixed("ncpus=8", 301, 10)), 360);
    let after =
        pbs_cluster_planner::Request { when: When::After { start_s: 421 }, ..ask("ncpus=8", 60) };
    assert_eq!(submit(&mut planner, 7, &after), 480);
    let points: Vec<_> = planner.free(0).map(|(time_s, _)| time_s).collect();
    assert!(points.iter().all(|point| point % 60 == 0), "{points:?}");
    // What ends between two points is free from the next one on.
    let mut started = Vec::new();
    planner.start(60, &mut started);
    planner.remove(65, started[0]);
    planner.backfill(65, 10);
    let points: Vec<_> = planner.free(0).map(|(time_s, _)| time_s).collect();
    assert_eq!(points[..4], [0, 60, 180, 360], "it starts at 120");
}

/// The thirteen ways in which two intervals can lie to each other (Keller, figure 3).
const RELATIONS: [(u64, u64); 13] = [
    (0, 5),
    (5, 10),
    (5, 15),
    (5, 20),
    (5, 25),
    (10, 15),
    (10, 20),
    (10, 25),
    (12, 18),
    (15, 20),
    (15, 25),
    (20, 25),
    (22, 25),
];

#[test]
fn vector_intervals_are_added_and_taken_back() {
    for (begin_s, end_s) in RELATIONS {
        let before = vector(&[(0, 0), (10, 4), (20, 0)]);
        let mut vector = before.clone();
        vector.add(begin_s..end_s, 3).unwrap();
        for time_s in 0..30 {
            let inside = u64::from((begin_s..end_s).contains(&time_s));
            let value = before.value_at(time_s) + 3 * inside;
            assert_eq!(vector.value_at(time_s), value, "{begin_s}..{end_s} {time_s}");
        }
        vector.subtract(begin_s..end_s, 3).unwrap();
        assert_eq!(steps(&vector), steps(&before), "{begin_s}..{end_s}");
    }
}

#[test]
fn vectors_are_added_slot_by_slot() {
    let one = vector(&[(0, 1), (10, 4), (20, 2)]);
    let other = vector(&[(0, 0), (5, 3), (15, 1)]);
    let sum = Profile::sum(&one, &other).unwrap();
    assert_eq!(steps(&sum), [(0, 1), (5, 4), (10, 7), (15, 5), (20, 3)]);
    assert_eq!(steps(&Profile::difference(&sum, &other).unwrap()), steps(&one));
}

#[test]
fn vector_minimum_is_the_least_that_is_free() {
    // 16 items, a limit of 10: used at least as much as is not allowed (4.1).
    let used = vector(&[(0, 4), (50, 14), (90, 0)]);
    let limited = Profile::maximum(&used, &Profile::new(16 - 10));
    let free: Vec<_> = [0, 50, 90].map(|time_s| 16 - limited.value_at(time_s)).into();
    assert_eq!(free, [10, 2, 10]);
}

#[test]
fn vector_slots_are_intersected() {
    let one = [0..10, 20..40];
    let other = [5..25, 30..35, 39..50];
    let both: Vec<_> = intersection(one, other).collect();
    assert_eq!(both, [5..10, 20..25, 30..35, 39..40]);
}

#[test]
fn free_slots_are_long_enough() {
    let free = vector(&[(0, 8), (10, 2), (20, 6), (24, 8), (40, 0)]);
    let slots = |amount, duration_s| -> Vec<(u64, u64)> {
        let slots = free.free_slots(amount, duration_s, 0..60);
        slots.map(|slot| (slot.start, slot.end)).collect()
    };
    assert_eq!(slots(2, 5), [(0, 40)]);
    assert_eq!(slots(6, 5), [(0, 10), (20, 40)]);
    assert_eq!(slots(6, 11), [(20, 40)]);
    assert_eq!(slots(8, 20), []);
}

#[test]
fn the_search_sees_a_users_share() {
    use pbs_cluster_planner::{Cause, Limit, Limited, Pool};
    use pbs_site::{Share, Whom};
    let share = |least| Share { least: Some(least), permille: None };
    let rules = Rules {
        limits: vec![Limit {
            items: Some(share(6)),
            ..limit(Whom::User("me".into()), Limited::Resource(0), ALWAYS)
        }],
        pools: vec![Pool {
            name: "night".into(),
            resource: 0,
            free: share(4),
            access: "user:other".parse().unwrap(),
            share: false,
            for_askers: false,
            valid: std::iter::once(0..100).collect(),
        }],
        ..Rules::default()
    };
    let mut planner = with_rules(&[10], rules);
    let mine = |cores: u64| pbs_cluster_planner::Request {
        user: "me".into(),
        ..ask(&format!("ncpus={cores}"), 50)
    };
    assert_eq!(submit(&mut planner, 0, &mine(4)), 0);
    // The pool leaves 2 until 100, and the limit 2 until 50.
    assert_eq!(submit(&mut planner, 0, &mine(2)), 0);
    let id = planner.submit(0, &mine(3)).unwrap();
    assert_eq!(start(&planner, id), Some(50));
    let causes = planner.why(0, id);
    let pool = (Cause::Pool("night".into()), Some(50));
    assert!(causes.contains(&pool), "{causes:?}");
    let limit = Cause::Items(Whom::User("me".into()), 0);
    assert!(causes.contains(&(limit, Some(50))), "{causes:?}");
    let id = planner.submit(0, &mine(4)).unwrap();
    assert_eq!(start(&planner, id), Some(100), "6 but 3 until then");
}
