// SPDX-License-Identifier: GPL-2.0

//! The present slot of a node.

use super::division::Division;

/// The state of the present slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotState {
    /// The rest is valid only then.
    pub(super) begun: bool,
    /// Its process, or [`Slot::IDLE`](super::Slot::IDLE).
    pub(super) owner: u32,
    /// Position of the task that it was planned for.
    pub(super) position: u32,
    /// Retired in the slot by its process.
    pub(super) count_insns: u64,
    /// Where it ends by the count: t1, or further on for a task that is not to be
    /// preempted again.  `None` if t1 is switched off.
    pub(super) t1_insns: Option<u64>,
    /// How much further on that is than t1.
    pub(super) spared_insns: u64,
    /// How others share it.
    pub(super) division: Division,
    /// Plan time at which it is over: its ceiling, or the end of an idle slot.
    pub(super) end_plan_ns: u64,
    pub(super) ceiling_ns: u64,
    /// That its process is absent was told.
    pub(super) absent_told: bool,
}

impl SlotState {
    pub(super) const NONE: SlotState = SlotState {
        begun: false,
        owner: super::Slot::IDLE,
        position: 0,
        count_insns: 0,
        t1_insns: None,
        spared_insns: 0,
        division: Division::Turns,
        end_plan_ns: 0,
        ceiling_ns: 0,
        absent_told: false,
    };
}
