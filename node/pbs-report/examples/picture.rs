// SPDX-License-Identifier: GPL-2.0
//! Prints the picture of a simulated run, to look at when the drawing changes:
//! `cargo run -p pbs-report --example picture > picture.svg`.

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let plan = common::job();
    let events = common::simulate(&plan, &[2], 45_000_000);
    let report = pbs_report::Report::new(&plan, &events, &common::facts());
    print!("{}", pbs_report::gantt::gantt(&report));
}
