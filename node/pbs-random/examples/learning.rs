// SPDX-License-Identifier: GPL-2.0
//! Prints the table of what predictions are worth in Documentation/history.rst.

#[path = "../tests/common/worth.rs"]
#[allow(dead_code)]
mod worth;

use worth::worth;

/// Scatter of the runs of one job, and growth of each run relative to the one before it.
const JOBS: [(f64, f64); 4] = [(0.02, 0.0), (0.1, 0.0), (0.3, 0.0), (0.05, 0.02)];

fn main() {
    let rule = format!("====  {}", ["=============="; 4].join("  "));
    println!(
        "{rule}\nruns  2 %             10 %            30 %            5 %, grows 2 %\n{rule}"
    );
    for runs in [0, 1, 2, 3, 5, 8, 16, 32] {
        let cells = JOBS.map(|(sigma, drift)| {
            let found = worth(sigma, drift, runs);
            let error = 100.0 * found.error;
            let covered = found.covered_permille as f64 / 10.0;
            format!("{:<14}", format!("{error:.1} %, {covered:.0} %"))
        });
        println!("{}", format!("{runs:<4}  {}", cells.join("  ")).trim_end());
    }
    println!("{rule}");
}
