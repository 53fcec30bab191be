// SPDX-License-Identifier: GPL-2.0

//! Begin and end of the time in which a thread has the CPU.

use crate::{
    linux::{entity, sched_class::RunQueue},
    pbs_core::Origin,
    percpu::cpu::Cpu,
    state::{
        threads::{Parked, SeatNumber},
        State,
    },
};

impl State {
    /// A thread of the class gets the CPU.
    pub(crate) fn begin_running(&mut self, rq: &RunQueue, cpu: &Cpu, seat: SeatNumber) {
        // A thread of the kernel may have had the CPU out of turn.
        self.end_turn();
        if !self.occupancy.begin_running(seat) {
            rq.update_real_time_load(false);
        }
        self.reading.begin_running();
        self.looks.begin(rq);
        let armed = self.timer.begin_running(seat);
        let armed = armed && seat == self.occupancy.granted() && rq.is_local();
        if !armed {
            self.timer.forget_prediction();
        }
        if let Some(seat) = self.seat_mut(seat) {
            // A sleeping thread may be put off the CPU and on again, as a property of it is
            // changed.
            if seat.parked == Parked::Asleep && seat.queued {
                seat.parked = Parked::No;
                if let Some(task) = seat.task.as_ref().filter(|_| seat.leaving == 0) {
                    entity::set_let_on(rq, task, true);
                }
            }
        }
        if seat != self.occupancy.granted() {
            if !self.let_through_again(seat) {
                self.send_to_wait(seat);
            }
            self.begin_turn(rq);
        }
        if rq.is_local() {
            self.reading.begin(rq, &mut self.insn_clock);
            if !armed {
                self.arm(rq, cpu, Origin::Call);
            }
        } else {
            // Neither can the counter be read from here, nor the timer be armed.
            cpu.requests.kick();
        }
    }

    /// The running thread has left the CPU; `class_follows`: a thread of the class follows it.
    pub(crate) fn end_running(&mut self, rq: &RunQueue, cpu: &Cpu, class_follows: bool) {
        self.charge_switch(rq, cpu);
        self.end_turn();
        self.occupancy.end_running(class_follows);
        if rq.is_local() {
            self.reading.end(class_follows);
        }
        if !class_follows {
            rq.update_real_time_load(true);
            self.begin_turn(rq);
            self.arm(rq, cpu, Origin::Call);
        }
    }
}
