// SPDX-License-Identifier: GPL-2.0

//! The run state of one CPU, and what it is told.

use super::decide::Settled;
use super::grants::{Granted, Untold};
use super::idle::Division;
use super::order::Order;
use super::queue::Queue;
use super::run::{Peak, Run, NOT_QUEUED};
use super::signals::{Level, Look, Share, Sums, Watch};
use super::take_over::Changed;
use super::turns::Budget;
use super::windows::Windows;
use super::{
    wire, Config, Counts, Event, EventKind, Grant, Input, InputKind, Memory, NoMemory, Plan,
    Policy, Presence, Process, Rate, Sink,
};

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

    /// `p` retired `insns` more instructions since it was last charged.
    ///
    /// They go to its current task, and to the present slot if `p` runs in it
    /// as its owner.  Charge before telling that a task ended.
    pub fn charge(&mut self, p: u32, insns: u64) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        if run.done || insns == 0 {
            return;
        }
        if !run.task_begun {
            self.begin_next_task(p);
            return self.charge(p, insns);
        }
        let (queued, copied) = (run.queued != NOT_QUEUED, run.copied);
        let before_insns = run.retired_insns;
        run.retired_insns = before_insns.saturating_add(insns);
        if run.is_late() {
            // Of what is kept of the processes together only the lateness changes: see `update`.
            let before_insns = run.lateness_at_insns(before_insns);
            let later_insns = run.lateness_insns().saturating_sub(before_insns);
            self.sums.add_lateness(later_insns);
            self.limit_idle();
        }
        if self.grant == Some(p) {
            let left_insns = &mut self.settled.left_insns;
            if *left_insns != u64::MAX {
                *left_insns = left_insns.saturating_sub(insns);
            }
            if self.reason == Grant::Slot {
                self.slot.count_insns = self.slot.count_insns.saturating_add(insns);
            }
        } else {
            // The lateness of the node may be another one.
            self.stands = false;
        }
        // Its lateness may have risen.
        if queued {
            self.requeue(p);
        }
        if copied {
            self.note_change(p);
        }
        self.note(move |node| Input {
            process: p,
            value: insns,
            more: node.runs.get(p as usize).map_or(0, |run| run.retired_insns),
            ..Input::of(InputKind::Charge)
        });
    }

    /// The threads of `p` came, went, blocked or woke.  Returns whether that may
    /// lead to another decision.
    pub fn set_presence(&mut self, p: u32, presence: Presence) -> bool {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return false;
        };
        if run.presence == presence {
            return false;
        }
        let live = run.is_live();
        let before = core::mem::replace(&mut run.presence, presence);
        if [before, presence].contains(&Presence::Absent) {
            self.live = recount(self.live, live, run.is_live());
        }
        if run.copied {
            self.note_change(p);
        }
        self.requeue(p);
        let granted = self.grant == Some(p);
        // Who has the CPU keeps it, unless it is `p` or fills the slot of `p`.
        let owns_slot = self.slot.begun && self.slot.owner == p;
        let matters = granted || self.grant.is_none() || owns_slot;
        self.stale |= matters;
        self.note(move |node| Input {
            process: p,
            reason: presence as u16,
            value: matters.into(),
            more: node.live.into(),
            ..Input::of(InputKind::Presence)
        });
        matters
    }

    /// The current task of `p` ended.  Returns the id of its next task, or
    /// `None` if that was the last.
    ///
    /// `p` need not be the one that is granted: a task may end on its way to
    /// the place where it waits.
    pub fn end_task(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> Option<u32> {
        if self.runs.get(p as usize)?.done {
            return None;
        }
        self.finish_task(p, true, now_ns, sink);
        let run = self.runs.get(p as usize)?;
        let next = (!run.done).then_some(run.task);
        if next.is_none() {
            let event = self.process_event(EventKind::ProcessEnded, p, now_ns);
            self.tell(event, sink);
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: next.unwrap_or(wire::NO_TASK).into(),
            more: node.sums.lateness_insns() as u64,
            ..Input::of(InputKind::EndTask)
        });
        next
    }

    /// A thread of `p` dies in its current task.  That ends by it, but not for
    /// those who wait for it, or for one after it: they are told that it is gone.
    /// Call it before telling that the task, or the process, ended.
    pub fn die(&mut self, p: u32) {
        if let Some(run) = self.runs.get_mut(p as usize) {
            run.died_in = run.died_in.min(run.task);
            let died_in = run.died_in;
            if run.copied {
                self.note_change(p);
            }
            self.note(move |_| Input {
                process: p,
                value: died_in.into(),
                ..Input::of(InputKind::Die)
            });
        }
    }

    /// The threads of `p` are gone for good: its current task ends if it has
    /// begun, and those after it never will.
    pub fn end_process(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let Some(&run) = self.runs.get(p as usize) else {
            return;
        };
        let count = self.plan.process(p).map_or(0, |process| process.count);
        if !run.done && run.task_begun {
            let is_last = run.position.saturating_add(1) == count;
            self.finish_task(p, is_last, now_ns, sink);
        }
        self.change(p, |run| {
            run.presence = Presence::Absent;
            run.done = true;
        });
        self.stop_waiting(p);
        self.tell_successors(p, sink);
        // Otherwise its end was told with that of its last task.
        if !run.done {
            let position = self.runs.get(p as usize).map_or(0, |run| run.position);
            let mut event = self.process_event(EventKind::ProcessEnded, p, now_ns);
            event.value = u64::from(count.saturating_sub(position));
            self.tell(event, sink);
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: node.unfinished.into(),
            more: node.sums.lateness_insns() as u64,
            ..Input::of(InputKind::EndProcess)
        });
    }

    /// The rate of process `p`, as the plan says it or else that of the CPU.
    pub fn rate_of(&self, p: u32) -> Rate {
        let own = self.rates.get(p as usize).copied().flatten();
        own.unwrap_or(self.rate)
    }

    /// The CPU has another rate, unless the plan says one; the present slot keeps
    /// the bounds it has.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = self.plan.rate(rate);
        self.policy = Policy::new(self.policy.config, self.rate);
        // What was looked at was compared with other thresholds.
        self.sums.advance();
        self.stands = false;
        self.note(move |node| Input {
            value: rate.insns_per_ms(),
            more: node.rate.insns_per_ms(),
            ..Input::of(InputKind::Rate)
        });
    }

    /// Counts an event that the user of the node emitted itself; before it,
    /// call [`Node::tell_untold`].
    pub fn count(&mut self, kind: EventKind) {
        self.counts.count(kind);
        self.note(move |node| Input {
            reason: kind as u16,
            value: node.counts.get(kind),
            ..Input::of(InputKind::Count)
        });
    }

    /// The current task of `p` ends; `complete`: by itself, not because its
    /// process was cut short, which is no earliness.
    fn finish_task(&mut self, p: u32, complete: bool, now_ns: u64, sink: &mut impl Sink) {
        self.tell_untold_before(sink);
        // A task that nobody has looked at since it turned late.
        self.watch(p, now_ns, sink);
        let Some(run) = self.runs.get(p as usize) else {
            return;
        };
        let (retired_insns, planned_insns) = (run.retired_insns, run.planned_insns);
        let in_net = run.in_net;
        let next = run.position.saturating_add(1);
        self.update_task(p, |run| {
            run.begun = true;
            run.finish_task();
        });
        let mut event = self.process_event(EventKind::TaskEnded, p, now_ns);
        event.retired_insns = retired_insns;
        self.tell(event, sink);
        if complete && retired_insns < planned_insns {
            self.watch_early(p, planned_insns, retired_insns, now_ns, sink);
        }
        if self.slot.spared_insns != 0 {
            self.spare_no_longer(p);
        }
        let place = self.plan.place(p, next);
        if place.is_none() {
            self.change(p, |run| run.move_to(next, place));
        } else {
            // What it adds to the sums is the same before the next task as after the one that
            // ended.
            self.stands = false;
            if let Some(run) = self.runs.get_mut(p as usize) {
                run.move_to(next, place);
            }
            self.requeue(p);
        }
        if in_net {
            self.end_in_net(p, now_ns, sink);
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
    fn begin_next_task(&mut self, p: u32) {
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
    fn limit_idle(&mut self) {
        if self.idle_insns != 0 {
            self.idle_insns = self.idle_insns.min(self.early_insns());
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

    /// Number of the present slot on the wire.
    pub(super) fn slot_on_wire(&self) -> u64 {
        if (self.cursor as usize) < self.plan.slots.len() {
            u64::from(self.cursor)
        } else {
            wire::NO_SLOT
        }
    }

    /// An event of `kind` with all that belongs to `p` and its current task.
    #[inline(always)]
    pub(super) fn process_event(&self, kind: EventKind, p: u32, now_ns: u64) -> Event {
        let mut event = Event::new(kind, now_ns);
        event.slot = self.slot_on_wire();
        let (Some(process), Some(run)) = (self.plan.process(p), self.runs.get(p as usize)) else {
            return event;
        };
        let Peak {
            vm_bytes,
            rss_bytes,
        } = run.peak;
        event.process = process.id;
        event.task = run.task;
        event.planned_insns = run.planned_insns;
        event.retired_insns = run.retired_insns;
        event.lateness_insns = run.lateness_insns();
        event.peak_vm_bytes = vm_bytes;
        event.peak_rss_bytes = rss_bytes;
        event.preemptions = run.preemptions;
        event.node_lateness_insns = self.sums.lateness_insns();
        event
    }

    /// Counts and emits an event; returns its number.  It is made where it is
    /// emitted, and not copied.
    #[inline(always)]
    pub(super) fn tell(&mut self, event: Event, sink: &mut impl Sink) -> u64 {
        self.tell_untold_before(sink);
        self.counts.count(event.kind);
        let seq = sink.emit(&event);
        self.note_event(&event, seq);
        seq
    }
}

/// The rates of the processes that have their own.
fn rates<M: Memory>(plan: &Plan<M>) -> Result<M::Slice<Option<Rate>>, NoMemory> {
    let own = |process: &Process| match process.rate_insns_per_ms {
        0 => None,
        insns_per_ms => Some(Rate::new(insns_per_ms)),
    };
    let processes = &plan.processes;
    let len = match processes.iter().any(|process| own(process).is_some()) {
        true => processes.len(),
        false => 0,
    };
    let mut rates = M::alloc(len, None)?;
    for (rate, process) in rates.iter_mut().zip(processes.iter()) {
        *rate = own(process);
    }
    Ok(rates)
}

/// A count of processes after one of them changed from `before` to `after`.
fn recount(count: u32, before: bool, after: bool) -> u32 {
    count
        .saturating_add(after.into())
        .saturating_sub(before.into())
}
