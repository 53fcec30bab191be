// SPDX-License-Identifier: GPL-2.0

//! The run state of one CPU, and what it is told.

use super::budget::Budget;
use super::changed::Changed;
use super::config::Config;
use super::event::{Counts, Grant};
use super::grant::{Granted, Untold};
use super::level::Level;
use super::memory::{Memory, NoMemory};
use super::next_check::{Look, Watch};
use super::plan::{Plan, Process};
use super::policy::Policy;
use super::queue::Queue;
use super::rate::Rate;
use super::run::{Run, NOT_QUEUED};
use super::settled::Settled;
use super::slot::SlotState;
use super::sums::{Share, Sums};
use super::wait_lists::Order;
use super::windows::Windows;

/// The run state of one CPU that executes a plan.
///
/// Processes are named by their index in the plan ([`Plan::find`]).  Times are
/// of one monotonic clock.  The user tells what happened ([`charge`],
/// [`set_presence`], [`end_task`] and so on, each in constant time but for the
/// queue of candidates), then asks for a decision ([`decide`]) and acts on it.
///
/// [`charge`]: Node::charge
/// [`set_presence`]: Node::set_presence
/// [`end_task`]: Node::end_task
/// [`decide`]: Node::decide
pub struct Node<M: Memory> {
    pub(super) plan: Plan<M>,
    pub(super) policy: Policy,
    /// Of the CPU, as the plan says it or else as it is known.
    pub(super) rate: Rate,
    /// By process: its own, where the plan says one.  Empty if it says none.
    rates: M::Slice<Option<Rate>>,
    pub(super) plan_id: u64,
    /// By process.
    pub(super) runs: M::Slice<Run>,
    /// The candidates for idle slots: exactly those processes for which
    /// [`Run::is_candidate`] holds, but for the one that is granted.
    pub(super) queue: Queue<M>,
    /// Who waits for whose tasks.
    pub(super) order: Order<M>,
    /// The processes that the plan which follows has to look at again.
    pub(super) changed: Changed<M>,
    pub(super) windows: Windows,
    /// What may be taken out of turn.
    pub(super) budget: Budget,
    /// Number of the present slot; that of all slots after the last.
    pub(super) cursor: u32,
    pub(super) slot: SlotState,
    /// Who may run, and why.
    pub(super) grant: Option<u32>,
    pub(super) reason: Grant,
    /// Number of the window in which it was granted, if it is not its own slot.
    pub(super) turn: u64,
    /// Idle slots that were given away whole, one after the other.
    pub(super) idle_slots: u64,
    /// What the last grant event said.
    pub(super) told: Option<Granted>,
    /// The grant since, if it is not told yet.
    pub(super) untold: Option<Untold>,
    /// The last decision.
    pub(super) settled: Settled,
    /// Nothing was told since that could change it but for who can run.  Charges
    /// of who is granted are not: of them only the count matters.
    pub(super) stands: bool,
    /// Who can run has changed since.
    pub(super) stale: bool,
    /// When the lateness thresholds of who runs are to be looked at again.
    pub(super) watch: Watch,
    /// When the plan came into force.
    pub(super) installed_ns: u64,
    /// Sums over the active processes.
    pub(super) sums: Sums,
    /// The last look at the lateness threshold of the node.
    pub(super) node_look: Look,
    /// What was told of t2_node.
    pub(super) told_late: Level,
    /// What was told of tm2_node.
    pub(super) told_early: Level,
    /// What was told of the plan's limit of memory.
    pub(super) told_memory: Level,
    /// What processes on other CPUs used when it was last asked for.
    pub(super) elsewhere_bytes: u64,
    /// The plan deals with the failures of all events before this one.
    pub(super) dealt_seq: u64,
    /// Idle time that lessens the earliness of the node.
    pub(super) idle_insns: u64,
    /// Plan time since which the plan waits for its processes, if it does and
    /// that counts.
    pub(super) waits_since_ns: Option<u64>,
    /// Processes that are present and not done.
    pub(super) live: u32,
    /// Processes that are not done.
    pub(super) unfinished: u32,
    pub(super) plan_ended: bool,
    pub(super) counts: Counts,
    /// Where what it is told is noted.
    pub(super) tap: M::Tap,
}

impl<M: Memory> Node<M> {
    /// The state before the first slot of `plan`, all processes absent.  `rate`
    /// is that of the CPU; the plan may say another one.
    ///
    /// Execution time begins at `now_ns`; the first slot begins with the first
    /// decision.
    pub fn new(
        plan: Plan<M>,
        config: Config,
        rate: Rate,
        plan_id: u64,
        now_ns: u64,
    ) -> Result<Node<M>, NoMemory> {
        let rate = plan.rate(rate);
        let processes = plan.processes.len();
        let mut runs = M::alloc(processes, Run::NEW)?;
        for (run, index) in runs.iter_mut().zip(0..) {
            *run = Run::at(&plan, index, 0);
        }
        Ok(Node {
            queue: Queue::new(processes, config.idle_policy())?,
            changed: Changed::new(processes)?,
            order: Order::new(&plan)?,
            windows: Windows::new(&config, now_ns),
            budget: Budget::UNKNOWN,
            policy: Policy::new(config, rate),
            rates: rates::<M>(&plan)?,
            plan,
            rate,
            plan_id,
            runs,
            cursor: 0,
            slot: SlotState::NONE,
            grant: None,
            reason: Grant::None,
            turn: 0,
            idle_slots: 0,
            told: None,
            untold: None,
            settled: Settled::NONE,
            stands: false,
            stale: false,
            watch: Watch::NEVER,
            installed_ns: now_ns,
            sums: Sums::ZERO,
            node_look: Look::NONE,
            told_late: Level::NOTHING,
            told_early: Level::NOTHING,
            told_memory: Level::NOTHING,
            elsewhere_bytes: 0,
            dealt_seq: 0,
            idle_insns: 0,
            waits_since_ns: None,
            live: 0,
            unfinished: processes as u32,
            plan_ended: false,
            counts: Counts::ZERO,
            tap: M::Tap::default(),
        })
    }

    /// The rate of process `p`, as the plan says it or else that of the CPU.
    pub fn rate_of(&self, p: u32) -> Rate {
        let own = self.rates.get(p as usize).copied().flatten();
        own.unwrap_or(self.rate)
    }

    /// Changes the state of `p`, keeping what is derived from it true.
    pub(super) fn change(&mut self, p: u32, change: impl FnOnce(&mut Run)) {
        self.stands = false;
        self.update(p, change);
        self.requeue(p);
    }

    /// The same for a change that alters neither the present decision nor who
    /// is a candidate.
    pub(super) fn update(&mut self, p: u32, change: impl FnOnce(&mut Run)) {
        let Some(run) = self.runs.get(p as usize) else {
            return;
        };
        let (live, unfinished) = (run.is_live(), !run.done);
        self.update_task(p, change);
        if let Some(run) = self.runs.get(p as usize) {
            self.live = recount(self.live, live, run.is_live());
            self.unfinished = recount(self.unfinished, unfinished, !run.done);
        }
    }

    /// The same for a change that leaves it there as it was, and as done.
    #[inline(always)]
    pub(super) fn update_task(&mut self, p: u32, change: impl FnOnce(&mut Run)) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        let share = Share::of(run);
        change(run);
        let copied = run.copied;
        self.sums.replace(&share, &Share::of(run));
        self.limit_idle();
        if copied {
            self.note_change(p);
        }
    }

    /// Idle time only makes up for earliness.
    pub(super) fn limit_idle(&mut self) {
        if self.idle_insns != 0 {
            self.idle_insns = self.idle_insns.min(self.sums.early_insns());
        }
    }

    /// The current task of `p` has begun, if it had not.
    #[inline(always)]
    pub(super) fn begin_task(&mut self, p: u32) {
        if self.runs.get(p as usize).is_some_and(|run| !run.task_begun) {
            self.begin_next_task(p);
        }
    }

    #[inline(never)]
    pub(super) fn begin_next_task(&mut self, p: u32) {
        match self.runs.get_mut(p as usize) {
            Some(run) if run.is_active() => {
                // Nothing else of what it adds to the sums changes.
                let before_insns = run.begun_insns();
                run.task_begun = true;
                self.sums.begin_task(run.begun_insns() - before_insns);
                if run.copied {
                    self.note_change(p);
                }
            }
            _ => self.update_task(p, |run| {
                run.begun = true;
                run.task_begun = true;
            }),
        }
    }

    /// The process `p` has been copied for the plan that follows, and changes.
    #[cold]
    pub(super) fn note_change(&mut self, p: u32) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        run.copied = false;
        if !core::mem::replace(&mut run.noted, true) {
            self.changed.push(p);
        }
    }

    /// Puts `p` into the queue of candidates, takes it out, or moves it, as its
    /// state demands.  Who is granted is not in it.
    #[inline(always)]
    pub(super) fn requeue(&mut self, p: u32) {
        if self.grant != Some(p) {
            self.requeue_waiting(p);
        }
    }

    #[inline(never)]
    fn requeue_waiting(&mut self, p: u32) {
        let Some(run) = self.runs.get(p as usize) else {
            return;
        };
        let candidate = run.is_candidate(self.cursor);
        match (run.queued != NOT_QUEUED, candidate) {
            (false, false) => {}
            (false, true) => {
                let window = self.windows.number();
                self.queue.insert(&mut self.runs, p, window);
            }
            (true, true) => self.queue.shift(&mut self.runs, p),
            (true, false) => self.queue.remove(&mut self.runs, p),
        }
    }
}

/// The rates of the processes that have their own.
fn rates<M: Memory>(plan: &Plan<M>) -> Result<M::Slice<Option<Rate>>, NoMemory> {
    let own = |process: &Process| match process.rate_insns_per_ms {
        0 => None,
        insns_per_ms => Some(Rate::new(insns_per_ms)),
    };
    let processes = &plan.processes;
    let len = if processes.iter().any(|process| own(process).is_some()) {
        processes.len()
    } else {
        0
    };
    let mut rates = M::alloc(len, None)?;
    for (rate, process) in rates.iter_mut().zip(processes.iter()) {
        *rate = own(process);
    }
    Ok(rates)
}

/// A count of processes after one of them changed from `before` to `after`.
pub(super) fn recount(count: u32, before: bool, after: bool) -> u32 {
    count
        .saturating_add(after.into())
        .saturating_sub(before.into())
}
