// SPDX-License-Identifier: GPL-2.0
//! A program that marks the ends of its own tasks with the `pbs-task` crate.
//!
//! `pbs-stages [ELEMENTS [STAGES]]` works on pseudo-random numbers: it sorts
//! them, counts them into a histogram, searches each of them, and so on in
//! turn until all stages are done. The work, and so the number of
//! instructions, depends on the arguments alone.

use std::env;
use std::error::Error;

use pbs_task::Process;

const BUCKETS: usize = 256;

/// Takes numbers, gives one that depends on all of them.
type Stage = fn(&[u64]) -> u64;

/// xorshift64*: the same numbers on every machine.
fn numbers(count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count)
        .map(|_| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        })
        .collect()
}

fn sort(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn histogram(numbers: &[u64]) -> u64 {
    let mut buckets = [0u64; BUCKETS];
    for number in numbers {
        for byte in number.to_le_bytes() {
            buckets[usize::from(byte)] += 1;
        }
    }
    buckets.into_iter().max().unwrap_or(0)
}

fn search(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    numbers
        .iter()
        .filter_map(|number| sorted.binary_search(number).ok())
        .fold(0, |sum, position| sum.wrapping_add(position as u64))
}

fn argument(position: usize, default: usize) -> Result<usize, String> {
    match env::args().nth(position) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("{text} is no number; usage: pbs-stages [ELEMENTS [STAGES]]")),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let elements = argument(1, 20_000)?;
    let stages = argument(2, 3)?;
    let process = Process::from_env()?;

    let work: [(&str, Stage); 3] = [
        ("median", sort),
        ("fullest bucket", histogram),
        ("positions", search),
    ];
    let numbers = numbers(elements);
    for (what, stage) in work.iter().cycle().take(stages) {
        println!("{what} {}", stage(&numbers));
        process.task_end()?;
    }
    Ok(())
}
