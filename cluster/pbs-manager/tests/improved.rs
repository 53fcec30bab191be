// SPDX-License-Identifier: GPL-2.0
//! Better plans, sought between the operations of a service; and the promises that they keep.

mod common;

use common::*;
use pbs_cluster_planner::{RequestId, When};
use pbs_manager::{Error, Wish};
use pbs_site::Promise;

const OPTIMISED: &str = "name = 'small'\n[optimise]\npromises = ['start', 'none', 'deadline']\n\
                         [[nodes]]\nname = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n";

/// Long requests before short ones, behind one that runs.
fn long_before_short(cluster: &mut Cluster, promise: Option<Promise>) -> Vec<RequestId> {
    cluster.submit(&wish("2:ncpus=8", 100));
    cluster.manager.advance(T).unwrap();
    let durations = [3_000, 2_000, 1_000, 300, 200, 100];
    let wishes = durations.map(|duration_s| Wish { promise, ..wish("2:ncpus=8", duration_s) });
    wishes.iter().map(|wish| cluster.submit(wish)).collect()
}

fn starts(cluster: &Cluster, ids: &[RequestId]) -> Vec<u64> {
    ids.iter().map(|&id| cluster.row(id).start_s.unwrap() - T).collect()
}

/// Lets all requests have their turns, and seeks a better plan to the end.
fn settle(cluster: &mut Cluster) {
    while cluster.manager.is_settling() {
        cluster.manager.settle_some(4);
    }
}

/// Lets all requests have their turns, until a search for a better plan begins.
fn move_up(cluster: &mut Cluster) {
    while cluster.manager.is_moving_up() {
        cluster.manager.settle_some(1);
    }
}

/// A cluster in which a search was interrupted after so many placements, since one of the requests was
/// ended, and another search has reached its end. Returns it with the requests.
fn interrupted(name: &str, placements: usize) -> (Cluster, Vec<RequestId>) {
    let mut cluster = small(name);
    cluster.reopen_with(OPTIMISED);
    cluster.manager.defer();
    let ids = long_before_short(&mut cluster, Some(Promise::None));
    move_up(&mut cluster);
    cluster.manager.settle_some(placements);
    cluster.manager.kill(&user("u"), ids[2]).unwrap();
    settle(&mut cluster);
    (cluster, ids)
}

/// Learns from all that has ended.
fn learn(cluster: &mut Cluster) {
    cluster.manager.learn();
    while cluster.manager.is_learning() {
        cluster.manager.learn_some().unwrap();
    }
}

#[test]
fn plan_is_improved_between_operations() {
    let mut cluster = small("improved-between");
    cluster.reopen_with(OPTIMISED);
    cluster.manager.defer();
    let ids = long_before_short(&mut cluster, Some(Promise::None));
    let first = starts(&cluster, &ids);
    assert!(first.is_sorted(), "an operation is answered with the present plan: {first:?}");
    let mut pieces = 0;
    while cluster.manager.is_settling() {
        // The plan changes once, as a whole.
        let now = starts(&cluster, &ids);
        assert!(now == first || now.is_sorted_by(|one, other| one > other), "{now:?}");
        cluster.manager.settle_some(4);
        pieces += 1;
    }
    assert!(pieces > 20, "{pieces}");
    // The shortest one starts first.
    let expected = [3_700, 1_700, 700, 400, 200, 100];
    assert_eq!(starts(&cluster, &ids), expected);
    cluster.manager.write().unwrap();
    cluster.reopen();
    assert_eq!(starts(&cluster, &ids), expected, "the better plan is in the ledger");
}

#[test]
fn operation_ends_the_search_and_begins_another() {
    let (cluster, ids) = interrupted("improved-anew", 4);
    let left = [ids[0], ids[1], ids[3], ids[4], ids[5]];
    let now = starts(&cluster, &left);
    assert!(now.is_sorted_by(|one, other| one > other), "{now:?}");
}

/// The report counts searches that have ended and those that were interrupted, and has the cost of
/// the plan before and after the last one.
#[test]
fn report_says_what_a_search_has_reached() {
    let other = small("improved-no-report");
    assert_eq!(other.manager.search_report(), None, "the site does not want better plans");
    let (cluster, _) = interrupted("improved-report", 4);
    let report = cluster.manager.search_report().unwrap();
    assert_eq!((report.interrupted, report.searches, report.plans), (1, 1, 1), "{report:?}");
    assert!(report.orders > 120 && report.placements > report.orders, "{report:?}");
    let last = report.last.unwrap();
    assert_eq!((last.requests, last.moved, report.moved), (5, 5, 5));
    // Five requests wait for each other and for 100 s before all of them, the longest first before
    // the search and last afterwards.
    let cost = |durations_s: [u64; 5]| {
        let (mut begun_s, mut wait) = (100, 0.0);
        for duration_s in durations_s {
            wait += begun_s as f64 * (1.0 + 0.0001 * begun_s as f64);
            begun_s += duration_s;
        }
        wait
    };
    let near = |one: f64, other: f64| (one - other).abs() < 1e-6 * other;
    assert!(near(last.before.wait, cost([3_000, 2_000, 300, 200, 100])), "{last:?}");
    assert!(near(last.after.wait, cost([100, 200, 300, 2_000, 3_000])), "{last:?}");
    assert_eq!((last.before.fairness, last.before.length), (0.0, 0.0));
}

/// After an interruption, a search of two orders tries the best order again, and counts.
#[test]
fn report_counts_the_search_after_an_interruption() {
    // The places of all are given back, and then the first orders are scored.
    let (cluster, _) = interrupted("improved-report-short", 60);
    let report = cluster.manager.search_report().unwrap();
    assert_eq!((report.interrupted, report.searches), (1, 2), "{report:?}");
    let last = report.last.unwrap();
    assert!(last.orders > 100 && last.after.wait <= last.before.wait, "{last:?}");
}

/// Changes that come faster than a search ends do not keep the plan from getting better.
#[test]
fn constant_changes_leave_time_for_better_plans() {
    let mut cluster = small("improved-changes");
    cluster.reopen_with(OPTIMISED);
    cluster.manager.defer();
    let ids = long_before_short(&mut cluster, Some(Promise::None));
    let far = When::After { start_s: T + 100_000 };
    let mut rounds = 0;
    while !starts(&cluster, &ids).is_sorted_by(|one, other| one > other) {
        rounds += 1;
        assert!(rounds < 20, "{:?}", starts(&cluster, &ids));
        let other = cluster.submit(&Wish { when: far, ..wish("ncpus=1", 1) });
        cluster.manager.kill(&user("u"), other).unwrap();
        while cluster.manager.is_moving_up() {
            cluster.manager.settle_some(4);
        }
        for _ in 0..15 {
            cluster.manager.settle_some(4);
        }
        assert!(cluster.manager.is_settling(), "a whole search takes longer");
    }
}

#[test]
fn promised_starts_are_kept_by_better_plans() {
    let mut cluster = small("improved-promised");
    cluster.reopen_with(OPTIMISED);
    cluster.manager.defer();
    // The first promise of the site is that of requests that name none.
    let ids = long_before_short(&mut cluster, None);
    let first = starts(&cluster, &ids);
    settle(&mut cluster);
    assert_eq!(starts(&cluster, &ids), first);
    let short = cluster.submit(&Wish { promise: Some(Promise::None), ..wish("2:ncpus=8", 60) });
    assert_eq!(cluster.row(ids[0]).promise, "start");
    assert_eq!(cluster.row(short).promise, "none");
}

#[test]
fn requests_have_the_promises_that_the_site_allows() {
    let mut cluster = small("improved-allowed");
    let promised = |promise, when| Wish { promise: Some(promise), when, ..wish("ncpus=1", 60) };
    let deadline = When::Deadline { end_s: T + 3_600, late: false };
    let refused =
        |cluster: &mut Cluster, wish: &Wish| match cluster.manager.submit(&user("u"), wish) {
            Err(Error::Wrong(what)) => what,
            other => panic!("{other:?}"),
        };
    // A site whose plan is not improved promises every start.
    let free = promised(Promise::None, When::BestEffort);
    assert_eq!(refused(&mut cluster, &free), "the site allows no promise none; write start");
    let id = cluster.submit(&promised(Promise::Start, When::BestEffort));
    assert_eq!(cluster.row(id).promise, "start");
    cluster.reopen_with(OPTIMISED);
    assert_eq!(cluster.row(id).promise, "start");
    let free = cluster.submit(&free);
    let kept = cluster.submit(&promised(Promise::Deadline, deadline));
    cluster.reopen();
    assert_eq!([free, kept].map(|id| cluster.row(id).promise), ["none", "deadline"]);
    let what = refused(&mut cluster, &promised(Promise::Deadline, When::BestEffort));
    assert!(what.contains("without a deadline") && what.contains("--deadline"), "{what}");
}

/// A wait is weighed by the run time that ended requests of the user let expect: short runs with a
/// long limit go before longer runs with a shorter one.
#[test]
fn run_times_are_learned_from_ended_requests() {
    const LEARNED: &str = "name = 'small'\n[optimise]\npromises = ['none']\nwait = 0\n\
                           run_times = 'quantile'\n[[nodes]]\nname = 'n%d'\ncount = 2\n\
                           has = 'ncpus=8'\n";
    let of = |name: &str, limit_s, run_s| Wish {
        user: name.into(),
        run_s: Some(run_s),
        ..wish("2:ncpus=8", limit_s)
    };
    let mut cluster = small("improved-learned");
    cluster.reopen_with(LEARNED);
    for _ in 0..3 {
        cluster.submit(&of("short", 2_000, 20));
    }
    // Says nothing of run times, since it is ended by its user.
    let ended = cluster.submit(&of("ended", 2_000, 1_999));
    cluster.manager.advance(T + 100).unwrap();
    cluster.manager.kill(&user("ended"), ended).unwrap();
    cluster.reopen();
    cluster.manager.defer();
    learn(&mut cluster);
    // Learned from a request that ends while the service runs.
    let running = cluster.submit(&of("long", 1_000, 900));
    cluster.manager.advance(T + 1_000).unwrap();
    assert_eq!(cluster.row(running).end_s, Some(T + 1_000));
    cluster.submit(&of("first", 500, 500));
    cluster.manager.advance(T + 1_001).unwrap();
    let long = cluster.submit(&of("long", 1_000, 900));
    let short = cluster.submit(&of("short", 2_000, 20));
    let unknown = cluster.submit(&of("ended", 2_000, 20));
    let expected = [long, short, unknown].map(|id| cluster.row(id).expected_run_s);
    assert_eq!(expected, [Some(900), Some(20), None]);
    assert_eq!(cluster.row(short).duration_s, 2_000, "the limit is booked");
    settle(&mut cluster);
    let starts = [short, long, unknown].map(|id| cluster.row(id).start_s.unwrap());
    assert!(starts.is_sorted(), "{starts:?}");
    // Without the setting, nothing is expected, and the shortest limit goes first.
    cluster.manager.write().unwrap();
    cluster.reopen_with(&LEARNED.replace("quantile", "limit"));
    cluster.manager.defer();
    learn(&mut cluster);
    settle(&mut cluster);
    assert_eq!(cluster.row(short).expected_run_s, None);
    let starts = [long, short].map(|id| cluster.row(id).start_s.unwrap());
    assert!(starts.is_sorted(), "{starts:?}");
}

/// Requests of one array or with one program teach each other, whatever their sizes; those of another
/// program do not. The errors of what was expected are counted by user.
#[test]
fn run_times_are_learned_by_application() {
    const LEARNED: &str = "name = 'small'\n[optimise]\nrun_times = 'quantile'\n\
                           [[nodes]]\nname = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n";
    let of = |program: &str, cores: u64, run_s| Wish {
        user: "anna".into(),
        command: vec![program.into(), "--seed=7".into()],
        run_s: Some(run_s),
        ..wish(&format!("ncpus={cores}"), 1_000)
    };
    let mut cluster = small("improved-application");
    cluster.reopen_with(LEARNED);
    cluster.manager.defer();
    learn(&mut cluster);
    for run_s in [30, 30, 30] {
        cluster.submit(&of("/home/anna/mesh", 1, run_s));
    }
    let array = Wish { array: Some(vec![1, 2, 3]), ..of("./solve", 1, 500) };
    cluster.manager.submit(&user("anna"), &array).unwrap();
    cluster.manager.advance(T + 1_000).unwrap();
    let next = [of("mesh", 4, 1), of("solve", 4, 1), of("paint", 1, 1)];
    let next = next.map(|wish| cluster.submit(&wish));
    let expected = next.map(|id| cluster.row(id).expected_run_s);
    assert_eq!(expected, [Some(30), Some(500), Some(500)], "a new program runs like all others");
    // The limit is off by 970 s three times and by 500 s three times. Nothing is known of the first
    // one; two are not enough to tell applications apart.
    let (_, of_anna) = cluster.manager.run_time_errors_of(&user("anna").user).unwrap();
    assert_eq!((of_anna.learned.jobs(), of_anna.limit.mean_error_s()), (6, 735.0));
    let errors_s = [970, 0, 0, 470, 470, 0].into_iter().sum::<u64>() as f64 / 6.0;
    assert_eq!(of_anna.learned.mean_error_s(), errors_s);
}

/// Users have errors of their own, and all users have their sum. The users with the most requests
/// are the first.
#[test]
fn errors_of_run_times_are_counted_by_user() {
    const LEARNED: &str = "name = 'small'\n[optimise]\nrun_times = 'last-two'\n\
                           [[nodes]]\nname = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n";
    let mut cluster = small("improved-errors");
    assert_eq!(cluster.manager.run_time_errors(), None);
    cluster.reopen_with(LEARNED);
    cluster.manager.defer();
    learn(&mut cluster);
    for (name, requests) in [("zoe", 2), ("anna", 1), ("bob", 3), ("carl", 1)] {
        for _ in 0..requests {
            let run_s = Some(60);
            cluster.submit(&Wish { user: name.into(), run_s, ..wish("ncpus=1", 1_000) });
        }
    }
    cluster.manager.advance(T + 10_000).unwrap();
    let manager = &cluster.manager;
    let by_user = |most| {
        let errors = manager.run_time_errors_by_user(most).into_iter();
        errors.map(|(user, of)| (user.name.clone(), of.learned.jobs())).collect::<Vec<_>>()
    };
    let all =
        [("bob", 3), ("zoe", 2), ("anna", 1), ("carl", 1)].map(|(of, jobs)| (of.into(), jobs));
    assert_eq!(by_user(10), all);
    assert_eq!(by_user(2), all[..2]);
    assert_eq!(manager.run_time_errors().unwrap().learned.jobs(), 7);
    let of = |name: &str| manager.run_time_errors_of(&user(name).user);
    assert_eq!(of("zoe").unwrap().1.limit.mean_error_s(), 940.0);
    assert!(of("nobody").is_none());
}

/// Run times that are learned while a search goes on make another one begin.
#[test]
fn search_begins_anew_when_run_times_are_learned() {
    const LEARNED: &str = "name = 'small'\n[optimise]\npromises = ['none']\nwait = 0\n\
                           run_times = 'quantile'\n[[nodes]]\nname = 'n%d'\ncount = 2\n\
                           has = 'ncpus=8'\n";
    let mut cluster = small("improved-relearned");
    cluster.reopen_with(LEARNED);
    cluster.submit(&Wish { run_s: Some(20), ..wish("2:ncpus=8", 2_000) });
    cluster.manager.advance(T + 100).unwrap();
    long_before_short(&mut cluster, Some(Promise::None));
    cluster.reopen();
    cluster.manager.defer();
    cluster.manager.learn();
    move_up(&mut cluster);
    cluster.manager.settle_some(4);
    assert_eq!(cluster.manager.search_report().unwrap().interrupted, 0);
    while cluster.manager.is_learning() {
        cluster.manager.learn_some().unwrap();
    }
    assert_eq!(cluster.manager.search_report().unwrap().interrupted, 1);
    settle(&mut cluster);
    assert!(cluster.manager.search_report().unwrap().searches >= 1);
}

/// The history is read in pieces, between which requests come and end. Those that end meanwhile are
/// learned from last.
#[test]
fn history_is_learned_between_operations() {
    const LEARNED: &str = "name = 'small'\n[optimise]\nrun_times = 'last-two'\n\
                           [[nodes]]\nname = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n";
    let of = |run_s| Wish { user: "anna".into(), run_s: Some(run_s), ..wish("ncpus=1", 1_000) };
    let mut cluster = small("improved-history");
    cluster.reopen_with(LEARNED);
    // More than are read at a time.
    for round in 0..16 {
        for _ in 0..16 {
            cluster.submit(&of(20));
        }
        cluster.manager.advance(T + 1_000 * (round + 1)).unwrap();
    }
    cluster.reopen();
    cluster.manager.defer();
    cluster.manager.learn();
    let first = cluster.submit(&of(100));
    assert_eq!(cluster.row(first).expected_run_s, None, "nothing is learned before the answer");
    cluster.manager.learn_some().unwrap();
    cluster.manager.advance(T + 17_000).unwrap();
    assert_eq!(cluster.row(first).outcome.as_deref(), Some("completed"));
    let next = cluster.submit(&of(100));
    let mut pieces = 1;
    while cluster.manager.is_learning() {
        assert_eq!(cluster.row(next).state, pbs_manager::ledger::State::Planned);
        cluster.manager.learn_some().unwrap();
        pieces += 1;
    }
    assert!(pieces > 10, "{pieces}");
    assert_eq!(cluster.row(next).expected_run_s, Some(60), "one of 20 and the last one of 100");
}

/// A user whose requests are short gains a bounded place with a long one.
#[test]
fn short_requests_bound_what_a_long_one_gains() {
    let learned = |weight: &str| {
        format!(
            "name = 'small'\n[optimise]\npromises = ['none']\nwait = 0\n{weight}[[nodes]]\n\
             name = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n"
        )
    };
    let of = |user: &str, limit_s, run_s| Wish {
        user: user.into(),
        run_s: Some(run_s),
        ..wish("2:ncpus=8", limit_s)
    };
    let mut cluster = small("improved-gain");
    cluster.reopen_with(&learned("run_times = 'quantile'\n"));
    for _ in 0..3 {
        cluster.submit(&of("short", 8_000, 1));
    }
    cluster.manager.advance(T + 10).unwrap();
    learn(&mut cluster);
    cluster.manager.defer();
    cluster.submit(&of("first", 100, 100));
    cluster.manager.advance(T + 11).unwrap();
    let long = cluster.submit(&of("short", 8_000, 8_000));
    let other = cluster.submit(&of("other", 500, 500));
    assert_eq!(cluster.row(long).expected_run_s, Some(1));
    settle(&mut cluster);
    let starts = [other, long].map(|id| cluster.row(id).start_s.unwrap());
    assert!(starts.is_sorted(), "{starts:?}");
}
