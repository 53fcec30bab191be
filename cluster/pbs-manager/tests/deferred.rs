// SPDX-License-Identifier: GPL-2.0
//! Operations that leave the disk and better places to a service.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::*;
use pbs_cluster_planner::{Placed, When};
use pbs_manager::ledger::{Access, After, Ledger, Outcome, Page};
use pbs_manager::{only_mine, Change, Error, Held, Manager, Simulated, Wish};

/// The requests that a reader of the file sees.
fn stored(cluster: &Cluster) -> usize {
    Ledger::open(&cluster.path, Access::Read).unwrap().rows().unwrap().len()
}

/// Changes of several operations are one transaction, with their events; nothing of them is in the
/// file before.
#[test]
fn operations_are_written_together() {
    let mut cluster = small("deferred-written");
    cluster.submit(&wish("ncpus=1", 60));
    cluster.manager.write().unwrap();
    cluster.manager.defer();
    let first = cluster.submit(&wish("ncpus=1", 60));
    let second = cluster.submit(&wish("ncpus=1", 60));
    cluster.manager.kill(&user("u"), first).unwrap();
    assert_eq!(stored(&cluster), 1);
    // What is not written is known all the same.
    let (row, events) = cluster.manager.details(first).unwrap();
    assert_eq!((row.outcome.as_deref(), events.len()), (Some("killed by u"), 2));
    let told = cluster.manager.write().unwrap();
    let told: Vec<_> = told.iter().map(|event| (event.request, event.what.as_str())).collect();
    let (one, two) = (Some(first), Some(second));
    assert_eq!(told, [(one, "submitted"), (two, "submitted"), (one, "ended")]);
    assert_eq!(stored(&cluster), 3);
    assert!(cluster.manager.write().unwrap().is_empty());
    cluster.reopen();
}

/// An engine acts when the ledger knows: what it is told before is not written yet.
#[test]
fn an_engine_hears_what_is_written() {
    let mut engine = Observed::default();
    let path = directory("deferred-engine").join("ledger");
    let mut manager = Manager::create(&path, SITE, T, &mut engine).unwrap();
    manager.defer();
    manager.submit(&user("u"), &wish("ncpus=1", 100)).unwrap();
    manager.advance(T + 1).unwrap();
    let heard = |engine: &Observed| (engine.threads.len(), engine.written);
    assert_eq!(heard(manager.engine_mut()), (1, 0));
    manager.write().unwrap();
    assert_eq!(heard(manager.engine_mut()), (1, 1));
    drop(manager);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// Requests that look for a better place one after the other get the place that they would have got
/// at once; an operation between them changes nothing of it.
#[test]
fn places_are_improved_in_pieces() {
    let starts = |is_deferred: bool| {
        let mut cluster = small(&format!("deferred-pieces-{is_deferred}"));
        if is_deferred {
            cluster.manager.defer();
        }
        let large = cluster.submit(&wish("2:ncpus=8", 7200));
        for _ in 0..8 {
            cluster.submit(&wish("ncpus=8", 600));
        }
        let before: Vec<_> = cluster.rows().iter().skip(1).map(|row| row.start_s).collect();
        cluster.manager.kill(&user("u"), large).unwrap();
        let mut pieces = 0;
        while cluster.manager.is_settling() {
            if pieces == 0 {
                let now: Vec<_> = cluster.rows().iter().map(|row| row.start_s).collect();
                assert_eq!(now, before);
            }
            cluster.manager.settle_some(1);
            pieces += 1;
        }
        cluster.manager.write().unwrap();
        let starts: Vec<_> = cluster.rows().iter().map(|row| row.start_s).collect();
        (starts, pieces)
    };
    let (at_once, none) = starts(false);
    let (in_pieces, pieces) = starts(true);
    assert_eq!(at_once, in_pieces);
    assert!(none == 0 && pieces >= 8, "{none} and {pieces} pieces");
    assert_eq!(at_once.iter().filter(|start_s| **start_s == Some(T)).count(), 2);
}

/// A request that waits is planned, and reservations have their turns, though the cluster itself
/// never ends to look for better places.
#[test]
fn all_have_their_turn() {
    let mut cluster = small("deferred-turns");
    let site = "name = 'near'\nplanning_horizon = '1h'\n[[nodes]]\nname = 'n%d'\ncount = 3\nhas = \
                'ncpus=8'\n";
    cluster.reopen_with(site);
    let held = cluster.manager.reserve(&user("u"), &wish("ncpus=8", 7200)).unwrap();
    let inside = |duration_s| Wish { within: Some(held), ..wish("ncpus=8", duration_s) };
    let first_inside = cluster.submit(&inside(600));
    let second_inside = cluster.submit(&inside(600));
    let long = cluster.submit(&wish("2:ncpus=8", 3000));
    let planned: Vec<_> = (0..8).map(|_| cluster.submit(&wish("2:ncpus=8", 300))).collect();
    let waiting = cluster.submit(&wish("2:ncpus=8", 60));
    assert_eq!(cluster.row(waiting).start_s, None);
    cluster.manager.defer();
    cluster.manager.kill(&user("u"), first_inside).unwrap();
    for id in [long].into_iter().chain(planned.into_iter().skip(1)) {
        cluster.manager.kill(&user("u"), id).unwrap();
    }
    for _ in 0..200 {
        cluster.manager.settle_some(1);
        cluster.manager.look_again();
        assert!(cluster.manager.is_settling());
    }
    assert!(cluster.row(waiting).start_s.is_some_and(|start_s| start_s <= T + 300));
    assert_eq!(cluster.row(second_inside).start_s, Some(T));
}

/// Requests count for their user from acceptance to end, also in the next process.
#[test]
fn requests_of_a_user_are_counted() {
    let mut cluster = small("deferred-held");
    assert_eq!(cluster.manager.held_by(&"u".into()), Held::default());
    let first = cluster.submit(&wish("ncpus=1", 60));
    cluster.submit(&wish("ncpus=1", 60));
    assert_eq!(
        (
            cluster.manager.held_by(&"u".into()).requests,
            cluster.manager.held_by(&"v".into()).requests
        ),
        (2, 0)
    );
    cluster.reopen();
    assert_eq!(cluster.manager.held_by(&"u".into()).requests, 2);
    assert_eq!(cluster.manager.held_by_all(), cluster.manager.held_by(&"u".into()));
    cluster.manager.kill(&user("u"), first).unwrap();
    assert_eq!(cluster.manager.held_by(&"u".into()).requests, 1);
    cluster.manager.advance(T + 3600).unwrap();
    assert_eq!(cluster.manager.held_by(&"u".into()), Held::default());
}

/// Everything that grows with a request counts: texts, dependencies, nodes that it holds for
/// others, and resources that it gets later. Its end gives all of it back.
#[test]
fn all_memory_of_a_request_is_counted() {
    let mut cluster = small("deferred-bytes");
    let bytes = |cluster: &Cluster, of: &Wish| cluster.manager.held_more(of, false).bytes;
    let plain = wish("ncpus=1", 60);
    let first = cluster.submit(&plain);
    let least = bytes(&cluster, &plain);
    assert_eq!(cluster.manager.held_by(&"u".into()).bytes, least);
    let after = vec![After { request: first, outcome: Outcome::Any }; 9];
    let long = "x".repeat(100);
    for (more, of) in [
        (100, Wish { name: long.clone(), ..plain.clone() }),
        (99, Wish { group: long.clone(), ..plain.clone() }),
        (9 * size_of::<After>(), Wish { after, ..plain.clone() }),
    ] {
        assert!(bytes(&cluster, &of) >= least + more, "{of:?}");
    }
    // Its part of the plan of each node that it may have: where and how many, and two steps.
    let resources = cluster.manager.machine().resources().len();
    let of_node = size_of::<Placed>() + 2 * (1 + resources) * size_of::<u64>();
    let bytes_of = |rset: &str| bytes(&cluster, &wish(rset, 60));
    assert_eq!(bytes_of("2:ncpus=1"), bytes_of("ncpus=1") + "2:".len() + of_node);
    assert_eq!(bytes_of("9:ncpus=1"), bytes_of("2:ncpus=1"));
    // As many nodes as it may have, however many chunks it asks for.
    let held = |rset: &str| cluster.manager.held_more(&wish(rset, 60), true);
    assert_eq!((held("ncpus=1").reservations, held("ncpus=1").requests), (1, 1));
    assert!(held("2:ncpus=1").bytes >= held("ncpus=1").bytes + 1000);
    assert!(held("9:ncpus=1").bytes < held("2:ncpus=1").bytes + 1000);

    let rset = "ncpus=1:ompthreads=2+ncpus=1:ompthreads=3";
    let change = Change { rset: Some(rset.parse().unwrap()), ..Change::default() };
    let second = cluster.submit(&Wish { when: When::After { start_s: T + 600 }, ..plain });
    let expected = {
        let (of, more) = cluster.manager.held_more_with(second, &rset.parse().unwrap()).unwrap();
        assert_eq!((of.name.as_str(), more.requests), ("u", 0));
        assert!(more.bytes > 0);
        cluster.manager.held_by(&"u".into()).bytes + more.bytes
    };
    cluster.manager.alter(&user("u"), second, &change).unwrap();
    assert_eq!(cluster.manager.held_by(&"u".into()).bytes, expected);
    cluster.reopen();
    assert_eq!(cluster.manager.held_by(&"u".into()).bytes, expected);
    for id in [first, second] {
        cluster.manager.kill(&user("u"), id).unwrap();
    }
    assert_eq!(cluster.manager.held_by(&"u".into()), Held::default());
}

/// Additions of the site may make a request too long for the next process that reads it.
#[test]
fn defaults_do_not_make_a_request_unreadable() {
    let mut cluster = small("deferred-defaults");
    let items: Vec<String> = (0..64).map(|at| format!("r{at}=1")).collect();
    let items = items.join(":");
    let site = format!(
        "name = 'x'\ndefaults = {{ ncpus = 1 }}\n[[nodes]]\nname = 'n'\nhas = \
                        'ncpus=8:{items}'\n"
    );
    cluster.reopen_with(&site);
    let refused = cluster.manager.submit(&user("u"), &wish(&items, 60));
    assert!(
        matches!(&refused, Err(Error::Wrong(what)) if what.contains("at most 64 resources")),
        "{refused:?}"
    );
}

/// A long list is read in parts.
#[test]
fn lists_have_parts() {
    let mut cluster = small("deferred-parts");
    for _ in 0..5 {
        cluster.submit(&wish("ncpus=1", 60));
    }
    cluster.manager.kill(&user("u"), 2).unwrap();
    let ids = |rows: Vec<pbs_manager::ledger::Row>| -> Vec<u64> {
        rows.iter().map(|row| row.id).collect()
    };
    let page = |rows| Page { rows, bytes: 1 << 20 };
    let open = |above, user, most| {
        let paged = cluster.manager.open_rows_above(above, user, page(most));
        ids(paged.rows)
    };
    assert_eq!((open(0, None, 2), open(3, Some("u"), 9)), (vec![1, 3], vec![4, 5]));
    assert!(open(0, Some("v"), 9).is_empty() && open(u64::MAX, None, 9).is_empty());
    assert_eq!(ids(cluster.manager.rows_above(1, page(2)).unwrap().rows), [2, 3]);
    // A part ends behind the row that exceeds its bytes, and says whether others follow.
    let long = Wish { command: vec!["x".repeat(10_000); 2], ..wish("ncpus=1", 60) };
    cluster.submit(&long);
    cluster.submit(&long);
    let few = Page { rows: 100, bytes: 20_000 };
    for (above, expected, is_last) in [(0, &[1, 3, 4, 5, 6][..], false), (6, &[7], true)] {
        let open = cluster.manager.open_rows_above(above, None, few);
        assert_eq!((ids(open.rows), open.is_last), (expected.to_vec(), is_last));
    }
    for (above, expected, is_last) in [(2, &[3, 4, 5, 6][..], false), (6, &[7], true)] {
        let all = cluster.manager.rows_above(above, few).unwrap();
        assert_eq!((ids(all.rows), all.is_last), (expected.to_vec(), is_last));
    }
}

/// A ledger follows the clock of the machine unless it is ahead; and acts only for its owner.
#[test]
fn a_ledger_is_carried_out_in_real_time() {
    use std::os::unix::fs::PermissionsExt;
    let cluster = small("deferred-real");
    assert_eq!(cluster.manager.check_clock(T), Ok(()));
    assert!(matches!(cluster.manager.check_clock(T - 1), Err(Error::Wrong(_))));
    let mode = |mode| {
        std::fs::set_permissions(&cluster.path, std::fs::Permissions::from_mode(mode)).unwrap();
        only_mine(&cluster.path)
    };
    assert_eq!(mode(0o644), Ok(()));
    assert!(matches!(mode(0o664), Err(Error::Wrong(_))));
}

/// A planner that moves many requests up lets other processes write meanwhile, and knows when the
/// plan that it has is old.
#[test]
fn others_write_in_between() {
    let mut cluster = small("deferred-others");
    cluster.manager.defer();
    cluster.submit(&wish("ncpus=1", 60));
    // Nobody else writes: it goes on.
    assert_eq!(cluster.manager.let_others_write(), Ok(true));
    assert_eq!(stored(&cluster), 1);
    cluster.submit(&wish("ncpus=1", 60));
    let path = cluster.path.clone();
    let other = thread::spawn(move || {
        // It waits for its turn.
        let opened = Manager::open(&path, Access::Write, Simulated::default());
        opened.unwrap().0.submit(&user("u"), &wish("ncpus=1", 60)).unwrap()
    });
    let begun = Instant::now();
    while cluster.manager.let_others_write().unwrap() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the other one never writes");
    }
    assert_eq!(other.join().unwrap(), [3]);
    assert_eq!(cluster.rows().len(), 2, "what it knows is old");
    cluster.reopen_with(SITE);
    assert_eq!(cluster.rows().len(), 3);
}

/// An alteration that changes nothing has no effect: no request is planned anew, and no others get
/// their turn.
#[test]
fn an_alteration_of_nothing_has_no_effect() {
    let mut cluster = small("deferred-nothing");
    cluster.manager.defer();
    let id = cluster.submit(&wish("ncpus=1", 60));
    while cluster.manager.is_settling() {
        cluster.manager.settle_some(1);
    }
    let version = cluster.manager.planner().version();
    let same = Change { duration_s: Some(60), ..Change::default() };
    for change in [Change::default(), same] {
        cluster.manager.alter(&user("u"), id, &change).unwrap();
        assert_eq!(cluster.manager.planner().version(), version);
        assert!(!cluster.manager.is_settling());
    }
    let longer = Change { duration_s: Some(61), ..Change::default() };
    cluster.manager.alter(&user("u"), id, &longer).unwrap();
    assert!(cluster.manager.planner().version() != version && cluster.manager.is_settling());
}
