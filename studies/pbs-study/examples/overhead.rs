// SPDX-License-Identifier: GPL-2.0
//! Prints what co-scheduling takes and how far schedulers are from the optimum:
//! `cargo run --release -p pbs-study --example overhead`.

use std::time::Duration;

use pbs_study::cosched::{costs, gaps, overheads};

fn main() {
    println!(
        "{:34} {:>6} {:>12} {:>12} {:>12} {:>10}",
        "", "tasks", "median µs", "95 % µs", "thesis µs", "target µs"
    );
    let number = |of: Option<f64>| of.map_or_else(String::new, |us| format!("{us:.0}"));
    for of in overheads(Duration::from_millis(300)) {
        println!(
            "{:34} {:>6} {:>12.1} {:>12.1} {:>12} {:>10} {}",
            of.what,
            of.tasks,
            of.median_us,
            of.percentile_95_us,
            number(of.published_us),
            number(of.target_us),
            of.remark
        );
    }
    println!(
        "\n{:24} {:>8} {:>9} {:>8} {:>8} {:>8}",
        "above the optimum", "optimal", "median %", "mean %", "95 % %", "worst %"
    );
    for of in gaps(1_000, 31) {
        println!(
            "{:24} {:>8} {:>9.2} {:>8.2} {:>8.2} {:>8.1}",
            of.scheduler,
            of.optimal,
            of.median_percent,
            of.mean_percent,
            of.percentile_95_percent,
            of.worst_percent
        );
    }
    println!("\nC(n) = a n² + b n + c in ns, here and in the thesis");
    for of in costs() {
        println!("{:30} {:>14.2?} {:>14.2?}", of.scheduler, of.coefficients_ns, of.published_ns);
    }
}
