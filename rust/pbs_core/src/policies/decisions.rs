// SPDX-License-Identifier: GPL-2.0

//! Decisions that a policy makes, and what it may know for them.

use super::super::division::Division;

/// The decisions of a policy.
///
/// Each is a pure function in constant time, without allocation: the kernel calls it under the lock
/// of a run queue.  Where a policy leaves a decision out, it is that of the thesis.
///
/// A candidate that becomes more urgent does not take the CPU from another one within its turn or
/// piece: where that matters, a policy divides slots into pieces.
///
/// Where slots float ([`Dispatch::Deadline`]) no slot is idle, and deadlines give the order: there
/// only [`t1_insns`](Decisions::t1_insns) and [`t2_task_insns`](Decisions::t2_task_insns) decide.
///
/// [`Dispatch::Deadline`]: super::super::choices::Dispatch::Deadline
pub(in super::super) trait Decisions {
    /// Urgency of a candidate for slots that are not its own: the greatest goes first, and at equal
    /// urgency the lower process number.
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        candidate.lateness_insns()
    }

    /// Division of an idle slot that begins.
    ///
    /// [`Division::Turns`] lets the most urgent candidate run to the end of the window, and then
    /// the one that is most urgent by then; [`Division::Admitted`] does the same with those that
    /// [`may_fill`](Decisions::may_fill) admits.  [`Division::PIECES`] ends each piece on the
    /// clock.  [`Division::Whole`] is for one process of the plan alone, whether or not it is a
    /// candidate.
    #[inline]
    fn divide(_slot: &IdleSlot) -> Division {
        Division::Turns
    }

    /// Whether a candidate may fill an idle slot with [`Division::Admitted`].
    #[inline]
    fn may_fill(_candidate: &impl Candidate) -> bool {
        true
    }

    /// Length in plan time of a piece that begins, of an idle slot with [`Division::Pieces`], for
    /// the candidate that gets it.  At least 1 ns; the slot ends all pieces.
    #[inline]
    fn piece_ns(piece: &Piece, _candidate: &impl Candidate) -> u64 {
        piece.rest_ns
    }

    /// t1 of a slot (3.2.2): the slot ends when so much was retired in it.  `t1_insns`: by the
    /// thesis.  At least `slot_insns`, and less than t2_task of a task of that length.
    #[inline]
    fn t1_insns(_slot_insns: u64, t1_insns: u64) -> u64 {
        t1_insns
    }

    /// t2_task (3.3.6): a task that has retired more is a prediction failure.  `t2_task_insns`: by
    /// the thesis.
    #[inline]
    fn t2_task_insns(_task_insns: u64, t2_task_insns: u64) -> u64 {
        t2_task_insns
    }
}

/// A process that is behind and can run: it may get slots that are not its own.  The slot of its
/// current task has passed, because the process was preempted, pushed along or blocked.
///
/// Every change of these values moves the process in the queue of candidates.  Therefore no value
/// depends on the time alone: the queue would be out of order.
pub(in super::super) trait Candidate {
    /// Lateness of the process (3.3.6); negative: it is early.
    fn lateness_insns(&self) -> i64;

    /// Plan buffer of the process (3.3.3), at most 2^56.
    fn buffer_insns(&self) -> u64;

    /// End of the last slot of the process in the plan and its plan buffer, at most 2^62 + 2^56.
    fn deadline_insns(&self) -> u64;

    /// Ticket that the process drew when it became a candidate, at most 2^63: those that wait
    /// longer have lower ones.
    fn ticket(&self) -> u64;

    /// Preemptions of the current task.
    fn preemptions(&self) -> u32;
}

/// An idle slot that begins.
pub(in super::super) struct IdleSlot {
    /// Processes of the plan.
    pub(in super::super) processes: u32,
    /// Slots that were divided as [`Division::Whole`] before, also under earlier plans.
    pub(in super::super) whole_slots: u64,
}

/// A piece that begins, of an idle slot.
pub(in super::super) struct Piece {
    /// Plan time to the end of the slot.
    pub(in super::super) rest_ns: u64,
    /// Length of the piece before, as the policy decided it; 0: this is the first.
    pub(in super::super) last_ns: u64,
    /// Candidates, with the one that gets the piece.
    pub(in super::super) candidates: u64,
    /// `Config::idle_piece_ns`
    pub(in super::super) idle_piece_ns: u64,
    /// Lateness of the node; 0 where it is early.
    pub(in super::super) node_late_insns: u64,
    /// t2_node without stress.
    pub(in super::super) t2_node_insns: u64,
}

impl Piece {
    /// A piece of that length, or all that is left if there would be no room for another piece.
    pub(in super::super) fn fit_ns(&self, piece_ns: u64) -> u64 {
        if piece_ns == 0 || self.rest_ns.saturating_sub(piece_ns) < piece_ns {
            self.rest_ns
        } else {
            piece_ns
        }
    }
}
