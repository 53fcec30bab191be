// SPDX-License-Identifier: GPL-2.0
//! Measures the time of finding pairs of least cost, and the gain of the search.
//!
//! `cargo run --release -p pbs-interference --example pairing`

use std::time::Instant;

use pbs_interference::{arrange, pairs, Effort, Entry, Key, Lane, Level, Sharing, Slowdowns, Task};

#[path = "../tests/made/mod.rs"]
mod made;

use made::{key, seeded};

/// Sums are of so many.
const ROUNDS: u64 = 20;

fn main() {
    println!("matching, median and most of {ROUNDS}:");
    for count in [50, 100, 200, 400] {
        let mut took: Vec<_> = (0..ROUNDS).map(|seed| matching(seed, count)).collect();
        took.sort_unstable_by(f64::total_cmp);
        let (median, most) = (took[took.len() / 2], took[took.len() - 1]);
        println!("  {count:>3} tasks: {median:>7.2} ms, {most:>7.2} ms");
    }
    println!("search, {} orders, mean of {ROUNDS}:", Effort::default().orders);
    for (count, cpus) in [(8, 2), (20, 2), (100, 2), (20, 4), (40, 8)] {
        let (mut given, mut found, mut took) = (0.0, 0.0, 0.0);
        for seed in 0..ROUNDS {
            let of = search(seed, count, cpus);
            given += of.0;
            found += of.1;
            took += of.2;
        }
        let rounds = ROUNDS as f64;
        println!(
            "  {count:>3} tasks on {cpus}: makespan {:.1} % of the unaware one, {:.1} ms",
            100.0 * found / given,
            took / rounds
        );
    }
}

fn matching(seed: u64, count: usize) -> f64 {
    let mut random = seeded(seed);
    let costs: Vec<u64> =
        (0..count * count).map(|_| 1_000_000_000 + random.below(2_000_000_000)).collect();
    let cost = |one: usize, other: usize| costs[one.min(other) * count + one.max(other)];
    let began = Instant::now();
    let (found, _) = pairs(count, cost, |_| 0);
    assert_eq!(found.len(), count / 2);
    began.elapsed().as_secs_f64() * 1e3
}

/// The makespan that was given, what was found, and the milliseconds that it took.
fn search(seed: u64, count: usize, cpus: usize) -> (f64, f64, f64) {
    let mut random = seeded(seed);
    let kinds = 6;
    let mut entries: Vec<Entry<Key>> = Vec::new();
    for victim in 0..kinds {
        let sensitivity = random.unit();
        for aggressor in 0..kinds {
            // As much as a pair of hogs, at most.
            let slowdown = 1.0 + 1.2 * sensitivity * random.unit();
            entries.push(Entry {
                victim: key(victim),
                beside: vec![(Level::Node, key(aggressor))],
                slowdown,
                low: slowdown,
                high: slowdown,
                samples: 8,
            });
        }
    }
    let tasks: Vec<_> = (0..count)
        .map(|_| Task {
            key: key(random.below(kinds)),
            alone_ns: 10_000_000 + random.below(200_000_000),
            ..Task::default()
        })
        .collect();
    // The longest first, each where it would end first: what is done without slow-downs.
    let mut order: Vec<_> = (0..count).collect();
    order.sort_by_key(|&task| std::cmp::Reverse(tasks[task].alone_ns));
    let mut lanes: Vec<_> = (0..cpus as u32).map(|cpu| Lane { cpu, ..Lane::default() }).collect();
    let mut loads = vec![0; cpus];
    for task in order {
        let least = (0..cpus).min_by_key(|&lane| loads[lane]).unwrap_or(0);
        loads[least] += tasks[task].alone_ns;
        lanes[least].order.push(task);
    }
    let table = Slowdowns::new(entries);
    let sharing = Sharing::default();
    let began = Instant::now();
    let found = arrange(&tasks, &lanes, &table, &sharing, Effort::default());
    let took = began.elapsed().as_secs_f64() * 1e3;
    found.map_or((0.0, 0.0, took), |found| {
        let (given, best) = (found.given.makespan_ns, found.timing.makespan_ns);
        (given as f64, best as f64, took)
    })
}
