// SPDX-License-Identifier: GPL-2.0
//! Measures the error of learnt slow-downs after some runs whose times scatter.
//!
//! `cargo run --release -p pbs-interference --example slowdowns [RUNS [NOISE_PERMILLE]]`

use std::env;

#[path = "../tests/made/mod.rs"]
mod made;

use made::{Design, GeneratedRuns};

/// Number of histories of each kind.
const SEEDS: u64 = 10_000;

fn main() {
    let mut arguments = env::args().skip(1);
    let mut number = |otherwise| {
        let text = arguments.next();
        text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (runs, noise_permille) = (number(8), number(20));
    println!(
        "{runs} runs, {:.1} % noise, {SEEDS} histories each; error of the slow-down in %",
        noise_permille as f64 / 10.0
    );
    println!(
        "{:<44} {:>6} {:>6} {:>6} {:>6}  {:>6}  {:>6}",
        "runs", "median", "90 %", "99 %", "most", "<= 5 %", "inside"
    );
    for design in Design::ALL {
        let (mut errors, mut inside, mut missing) = (Vec::new(), 0_usize, 0);
        for seed in 0..SEEDS {
            let made =
                GeneratedRuns::new(design, seed, runs as usize, noise_permille as f64 / 1000.0);
            for found in made.errors() {
                match found {
                    Some(found) => {
                        errors.push(100.0 * found.error);
                        inside += usize::from(found.inside);
                    }
                    None => missing += 1,
                }
            }
        }
        errors.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| errors[(part * (errors.len() - 1) as f64) as usize];
        let within = errors.iter().filter(|&&error| error <= 5.0).count();
        let percent = |count: usize| 100.0 * count as f64 / errors.len() as f64;
        println!(
            "{:<44} {:>6.2} {:>6.2} {:>6.2} {:>6.2}  {:>6.2}  {:>6.2}{}",
            design.name(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0),
            percent(within),
            percent(inside),
            match missing {
                0 => String::new(),
                missing => format!("  ({missing} not learnt)"),
            }
        );
    }
}
