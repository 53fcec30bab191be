// SPDX-License-Identifier: GPL-2.0

//! The observations of the watchdog on one CPU.

use super::{
    node::Node,
    threads::{SeatNumber, NO_SEAT},
};

/// Number of processes that one check searches for contradictions: some ten microseconds' worth.
const PROCESSES_A_LOOK: u32 = 64;

/// The observations of the last check of a CPU.
pub(crate) struct Watch {
    /// The seat that was granted the CPU, the run time of its thread, and whether it waited to be
    /// woken up.
    seat: SeatNumber,
    run_time_ns: u64,
    was_parked: bool,
    /// All instructions that were counted, and the time of the decision.
    total_insns: u64,
    settled_ns: u64,
    /// Number of checks in a row that have found a fault.
    faults: u32,
    /// The process at which the next check begins to search.
    process: u32,
    /// The contradiction that was found.
    contradiction: Option<&'static str>,
}

/// The difference between two checks.
pub(crate) struct ProgressSinceLook {
    /// Whether instructions were counted.
    pub(crate) counted: bool,
    /// Whether the same thread is granted the CPU.
    pub(crate) same: bool,
    /// Whether its run time has risen.
    pub(crate) ran: bool,
    /// Whether it waited to be woken up at the check before.
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
    /// Searches the state of the node and some of its processes for contradictions. Returns whether
    /// there is one.
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

    /// Notes the time of the decision. Returns whether no decision was made since the last check.
    pub(crate) fn note_decision(&mut self, settled_ns: u64) -> bool {
        core::mem::replace(&mut self.settled_ns, settled_ns) == settled_ns
    }

    /// Notes that no thread is granted the CPU.
    pub(crate) fn note_nobody(&mut self) {
        self.seat = NO_SEAT;
    }

    /// Notes the granted thread and its progress. Returns the difference from the last check.
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

    /// Notes whether this check has found a fault. Returns the number of checks in a row that have.
    pub(crate) fn note_fault(&mut self, found: bool) -> u32 {
        self.faults = if found { self.faults + 1 } else { 0 };
        self.faults
    }
}
