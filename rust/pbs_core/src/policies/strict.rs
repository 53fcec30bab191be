// SPDX-License-Identifier: GPL-2.0

//! A plan without tolerance, as a time-triggered scheduler executes it: a yardstick for t1.

use super::decisions::Decisions;

pub(super) struct Strict;

impl Decisions for Strict {
    /// The slot ends with the first instruction beyond its length.
    fn t1_insns(slot_insns: u64, _t1_insns: u64) -> u64 {
        slot_insns.saturating_add(1)
    }

    /// The task fails with the third instruction beyond its length, after t1 of its own slot.
    fn t2_task_insns(task_insns: u64, _t2_task_insns: u64) -> u64 {
        task_insns.saturating_add(2)
    }
}
