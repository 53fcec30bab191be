// SPDX-License-Identifier: GPL-2.0

//! The scheduling class: the callbacks of the core scheduler.
//!
//! A thread is on the run queue for one of two reasons: its process is granted the CPU, or it has
//! to reach the edge of user space to wait there ([`crate::thread::park`]). Therefore there is
//! nothing to sort here, and every callback is O(log processes) at most.

use super::lock::wake_granted;
use crate::{
    linux::{
        entity,
        sched_class::{self, Dequeue, Enqueue, RunQueue, SchedClass},
        table::Pbs,
    },
    percpu::{access::with_state, cpu::Cpu},
    state::{
        threads::{Parked, SeatNumber, NO_SEAT},
        State,
    },
};
use core::num::NonZeroU64;
use kernel::{bindings, prelude::*, task::Task};

/// Calls `function` with the state, wakes up the thread that is granted the CPU by that, and leaves
/// to the CPU the work that can't be done under the lock. The core has updated the run queue's
/// clock.
fn update<R>(
    mut rq: Pin<&mut RunQueue>,
    function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
) -> Option<R> {
    let (result, cpu, wake) = with_state(rq.as_mut(), |rq, cpu, state| {
        let result = function(rq, cpu, state);
        (result, cpu, state.take_wake(rq))
    })?;
    if wake_granted(rq, wake).is_some() {
        cpu.requests.kick();
    }
    Some(result)
}

/// A thread becomes runnable; `wakes`: it has slept.
fn enqueue(rq: &RunQueue, cpu: &'static Cpu, state: &mut State, number: SeatNumber, wakes: bool) {
    let granted = state.occupancy.is_granted(number);
    let Some(seat) = state.seat_mut(number) else {
        return;
    };
    seat.queued = true;
    if wakes && granted && seat.goes_on() {
        // All that this changes was settled when the thread was granted the CPU.
        return state.preempt(rq);
    }
    let (row, enters) = (seat.row, !seat.entered);
    // The thread is on its way into the class, by a change of policy, or out of it.
    let runs_freely = seat.leaving != 0 || (enters && !wakes);
    // For the node, a thread that waits at the edge of user space could run all the time.
    if wakes && !seat.is_parked() {
        if enters {
            // The thread was attached while it slept.
            state.enter(cpu, number);
        }
        if state.refresh_presence(row) {
            state.settle(rq, cpu);
        }
    }
    if runs_freely {
        if let Some(threads) = &mut state.threads {
            threads.push_stopping(number);
        }
    } else if !state.occupancy.is_granted(number) {
        if wakes {
            return state.stop_soon(rq, cpu, number);
        }
        state.stop(number);
    }
    state.preempt(rq);
}

// SAFETY: Each picked seat is `queued`, which `enqueue_task` alone sets, or one of the stopping or
// deferred, which are `queued` too; `dequeue_task` removes a seat from all these.
unsafe impl SchedClass for Pbs {
    fn enqueue_task(rq: Pin<&mut RunQueue>, task: &Task, why: Enqueue) {
        let delayed = why == Enqueue::WakesUpHere;
        // SAFETY: The task is being enqueued.
        unsafe { entity::inc_running(&rq) };
        let number = entity::seat_of(&rq, task);
        update(rq, |rq, cpu, state| {
            if let Some(threads) = state.threads.as_mut().filter(|_| delayed) {
                threads.forget_delay(number);
            }
            enqueue(rq, cpu, state, number, why != Enqueue::Changed);
            if delayed && rq.is_current(task) {
                // It was about to leave the CPU, whose lock was dropped to look for other tasks. If
                // it stays, the core makes no call for that.
                state.begin_running(rq, cpu, number);
            }
        });
    }

    fn dequeue_task(rq: Pin<&mut RunQueue>, task: &Task, why: Dequeue) -> bool {
        let number = entity::seat_of(&rq, task);
        let current = rq.is_current(task);
        if current {
            rq.update_current();
        }
        // SAFETY: The task is being dequeued.
        unsafe { entity::dec_running(&rq) };
        let stays = update(rq, |rq, cpu, state| {
            if current {
                state.charge_switch(rq, cpu);
            }
            let clock_ns = rq.clock_ns();
            let threads = state.threads.as_mut()?;
            threads.remove_waiting(number);
            let seat = threads.get_mut(number)?;
            seat.queued = false;
            if why == Dequeue::Changed {
                return None;
            }
            // A thread that leaves the class need not stay.
            let stays = why == Dequeue::SleepsHere && seat.leaving == 0;
            let (row, parked, stopping) = (seat.row, seat.is_parked(), seat.stopping);
            if parked {
                seat.parked = Parked::Asleep;
            }
            if stays {
                threads.note_delay(number, clock_ns);
            }
            if stopping {
                // The way of the thread ends here; when it wakes up another one begins.
                state.end_way(cpu, number);
            }
            if !parked && state.refresh_presence(row) {
                state.settle(rq, cpu);
            }
            Some(stays)
        });
        stays.flatten() == Some(true)
    }

    fn dequeue_sleeping(rq: Pin<&mut RunQueue>, task: &Task) {
        let number = entity::seat_of(&rq, task);
        update(rq, |_, _, state| {
            if let Some(threads) = &mut state.threads {
                threads.forget_delay(number);
            }
        });
    }

    fn wakeup_preempt(_rq: Pin<&mut RunQueue>, _task: &Task) {
        // Enqueueing has checked that.
    }

    fn balance(rq: Pin<&mut RunQueue>) -> bool {
        entity::nr_running(&rq) != 0
            && with_state(rq, |rq, cpu, state| {
                state.look_at_interrupted(rq);
                state.meet_kernel_thread(rq, cpu);
                state.choose(rq) != NO_SEAT
            }) == Some(true)
    }

    fn pick_task(rq: Pin<&mut RunQueue>) -> Option<&Task> {
        if entity::nr_running(&rq) == 0 {
            return None;
        }
        with_state(rq, |rq, cpu, state| {
            state.meet_kernel_thread(rq, cpu);
            state.pick(rq)
        })?
    }

    fn put_prev_task(rq: Pin<&mut RunQueue>, task: &Task, next: Option<&Task>) {
        if rq.is_current(task) {
            rq.update_current();
        }
        let class_follows = next.is_some_and(|next| entity::in_class(&rq, next));
        with_state(rq, |rq, cpu, state| {
            state.end_running(rq, cpu, class_follows);
        });
    }

    fn set_next_task(rq: Pin<&mut RunQueue>, task: &Task) {
        let seat = entity::seat_of(&rq, task);
        with_state(rq, |rq, cpu, state| state.begin_running(rq, cpu, seat));
    }

    fn task_tick(rq: Pin<&mut RunQueue>, _task: &Task) {
        rq.update_current();
        update(rq, |rq, cpu, state| state.tick(rq, cpu));
    }

    fn switched_from(rq: Pin<&mut RunQueue>, task: &Task) {
        let number = entity::seat_of(&rq, task);
        if number == NO_SEAT {
            // The thread never entered; `sched_pbs_left` takes its seat on another CPU.
            return;
        }
        let boosted = entity::has_policy(task);
        let run_time_ns = entity::run_time_ns(&rq, task);
        update(rq, |rq, cpu, state| {
            let Some(seat) = state.threads.as_mut().and_then(|t| t.get_mut(number)) else {
                return;
            };
            if boosted {
                let row = seat.row;
                // A waiter of a higher class runs it for a while; its process still has it.
                seat.boosted_at_ns = NonZeroU64::new(run_time_ns.max(1));
                // If the thread waits, it is woken up below, and does not wait any more.
                let parked = seat.is_parked();
                seat.parked = Parked::No;
                state.refresh_presence(row);
                state.settle(rq, cpu);
                if parked {
                    state.wake_boosted(cpu, number);
                }
            } else {
                state.leave(cpu, number, bindings::pbs_eject_PBS_EJECT_POLICY as u16);
                // The caller that changes the policy has a reference.
                state.release(cpu, number);
                entity::clear_seat(rq, task);
                state.settle(rq, cpu);
            }
            if !rq.is_local() && rq.is_current(task) {
                state.reading.lose();
            }
        });
    }

    fn switched_to(mut rq: Pin<&mut RunQueue>, task: &Task) {
        let number = entity::seat_of(&rq, task);
        let queued = sched_class::is_queued(&rq, task);
        let run_time_ns = entity::run_time_ns(&rq, task);
        update(rq.as_mut(), |rq, cpu, state| {
            let Some(seat) = state.threads.as_mut().and_then(|t| t.get_mut(number)) else {
                return;
            };
            let row = seat.row;
            let boosted_at_ns = seat.boosted_at_ns.take();
            let enters = !seat.entered;
            let active = state
                .threads
                .as_ref()
                .and_then(|t| t.process_if_active(number));
            if let (Some(process), Some(at_ns), Some(node)) =
                (active, boosted_at_ns, &mut state.node)
            {
                // The other class did not count; only the run time at the process's rate is known.
                let boost_ns = run_time_ns.saturating_sub(at_ns.get());
                let insns = node.rate_of(process).to_insns(boost_ns);
                node.charge(process, insns);
            }
            if enters {
                state.enter(cpu, number);
            }
            state.refresh_presence(row);
            state.settle(rq, cpu);
            if queued && !state.occupancy.is_granted(number) {
                state.stop(number);
            }
            state.preempt(rq);
        });
        // The fair server chooses among fair tasks only until it is asked again: without this, a
        // task that enters the class in its time starves them when it runs out.
        if rq.has_deadline_waiter() {
            rq.reschedule();
        }
    }
}
