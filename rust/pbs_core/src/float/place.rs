// SPDX-License-Identifier: GPL-2.0

//! Place of a process in the order of deadlines.

use super::super::slot::CurrentSlot;
use super::super::wire::format;

/// Number of the slot of a process that has used up all its slots, or has ended.
pub(in super::super) const NO_SLOT: u32 = u32::MAX;

/// Number of demotions and ends of slots, and of reports, that one decision makes.
pub(super) const STEPS_A_DECISION: u32 = 128;

/// Standing of a process among the others: the lesser one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Level {
    /// The process has a deadline that it may keep.
    Timely,
    /// The process has a deadline that it can't keep any more.
    Hopeless,
    /// The process has no deadline.
    Free,
    /// The process has used up all its slots.
    Background,
}

/// The list in which a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum List {
    None,
    /// Processes that can run, except for the one that is granted.
    Ready,
    /// Processes that can't run, which is to be reported when their slots come.
    Missing,
}

/// The reason why a process could not run when its slot came, as it was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Came {
    NotYet,
    Absent,
    Held,
}

/// The place of a process: its slot, and what has been used of the slot.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Place {
    pub(in super::super) level: Level,
    /// Deadline of the slot, counted from the begin of the plan; in the background the
    /// lateness of the process when it took the place, and its turns since in which it became no
    /// later.
    pub(in super::super) key: u64,
    /// Number of the slot, or [`NO_SLOT`].
    pub(in super::super) number: u32,
    pub(in super::super) list: List,
    pub(in super::super) came: Came,
    /// The process has a slot or a task that it had not when its deadline was checked last.
    pub(in super::super) fresh: bool,
    /// A grant of the slot was reported.
    pub(in super::super) shown: bool,
    /// The slot has begun: all that follows is valid only then.
    pub(in super::super) begun: bool,
    /// The slot as it stands, while another process has the CPU.
    pub(in super::super) slot: CurrentSlot,
    /// Plan time that its ceiling leaves.
    pub(in super::super) left_ns: u64,
}

impl Place {
    pub(in super::super) const NONE: Place = Place {
        level: Level::Background,
        key: 0,
        number: NO_SLOT,
        list: List::None,
        came: Came::NotYet,
        fresh: true,
        shown: false,
        begun: false,
        slot: CurrentSlot::FIRST,
        left_ns: 0,
    };

    /// Order of the places; the least one goes first.
    pub(super) fn rank(&self) -> (Level, u64, u32) {
        (self.level, self.key, self.number)
    }

    /// Number of the slot on the wire.
    pub(in super::super) fn on_wire(&self) -> u64 {
        match self.number {
            NO_SLOT => format::NO_SLOT,
            number => number.into(),
        }
    }
}

saved!([super::super] Place {
    level,
    key,
    number,
    list,
    came,
    fresh,
    shown,
    begun,
    slot,
    left_ns,
});
saved_choice!([super::super] Level {
    Timely,
    Hopeless,
    Free,
    Background,
});
saved_choice!([super::super] List {
    None,
    Ready,
    Missing,
});
saved_choice!([super::super] Came {
    NotYet,
    Absent,
    Held,
});
