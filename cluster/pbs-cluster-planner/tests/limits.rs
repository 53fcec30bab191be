// SPDX-License-Identifier: GPL-2.0
//! Limits and pools (Keller, 3 and 8).

mod common;

use common::*;
use pbs_cluster_planner::{
    Cause, Limit, Limited, Planner, Pool, Refusal, Request, Rules, Throttle,
};
use pbs_site::{Share, User, Whom};

const CORES: Limited = Limited::Resource(0);

fn items(least: u64) -> Option<Share> {
    Some(Share { least: Some(least), permille: None })
}

fn of(user: &str, request: Request) -> Request {
    Request { user: user.into(), ..request }
}

fn everyone(of: Limited) -> Limit {
    limit(Whom::Everyone, of, ALWAYS)
}

fn limits(limits: &[Limit]) -> Rules {
    Rules { limits: limits.to_vec(), ..Rules::default() }
}

#[test]
fn items_are_limited() {
    let most = Limit { items: items(4), ..everyone(CORES) };
    let mut planner = with_rules(&[16], limits(&[most]));
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=4", 10))), 0);
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=1", 10))), 10);
    assert_eq!(submit(&mut planner, 0, &of("b", ask("ncpus=4", 10))), 0);
    let refused = planner.submit(0, &of("c", ask("ncpus=5", 10))).unwrap_err();
    let cause = Cause::Items(Whom::User("c".into()), 0);
    assert_eq!(refused, Refusal::Never(vec![cause]));
}

/// Rules are found by the name of a user, and each user's own use counts.
#[test]
fn users_of_the_same_name_have_accounts_of_their_own() {
    let a = Whom::User("a".into());
    let most = Limit { items: items(4), ..limit(a.clone(), CORES, ALWAYS) };
    let one = Limit { items: items(1), ..limit(a, Limited::ArrayRequests, ALWAYS) };
    let mut planner = with_rules(&[16], limits(&[most, one]));
    let of = |uid: Option<u32>, name: &str| {
        let user = User { name: name.into(), uid };
        Request { user, is_of_array: true, ..ask("ncpus=4", 10) }
    };
    for uid in [Some(1000), Some(1001), None] {
        assert_eq!(submit(&mut planner, 0, &of(uid, "a")), 0);
        let refused = planner.submit(0, &of(uid, "a")).unwrap_err();
        assert!(matches!(refused, Refusal::TooMany { .. }), "{refused:?}");
        let more = Request { is_of_array: false, ..of(uid, "a") };
        assert_eq!(submit(&mut planner, 0, &more), 10);
    }
    // A user's account is the same under another name.
    let renamed = Request { is_of_array: false, ..of(Some(1000), "b") };
    assert_eq!(submit(&mut planner, 0, &renamed), 20);
}

/// Half of the cores are half of those that there are.
#[test]
fn limits_in_percent_follow_lost_nodes() {
    let half = Some(Share { least: None, permille: Some(500) });
    let most = Limit { items: half, valid: vec![0..50, 60..1000], ..everyone(CORES) };
    let mut planner = with_rules(&[8, 8], limits(&[most]));
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=4", 20))), 0);
    let one = of("a", ask("ncpus=1", 10));
    assert_eq!(submit(&mut planner.clone(), 0, &one), 0);
    planner.node_down(5, 1);
    assert_eq!(submit(&mut planner.clone(), 5, &one), 20);
    // Those without a request before, too, and where the limit does not hold, all may be used.
    assert_eq!(submit(&mut planner.clone(), 5, &of("b", ask("ncpus=4", 10))), 5);
    assert_eq!(submit(&mut planner.clone(), 5, &of("a", ask("ncpus=8", 10))), 50);
    planner.node_up(6, 1);
    assert_eq!(submit(&mut planner.clone(), 6, &one), 6);
    assert_eq!(submit(&mut planner, 6, &of("a", ask("ncpus=8", 10))), 20);
}

/// Beside cores that are kept for others, which no limit is on.
#[test]
fn whole_nodes_count_as_cores_in_limits() {
    let most = Limit { items: items(8), ..everyone(Limited::All) };
    let host =
        pbs_cluster_planner::NodeSpec { has: vec![8, 1], kept: Some((1, 2)), ..spec("host", 8) };
    let mut planner = on(&[("gpu", None)], &[host], limits(&[most]));
    let whole = of("a", ask("ncpus=1:gpu=1,place=:excl", 10));
    assert_eq!(submit(&mut planner, 0, &whole), 0);
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=1", 10))), 10);
}

#[test]
fn durations_are_limited() {
    let most = Limit { duration_s: Some(100), ..everyone(CORES) };
    let mut planner = with_rules(&[16], limits(&[most]));
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=1", 100))), 0);
    let refused = planner.submit(0, &of("a", ask("ncpus=1", 101)));
    let cause = Cause::Duration(Whom::User("a".into()), 0);
    assert_eq!(refused, Err(Refusal::Never(vec![cause])));
}

#[test]
fn areas_are_summed_over_unfinished_requests() {
    let most = Limit { area_s: Some(1000), ..everyone(CORES) };
    let mut planner = with_rules(&[16], limits(&[most]));
    let mine = of("a", ask("ncpus=6", 100));
    let first = planner.submit(0, &mine).unwrap();
    let refused = planner.submit(0, &mine);
    let cause = Cause::Area(Whom::User("a".into()), 0);
    assert_eq!(refused, Err(Refusal::Never(vec![cause])));
    assert_eq!(submit(&mut planner, 0, &of("b", ask("ncpus=6", 100))), 0);
    // What is over counts no more, not even what it used.
    planner.start(0, &mut Vec::new());
    planner.remove(50, first);
    for _ in 0..3 {
        let id = planner.submit(50, &mine).unwrap();
        planner.start(50, &mut Vec::new());
        assert!(planner.submit(50, &mine).is_err());
        planner.remove(100, id);
        let id = planner.submit(50, &mine).unwrap();
        planner.start(50, &mut Vec::new());
        planner.remove(150, id);
    }
}

#[test]
fn a_limit_for_everyone_gives_way_to_a_named_one() {
    let all = Limit { items: items(2), ..everyone(Limited::All) };
    let own = Limit { items: items(8), ..limit(Whom::User("a".into()), CORES, 0..100) };
    let mut planner = with_rules(&[16], limits(&[all, own]));
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=8", 10))), 0);
    assert!(planner.submit(0, &of("b", ask("ncpus=3", 10))).is_err());
    assert_eq!(submit(&mut planner, 0, &of("b", ask("ncpus=2", 10))), 0);
}

#[test]
fn a_request_beyond_a_limit_starts_later() {
    let until_100 = Limit { items: items(2), ..limit(Whom::User("a".into()), CORES, 0..100) };
    let mut planner = with_rules(&[16], limits(&[until_100]));
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=2", 30))), 0);
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=2", 30))), 30);
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=3", 30))), 100);
}

#[test]
fn pools_admit_users_and_groups() {
    let pool = Pool {
        name: "ours".into(),
        resource: 0,
        free: Share { least: Some(4), permille: None },
        access: "group:G1 | user:alice".parse().unwrap(),
        share: false,
        for_askers: false,
        valid: vec![ALWAYS],
    };
    let rules = Rules { pools: vec![pool], ..Rules::default() };
    let mut planner = with_rules(&[8], rules);
    let eight =
        |user: &str, group: &str| Request { group: group.into(), ..of(user, ask("ncpus=8", 10)) };
    let refused = planner.submit(0, &eight("bob", "G2"));
    let cause = Cause::Pool("ours".into());
    assert_eq!(refused, Err(Refusal::Never(vec![cause])));
    assert_eq!(submit(&mut planner, 0, &eight("bob", "G1")), 0);
    assert_eq!(submit(&mut planner, 0, &eight("alice", "G2")), 10);
}

#[test]
fn soft_limits_give_way_while_little_is_in_use() {
    let most = Limit { items: items(4), soft_permille: Some(750), ..everyone(CORES) };
    let mut planner = with_rules(&[16], limits(&[most]));
    let mine = |rset: &str| of("a", ask(rset, 100));
    assert_eq!(submit(&mut planner, 0, &mine("ncpus=4")), 0);
    // Beyond the limit up to 12 of 16.
    assert_eq!(submit(&mut planner, 0, &mine("ncpus=8")), 0);
    let id = planner.submit(0, &mine("ncpus=1")).unwrap();
    assert_eq!(start(&planner, id), Some(100));
    let cause = Cause::Items(Whom::User("a".into()), 0);
    assert!(planner.why(0, id).contains(&(cause, Some(100))));
    // Others have what the limit gives them, and no more now.
    assert_eq!(submit(&mut planner, 0, &of("b", ask("ncpus=4", 100))), 0);
    // More than ever may be used beyond it: the hard limit holds.
    assert!(planner.submit(0, &mine("ncpus=13")).is_err());
    // A request starts only where all of its time is good.
    let mut planner = with_rules(&[16], {
        let soft = Limit { items: items(4), soft_permille: Some(500), ..everyone(CORES) };
        limits(&[soft])
    });
    assert_eq!(submit(&mut planner, 0, &of("b", fixed("ncpus=4", 50, 10))), 50);
    assert_eq!(submit(&mut planner, 0, &mine("ncpus=8")), 60);
    assert_eq!(submit(&mut planner, 0, &of("c", ask("ncpus=8", 50))), 0);
}

#[test]
fn limits_of_area_share_a_machine_fairly() {
    let share = Limit { area_s: Some(8 * 100), ..everyone(CORES) };
    let mut planner = with_rules(&[8], limits(&[share]));
    // One who comes first can't have all of the future.
    let mut accepted = 0;
    for _ in 0..10 {
        accepted += u64::from(planner.submit(0, &of("a", ask("ncpus=4", 50))).is_ok());
    }
    assert_eq!(accepted, 4);
    assert_eq!(submit(&mut planner, 0, &of("b", ask("ncpus=8", 50))), 100);
}

/// Of an array only two requests run at the same time, however many cores there are.
#[test]
fn only_some_requests_of_a_set_run_at_the_same_time() {
    let in_set = |set: &str, most| {
        let throttle = Some(Throttle { set: set.into(), most });
        Request { throttle, ..of("a", ask("ncpus=1", 10)) }
    };
    let mut planner = with_rules(&[16], Rules::default());
    let mut ids = Vec::new();
    for start_s in [0, 0, 10, 10, 20] {
        let id = planner.submit(0, &in_set("7", 2)).unwrap();
        assert_eq!(planner.standing(id).unwrap().start_s, Some(start_s));
        ids.push(id);
    }
    assert_eq!(planner.why(0, ids[2])[0], (Cause::Throttle(2), Some(10)));
    // Other sets, and requests of none, have their own time.
    assert_eq!(submit(&mut planner, 0, &in_set("8", 1)), 0);
    assert_eq!(submit(&mut planner, 0, &of("a", ask("ncpus=1", 10))), 0);
    planner.start(0, &mut Vec::new());
    // The set has a place again as soon as one of its requests ends.
    planner.remove(4, ids[0]);
    planner.backfill(4, usize::MAX);
    let starts: Vec<_> = ids[1..].iter().map(|&id| start(&planner, id)).collect();
    assert_eq!(starts, [Some(0), Some(4), Some(10), Some(14)]);
    // A running request gets longer only where the others of its set leave it the time.
    let refused = planner.extend(ids[1], 2, 1000).unwrap_err();
    let Refusal::NotLonger(causes) = refused else { panic!("{refused}") };
    assert!(causes.contains(&Cause::Throttle(2)));
}

/// A running request is judged by all that it asks for, also when it grows: cores that a pool keeps
/// for small requests are not got in small steps, and what is given back is what was taken.
#[test]
fn a_pool_judges_a_resized_request_as_a_whole() {
    let pool = Pool {
        name: "small".into(),
        resource: 0,
        free: Share { least: Some(4), permille: None },
        access: "ncpus < 4".parse().unwrap(),
        share: true,
        for_askers: false,
        valid: vec![ALWAYS],
    };
    let rules = Rules { pools: vec![pool], ..Rules::default() };
    let mut planner = with_rules(&[16], rules);
    let rset = |chunks| format!("{chunks}:ncpus=1").parse().unwrap();
    let large = planner.submit(0, &ask("10:ncpus=1", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    assert!(planner.resize(1, large, &rset(13)).is_err());
    planner.resize(1, large, &rset(12)).unwrap();
    // Its share of the pool comes and goes with its size.
    planner.resize(2, large, &rset(3)).unwrap();
    assert_eq!(submit(&mut planner, 2, &ask("12:ncpus=1", 10)), 2);
    planner.resize(3, large, &rset(4)).unwrap_err();
    planner.remove(4, large);
    planner.remove(4, 2);
    planner.forget_before(4);
    assert_eq!(planner.free(0).last().map(|(_, free)| free), Some(16));
    assert_eq!(submit(&mut planner, 4, &ask("12:ncpus=1", 10)), 4);
    assert_eq!(submit(&mut planner, 4, &ask("3:ncpus=1", 10)), 4);
}

/// A running request whose time changes uses a pool for short requests as long as it is one, and
/// gives back what it took.
#[test]
fn a_pool_of_short_requests_follows_changes_of_their_time() {
    let pool = Pool {
        name: "short".into(),
        resource: 0,
        free: Share { least: Some(8), permille: None },
        access: "duration <= 50".parse().unwrap(),
        share: true,
        for_askers: false,
        valid: vec![ALWAYS],
    };
    let rules = Rules { pools: vec![pool], ..Rules::default() };
    // Of 16 cores, long requests have 8 together, and those that the pool's own requests use
    // beyond.
    let planner = || {
        let mut planner = with_rules(&[16], rules.clone());
        let id = planner.submit(0, &ask("ncpus=4", 40)).unwrap();
        planner.start(0, &mut Vec::new());
        (planner, id)
    };
    let long =
        |planner: &mut Planner, cores| submit(planner, 10, &ask(&format!("ncpus={cores}"), 100));

    // As a long request it takes 4 of the 8 that long ones have.
    let (mut extended, id) = planner();
    extended.extend(id, 60, 2000).unwrap();
    assert_eq!(long(&mut extended, 4), 10);
    assert_eq!(long(&mut extended, 1), 100);
    // Nothing of it stays in the pool when it has ended.
    let (mut extended, id) = planner();
    extended.extend(id, 60, 2000).unwrap();
    extended.remove(10, id);
    assert_eq!(long(&mut extended, 8), 10);
    assert_eq!(long(&mut extended, 1), 110);

    // Long requests may fill what is theirs: it can't become one of them.
    let (mut full, id) = planner();
    assert_eq!(long(&mut full, 8), 10);
    let refused = full.extend(id, 60, 2000).unwrap_err();
    let Refusal::NotLonger(causes) = refused else { panic!("{refused}") };
    assert!(causes.contains(&Cause::Pool("short".into())), "{causes:?}");
    full.extend(id, 5, 2000).unwrap();

    // A long request that becomes short leaves the others their part.
    let mut shortened = with_rules(&[16], rules.clone());
    let id = shortened.submit(0, &ask("ncpus=4", 100)).unwrap();
    shortened.start(0, &mut Vec::new());
    shortened.shorten(0, id, 50);
    assert_eq!(long(&mut shortened, 8), 10);
    shortened.remove(20, id);
    assert_eq!(submit(&mut shortened, 20, &ask("ncpus=8", 10)), 20);
}
