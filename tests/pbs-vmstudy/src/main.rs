// SPDX-License-Identifier: GPL-2.0
//! Studies of the scheduling class.
//!
//! In the virtual machine `pbs-vmstudy NAME` runs one and prints what it has measured as
//! JSON; outside, `pbs-vmstudy report NAME` makes figures and tables of that. Scripts are
//! for people: `scripts/compare-schedulers`, `scripts/reproduce-in-the-class` and
//! `scripts/measure-programs`.

mod beside;
mod class;
mod compare;
mod programs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next().as_deref() {
        Some("compare") => compare::measure(words),
        Some("class") => class::measure(words),
        Some("touch") => class::touch(words),
        Some("programs") => programs::measure(words),
        Some("programs-report") => programs::report(words),
        Some("compare-report") => compare::report(words),
        _ => Err("usage: pbs-vmstudy NAME...; see scripts/compare-schedulers --help".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pbs-vmstudy: {why}");
            ExitCode::FAILURE
        }
    }
}
