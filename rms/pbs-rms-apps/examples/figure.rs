// SPDX-License-Identifier: GPL-2.0
//! Prints a figure, to look at when the drawing changes:
//! `cargo run -p pbs-rms-apps --example figure 3 > figure.svg`.

use pbs_rms_apps::study::{equivalents, figure1, figure3, figure4, Sample};

/// 4 GiB a node.
const NODE_MIB: f64 = 4096.0;

fn main() {
    let sample = Sample::default();
    match std::env::args().nth(1).as_deref() {
        Some("1") => print!("{}", figure1(sample).picture()),
        Some("3") => print!("{}", figure3(sample).picture()),
        Some("4") => print!("{}", figure4(sample, NODE_MIB).picture()),
        _ => {
            let all = [
                figure1(sample).verdicts(),
                figure3(sample).verdicts(),
                figure4(sample, NODE_MIB).verdicts(),
                equivalents(sample).verdicts(),
            ];
            for verdict in all.iter().flatten() {
                println!("{verdict:?}");
            }
        }
    }
}
