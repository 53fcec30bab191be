// SPDX-License-Identifier: GPL-2.0
//! Tests of the scheduling class, run inside the virtual machine.
//!
//! `pbs-vmtest NAME` runs one test: status 0 if it passed, 1 with the reason on
//! standard output if not. Without a name it lists all.

mod harness;
mod policy;

use std::process::ExitCode;

type Test = fn() -> harness::Verdict;

/// Every test by its name; `tests.list` says on how many CPUs each runs.
const TESTS: &[(&str, Test)] = &[("order-equals-plan", policy::order_equals_plan)];

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in TESTS {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some((_, test)) = TESTS.iter().find(|(known, _)| *known == name) else {
        println!("no test is called {name}");
        return ExitCode::from(2);
    };
    match test() {
        Ok(()) => {
            println!("ok: {name}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("FAIL: {name}: {why}");
            ExitCode::FAILURE
        }
    }
}
