// SPDX-License-Identifier: GPL-2.0
//! Benchmarks of the scheduling class, and the report of the planner's.
//!
//! In the virtual machine `pbs-bench measure NAME...` measures; outside, the same
//! program makes tables and pictures of that. `scripts/bench` is for people, and
//! `scripts/bench-planner`, whose benchmarks are in `tests/pbs-bench-planner`. `scripts/soak` asks where a machine
//! stands still.

mod figure;
mod guest;
mod profile;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next().as_deref() {
        Some("measure") => guest::measure(words),
        Some("profile") => profile::profile(words),
        Some("whereabouts") => profile::whereabouts(words),
        Some("report") => report::report(words),
        Some("planner") => report::planner(words),
        _ => Err("usage: pbs-bench measure NAME...; see scripts/bench --help".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pbs-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
