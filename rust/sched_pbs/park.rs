// SPDX-License-Identifier: GPL-2.0

//! Waiting is sleeping, at the return to user space.
//!
//! A plan process that has to wait is not left runnable and unpicked: it could hold a lock that
//! the whole machine needs. It is sent to the edge of user space by a task work, where it holds
//! nothing, and sleeps there until its process is granted the CPU. The sleep is interruptible, so
//! that signals, ptrace, the freezer and `kill` work as ever: a thread that has a signal to handle
//! is let through, and is sent to wait again if it reaches user space.

use super::{
    cpu::{Cpu, State},
    entity,
};
use kernel::{
    clock, current,
    prelude::*,
    sched_class::{self, RunQueue, RunQueueGuard, Sleep},
    sync::Arc,
    task::Task,
    task_work::TaskWork,
    task_work::TaskWorkCallback,
};

/// The task work that makes a thread wait.
pub(crate) struct Stop;

impl Stop {
    /// A task work for one thread. Sleeps.
    pub(crate) fn new() -> Result<Arc<TaskWork<Stop>>> {
        Arc::pin_init(TaskWork::new(Stop), GFP_KERNEL)
    }
}

impl TaskWorkCallback for Stop {
    fn run(_this: &Arc<TaskWork<Self>>) {
        let task = current!();
        // Each turn is one sleep; a wake-up that does not grant the CPU leads to another.
        loop {
            let mut rq = RunQueueGuard::lock_task(task);
            let step = entity::with_state(&mut rq, |rq, cpu, state| {
                let sleep = step(rq, cpu, state, task);
                (sleep, state.take_wake())
            });
            drop(rq);
            let Some((sleep, wake)) = step else { return };
            if let Some(next) = wake {
                sched_class::wake_up(&next);
            }
            match sleep {
                Some(sleep) => sleep.schedule(),
                None => return,
            }
        }
    }
}

/// Whether the current thread has to sleep; if so its state is set, so that a wake-up that comes
/// as soon as the lock is dropped is not lost.
fn step(rq: &mut RunQueue, cpu: &'static Cpu, state: &mut State, task: &Task) -> Option<Sleep> {
    let number = entity::seat_of(rq, task);
    state.charge(rq);
    state.sample_memory(rq);
    let seat = state.threads.as_mut()?.get_mut(number)?;
    if seat.leaving != 0 || !seat.entered {
        return None;
    }
    let process = seat.process;
    // From here on an idle slot may find it.
    seat.parked = true;
    seat.waking = false;
    let sleep = Sleep::interruptible();
    state.refresh_presence(process);
    state.settle(rq, cpu);
    let granted = state.is_granted(number);
    if granted || task.signal_pending() {
        let seat = state.threads.as_mut()?.get_mut(number)?;
        seat.parked = false;
        seat.waking = false;
        if granted {
            // This was to wake up the thread itself.
            drop(state.take_wake());
        } else {
            // The thread goes to handle its signal; the timer sends it here again.
            state.stop_later(rq, cpu, number);
        }
        return None;
    }
    state.told_to_wait(cpu, number, clock::monotonic_ns());
    // It is runnable, and first in line, until it sleeps.
    state.threads.as_mut()?.push_stopping(number);
    Some(sleep)
}
