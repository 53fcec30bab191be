// SPDX-License-Identifier: GPL-2.0

//! The state of one CPU, which the lock of its run queue protects.
//!
//! [`State`] joins the [`Node`], which decides which *process* may run, with the [`Threads`] that
//! are attached here, and holds one struct for each other subject: each in its file, with private
//! fields. How a decision of the policy becomes scheduling is in [`engine`](crate::engine).

pub(crate) mod faults;
pub(crate) mod front;
pub(crate) mod insn_clock;
pub(crate) mod longest;
pub(crate) mod looks;
pub(crate) mod memory;
pub(crate) mod node;
pub(crate) mod occupancy;
pub(crate) mod outlet;
pub(crate) mod reading;
pub(crate) mod rows;
pub(crate) mod section_clock;
pub(crate) mod threads;
pub(crate) mod timer;
pub(crate) mod turn;
pub(crate) mod watch;

use crate::{
    linux::sched_class::RunQueue,
    pbs_core::{Lease, Presence},
    rings::inputs::Tap,
};
use faults::Faults;
use insn_clock::InsnClock;
use kernel::alloc::KBox;
use longest::LongestTimes;
use looks::Looks;
use memory::MemoryInUse;
use node::Node;
use occupancy::Occupancy;
use outlet::Outlet;
use reading::CounterReading;
use rows::RowNumber;
use section_clock::SectionClock;
use threads::{Seat, SeatNumber, Threads};
use timer::Timer;
use turn::TimeOutOfTurn;
use watch::Watch;

/// The data that the lock of the CPU's run queue protects.
#[derive(Default)]
pub(crate) struct State {
    /// The plan and its progress; `None`: no plan.
    pub(crate) node: Option<KBox<Node>>,
    /// Generation of the configuration: rises with each change of it, and with each plan.
    pub(crate) generation: u32,
    /// The lease of the plan, if it has one.
    pub(crate) lease: Option<Lease>,
    /// The attached threads; `None` until the first plan arrives.
    pub(crate) threads: Option<Threads>,
    /// The thread that is granted the CPU, and the thread that has it.
    pub(crate) occupancy: Occupancy,
    /// The time in a section under the lock.
    pub(crate) clock: SectionClock,
    /// The counter of this CPU.
    pub(crate) insn_clock: InsnClock,
    /// The owner of the count.
    pub(crate) reading: CounterReading,
    /// The looks at the running thread.
    pub(crate) looks: Looks,
    /// The memory in use.
    pub(crate) memory: MemoryInUse,
    /// The next moment that matters.
    pub(crate) timer: Timer,
    /// The time out of turn.
    pub(crate) turn: TimeOutOfTurn,
    /// Outlet of its events.
    pub(crate) events: Outlet,
    /// Receiver of its inputs while it has no plan: otherwise the node has that.
    pub(crate) tap: Tap,
    /// The observations of the watchdog.
    pub(crate) watch: Watch,
    /// The parts that a test has made to fail.
    pub(crate) faults: Faults,
    /// The longest times, for sysfs.
    pub(crate) longest: LongestTimes,
}

impl State {
    /// Begins a section under the lock of the run queue, whose clock was read.
    pub(crate) fn begin_section(&mut self, rq: &RunQueue) {
        self.clock.begin_section(rq);
        self.reading.begin_section();
    }

    /// Whether no thread is attached, nor can be: there is no plan, or it has ended with all its
    /// processes.
    pub(crate) fn is_unused(&self) -> bool {
        let over = |node: &Node| node.ended() && node.unfinished() == 0;
        self.threads.as_ref().map_or(0, Threads::used) == 0
            && self.node.as_deref().map_or(true, over)
    }

    /// The receiver of the inputs of the policy.
    pub(crate) fn tap_mut(&mut self) -> &mut Tap {
        match &mut self.node {
            Some(node) => node.tap_mut(),
            None => &mut self.tap,
        }
    }

    /// The seat of that number, if it is taken.
    pub(crate) fn seat_mut(&mut self, number: SeatNumber) -> Option<&mut Seat> {
        self.threads.as_mut()?.get_mut(number)
    }

    /// The seat whose thread has the CPU.
    pub(crate) fn running_seat(&self) -> Option<&Seat> {
        self.threads.as_ref()?.get(self.occupancy.running())
    }

    /// Whether it is unallocated time, in which lower classes go first.
    pub(crate) fn is_unallocated(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_unallocated())
    }

    /// Whether the class leaves the CPU to lower classes: in unallocated time, unless the plan
    /// uses it and they have nothing to run; and to real-time threads of the kernel, out of turn.
    pub(crate) fn gives_way(&self, rq: &RunQueue) -> bool {
        let Some(node) = &self.node else {
            return false;
        };
        if node.is_unallocated() {
            return !node.uses_unallocated() || rq.has_lower_task();
        }
        rq.has_kernel_thread() && !self.turn.is_budget_spent()
    }

    /// Reports to the node whether the process in `row` can run, by the state of its active thread.
    /// Returns whether that may lead to another decision.
    pub(crate) fn refresh_presence(&mut self, row: RowNumber) -> bool {
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return false;
        };
        let Some(process) = threads.rows().process(row) else {
            return false;
        };
        let active = threads.get(threads.active(row));
        node.set_presence(process, active.map_or(Presence::Absent, Seat::presence))
    }
}
