// SPDX-License-Identifier: GPL-2.0

//! Run state of one process.

use super::event::Ended;
use super::heap::NOT_QUEUED;
use super::lengths::Lengths;
use super::level::{Reported, FAILURE};
use super::memory::Memory;
use super::next_check::CachedCheck;
use super::plan::{Plan, Predecessor, Process, Slot};
use super::policies::Candidate;
use super::thresholds::Progress;
use super::wire::format;

/// Presence of the threads of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The process has no thread.
    Absent,
    /// The process has a thread, which cannot run.
    Blocked,
    /// The process has a thread, which can run.
    Ready,
}

/// The run state of one process.
///
/// It has a copy of the facts of the plan about the current task that a decision needs:
/// the decision then touches one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) presence: Presence,
    /// All tasks have ended, or its threads are gone for good.
    pub(super) done: bool,
    /// Whether a task of the process has begun.
    pub(super) begun: bool,
    /// Whether its current task has begun.
    pub(super) task_begun: bool,
    /// Whether the process waits for others, or others wait for it; otherwise it takes no part in
    /// the order of tasks.
    pub(super) in_net: bool,
    /// Whether its current task waits for a task of another process.
    pub(super) held: bool,
    /// Whether it failed and does not run until the next plan.
    pub(super) suspended: bool,
    /// Whether it becomes a candidate with the first decisions of this plan: the plan before held
    /// it back, or suspended it, and had no turn for it.
    pub(super) enters: bool,
    /// Whether it was a candidate of the plan before, and has not been checked for tasks of others
    /// under this one: if it need not wait, it keeps the turn that it had.
    pub(super) keeps_turn: bool,
    /// The wait that was reported: a [`Wait`](super::Wait), or 0.
    pub(super) reported_wait: u16,
    /// Greatest level of t2_message that was reported of the message of `missed_edge`, in percent.
    pub(super) reported_message: u16,
    /// Whether the task for which it waits had ended before: it waits only until a later decision
    /// continues with its edges.
    pub(super) postponed: bool,
    /// Edge of the last message that it missed; `u32::MAX`: none.
    pub(super) missed_edge: u32,
    /// Monotonic time at which that message was planned to arrive.
    pub(super) missed_arrival_ns: u64,
    /// Edges of its current task whose messages need no check behind the awaited one: they were
    /// reported as late, or are there.  The lowest bit is that of `edge`.
    pub(super) checked_edges: u64,
    /// Whether its memory has been sampled under this plan, since it has begun.
    pub(super) sampled: bool,
    /// Whether it was copied for the next plan, and has not changed since.
    pub(super) copied: bool,
    /// Whether it is in the list of processes that have changed since they were copied.
    pub(super) noted: bool,
    /// The planned lengths of its rest against those of the plan before.
    pub(super) lengths: Lengths,
    /// Position of the current task; the number of tasks when all have ended.
    pub(super) position: u32,
    /// Id of the current task.
    pub(super) task: u32,
    /// Number of the slot that was planned for the current task.
    pub(super) own_slot: u32,
    /// Place in the queue of candidates, or in a list of processes where slots float;
    /// [`NOT_QUEUED`]: in none.
    pub(super) queued: u32,
    /// The first task in which a thread of the process died; [`format::NO_TASK`]: none.
    pub(super) died_in: u32,
    /// Number of its tasks that had begun when this plan took over; a task that was held had not
    /// begun.  0 if the process begins a new run.
    pub(super) begun_before: u32,
    /// Instructions of the last of them that were retired before this plan, until its slot passes.
    pub(super) carried_insns: u64,
    /// Position before which the slots of its tasks had passed when this plan took over.
    pub(super) behind_before: u32,
    /// The position of the first task that waits for others, from the current
    /// one on; `u32::MAX`: none does.
    pub(super) gate: u32,
    /// The first of its edges whose task may not have ended.
    pub(super) edge: u32,
    /// The predecessor in whose list it waits, by index, and the next process in that
    /// list.
    pub(super) waits_at: u32,
    pub(super) next_waiting: u32,
    /// Round of windows in which it entered the queue of candidates, and its number
    /// among all that entered the queue.
    pub(super) round: u64,
    pub(super) ticket: u64,
    /// Time that it has taken out of turn, and gives back in its next slots.
    pub(super) owed_ns: u64,
    /// Planned length of the current task.
    pub(super) planned_insns: u64,
    /// Instructions retired by the current task so far.
    pub(super) retired_insns: u64,
    /// Account of the tasks that have ended.
    pub(super) account: Account,
    /// Planned lengths of the current task and those after it.
    pub(super) rest_insns: u64,
    /// Plan buffer of the process.
    pub(super) buffer_insns: u64,
    /// Deadline of the process, as far as the plan declares it.
    pub(super) deadline_insns: u64,
    /// Preemptions of the current task.
    pub(super) preemptions: u32,
    /// Levels of its thresholds that were reported.
    pub(super) reported: Reported,
    /// The last check of the thresholds of the process and its task.
    pub(super) check: CachedCheck,
    /// Memory peak of the current task.
    pub(super) peak: Peak,
    /// Memory peak of the process.
    pub(super) process_peak: Peak,
}

/// Sums over the ended tasks of a process, since it began or a plan dealt with its
/// lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Account {
    /// Σ (retired − planned).
    pub(super) lateness_insns: i64,
    /// Σ planned.
    pub(super) planned_insns: u64,
}

/// The largest memory use seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Peak {
    pub(super) vm_bytes: u64,
    pub(super) rss_bytes: u64,
}

impl Peak {
    pub(super) fn raise(&mut self, vm_bytes: u64, rss_bytes: u64) {
        self.vm_bytes = self.vm_bytes.max(vm_bytes);
        self.rss_bytes = self.rss_bytes.max(rss_bytes);
    }
}

impl Run {
    pub(super) const NEW: Run = Run {
        presence: Presence::Absent,
        done: false,
        begun: false,
        task_begun: false,
        in_net: false,
        held: false,
        suspended: false,
        enters: false,
        keeps_turn: false,
        reported_wait: 0,
        reported_message: 0,
        postponed: false,
        missed_edge: u32::MAX,
        missed_arrival_ns: 0,
        checked_edges: 0,
        sampled: false,
        copied: false,
        noted: false,
        lengths: Lengths::New,
        position: 0,
        task: format::NO_TASK,
        own_slot: u32::MAX,
        queued: NOT_QUEUED,
        died_in: format::NO_TASK,
        begun_before: 0,
        carried_insns: 0,
        behind_before: 0,
        gate: u32::MAX,
        edge: u32::MAX,
        waits_at: Predecessor::NONE,
        next_waiting: u32::MAX,
        round: 0,
        ticket: 0,
        owed_ns: 0,
        planned_insns: 0,
        retired_insns: 0,
        account: Account {
            lateness_insns: 0,
            planned_insns: 0,
        },
        rest_insns: 0,
        buffer_insns: 0,
        deadline_insns: 0,
        preemptions: 0,
        reported: Reported::NOTHING,
        check: CachedCheck::NONE,
        peak: Peak {
            vm_bytes: 0,
            rss_bytes: 0,
        },
        process_peak: Peak {
            vm_bytes: 0,
            rss_bytes: 0,
        },
    };

    /// A process at one of its tasks, of which nothing but its plan is known.
    pub(super) fn at<M: Memory>(plan: &Plan<M>, index: u32, position: u32) -> Run {
        let process = plan.process(index);
        let mut run = Run {
            rest_insns: plan.rest_insns(index, position),
            buffer_insns: process.map_or(0, |p| p.buffer_insns),
            deadline_insns: process.map_or(0, Process::deadline_insns),
            ..Run::NEW
        };
        (run.edge, run.gate) = plan.edge_from(index, position);
        run.in_net = plan.is_in_net(index);
        run.move_to(position, plan.place(index, position));
        run.move_in_net();
        run
    }

    /// Like [`Run::at`] at the present task, from the facts that are stored here.
    pub(super) fn unbegun(&self) -> Run {
        Run {
            done: self.done,
            position: self.position,
            task: self.task,
            own_slot: self.own_slot,
            in_net: self.in_net,
            held: self.held,
            gate: self.gate,
            edge: self.edge,
            planned_insns: self.planned_insns,
            rest_insns: self.rest_insns,
            buffer_insns: self.buffer_insns,
            deadline_insns: self.deadline_insns,
            ..Run::NEW
        }
    }

    /// Makes the task at `position` the current one, not begun yet.  `place`: its
    /// slot and the number of that; the process is done if there is none.
    pub(super) fn move_to(&mut self, position: u32, place: Option<(u32, Slot)>) {
        self.position = position;
        self.retired_insns = 0;
        self.preemptions = 0;
        self.reported.forget_task();
        self.check = CachedCheck::NONE;
        self.task_begun = false;
        self.peak = Peak::default();
        match place {
            Some((number, slot)) => {
                self.task = slot.task;
                self.planned_insns = slot.length_insns;
                self.own_slot = number;
            }
            None => {
                self.done = true;
                self.task = format::NO_TASK;
                self.planned_insns = 0;
                self.own_slot = u32::MAX;
            }
        }
    }

    /// Whether the message of an edge behind the awaited one needs no check.
    pub(super) fn is_checked(&self, edge: u32) -> bool {
        let behind = edge.wrapping_sub(self.edge);
        let is_reported = edge == self.missed_edge && self.reported_message == FAILURE as u16;
        is_reported || (self.checked_edges.checked_shr(behind).unwrap_or(0) & 1 != 0)
    }

    /// Notes that the message of an edge behind the awaited one needs no check.
    pub(super) fn check_edge(&mut self, edge: u32) {
        let behind = edge.wrapping_sub(self.edge);
        self.checked_edges |= 1_u64.checked_shl(behind).unwrap_or(0);
    }

    /// Level of t2_message that was reported of the message of `edge` while the process waited for
    /// another one.
    pub(super) fn reported_behind(&self) -> u32 {
        if self.checked_edges & 1 == 0 {
            0
        } else {
            FAILURE
        }
    }

    /// Passes the edge at which the process waits, or to which it comes next.
    pub(super) fn pass_edge(&mut self) {
        self.edge += 1;
        self.checked_edges >>= 1;
    }

    /// Updates the wait of a process in the order of tasks, after it has moved to another task.
    pub(super) fn move_in_net(&mut self) {
        self.held = !self.done && self.position == self.gate;
        self.reported_wait = 0;
    }

    /// `process_lateness`: Σ finished (retired − planned) + max(0, running
    /// retired − planned).
    pub(super) fn lateness_insns(&self) -> i64 {
        self.lateness_at_insns(self.retired_insns)
    }

    /// The lateness when the current task had retired `retired_insns`.
    pub(super) fn lateness_at_insns(&self, retired_insns: u64) -> i64 {
        let over_insns = retired_insns.saturating_sub(self.planned_insns);
        self.account
            .lateness_insns
            .saturating_add(i64::try_from(over_insns).unwrap_or(i64::MAX))
    }

    /// Whether the current task has retired more than was planned.
    pub(super) fn is_late(&self) -> bool {
        self.retired_insns > self.planned_insns
    }

    /// Adds the current task, which ends, to the account.  The next task must still be
    /// moved to.
    pub(super) fn finish_task(&mut self) {
        let retired_insns = i64::try_from(self.retired_insns).unwrap_or(i64::MAX);
        // A planned length is at most 2^48.
        let deviation_insns = retired_insns.saturating_sub(self.planned_insns as i64);
        let account = &mut self.account;
        account.lateness_insns = account.lateness_insns.saturating_add(deviation_insns);
        account.planned_insns = account.planned_insns.saturating_add(self.planned_insns);
        self.rest_insns = self.rest_insns.saturating_sub(self.planned_insns);
        // The task must not count twice.
        self.retired_insns = 0;
        self.task_begun = false;
    }

    /// Begins a new account: lateness counts from here on, also that of a task
    /// which is late already.
    pub(super) fn begin_account(&mut self) {
        self.check = CachedCheck::NONE;
        let over_insns = self.retired_insns.saturating_sub(self.planned_insns);
        self.account = Account {
            lateness_insns: i64::try_from(over_insns).map_or(-i64::MAX, |over_insns| -over_insns),
            planned_insns: 0,
        };
    }

    /// The account if the current task is abandoned, and does not end.
    pub(super) fn account_without_task(&self) -> Account {
        Account {
            lateness_insns: self.lateness_insns(),
            planned_insns: self.begun_insns(),
        }
    }

    /// Planned lengths of the tasks begun so far.
    pub(super) fn begun_insns(&self) -> u64 {
        let running_insns = if self.task_begun {
            self.planned_insns
        } else {
            0
        };
        self.account.planned_insns.saturating_add(running_insns)
    }

    /// Progress of the process, for those that wait for it.
    pub(super) fn ended(&self) -> Ended {
        Ended {
            before_task: self.task.min(self.died_in),
            is_last: self.done || self.died_in != format::NO_TASK,
        }
    }

    /// Progress of the process, for its thresholds.
    pub(super) fn progress(&self) -> Progress {
        let account = &self.account;
        let finished_insns = account
            .planned_insns
            .saturating_add_signed(account.lateness_insns);
        Progress {
            begun_insns: self.begun_insns(),
            planned_insns: account.planned_insns.saturating_add(self.rest_insns),
            retired_insns: finished_insns.saturating_add(self.retired_insns),
            buffer_insns: self.buffer_insns,
        }
    }

    /// Whether the process can run, if it is granted the CPU.
    pub(super) fn can_run(&self) -> bool {
        self.presence == Presence::Ready && !self.held && !self.suspended
    }

    /// Whether the process may fill a slot that is not its own.  The process must be able to run,
    /// and be behind.
    pub(super) fn is_candidate(&self, cursor: u32) -> bool {
        self.can_run() && !self.done && !self.enters && self.is_behind(cursor)
    }

    /// Whether it has a turn among the candidates, which the next plan keeps.
    pub(super) fn has_turn(&self) -> bool {
        self.queued != NOT_QUEUED || self.keeps_turn
    }

    /// Whether the slot of its current task has passed, under this plan or under the plan before:
    /// the task was preempted, waited for others, or was pushed along by such a task.
    pub(super) fn is_behind(&self, cursor: u32) -> bool {
        self.own_slot < cursor || self.position < self.behind_before
    }

    /// Whether the process is active: it has begun, and has tasks left.
    pub(super) fn is_active(&self) -> bool {
        self.begun && !self.done
    }

    /// Whether the process is present, with tasks left.
    pub(super) fn is_live(&self) -> bool {
        self.presence != Presence::Absent && !self.done
    }
}

impl Candidate for Run {
    #[inline]
    fn lateness_insns(&self) -> i64 {
        Run::lateness_insns(self)
    }

    #[inline]
    fn buffer_insns(&self) -> u64 {
        self.buffer_insns
    }

    #[inline]
    fn deadline_insns(&self) -> u64 {
        self.deadline_insns
    }

    #[inline]
    fn ticket(&self) -> u64 {
        self.ticket
    }

    #[inline]
    fn preemptions(&self) -> u32 {
        self.preemptions
    }
}

saved!([super] Run {
    presence,
    done,
    begun,
    task_begun,
    in_net,
    held,
    suspended,
    enters,
    keeps_turn,
    reported_wait,
    reported_message,
    postponed,
    missed_edge,
    missed_arrival_ns,
    checked_edges,
    sampled,
    copied,
    noted,
    lengths,
    position,
    task,
    own_slot,
    queued,
    died_in,
    begun_before,
    carried_insns,
    behind_before,
    gate,
    edge,
    waits_at,
    next_waiting,
    round,
    ticket,
    owed_ns,
    planned_insns,
    retired_insns,
    account,
    rest_insns,
    buffer_insns,
    deadline_insns,
    preemptions,
    reported,
    check,
    peak,
    process_peak,
});
saved!([super] Account {
    lateness_insns,
    planned_insns,
});
saved!([super] Peak {
    vm_bytes,
    rss_bytes,
});
saved_choice!([super] Presence {
    Absent,
    Blocked,
    Ready,
});
