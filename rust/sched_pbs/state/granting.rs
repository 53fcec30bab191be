// SPDX-License-Identifier: GPL-2.0

//! From a decision of the node to a thread that runs.

use super::{State, NO_DECISION};
use crate::{
    cpu::Cpu,
    pbs_core::{Decision, Grant, Origin},
    threads::{SeatNumber, NO_SEAT},
};
use kernel::{sched_class::RunQueue, task::Task, types::ARef};

impl State {
    /// The seat whose thread should have the CPU.
    pub(super) fn choose(&self) -> SeatNumber {
        let Some(threads) = &self.threads else {
            return NO_SEAT;
        };
        if self.decision.unallocated {
            return NO_SEAT;
        }
        // Who has to let go of what it holds in the kernel comes first.
        match threads.first_stopping() {
            NO_SEAT if threads.get(self.granted).is_some_and(|seat| seat.queued) => self.granted,
            NO_SEAT => threads.first_deferred(),
            seat => seat,
        }
    }

    /// The thread that should have the CPU.
    pub(crate) fn pick(&self) -> Option<&Task> {
        let seat = self.threads.as_ref()?.get(self.choose())?;
        seat.task.as_deref()
    }

    /// Asks the node who may run and makes it so. Who must be woken up is left in `wake`; the
    /// callbacks of the class end with [`State::hand_over`] for it.
    pub(crate) fn settle(&mut self, rq: &mut RunQueue, cpu: &'static Cpu) {
        self.settle_at(rq, cpu, Origin::Elsewhere);
    }

    pub(super) fn settle_at(&mut self, rq: &mut RunQueue, cpu: &'static Cpu, origin: Origin) {
        let now_ns = self.now_ns();
        let decision = self
            .with_node(cpu, 0, |node, emitter| node.decide(now_ns, emitter))
            .unwrap_or(NO_DECISION);
        let told = |decision: &Decision| (decision.grant, decision.until_ns);
        if told(&decision) != told(&self.decision) {
            self.predictor.progress();
        }
        self.decision = decision;
        self.charged_insns = 0;

        let granted = match (self.decision.grant, &self.threads) {
            (Some(process), Some(threads)) => threads.active_of(process),
            _ => NO_SEAT,
        };
        let before = core::mem::replace(&mut self.granted, granted);
        if before != granted {
            self.stop(before);
            self.slot_begins = self.decision.reason == Grant::Slot;
        }
        if let Some(seat) = self.threads.as_mut().and_then(|t| t.get_mut(granted)) {
            seat.began = true;
            if seat.is_parked() {
                // Who stood here before is not granted any more; it is woken when it is again.
                self.wake = seat.task.clone();
            }
            if before != granted && seat.leaving == 0 {
                seat.stopping = false;
                if let Some(threads) = &mut self.threads {
                    threads.remove_waiting(granted);
                }
            }
        }
        self.preempt(rq);
        // A switch sets the timer itself.
        if self.running == NO_SEAT || self.running == self.choose() {
            self.arm(rq, cpu, origin);
        }
    }

    /// For callbacks of the class, under the core's lock: has the CPU do the wake-up.
    pub(crate) fn hand_over(&mut self, cpu: &Cpu) {
        if self.wake.is_some() {
            cpu.kick();
        }
    }

    /// Who has to be woken up, for who can do that as soon as the lock is dropped.
    pub(crate) fn take_wake(&mut self) -> Option<ARef<Task>> {
        self.wake.take()
    }

    /// A thread of a boosted process runs in another class, and need not wait meanwhile.
    pub(crate) fn wake_boosted(&mut self, cpu: &Cpu, number: SeatNumber) {
        if let Some(threads) = &mut self.threads {
            threads.push_boosted(number);
        }
        cpu.kick();
    }

    /// One of those who have to be woken up because they are boosted. The others follow.
    pub(crate) fn take_boosted(&mut self, cpu: &Cpu) -> Option<ARef<Task>> {
        let threads = self.threads.as_mut()?;
        let number = threads.pop_boosted()?;
        if threads.has_boosted() {
            cpu.kick();
        }
        threads.get(number)?.task.clone()
    }

    /// Has the CPU choose anew if another thread than the current one should run.
    pub(crate) fn preempt(&mut self, rq: &mut RunQueue) {
        let wrong = match self.pick() {
            Some(task) => !rq.is_current(task),
            None => self.running != NO_SEAT,
        };
        if wrong {
            rq.reschedule();
        }
    }
}
