// SPDX-License-Identifier: GPL-2.0

//! Waiting of threads: they sleep at the return to user space.
//!
//! A plan process that has to wait is not left runnable and unpicked: it could hold a lock that the
//! whole machine needs. It sleeps where it holds nothing, until its process is granted the CPU.
//!
//! A thread that is interrupted in user space goes to sleep by the `schedule()` that follows
//! (`State::park_interrupted`). All other threads arrive here: by a task work at the edge of user
//! space, or at the end of a system call that may wait. The sleep is interruptible: this way
//! signals, ptrace, the freezer and `kill` work as ever. A thread that has a signal to handle is
//! let through, and is sent to wait again if it reaches user space.

use super::leave;
use crate::{
    engine::lock::finish,
    linux::{
        entity,
        sched_class::{RunQueue, RunQueueGuard, Sleep},
        storage::CHARGED,
    },
    percpu::cpu::Cpu,
    state::{
        threads::{Parked, SeatNumber, StopWork},
        State,
    },
};
use kernel::{
    current,
    prelude::*,
    sync::Arc,
    task::Task,
    task_work::{self, TaskWork, TaskWorkCallback},
};

/// The task work that makes one thread wait. Sleeps.
pub(crate) fn new_stop_work() -> Result<Arc<TaskWork<StopWork>>> {
    Arc::pin_init(TaskWork::new(StopWork), CHARGED)
}

impl TaskWorkCallback for StopWork {
    fn run(_this: &Arc<TaskWork<Self>>) {
        let task = current!();
        if entity::is_exiting(task) {
            // On its way to where it leaves the class, and not at the edge of user space.
            return;
        }
        let step = finish(RunQueueGuard::lock_local(), |rq, cpu, state| {
            state.charge(rq);
            state.sample_memory(rq, cpu);
            settle(
                rq,
                cpu,
                state,
                task,
                entity::seat_of(rq, task),
                WaitingPlace::Edge,
            )
        });
        wait(task, step.unwrap_or(NextStep::GoOn), WaitingPlace::Edge);
    }
}

/// Place of the current thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingPlace {
    /// The edge of user space, in its task work.
    Edge,
    /// A system call that may wait, and has done its work.
    SystemCall,
}

/// Next step of the current thread where it could wait.
pub(crate) enum NextStep {
    /// The thread continues to user space.
    GoOn,
    /// The thread leaves the class first.
    Leave,
    /// The thread waits. Its state is set already: this way a wake-up is not lost that arrives as
    /// soon as the lock is dropped.
    Sleep(Sleep),
}

/// Waits, as decided by [`settle`], until the current thread may continue to user space or has a
/// signal to handle.
pub(crate) fn wait(task: &Task, mut step: NextStep, place: WaitingPlace) {
    // Each turn is one sleep; a wake-up that does not grant the CPU mostly leads to another.
    loop {
        match step {
            NextStep::Sleep(sleep) => {
                sleep.schedule();
                if entity::is_let_on(task) {
                    return;
                }
            }
            NextStep::Leave => return leave::leave_as_told(task),
            NextStep::GoOn => return,
        }
        let next = finish(RunQueueGuard::lock_local(), |rq, cpu, state| {
            let number = entity::seat_of(rq, task);
            if was_let_on(state, number) {
                return NextStep::GoOn;
            }
            // A signal that arrived on the way is handled at the edge.
            settle(rq, cpu, state, task, number, place)
        });
        step = next.unwrap_or(NextStep::GoOn);
    }
}

/// Whether a thread that was woken up where it waited may leave that place: it has got the CPU
/// since, and if it may not run, it was sent to come back.
fn was_let_on(state: &mut State, number: SeatNumber) -> bool {
    state
        .seat_mut(number)
        .map_or(true, |seat| !seat.is_parked() && seat.leaving == 0)
}

/// Whether the current thread must continue first: to handle a signal, to do work that others have
/// left for it at the edge of user space, or to end its execve(2), in which task works are done too
/// and others may wait for it.
fn must_go_on(task: &Task, place: WaitingPlace) -> bool {
    task.signal_pending()
        || (place == WaitingPlace::SystemCall && task_work::is_pending(task))
        || entity::in_execve(task)
}

/// Settles whether the current thread, which holds nothing here and was charged, waits here.
pub(crate) fn settle(
    rq: &RunQueue,
    cpu: &'static Cpu,
    state: &mut State,
    task: &Task,
    number: SeatNumber,
    place: WaitingPlace,
) -> NextStep {
    let Some(seat) = state.seat_mut(number) else {
        return NextStep::GoOn;
    };
    if seat.leaving != 0 {
        seat.parked = Parked::No;
        return NextStep::Leave;
    }
    if !seat.entered || seat.boosted_at_ns.is_some() {
        // The booster waits for a resource that it holds in user space; it is sent to wait again
        // when the boost ends.
        seat.parked = Parked::No;
        state.settle(rq, cpu);
        return NextStep::GoOn;
    }
    let row = seat.row;
    // From here on an idle slot may find it.
    seat.parked = Parked::Going;
    let sleep = Sleep::interruptible();
    state.refresh_presence(row);
    state.settle(rq, cpu);
    let granted = state.occupancy.is_granted(number);
    if granted || must_go_on(task, place) {
        if let Some(seat) = state.seat_mut(number) {
            seat.parked = Parked::No;
        }
        if granted {
            // This was to wake up the thread itself.
            state.occupancy.forget_wake();
        } else if place == WaitingPlace::SystemCall {
            // The thread waits at the edge, behind its other work there.
            state.stop(number);
            state.begin_turn(rq);
        } else {
            // The timer sends it here again.
            state.begin_turn(rq);
            state.stop_later(rq, cpu, number);
        }
        return NextStep::GoOn;
    }
    entity::set_let_on(rq, task, false);
    state.end_way(cpu, number);
    // The thread is runnable, and first in line, until it sleeps.
    if let Some(threads) = &mut state.threads {
        threads.push_stopping(number);
    }
    NextStep::Sleep(sleep)
}
