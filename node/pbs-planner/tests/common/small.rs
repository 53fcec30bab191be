// SPDX-License-Identifier: GPL-2.0
//! Small nets whose best plans are proven.

#[allow(unused_imports)] // each user takes a part
pub(crate) use pbs_gen::nets::{small, Small, SMALL_TICK_NS as TICK_NS};

/// The nets whose best plan is known: their seeds, and when that plan ends, in
/// ticks. `tests/pbs-bench-planner/oracle/optima.py` has proven them and wrote
/// them down.
pub(crate) fn optima() -> impl Iterator<Item = (u64, u64)> {
    let lines = include_str!("optima.txt").lines();
    lines.filter(|line| !line.starts_with('#')).map(|line| {
        let numbers = line.split_once(' ');
        let numbers =
            numbers.and_then(|(seed, ticks)| Some((seed.parse().ok()?, ticks.parse().ok()?)));
        numbers.expect("a line is a seed and an end")
    })
}
