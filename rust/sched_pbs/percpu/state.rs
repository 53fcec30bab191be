// SPDX-License-Identifier: GPL-2.0

//! The state of one CPU, and how a decision of the policy becomes scheduling.
//!
//! [`State`] joins the [`Node`], which decides which *process* may run, with the [`Threads`] that
//! are attached here. Whatever happens (a thread blocks, wakes, ends a task, the timer expires) is
//! first told to the node and then settled: [`State::settle`] asks the node, sends who may not run
//! any more to wait, wakes who may run now, has the CPU choose anew if another thread should run,
//! and arms the timer for the next moment at which the clock or the count will matter.
//!
//! | module | subject |
//! |---|---|
//! | [`charging`] | what the running thread has retired and uses, and to whom it goes |
//! | [`granting`] | from a decision to a thread that runs |
//! | [`members`] | threads enter, end tasks, leave |
//! | [`stopping`] | threads that may not run any more, on their way to where they wait |
//! | [`telling`] | what is told beside what the node tells |
//! | [`timer`] | the next moment that matters, and what is done then |
//! | [`turns`] | what threads take while it is another's turn |

use crate::{
    linux::{
        sched_class::{self, RunQueue},
        storage::KernelMemory,
    },
    pbs_core::{Lease, Node, Predictor, Presence, Rate},
    percpu::{
        cpu::Cpu,
        events::{Emitter, Writer},
        insn_clock::InsnClock,
        rows::Row,
        threads::{Seat, SeatNumber, Threads, NO_SEAT},
    },
    protect::watchdog::Watch,
    user::inputs::Tap,
};
use kernel::{alloc::KBox, clock};

mod charging;
mod granting;
mod members;
mod stopping;
mod telling;
mod timer;
mod turns;

pub(crate) use granting::Wake;
pub(crate) use members::LEAVE_SILENTLY;

/// For how long a moment of two clocks tells the one by the other: they may differ by half a
/// thousandth of this at the end. A tick comes before that mostly, and takes a new one: elsewhere it
/// would make one hand-over longer than the others.
const ANCHOR_NS: u64 = 5_000_000;

/// A moment of the monotonic clock and of that of the run queue.
#[derive(Clone, Copy, Default)]
struct Anchor {
    monotonic_ns: u64,
    clock_ns: u64,
}

/// What the lock of the CPU's run queue protects.
pub(crate) struct State {
    /// The plan and its progress; `None`: no plan.
    pub(crate) node: Option<KBox<Node<KernelMemory>>>,
    /// The lease of the plan, if it has one.
    pub(crate) lease: Option<Lease>,
    /// The attached threads; `None` until the first plan comes.
    pub(crate) threads: Option<Threads>,
    /// The counter of this CPU.
    pub(crate) insn_clock: InsnClock,
    /// The longest that a thread took to its waiting place.
    pub(crate) longest_stop_ns: u64,
    /// What the processes here use, as other CPUs know it.
    shown_memory_bytes: u64,
    /// How long threads had the CPU out of turn.
    pub(crate) out_of_turn_ns: u64,
    /// In how many windows no more time could be taken so.
    pub(crate) budgets_spent: u64,
    /// The longest that the run queue was locked at once for a change of plans.
    pub(crate) longest_swap_ns: u64,
    /// Where its events go.
    pub(crate) events: Writer,
    /// Where its inputs go while it has no plan: otherwise the node has that.
    pub(crate) tap: Tap,
    /// What the watchdog saw last.
    pub(crate) watch: Watch,
    /// What of the class was made to fail, as bits: [`Fault`](crate::protect::fault::Fault).
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    pub(crate) faults: u32,
    /// The seat whose thread may run by the last decision.
    granted: SeatNumber,
    /// The seat whose thread the CPU executes.
    running: SeatNumber,
    /// Since when the running thread has the CPU out of turn, 0: it does not.
    turn_since_ns: u64,
    /// No more of the present window may be taken so.
    budget_spent: bool,
    /// The class has the CPU, and its time is taken for load.
    has_cpu: bool,
    /// Nothing but this class has run since the counter was last read.
    count_valid: bool,
    /// Charged in this section under the lock.
    charged: bool,
    /// Charged and sampled since the running thread got the CPU, in the same switch.
    charged_in_switch: bool,
    /// The seat whose thread is granted the CPU where it waits, and has to be woken up.
    wake: SeatNumber,
    /// The seat for whose thread the timer was set when it was granted, for the switch to it.
    armed_for: SeatNumber,
    /// The time in this section under the lock, 0: nobody has asked for it.
    now_ns: u64,
    /// The time when somebody asked for it last.
    recent_ns: u64,
    /// The clock of the run queue in this section.
    clock_ns: u64,
    /// A moment of both clocks.
    anchor: Anchor,
    /// When seats were last looked through for threads that have slept on the run queue for long, by
    /// its clock.
    swept_ns: u64,
    /// The granted process has its own slot, and has not run in it yet.
    slot_begins: bool,
    /// The running thread has ended a task, and the timer was not set yet for the one after it.
    task_ended: bool,
    /// Rises with each task that ends, and each plan: peaks of memory begin anew.
    tasks: u64,
    /// When the timer will expire, 0: it isn't armed.
    timer_ns: u64,
    /// When the count will be reached that matters.
    predictor: Predictor,
}

impl Default for State {
    fn default() -> Self {
        Self {
            node: None,
            lease: None,
            threads: None,
            insn_clock: InsnClock::default(),
            longest_stop_ns: 0,
            shown_memory_bytes: 0,
            out_of_turn_ns: 0,
            budgets_spent: 0,
            longest_swap_ns: 0,
            events: Writer::default(),
            tap: Tap::default(),
            watch: Watch::NEW,
            #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
            faults: 0,
            granted: NO_SEAT,
            running: NO_SEAT,
            turn_since_ns: 0,
            budget_spent: false,
            has_cpu: false,
            count_valid: false,
            charged: false,
            charged_in_switch: false,
            wake: NO_SEAT,
            armed_for: NO_SEAT,
            now_ns: 0,
            recent_ns: 0,
            clock_ns: 0,
            anchor: Anchor::default(),
            swept_ns: 0,
            slot_begins: false,
            task_ended: false,
            tasks: 0,
            timer_ns: 0,
            predictor: Predictor::new(Rate::new(0)),
        }
    }
}

impl State {
    /// A section under the lock of the run queue begins, whose clock was read.
    pub(crate) fn enter_section(&mut self, rq: &RunQueue) {
        self.now_ns = 0;
        self.charged = false;
        self.clock_ns = rq.clock_ns();
    }

    /// The time of the monotonic clock, the same in all of a section under the lock.
    ///
    /// It is told by the clock of the run queue, from a moment of both that is not long ago: reading
    /// a clock costs as much as a small decision.
    pub(crate) fn now_ns(&mut self) -> u64 {
        if self.now_ns == 0 {
            let since_ns = self.clock_ns.wrapping_sub(self.anchor.clock_ns);
            if since_ns >= ANCHOR_NS {
                // The section has begun a while ago.
                self.anchor = Anchor {
                    monotonic_ns: clock::monotonic_ns(),
                    clock_ns: sched_class::clock_ns(),
                };
            }
            let since_ns = self.clock_ns.wrapping_sub(self.anchor.clock_ns);
            self.now_ns = self.anchor.monotonic_ns.wrapping_add(since_ns);
            // The two clocks do not go at quite the same pace.
            self.now_ns = self.now_ns.max(self.recent_ns);
            self.recent_ns = self.now_ns;
        }
        self.now_ns
    }

    /// The time is to be told by a new moment of both clocks.
    fn forget_anchor(&mut self) {
        self.anchor = Anchor::default();
    }

    /// What was told of the memory in use holds no more.
    pub(crate) fn forget_memory(&mut self) {
        self.tasks += 1;
    }

    /// Whether no thread is attached, nor can be: there is no plan, or it has ended with all that is
    /// in it.
    pub(crate) fn is_unused(&self) -> bool {
        let over = |node: &Node<KernelMemory>| node.ended() && node.unfinished() == 0;
        self.threads.as_ref().map_or(0, Threads::used) == 0
            && self.node.as_deref().map_or(true, over)
    }

    /// Where what the policy is told is noted.
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

    /// Whether it is unallocated time, when lower classes have the CPU.
    pub(crate) fn is_unallocated(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_unallocated())
    }

    /// Whether the thread of that seat may run user code.
    pub(crate) fn is_granted(&self, seat: SeatNumber) -> bool {
        seat != NO_SEAT && seat == self.granted
    }

    /// The seat whose thread may run user code.
    pub(crate) fn granted(&self) -> SeatNumber {
        self.granted
    }

    /// The seat whose thread has the CPU.
    pub(crate) fn running(&self) -> SeatNumber {
        self.running
    }

    /// Whether the CPU executes who is granted it.
    pub(crate) fn runs_granted(&self) -> bool {
        self.is_granted(self.running)
    }

    /// Tells the node whether the process in `row` can run, by the state of its active thread.
    /// Returns whether that may lead to another decision.
    pub(crate) fn refresh_presence(&mut self, row: Row) -> bool {
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return false;
        };
        let Some(process) = threads.rows().process(row) else {
            return false;
        };
        let active = threads.get(threads.active(row));
        node.set_presence(process, active.map_or(Presence::Absent, Seat::presence))
    }

    /// Tells the node something, if there is a plan; the events that come of it are about the
    /// thread `pid`.
    fn with_node<R>(
        &mut self,
        cpu: &Cpu,
        pid: i32,
        tell: impl FnOnce(&mut Node<KernelMemory>, &mut Emitter<'_>) -> R,
    ) -> Option<R> {
        // A grant that was not told yet is about no thread.
        self.tell_untold(cpu);
        let node = self.node.as_mut()?;
        let mut emitter = Emitter::new(cpu, &mut self.events, node.plan_id(), pid);
        Some(tell(node, &mut emitter))
    }
}
