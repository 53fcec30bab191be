// SPDX-License-Identifier: GPL-2.0

//! Waiting is sleeping, at the return to user space.
//!
//! A plan process that has to wait is not left runnable and unpicked: it could hold a lock that
//! the whole machine needs. It is sent to the edge of user space by a task work, where it holds
//! nothing, and sleeps there until its process is granted the CPU. The sleep is interruptible, so
//! that signals, ptrace, the freezer and `kill` work as ever: a thread that has a signal to handle
//! is let through, and is sent to wait again if it reaches user space.

use super::{attach, cpu::Cpu, entity, state::State};
use kernel::{
    current,
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
                let step = step(rq, cpu, state, task);
                (step, state.take_wake())
            });
            drop(rq);
            let Some((step, wake)) = step else { return };
            if let Some(next) = wake {
                sched_class::wake_up(&next);
            }
            match step {
                Step::Sleep(sleep) => sleep.schedule(),
                Step::Leave => return attach::leave_class(task),
                Step::GoOn => return,
            }
        }
    }
}

/// What the current thread does at the edge of user space.
enum Step {
    /// It goes on to user space.
    GoOn,
    /// It leaves the class first.
    Leave,
    /// It waits. Its state is set already, so that a wake-up is not lost that comes as soon as the
    /// lock is dropped.
    Sleep(Sleep),
}

/// Decides that.
fn step(rq: &mut RunQueue, cpu: &'static Cpu, state: &mut State, task: &Task) -> Step {
    let number = entity::seat_of(rq, task);
    state.charge(rq);
    state.sample_memory(rq);
    let Some(seat) = state.seat_mut(number) else {
        return Step::GoOn;
    };
    if seat.leaving != 0 {
        seat.parked = false;
        return Step::Leave;
    }
    if !seat.entered || seat.boosted_at_ns.is_some() {
        // Whoever boosts it waits for what it holds in user space; it is told to wait again when
        // the boost ends.
        seat.parked = false;
        return Step::GoOn;
    }
    let row = seat.row;
    // From here on an idle slot may find it.
    seat.parked = true;
    let sleep = Sleep::interruptible();
    state.refresh_presence(row);
    state.settle(rq, cpu);
    let granted = state.is_granted(number);
    if granted || task.signal_pending() {
        if let Some(seat) = state.seat_mut(number) {
            seat.parked = false;
        }
        if granted {
            // This was to wake up the thread itself.
            drop(state.take_wake());
        } else {
            // The thread goes to handle its signal; the timer sends it here again.
            state.stop_later(rq, cpu, number);
        }
        return Step::GoOn;
    }
    state.told_to_wait(cpu, number);
    // It is runnable, and first in line, until it sleeps.
    if let Some(threads) = &mut state.threads {
        threads.push_stopping(number);
    }
    Step::Sleep(sleep)
}
