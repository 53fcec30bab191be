// SPDX-License-Identifier: GPL-2.0
//! Tests of others while a plan is in force, and the kernel's own tests of the class.

use std::fs;
use std::process::Command;

use crate::check;
use crate::harness::{Context, Verdict};
use crate::linux::scene::Turns;

/// Slots of 4 ms of the machine of the tests, for a quarter of an hour at least.
const SLOTS: u32 = 100_000;
const SLOT_INSNS: u64 = 1_000_000;

/// Runs what the environment says beside two plan processes that take turns. It may
/// end as it likes; the plan must live on.
pub fn beside_a_plan() -> Verdict {
    let command = std::env::var("PBS_COMMAND").context("PBS_COMMAND")?;
    let turns = Turns::new(2, SLOTS, SLOT_INSNS, |words| words.spin())?;
    let status = Command::new("/bin/sh").args(["-c", &command]).status();
    let status = status.context(&command)?;
    check!(status.success(), "{command}: {status}");
    turns.go_on_to_the_end()
}

/// Prefix of the programs of `tests/kselftest` in the machine.
const SELFTEST: &str = "selftest-";
/// Exit status of such a program all of whose tests were skipped.
const SKIPPED: i32 = 4;

/// The kernel's own tests pass, and each program has tests that can be made here.
pub fn selftests_of_the_kernel() -> Verdict {
    let mut programs = Vec::new();
    for entry in fs::read_dir("/usr/bin").context("/usr/bin")? {
        let path = entry.context("/usr/bin")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(SELFTEST) {
            programs.push(path);
        }
    }
    programs.sort();
    check!(programs.len() >= 6, "there are {} programs {SELFTEST}*", programs.len());
    for program in programs {
        let name = program.display();
        let run = Command::new(&program).output().context(&name.to_string())?;
        let words = String::from_utf8_lossy(&run.stdout);
        check!(run.status.code() != Some(SKIPPED), "{name} skips all: {words}");
        check!(run.status.success(), "{name}: {}: {words}", run.status);
        check!(words.contains("\nok 1 "), "{name} has no test: {words}");
    }
    Ok(())
}
