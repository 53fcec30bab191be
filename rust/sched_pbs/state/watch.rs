// SPDX-License-Identifier: GPL-2.0

//! The observations of the watchdog on one CPU.

use super::{
    node::Node,
    threads::{SeatNumber, NO_SEAT},
};

/// How many processes one look searches for contradictions: some ten microseconds' worth.
const PROCESSES_A_LOOK: u32 = 64;

/// The observations of the last look at a CPU.
pub(crate) struct Watch {
    /// Who was granted the CPU, what its run time was, and whether it waited to be woken up.
    seat: SeatNumber,
    run_time_ns: u64,
    was_parked: bool,
    /// All instructions that were counted, and when was decided.
    total_insns: u64,
    settled_ns: u64,
    /// How many looks in a row have found a fault.
    faults: u32,
    /// The process that the next look begins to search with.
    process: u32,
    /// The contradiction that was found.
    contradiction: Option<&'static str>,
}

/// The difference between two looks.
pub(crate) struct ProgressSinceLook {
    /// Instructions were counted.
    pub(crate) counted: bool,
    /// The same thread is granted the CPU.
    pub(crate) same: bool,
    /// Its run time has risen.
    pub(crate) ran: bool,
    /// It waited to be woken up at the look before.
    pub(crate) was_parked: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            seat: NO_SEAT,
            run_time_ns: 0,
            was_parked: false,
            total_insns: u64::MAX,
            settled_ns: 0,
            faults: 0,
            process: 0,
            contradiction: None,
        }
    }
}

impl Watch {
    /// Searches some processes, and what there is once, for contradictions. Returns whether there is
    /// one.
    pub(crate) fn search(&mut self, node: &Node) -> bool {
        let first = self.process;
        let next = first + PROCESSES_A_LOOK;
        self.contradiction = node.contradiction(first, PROCESSES_A_LOOK);
        let processes = node.plan().processes().len() as u32;
        self.process = if next < processes { next } else { 0 };
        self.contradiction.is_some()
    }

    /// The contradiction that was found.
    pub(crate) fn contradiction(&self) -> Option<&'static str> {
        self.contradiction
    }

    /// Notes when was decided. Returns whether nothing has been since the last look.
    pub(crate) fn note_decision(&mut self, settled_ns: u64) -> bool {
        core::mem::replace(&mut self.settled_ns, settled_ns) == settled_ns
    }

    /// Nobody is granted the CPU.
    pub(crate) fn note_nobody(&mut self) {
        self.seat = NO_SEAT;
    }

    /// Notes who is granted the CPU, and how far it is. Returns the difference to the last look.
    pub(crate) fn note_granted(
        &mut self,
        seat: SeatNumber,
        parked: bool,
        run_time_ns: u64,
        total_insns: u64,
    ) -> ProgressSinceLook {
        ProgressSinceLook {
            counted: core::mem::replace(&mut self.total_insns, total_insns) != total_insns,
            same: core::mem::replace(&mut self.seat, seat) == seat,
            ran: core::mem::replace(&mut self.run_time_ns, run_time_ns) != run_time_ns,
            was_parked: core::mem::replace(&mut self.was_parked, parked),
        }
    }

    /// Notes whether this look has found a fault. Returns how many in a row have.
    pub(crate) fn note_fault(&mut self, found: bool) -> u32 {
        self.faults = if found { self.faults + 1 } else { 0 };
        self.faults
    }
}
