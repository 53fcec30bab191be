// SPDX-License-Identifier: GPL-2.0
//! Ended requests are forgotten by their age and number, and nothing planned refers to them.

mod common;

use common::*;
use pbs_manager::ledger::{After, Outcome};
use pbs_manager::{Error, Usages};

/// Keeps few requests; nobody has a limit.
const FEW: &str = r#"
name = "few"
keep_ended = "1h"
keep_ended_requests = 100
[[nodes]]
name = "n%d"
count = 2
has = "ncpus=8"
"#;

/// Submits so many requests of a minute each, which all end.
fn ended(cluster: &mut Cluster, count: u64) {
    for _ in 0..count {
        cluster.submit(&wish("ncpus=8", 60));
        let until_s = cluster.manager.clock_s() + 30;
        cluster.manager.advance(until_s).unwrap();
    }
    while !cluster.rows().is_empty() {
        let next_s = cluster.manager.next_s().unwrap();
        cluster.manager.advance(next_s).unwrap();
    }
}

fn kept(cluster: &Cluster) -> usize {
    cluster.manager.rows().unwrap().len()
}

fn usage(cluster: &Cluster) -> Usages {
    cluster.manager.usage().unwrap()
}

#[test]
fn few_ended_requests_are_kept_and_all_usage() {
    let mut cluster = small("forgotten-count");
    ended(&mut cluster, 700);
    let before = usage(&cluster);
    assert_eq!((kept(&cluster), before.all.requests), (700, 700));
    cluster.reopen_with(FEW);
    // In pieces: a write does not take longer with the age of the ledger.
    assert_eq!(kept(&cluster), 700 - 2 * 256);
    assert_eq!(usage(&cluster), before);
    cluster.manager.advance(cluster.manager.clock_s()).unwrap();
    assert_eq!((kept(&cluster), usage(&cluster)), (100, before.clone()));
    // A planner that starts anew knows the same.
    cluster.reopen();
    assert_eq!((kept(&cluster), usage(&cluster)), (100, before));
    let ids: Vec<u64> = cluster.manager.rows().unwrap().iter().map(|row| row.id).collect();
    assert_eq!(ids, (601..=700).collect::<Vec<_>>());
    let end_s = cluster.row(601).end_s.unwrap();
    let Err(Error::Forgotten(600, before_s)) = cluster.manager.details(600) else {
        panic!("request 600 is still in the ledger");
    };
    assert!(before_s <= end_s && before_s > end_s - 120, "{before_s}, {end_s}");
    let told = Error::Forgotten(600, before_s).describe(cluster.manager.site());
    assert!(told.contains("request 600 was forgotten") && told.contains("2027-01-15T"), "{told}");
    assert_eq!(cluster.manager.details(701), Err(Error::NoRequest(701)));
}

#[test]
fn old_requests_are_forgotten_when_they_ended_long_ago() {
    let mut cluster = small("forgotten-age");
    cluster.reopen_with(FEW);
    // A long request, and a short one that ends before it: both are of the same hour.
    let long = cluster.submit(&wish("ncpus=8", 1800));
    let short = cluster.submit(&wish("ncpus=8", 60));
    cluster.manager.advance(T + 1900).unwrap();
    cluster.manager.advance(T + 60 + 3600).unwrap();
    assert_eq!(kept(&cluster), 2);
    cluster.manager.advance(T + 60 + 3601).unwrap();
    assert_eq!(cluster.manager.details(short), Err(Error::Forgotten(short, T + 60)));
    assert_eq!(cluster.row(long).end_s, Some(T + 1800));
    cluster.manager.advance(T + 1800 + 3601).unwrap();
    assert_eq!((kept(&cluster), usage(&cluster).all.requests), (0, 2));
}

#[test]
fn a_forgotten_request_is_not_one_that_never_was() {
    let mut cluster = small("forgotten-followed");
    cluster.reopen_with(FEW);
    let before = cluster.submit(&wish("ncpus=8", 60));
    let after = vec![After { request: before, outcome: Outcome::Ok }];
    let follower = cluster.submit(&pbs_manager::Wish { after, ..wish("ncpus=8", 10 * 3600) });
    cluster.manager.advance(T + 3 * 3600).unwrap();
    cluster.manager.advance(T + 3 * 3600).unwrap();
    // Who followed it runs, and knows of it no more.
    assert_eq!(cluster.manager.details(before), Err(Error::Forgotten(before, T + 60)));
    assert_eq!(cluster.row(follower).after, []);
    cluster.reopen();
    // Whoever is to follow it now is told the same.
    let after = vec![After { request: before, outcome: Outcome::Any }];
    let late = pbs_manager::Wish { after, ..wish("ncpus=8", 60) };
    let refused = cluster.manager.submit(&user("u"), &late);
    assert_eq!(refused, Err(Error::Forgotten(before, T + 60)));
}

/// A request that is altered without end.
#[test]
fn events_of_an_unfinished_request_are_bounded() {
    let mut cluster = small("forgotten-events");
    let id = cluster.submit(&wish("ncpus=8", 3600));
    for count in 0..1100 {
        let change = pbs_manager::Change {
            duration_s: Some(3600 + count % 7),
            ..pbs_manager::Change::default()
        };
        cluster.manager.alter(&user("u"), id, &change).unwrap();
    }
    assert_eq!(cluster.manager.details(id).unwrap().1.len(), 1000);
}
