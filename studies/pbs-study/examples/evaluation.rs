// SPDX-License-Identifier: GPL-2.0
//! Prints a figure, to look at when the drawing changes:
//! `cargo run --release -p pbs-study --example evaluation 9 > figure.svg`.

use pbs_rms_apps::study::Sample;
use pbs_rms_apps::KillOrder;
use pbs_study::evolving::study::{figure10, figure11, figure9};

fn main() {
    let sample = Sample::default();
    match std::env::args().nth(1).as_deref() {
        Some("9") => print!("{}", figure9(sample).picture()),
        Some("10") => print!("{}", figure10(sample, KillOrder::Youngest).picture()),
        Some("11") => print!("{}", figure11(sample).picture()),
        _ => {
            let all = [
                figure9(sample).verdicts(),
                figure10(sample, KillOrder::Youngest).verdicts(),
                figure10(sample, KillOrder::Oldest).verdicts(),
                figure11(sample).verdicts(),
            ];
            for verdict in all.iter().flatten() {
                println!("{verdict:?}");
            }
        }
    }
}
