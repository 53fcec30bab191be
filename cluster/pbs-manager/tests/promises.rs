// SPDX-License-Identifier: GPL-2.0
//! Invariants under any operations of users and operators. No node gives more than it has. Nobody
//! starts later than promised, unless a node was lost, the request was altered, or a followed
//! request ends later. Each started request ends as promised.
//!
//! `PBS_SEEDS` is the number of sequences of events that are tried.

mod common;

use std::collections::BTreeMap;

use common::*;
use pbs_gen::{Random, Stream};
use pbs_manager::ledger::{Row, State};

const OPERATIONS: usize = 120;
/// Number of cores of each of the two nodes.
const CORES: u64 = 8;

/// Returns the largest number of cores that are booked at once on each node, without requests
/// inside reservations.
fn most_booked(cluster: &Cluster, rows: &[Row]) -> BTreeMap<usize, u64> {
    let planner = cluster.manager.planner();
    let mut changes: BTreeMap<usize, Vec<(u64, i64)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.within.is_none()) {
        for (node, amounts) in planner.used_by(row.id) {
            let of_node = changes.entry(node).or_default();
            of_node.push((row.start_s.unwrap(), amounts[0] as i64));
            of_node.push((row.end_s.unwrap(), -(amounts[0] as i64)));
        }
    }
    let most = changes.into_iter().map(|(node, mut changes)| {
        // What ends makes room for what begins.
        changes.sort_unstable();
        let booked = changes.iter().scan(0, |sum, &(_, change)| {
            *sum += change;
            Some(*sum)
        });
        (node, booked.max().unwrap_or(0) as u64)
    });
    most.collect()
}

#[test]
fn promises_are_kept() {
    let seeds = std::env::var("PBS_SEEDS").map_or(20, |seeds| seeds.parse().unwrap());
    let (mut moved_up, mut ran, mut inside) = (0, 0, 0);
    for seed in 0..seeds {
        let mut cluster = small(&format!("promises-{seed}"));
        let mut random = Random::new(seed, Stream::Scenario);
        for step in 0..OPERATIONS {
            let before: BTreeMap<u64, Row> =
                cluster.rows().into_iter().map(|row| (row.id, row)).collect();
            let out: Vec<_> = cluster.manager.nodes_out().cloned().collect();
            operate(&mut cluster.manager, &mut random);
            let rows = cluster.rows();
            let is_calm = cluster.manager.nodes_out().eq(&out);
            let what = || format!("seed {seed}, step {step}: {rows:#?}");
            for (node, booked) in most_booked(&cluster, &rows) {
                assert!(booked <= CORES, "node {node} gives {booked}: {}", what());
            }
            let clock_s = cluster.manager.clock_s();
            for row in &rows {
                inside += usize::from(row.within.is_some());
                let end_s = row.end_s.unwrap_or(u64::MAX);
                assert!(end_s >= clock_s, "{} should be over: {}", row.id, what());
                let Some(old) = before.get(&row.id) else {
                    continue;
                };
                let end = |of: u64| rows.iter().find(|row| row.id == of)?.end_s;
                let is_pushed = row.after.iter().any(|after| {
                    let then = before.get(&after.request).and_then(|row| row.end_s);
                    end(after.request) > then || end(after.request).is_none()
                });
                let is_same = old.duration_s == row.duration_s && !is_pushed;
                if old.state == State::Running && row.state == State::Running {
                    assert_eq!(old.start_s, row.start_s, "{}", what());
                    assert!(row.end_s >= old.end_s, "{}", what());
                }
                if let (true, true, Some(start_s)) = (is_calm, is_same, old.start_s) {
                    assert!(
                        row.start_s.is_some_and(|of| of <= start_s),
                        "{} is later: {}",
                        row.id,
                        what()
                    );
                    moved_up += usize::from(row.start_s < old.start_s);
                }
            }
            if random.below(10) == 0 {
                cluster.reopen();
            }
        }
        // All that is in use ends, and what waits only waits for a node.
        cluster.manager.advance(T + 1_000_000).unwrap();
        assert!(cluster.rows().iter().all(|row| row.state == State::Waiting), "seed {seed}");
        ran += cluster.manager.usage().unwrap().all.ran;
    }
    assert!(moved_up > 20 && ran > 100 && inside > 20, "{moved_up} {ran} {inside}");
}
