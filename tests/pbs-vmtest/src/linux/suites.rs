// SPDX-License-Identifier: GPL-2.0
//! Tests of others, while a plan is in force.

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
