// SPDX-License-Identifier: GPL-2.0

//! The scheduling class: what the core scheduler calls.
//!
//! A thread is on the run queue for one of two reasons: its process is granted the CPU, or it has
//! to reach the edge of user space to wait there ([`super::park`]). So there is nothing to sort
//! here, and every callback is O(log processes) at most.

use super::{
    cpu::Cpu,
    entity,
    state::State,
    threads::{Parked, NO_SEAT},
};
use kernel::{
    bindings,
    prelude::*,
    sched_class::{self, QueueFlags, RunQueue, SchedClass},
    task::Task,
};

struct Pbs;

kernel::declare_sched_class!(pbs_sched_class, "__pbs_sched_class", Pbs);

/// Calls `function` with the state, and leaves to the CPU what can't be done under the lock.
fn update<R>(
    rq: &mut RunQueue,
    function: impl FnOnce(&mut RunQueue, &'static Cpu, &mut State) -> R,
) -> Option<R> {
    entity::with_state(rq, |rq, cpu, state| {
        let result = function(rq, cpu, state);
        state.hand_over(cpu);
        result
    })
}

#[vtable]
impl SchedClass for Pbs {
    fn enqueue_task(rq: &mut RunQueue, task: &Task, flags: QueueFlags) {
        entity::inc_running(rq);
        let number = entity::seat_of(rq, task);
        update(rq, |rq, cpu, state| {
            let Some(seat) = state.threads.as_mut().and_then(|t| t.get_mut(number)) else {
                return;
            };
            seat.queued = true;
            let (row, enters) = (seat.row, !seat.entered);
            // It is on its way into the class, by a change of policy, or out of it.
            let runs_freely = seat.leaving != 0 || (enters && !flags.is_sleep_or_wakeup());
            // To the node a thread that waits at the edge of user space could run all the time.
            if flags.is_sleep_or_wakeup() && !seat.is_parked() {
                if enters {
                    // It was attached while it slept.
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
            } else if !state.is_granted(number) {
                if flags.is_sleep_or_wakeup() {
                    state.stop_soon(rq, cpu, number);
                } else {
                    state.stop(number);
                }
            }
            state.preempt(rq);
        });
    }

    fn dequeue_task(rq: &mut RunQueue, task: &Task, flags: QueueFlags) -> bool {
        let number = entity::seat_of(rq, task);
        let current = rq.is_current(task);
        if current {
            rq.update_current();
        }
        entity::dec_running(rq);
        update(rq, |rq, cpu, state| {
            if current {
                state.charge_switch(rq);
            }
            let Some(threads) = &mut state.threads else {
                return;
            };
            threads.remove_waiting(number);
            let Some(seat) = threads.get_mut(number) else {
                return;
            };
            seat.queued = false;
            if flags.is_sleep_or_wakeup() {
                // Its way ends here; when it wakes up another one begins.
                seat.stopping = false;
                if seat.is_parked() {
                    seat.parked = Parked::Asleep;
                    return;
                }
                let row = seat.row;
                if state.refresh_presence(row) {
                    state.settle(rq, cpu);
                }
            }
        });
        true
    }

    fn wakeup_preempt(rq: &mut RunQueue, _task: &Task) {
        update(rq, |rq, _, state| state.preempt(rq));
    }

    fn balance(rq: &mut RunQueue) -> bool {
        entity::nr_running(rq) != 0
            && entity::with_state(rq, |_, _, state| state.pick().is_some()) == Some(true)
    }

    fn pick_task(rq: &mut RunQueue) -> Option<&Task> {
        if entity::nr_running(rq) == 0 {
            return None;
        }
        entity::with_state(rq, |_, _, state| state.pick())?
    }

    fn put_prev_task(rq: &mut RunQueue, task: &Task, next: Option<&Task>) {
        if rq.is_current(task) {
            rq.update_current();
        }
        let class_follows = next.is_some_and(|next| entity::in_class(rq, next));
        update(rq, |rq, cpu, state| {
            state.end_running(rq, cpu, class_follows);
        });
    }

    fn set_next_task(rq: &mut RunQueue, task: &Task) {
        rq.begin_execution(task);
        let seat = entity::seat_of(rq, task);
        update(rq, |rq, cpu, state| state.begin_running(rq, cpu, seat));
    }

    fn task_tick(rq: &mut RunQueue, _task: &Task) {
        rq.update_current();
        update(rq, |rq, cpu, state| state.tick(rq, cpu));
    }

    fn switched_from(rq: &mut RunQueue, task: &Task) {
        let number = entity::seat_of(rq, task);
        if number == NO_SEAT {
            // It never entered; `sched_pbs_left` takes its seat on another CPU.
            return;
        }
        let boosted = entity::has_policy(task);
        let run_time_ns = entity::run_time_ns(rq, task);
        update(rq, |rq, cpu, state| {
            let Some(seat) = state.threads.as_mut().and_then(|t| t.get_mut(number)) else {
                return;
            };
            if boosted {
                let row = seat.row;
                // A waiter of a higher class runs it for a while; its process still has it.
                seat.boosted_at_ns = Some(run_time_ns);
                let parked = seat.is_parked();
                state.refresh_presence(row);
                state.settle(rq, cpu);
                if parked {
                    state.wake_boosted(cpu, number);
                }
            } else {
                state.leave(cpu, number, bindings::pbs_eject_PBS_EJECT_POLICY as u16);
                if let Some(threads) = &mut state.threads {
                    // Not the last reference: who changes the policy has one.
                    drop(threads.release(number));
                }
                entity::set_seat(rq, task, NO_SEAT);
                state.settle(rq, cpu);
            }
            if !rq.is_local() && rq.is_current(task) {
                state.lose_count();
            }
        });
    }

    fn switched_to(rq: &mut RunQueue, task: &Task) {
        let number = entity::seat_of(rq, task);
        let queued = sched_class::is_queued(rq, task);
        let run_time_ns = entity::run_time_ns(rq, task);
        update(rq, |rq, cpu, state| {
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
                // The other class did not count; its run time at the node's rate is what is known.
                let boost_ns = run_time_ns.saturating_sub(at_ns);
                let insns = node.rate().to_insns(boost_ns);
                node.charge(process, insns);
            }
            if enters {
                state.enter(cpu, number);
            }
            state.refresh_presence(row);
            state.settle(rq, cpu);
            if queued && !state.is_granted(number) {
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

    fn update_curr(rq: &mut RunQueue) {
        rq.update_current();
    }
}
