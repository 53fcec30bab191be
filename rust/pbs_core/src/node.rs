// SPDX-License-Identifier: GPL-2.0

//! The run state of one CPU.

use core::ops::DerefMut;

use super::budget::Budget;
use super::config::{Config, Dispatch};
use super::event::Counts;
use super::float::Floating;
use super::grant::{CurrentGrant, GrantReports};
use super::heap::NOT_QUEUED;
use super::lengths::LengthChanges;
use super::memory::{Memory, NoMemory};
use super::node_signals::NodeSignals;
use super::plan::Plan;
use super::plan_status::PlanStatus;
use super::policy::Policy;
use super::processes::Processes;
use super::queue::Queue;
use super::rate::Rate;
use super::rates::Rates;
use super::responses::Responses;
use super::run::Run;
use super::slot::CurrentSlot;
use super::standing::StandingDecision;
use super::timeliness::Timetable;
use super::wait_lists::WaitLists;
use super::windows::Windows;

/// The run state of one CPU that executes a plan.
///
/// Processes are named by their index in the plan ([`Plan::find`]).  Times are
/// of one monotonic clock.  The user reports what happened ([`charge`],
/// [`set_presence`], [`end_task`] and so on, each in constant time but for the
/// queue of candidates), then asks for a decision ([`decide`]) and acts on it.
///
/// [`charge`]: Node::charge
/// [`set_presence`]: Node::set_presence
/// [`end_task`]: Node::end_task
/// [`decide`]: Node::decide
pub struct Node<M: Memory> {
    pub(super) plan: Plan<M>,
    pub(super) status: PlanStatus,
    pub(super) policy: Policy,
    pub(super) rates: Rates<M>,
    pub(super) processes: Processes<M>,
    /// The candidates for idle slots: exactly those processes for which
    /// [`Run::is_candidate`] holds, except for the one that is granted.
    pub(super) queue: Queue<M>,
    /// The order of the processes, where slots float.
    pub(super) floating: Floating<M>,
    pub(super) wait_lists: WaitLists<M>,
    pub(super) windows: Windows,
    pub(super) budget: Budget,
    pub(super) slot: CurrentSlot,
    pub(super) grant: CurrentGrant,
    pub(super) grant_reports: GrantReports,
    pub(super) standing: StandingDecision,
    pub(super) signals: NodeSignals,
    pub(super) counts: Counts,
    pub(super) responses: Responses,
    /// The planned lengths against those of the plan before.
    pub(super) lengths: LengthChanges,
    /// The planned times of the slots, where they are compared with the clock.
    pub(super) timetable: Timetable<M>,
    /// Receiver of the inputs of the node.
    pub(super) tap: M::Tap,
}

impl<M: Memory> Node<M> {
    /// The state before the first slot of `plan`, all processes absent.  `rate` is the rate of the
    /// CPU; the plan may declare another one.
    ///
    /// Execution time begins at `now_ns`; the first slot begins with the first decision.
    pub fn new(
        plan: Plan<M>,
        config: Config,
        rate: Rate,
        plan_id: u64,
        now_ns: u64,
    ) -> Result<Node<M>, NoMemory> {
        let mut node = Node::without_places(plan, &config, rate, plan_id, now_ns)?;
        node.place_all();
        Ok(node)
    }

    /// [`Node::new`], in the memory into which `put` moves the node: the stack of the kernel is
    /// small.
    #[inline]
    pub fn new_in<P: DerefMut<Target = Node<M>>>(
        plan: Plan<M>,
        config: &Config,
        rate: Rate,
        plan_id: u64,
        now_ns: u64,
        put: impl FnOnce(Node<M>) -> P,
    ) -> Result<P, NoMemory> {
        match Node::without_places(plan, config, rate, plan_id, now_ns) {
            Ok(node) => {
                let mut node = put(node);
                node.place_all();
                Ok(node)
            }
            Err(error) => Err(error),
        }
    }

    /// The node before each process has its place.
    #[inline(never)]
    fn without_places(
        plan: Plan<M>,
        config: &Config,
        rate: Rate,
        plan_id: u64,
        now_ns: u64,
    ) -> Result<Node<M>, NoMemory> {
        let rates = Rates::new(&plan, rate)?;
        let count = plan.processes.len();
        let floats = config.dispatch() == Dispatch::Deadline;
        let processes = Processes::new(&plan)?;
        let queue = Queue::new(count, config.idle_policy())?;
        let floating = Floating::new(if floats { count } else { 0 })?;
        let wait_lists = WaitLists::new(&plan)?;
        // Planned gaps of messages are not in the lengths of slots.
        let is_timed = config.timeliness_ns != 0 && !floats && !plan.has_arrivals();
        let timetable = Timetable::new(&plan, &rates, is_timed)?;
        Ok(Node {
            status: PlanStatus::new(plan_id, now_ns),
            policy: Policy::new(*config, rates.cpu()),
            rates,
            processes,
            queue,
            floating,
            wait_lists,
            windows: Windows::new(config, now_ns),
            budget: Budget::UNKNOWN,
            plan,
            slot: CurrentSlot::FIRST,
            grant: CurrentGrant::NONE,
            grant_reports: GrantReports::NONE,
            standing: StandingDecision::NONE,
            signals: NodeSignals::NONE,
            counts: Counts::ZERO,
            responses: Responses::NONE,
            lengths: LengthChanges::NONE,
            timetable,
            tap: M::Tap::default(),
        })
    }

    /// Gives each process its place, where slots float.
    fn place_all(&mut self) {
        if self.floats() {
            (0..self.processes.len() as u32).for_each(|p| self.place_anew(p));
        }
    }

    /// Whether slots float.
    #[inline(always)]
    pub(super) fn floats(&self) -> bool {
        self.policy.config.dispatch != Dispatch::Thesis as u64
    }

    /// Changes the state of `p`, updates what is derived from it, and requires a new
    /// decision.
    pub(super) fn change(&mut self, p: u32, change: impl FnOnce(&mut Run)) {
        self.standing.revoke();
        self.processes.update(p, change);
        self.requeue(p);
    }

    /// Puts `p` into the queue of candidates, takes it out, or moves it, as its
    /// state demands.  The process that is granted is not in it.
    #[inline(always)]
    pub(super) fn requeue(&mut self, p: u32) {
        if !self.grant.is(p) {
            self.requeue_waiting(p);
        }
    }

    /// Puts `p`, which is a candidate, into the queue.  The next plan keeps its turn.
    pub(super) fn enqueue(&mut self, p: u32) {
        let window = self.windows.number();
        self.queue.insert(self.processes.runs_mut(), p, window);
        if self.processes.get(p).is_some_and(|run| run.copied) {
            self.processes.note_change(p);
        }
    }

    /// Puts `p`, which has the CPU and is a candidate, into the queue with the turn that it had
    /// there.
    pub(super) fn enqueue_again(&mut self, p: u32) {
        let Some(run) = self.processes.get(p) else {
            return;
        };
        let (round, ticket) = (run.round, run.ticket);
        self.enqueue(p);
        let runs = self.processes.runs_mut();
        self.queue.keep_turn(runs, p, round, ticket);
    }

    /// Makes `p` a candidate, if it is one of those that the plan before held back or suspended.
    pub(super) fn enter(&mut self, p: u32) {
        let Some(run) = self.processes.get_mut(p).filter(|run| run.enters) else {
            return;
        };
        run.enters = false;
        if run.copied {
            self.processes.note_change(p);
        }
        self.requeue(p);
    }

    #[inline(never)]
    fn requeue_waiting(&mut self, p: u32) {
        if self.floats() {
            return self.requeue_floating(p);
        }
        let Some(run) = self.processes.get(p) else {
            return;
        };
        let candidate = run.is_candidate(self.slot.number());
        let queued = run.queued != NOT_QUEUED;
        let runs = self.processes.runs_mut();
        match (queued, candidate) {
            (false, false) => {}
            (false, true) => self.enqueue(p),
            (true, true) => self.queue.shift(runs, p),
            (true, false) => self.queue.remove(runs, p),
        }
    }
}
