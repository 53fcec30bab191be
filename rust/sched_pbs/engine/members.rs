// SPDX-License-Identifier: GPL-2.0

//! Members of the class: threads enter and leave it, and end their tasks and their processes.

use crate::{
    engine::emitter::Emitter,
    pbs_core::{Event, EventKind, Sink},
    percpu::cpu::Cpu,
    percpu::requests::Request,
    state::{
        rows::NO_ROW,
        threads::{SeatNumber, NO_SEAT},
        State,
    },
};

/// Reason to leave the class without an event: the end was reported already.
pub(crate) const LEAVE_SILENTLY: u16 = u16::MAX;

impl State {
    /// The thread has entered the class.
    pub(crate) fn enter(&mut self, cpu: &Cpu, number: SeatNumber) {
        let Some(threads) = &mut self.threads else {
            return;
        };
        let Some(seat) = threads.get_mut(number) else {
            return;
        };
        seat.entered = true;
        let row = seat.row;
        let pid = seat.task.as_ref().map_or(0, |task| task.pid());
        let process = threads.rows().process(row);
        self.tell(cpu, EventKind::Attached, process, 0, 0, pid);
    }

    /// Makes the thread leave the class: it no longer belongs to its process. It continues in the
    /// kernel and in user space until its policy is changed, which takes process context.
    ///
    /// Reports the reason, except for [`LEAVE_SILENTLY`]. If the process went with its plan, that
    /// is the reason.
    pub(crate) fn leave(&mut self, cpu: &Cpu, number: SeatNumber, reason: u16) {
        let Some(threads) = &mut self.threads else {
            return;
        };
        let Some((row, pid)) = threads
            .get(number)
            .filter(|seat| seat.leaving == 0)
            .and_then(|seat| Some((seat.row, seat.task.as_ref()?.pid())))
        else {
            return;
        };
        let process = threads.rows().process(row);
        let lost = threads.lost(number);
        threads.forget_process(number);
        if let Some(seat) = threads.get_mut(number) {
            seat.leaving = reason;
        }
        if reason != LEAVE_SILENTLY {
            threads.send_away(number);
        } else {
            // The thread itself leaves.
            threads.push_stopping(number);
        }
        match lost {
            Some((id, reason)) => {
                let mut event = Event::new(EventKind::Ejected, self.clock.now_ns());
                event.process = id;
                event.reason = reason;
                self.tell_untold(cpu);
                let plan_id = self.node.as_ref().map_or(0, |node| node.plan_id());
                Emitter::new(cpu, &mut self.events, plan_id, pid).emit(&event);
            }
            None if reason != LEAVE_SILENTLY => {
                self.tell(cpu, EventKind::Ejected, process, reason, 0, pid);
            }
            None => {}
        }
        self.occupancy.leave(number);
        self.refresh_presence(row);
    }

    /// A thread that has left the class gives up its seat. The caller has another reference to it.
    pub(crate) fn release(&mut self, cpu: &Cpu, number: SeatNumber) {
        if let Some(threads) = &mut self.threads {
            drop(threads.release(number));
        }
        if self.is_unused() && kernel::cpu::is_online(cpu.number()) {
            // The thread was the last one of a plan that has gone.
            cpu.requests.add(Request::Eject);
        }
    }

    /// Makes all remaining threads of a process leave the class.
    pub(crate) fn leave_process(&mut self, cpu: &Cpu, process: u32, reason: u16) {
        let row = self
            .threads
            .as_ref()
            .map_or(NO_ROW, |threads| threads.rows().row(process));
        // Bounded by the number of seats: each turn takes one out of the process's queue.
        while let Some(number) = self
            .threads
            .as_ref()
            .map(|threads| threads.active(row))
            .filter(|number| *number != NO_SEAT)
        {
            self.leave(cpu, number, reason);
            cpu.requests.add(Request::Eject);
        }
    }

    /// The active thread of `process` ended its task; returns the number of the next one.
    pub(crate) fn end_task(&mut self, cpu: &Cpu, process: u32, pid: i32) -> Option<u32> {
        let now_ns = self.clock.now_ns();
        self.timer.note_task_end();
        self.memory.begin_period();
        let next = self.with_node(cpu, pid, |node, emitter| {
            node.end_task(process, now_ns, emitter)
        })?;
        if next.is_none() {
            self.show_memory();
        }
        next
    }

    /// Handles the end of tasks on other CPUs for which processes here may wait.
    pub(crate) fn look_elsewhere(&mut self, cpu: &Cpu) {
        self.with_node(cpu, 0, |node, emitter| node.look_elsewhere(emitter));
    }

    /// The active thread of `process` dies, and does not just exit.
    pub(crate) fn die(&mut self, process: u32) {
        if let Some(node) = &mut self.node {
            node.die(process);
        }
    }

    /// The last thread of `process` is gone.
    pub(crate) fn end_process(&mut self, cpu: &Cpu, process: u32, pid: i32) {
        let now_ns = self.clock.now_ns();
        self.with_node(cpu, pid, |node, emitter| {
            node.end_process(process, now_ns, emitter)
        });
        self.show_memory();
    }
}
