// SPDX-License-Identifier: GPL-2.0
//! Tests of the scheduling class, run inside the virtual machine.
//!
//! `pbs-vmtest NAME` runs one test: status 0 if it passed, 1 with the reason on
//! standard output if not, 77 with the reason if it proves nothing on this machine.
//! Without a name it lists all.

mod asked;
mod cosched;
mod evolving;
mod failure;
mod hostile;
mod input;
mod jobs;
mod kernel_threads;
mod lease;
mod linux;
mod own_planner;
mod policy;
mod policy_ceiling;
mod policy_clock;
mod policy_configure;
mod policy_cpus;
mod policy_events;
mod policy_fill;
mod policy_large;
mod policy_memory;
mod policy_messages;
mod policy_neighbours;
mod policy_order;
mod policy_rate;
mod policy_rings;
mod policy_share;
mod policy_swap;
mod record;
mod service;
mod service_figures;
mod service_turns;
mod simulator;
mod tiers;
mod tracepoints;
mod watch;

use std::process::ExitCode;

use pbs_vmtest::{check, check_eq, harness};

type Test = fn() -> harness::Verdict;

/// Every test of `tests.list` by its name; the list says on how many CPUs each runs.
const TESTS: &[(&str, Test)] = include!(concat!(env!("OUT_DIR"), "/tests.rs"));

/// Tests that other scripts run.
const OTHERS: &[(&str, Test)] = &[
    ("beside-a-plan", linux::suites::beside_a_plan),
    ("hostile-neighbours", hostile::hostile_neighbours),
];

/// Tests that count memory, or have none: of a recorder plans are kept. Nor are those
/// recorded that look who records.
const UNRECORDED: [&str; 3] = ["plans-are-freed", "writer-is-charged", "no-memory-changes-nothing"];

/// Ends a process that panics: a child must not unwind into its copy of the caller.
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

fn main() -> ExitCode {
    abort_on_panic();
    let mut tests = TESTS.iter().chain(OTHERS);
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in tests {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some((_, test)) = tests.find(|(known, _)| *known == name) else {
        println!("no test is called {name}");
        return ExitCode::from(2);
    };
    // It is not looked at before the end: a process that runs meanwhile would be another
    // one beside the test's.
    let is_recorded = !name.starts_with("recording-") && !UNRECORDED.contains(&name.as_str());
    let recorder = is_recorded.then(record::begin).flatten();
    match test() {
        Ok(()) => {
            println!("ok: {name}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("FAIL: {name}: {why}");
            if let Some(recorder) = recorder {
                record::keep(recorder);
            }
            ExitCode::FAILURE
        }
    }
}
