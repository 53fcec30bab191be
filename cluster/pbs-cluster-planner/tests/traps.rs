// SPDX-License-Identifier: GPL-2.0
//! Cases worked by hand, each of which a planner that is nearly right gets wrong.

mod common;

use std::sync::Arc;

use common::*;
use pbs_cluster_planner::{
    Cause, Limit, Limited, Machine, NodeSpec, Planner, Pool, Refusal, Request, Resource, Rules,
    State, MOST_DURATION_S,
};
use pbs_resources::Condition;
use pbs_site::{Share, Whom};

/// Nodes of one core that can be asked for by name, busy as told.
fn busy(stretches: &[(&str, std::ops::Range<u64>)]) -> Planner {
    let mut hosts: Vec<&str> = stretches.iter().map(|(host, _)| *host).collect();
    hosts.dedup();
    let specs = hosts
        .iter()
        .map(|host| NodeSpec { words: vec![("host".into(), host.to_string())], ..spec(host, 1) });
    let machine = Machine::new(vec![ncpus()], &specs.collect::<Vec<_>>());
    let mut planner = Planner::new(Arc::new(machine), Rules::default());
    for (host, over) in stretches {
        let request = fixed(&format!("ncpus=1:host={host}"), over.start, over.end - over.start);
        planner.submit(0, &request).unwrap();
    }
    planner
}

/// The sum is free all along, and no node is.
#[test]
fn fragments_of_free_time_make_no_start() {
    let mut planner = busy(&[("n1", 10..20), ("n2", 0..10)]);
    let id = planner.submit(0, &ask("1:ncpus=1", 20)).unwrap();
    assert_eq!((start(&planner, id), names(&planner, id)), (Some(10), vec!["n2".into()]));
}

/// A start inside of a stretch that is free.
#[test]
fn a_request_starts_inside_a_free_slot() {
    // A is free [0,11), B [3,14), C [9,30), E [12,30).
    let taken = [("A", 11..99), ("B", 0..3), ("B", 14..99), ("C", 0..9), ("E", 0..12)];
    let mut planner = busy(&taken);
    let id = planner.submit(0, &ask("2:ncpus=1", 10)).unwrap();
    assert_eq!(
        (start(&planner, id), names(&planner, id)),
        (Some(12), vec!["C".into(), "E".into()])
    );
}

/// The least of what is free and of what the limit leaves.
#[test]
fn free_items_are_the_least_of_free_and_limit() {
    for (cores, duration_s, expected_s) in [(8, 30, 90), (7, 50, 0), (7, 60, 90)] {
        let mine = Whom::User("me".into());
        let items = Some(Share { least: Some(10), permille: None });
        let rules = Rules {
            limits: vec![Limit { items, ..limit(mine, Limited::Resource(0), ALWAYS) }],
            ..Rules::default()
        };
        let mut planner = with_rules(&[16], rules);
        let me = |rset: &str, start_s, duration_s| Request {
            user: "me".into(),
            ..fixed(rset, start_s, duration_s)
        };
        // 4 are used until 50 and 14 until 90, of which 3 are mine.
        planner.submit(0, &me("ncpus=3", 0, 90)).unwrap();
        planner.submit(0, &fixed("ncpus=1", 0, 50)).unwrap();
        planner.submit(0, &fixed("ncpus=11", 50, 40)).unwrap();
        let request = Request { user: "me".into(), ..ask(&format!("ncpus={cores}"), duration_s) };
        assert_eq!(submit(&mut planner, 0, &request), expected_s, "{cores} cores");
    }
}

/// Keller's example 1.
#[test]
fn limits_hold_only_while_they_are_valid() {
    // 20.08.17 00:00 and 01.09.17 00:00, in days.
    let (now_s, august_s, september_s) = (19 * DAY, 0, 31 * DAY);
    let me = || Whom::User("me".into());
    let resources = vec![ncpus(), Resource { name: "tesla".into(), job_wide: None }];
    let node = NodeSpec { has: vec![1000, 100], ..spec("n", 1000) };
    let rules = Rules {
        limits: vec![
            Limit { duration_s: Some(7 * DAY), ..limit(me(), Limited::All, ALWAYS) },
            Limit {
                items: Some(Share { least: Some(640), permille: None }),
                duration_s: Some(4 * DAY + 3 * HOUR),
                ..limit(me(), Limited::Resource(0), august_s..september_s)
            },
            Limit { area_s: Some(500 * HOUR), ..limit(me(), Limited::Resource(1), ALWAYS) },
        ],
        ..Rules::default()
    };
    let planner = || {
        Planner::new(
            Arc::new(Machine::new(resources.clone(), std::slice::from_ref(&node))),
            rules.clone(),
        )
    };
    let mine = |rset: &str, duration_s| Request { user: "me".into(), ..ask(rset, duration_s) };
    assert_eq!(submit(&mut planner(), now_s, &mine("ncpus=4", 4 * DAY)), now_s);
    assert_eq!(submit(&mut planner(), now_s, &mine("ncpus=4", 5 * DAY)), september_s);
    let refused = planner().submit(now_s, &mine("ncpus=4", 8 * DAY)).unwrap_err();
    // Neither limit by itself, but both together.
    assert_eq!(refused, Refusal::Never(Vec::new()));
    assert_eq!(submit(&mut planner(), now_s, &mine("tesla=1", 8 * DAY)), now_s);
    let refused = planner().submit(now_s, &mine("3:tesla=1", 8 * DAY)).unwrap_err();
    assert_eq!(refused, Refusal::Never(vec![Cause::Area(me(), 1)]));
    // In August no more than 640 at once.
    let mut planner = planner();
    assert_eq!(submit(&mut planner, now_s, &mine("ncpus=600", 2 * DAY)), now_s);
    assert_eq!(submit(&mut planner, now_s, &mine("ncpus=41", DAY)), now_s + 2 * DAY);
    assert_eq!(submit(&mut planner, now_s, &mine("ncpus=40", DAY)), now_s);
}

/// A node is lost and comes back.
#[test]
fn a_lost_node_aborts_moves_and_returns_requests() {
    let mut planner = nodes(&[4, 4]);
    let r1 = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    let r2 = planner.submit(0, &ask("ncpus=4", 50)).unwrap();
    let mut started = Vec::new();
    planner.start(0, &mut started);
    assert_eq!(started, [r1, r2]);
    let q = planner.submit(0, &ask("ncpus=4", 40)).unwrap();
    let p = planner.submit(0, &ask("2:ncpus=4", 20)).unwrap();
    assert_eq!((start(&planner, q), start(&planner, p)), (Some(50), Some(100)));
    let n1 = planner.machine().node_by_name("n1").unwrap();
    let replanned = planner.node_down(10, n1);
    assert_eq!((replanned.aborted, replanned.waiting), (vec![r1], vec![p]));
    planner.backfill(10, usize::MAX);
    assert_eq!(start(&planner, q), Some(50));
    assert_eq!(planner.state(p), Some(State::Waiting));
    let new = planner.submit(10, &ask("2:ncpus=4", 20)).unwrap();
    assert_eq!(planner.state(new), Some(State::Waiting));
    assert!(planner.submit(10, &ask("ncpus=4+ncpus=4+ncpus=1", 20)).is_err());
    planner.remove(10, new);
    planner.remove(50, r2);
    planner.start(50, &mut started);
    planner.node_up(60, n1);
    assert_eq!((start(&planner, q), start(&planner, p)), (Some(50), Some(90)));
}

/// `10/20%` are kept free for those who ask for fewer than four cores for less than an hour.
#[test]
fn a_free_pool_is_kept_for_small_requests() {
    let rules = |share| Rules {
        pools: vec![Pool {
            name: "short".into(),
            resource: 0,
            free: Share { least: Some(10), permille: Some(200) },
            access: "ncpus<4 & duration<1h".parse::<Condition>().unwrap(),
            share,
            for_askers: false,
            valid: vec![ALWAYS],
        }],
        ..Rules::default()
    };
    let planner = |share| with_rules(&[40], rules(share));
    let refused = planner(false).submit(0, &ask("ncpus=31", 2 * HOUR)).unwrap_err();
    assert_eq!(refused, Refusal::Never(vec![Cause::Pool("short".into())]));
    let mut used = planner(false);
    assert_eq!(submit(&mut used, 0, &ask("ncpus=30", 2 * HOUR)), 0);
    assert_eq!(submit(&mut used.clone(), 0, &ask("ncpus=3", 59 * 60)), 0);
    assert_eq!(submit(&mut used.clone(), 0, &ask("ncpus=4", 59 * 60)), 2 * HOUR);
    assert_eq!(submit(&mut used, 0, &ask("ncpus=3", HOUR)), 2 * HOUR);
    // Whether those that the pool is for count in it.
    for (share, expected_s) in [(false, 59 * 60), (true, 0)] {
        let mut planner = planner(share);
        assert_eq!(submit(&mut planner, 0, &ask("ncpus=3", 59 * 60)), 0);
        assert_eq!(submit(&mut planner, 0, &ask("ncpus=30", 2 * HOUR)), expected_s);
    }
}

/// All is kept free on Mondays and Fridays from 7 to 11, for as long as calendars go.
#[test]
fn a_start_that_never_comes_is_found_out() {
    let monday_s = 4 * DAY;
    let weeks = (0..520).flat_map(|week| {
        let at = |day: u64| week * 7 * DAY + monday_s + day * DAY + 7 * HOUR;
        [at(0)..at(0) + 4 * HOUR, at(4)..at(4) + 4 * HOUR]
    });
    let rules = Rules {
        pools: vec![Pool {
            name: "service".into(),
            resource: 0,
            free: Share { least: None, permille: Some(1000) },
            access: Condition::Any(Vec::new()),
            share: false,
            for_askers: false,
            valid: weeks.collect(),
        }],
        horizon_s: 520 * 7 * DAY,
        ..Rules::default()
    };
    let mut planner = with_rules(&[4], rules);
    let start_s = submit(&mut planner, monday_s, &ask("ncpus=1", 92 * HOUR));
    assert_eq!(start_s, monday_s + 11 * HOUR);
    let refused = planner.submit(monday_s, &ask("ncpus=1", 92 * HOUR + 1)).unwrap_err();
    assert_eq!(refused, Refusal::Never(vec![Cause::Pool("service".into())]));
}

/// The earliest submitted request moves up first.
#[test]
fn backfilling_moves_the_earliest_submitted_first() {
    let mut planner = nodes(&[10]);
    let r = planner.submit(0, &ask("ncpus=6", 100)).unwrap();
    planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    let a = planner.submit(0, &ask("ncpus=6", 50)).unwrap();
    let c = planner.submit(0, &ask("ncpus=10", 10)).unwrap();
    let d = planner.submit(0, &ask("ncpus=4", 60)).unwrap();
    let starts = |planner: &Planner| [a, c, d].map(|id| start(planner, id).unwrap());
    assert_eq!(starts(&planner), [100, 150, 160]);
    planner.remove(30, r);
    planner.backfill(30, usize::MAX);
    assert_eq!(starts(&planner), [30, 100, 110]);
}

/// First fit decreasing does not find it.
#[test]
fn a_mapping_is_found_where_greedy_fails() {
    let mut planner = nodes(&[10, 10]);
    let id = planner.submit(0, &ask("2:ncpus=4+4:ncpus=3", 10)).unwrap();
    assert_eq!(start(&planner, id), Some(0));
    let used: Vec<_> = planner.used_by(id).into_iter().map(|(_, used)| used[0]).collect();
    assert_eq!(used, [10, 10]);
}

/// Cheap nodes go first, and an exclusive request gets whole nodes.
#[test]
fn cheap_nodes_go_first_and_exclusive_requests_get_whole_ones() {
    let specs = |prio| {
        let n1 = NodeSpec { prio, ..spec("n1", 16) };
        [n1, spec("n2", 16), spec("n3", 32)]
    };
    let planner =
        |prio| Planner::new(Arc::new(Machine::new(vec![ncpus()], &specs(prio))), Rules::default());
    let weight = |planner: &Planner, name| {
        let machine = planner.machine();
        machine.weight(machine.node_by_name(name).unwrap())
    };
    let mut plain = planner(0);
    assert_eq!(["n1", "n2", "n3"].map(|name| weight(&plain, name)), [16, 16, 32]);
    let alone = ask("2:ncpus=12,place=free:excl", 10);
    let id = plain.submit(0, &alone).unwrap();
    assert_eq!(names(&plain, id), ["n1", "n2"]);
    assert_eq!(plain.busy_cores(5), 32);
    let next = plain.submit(0, &ask("1:ncpus=4", 10)).unwrap();
    assert_eq!(names(&plain, next), ["n3"]);
    let mut plain = planner(0);
    let pack = plain.submit(0, &ask("4:ncpus=8,place=pack", 10)).unwrap();
    assert_eq!(names(&plain, pack), ["n3"]);
    assert!(plain.submit(0, &ask("4:ncpus=8,place=scatter", 10)).is_err());
    let mut with_prio = planner(1);
    assert_eq!(weight(&with_prio, "n1"), 80);
    let id = with_prio.submit(0, &alone).unwrap();
    assert_eq!(names(&with_prio, id), ["n2", "n3"]);
    assert_eq!(with_prio.busy_cores(5), 48);
}

/// A request is no longer than the plan can count, also after an extension.
#[test]
fn durations_have_a_maximum() {
    let mut planner = nodes(&[8, 8]);
    let refused = Err(Refusal::TooLong { most_s: MOST_DURATION_S });
    let mut margin = ask("ncpus=1", MOST_DURATION_S);
    margin.margin_s = 1;
    for request in [ask("ncpus=1", u64::MAX), ask("2:ncpus=1", MOST_DURATION_S + 1), margin] {
        assert_eq!(planner.submit(0, &request), refused);
    }
    let id = planner.submit(0, &ask("ncpus=1", MOST_DURATION_S - 1)).unwrap();
    planner.start(0, &mut Vec::new());
    for by_s in [2, u64::MAX] {
        let extended = planner.extend(id, by_s, u64::MAX);
        assert_eq!(extended, Err(Refusal::TooLong { most_s: MOST_DURATION_S }));
    }
    planner.extend(id, 1, u64::MAX).unwrap();
}
