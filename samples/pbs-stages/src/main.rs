// SPDX-License-Identifier: GPL-2.0
//! A program that marks the ends of its own tasks with `pbs_uapi::task`.
//!
//! `pbs-stages STAGE:SIZE...` works on SIZE pseudo-random numbers in each
//! stage: it sorts them, counts them into a histogram, or searches each of
//! them. Each stage is one task. The work, and so the number of instructions,
//! depends on the arguments alone.

use std::env;
use std::error::Error;
use std::process::ExitCode;

use pbs_uapi::task::Process;

const BUCKETS: usize = 256;

const DEFAULT: [&str; 3] = ["sort:20000", "histogram:20000", "search:20000"];

const USAGE: &str = "usage: pbs-stages STAGE:SIZE...
stages: sort, histogram, search; each is one task of the process in
PBS_PROCESS, or ordinary work if that is not set";

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

/// The median.
fn sort(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// The count of the most frequent byte.
fn histogram(numbers: &[u64]) -> u64 {
    let mut buckets = [0u64; BUCKETS];
    for number in numbers {
        for byte in number.to_le_bytes() {
            buckets[usize::from(byte)] += 1;
        }
    }
    buckets.into_iter().max().unwrap_or(0)
}

/// The sum of the places that the numbers have when they are sorted.
fn search(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    numbers
        .iter()
        .filter_map(|number| sorted.binary_search(number).ok())
        .fold(0, |sum, place| sum.wrapping_add(place as u64))
}

fn parse(argument: &str) -> Option<(&str, Stage, usize)> {
    let (name, size) = argument.split_once(':')?;
    let stage = match name {
        "sort" => sort,
        "histogram" => histogram,
        "search" => search,
        _ => return None,
    };
    Some((name, stage, size.parse().ok()?))
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.is_empty() {
        arguments = DEFAULT.map(String::from).to_vec();
    }
    let stages: Option<Vec<_>> = arguments.iter().map(|argument| parse(argument)).collect();
    let Some(stages) = stages else {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    };

    let process = Process::from_env()?;
    for (name, stage, size) in stages {
        println!("{name} {size}: {}", stage(&numbers(size)));
        process.task_end()?;
    }
    Ok(ExitCode::SUCCESS)
}
