// SPDX-License-Identifier: GPL-2.0

//! End of tasks and exit of threads.

use super::{
    leave::leave_class,
    park::{self, NextStep, WaitingPlace},
};
use crate::{
    engine::{lock::finish, members::LEAVE_SILENTLY},
    linux::{entity, sched_class::RunQueueGuard},
};
use core::sync::atomic::{fence, Ordering};
use kernel::{bindings, task::Task};

/// Result of the end of the current thread's task.
pub(crate) struct TaskEnded {
    /// The next task of its process; `None`: that was the last.
    pub(crate) next: Option<u32>,
}

/// Reason why the current thread can't end its task.
pub(crate) enum NotEnded {
    /// The thread isn't attached.
    NotAttached,
    /// Another thread of its process has its turn.
    NotActive,
    /// The current task of the thread is this one.
    Other(u32),
}

/// Ends the current thread's task.
///
/// This records the end, and if the thread has to wait it waits right here. A signal ends that
/// wait, and the system call succeeds all the same: it must not be restarted and end the next task.
/// The thread then waits on its way to user space.
pub(crate) fn end_task(task: &Task, expected: Option<u32>) -> Result<TaskEnded, NotEnded> {
    let (next, step) = finish(RunQueueGuard::lock_local(), |rq, cpu, state| {
        let number = entity::seat_of(rq, task);
        state.charge(rq);
        state.sample_memory(rq, cpu);
        let threads = state.threads.as_ref().ok_or(NotEnded::NotAttached)?;
        let Some(process) = threads.process_if_active(number) else {
            let attached = threads.get(number).is_some_and(|seat| seat.leaving == 0);
            return Err(if attached && threads.lost(number).is_none() {
                NotEnded::NotActive
            } else {
                NotEnded::NotAttached
            });
        };
        let info = state.node.as_ref().and_then(|node| node.process(process));
        if let (Some(expected), Some(info)) = (expected, info) {
            if expected != info.task {
                return Err(NotEnded::Other(info.task));
            }
        }
        let next = state.end_task(cpu, process, task.pid());
        if next.is_none() {
            state.leave(cpu, number, LEAVE_SILENTLY);
            state.leave_process(cpu, process, bindings::pbs_eject_PBS_EJECT_PLAN as u16);
            state.settle(rq, cpu);
            // The plan has no more tasks for it: it continues as a normal thread.
            return Ok((next, NextStep::Leave));
        }
        Ok((
            next,
            park::settle(rq, cpu, state, task, number, WaitingPlace::SystemCall),
        ))
    })
    .unwrap_or(Err(NotEnded::NotAttached))?;
    park::wait(task, step, WaitingPlace::SystemCall);
    Ok(TaskEnded { next })
}

/// Called by every exiting thread, before its memory map goes.
#[no_mangle]
extern "C" fn sched_pbs_exit(task: *mut bindings::task_struct) {
    // SAFETY: The caller is the thread itself: therefore it is valid during the call.
    let task = unsafe { Task::from_raw(task) };
    // Orders the check for a seat after the thread's exiting flag, see `attach`.
    fence(Ordering::SeqCst);
    if entity::seat_cpu(task).is_none() {
        return;
    }
    finish(RunQueueGuard::lock_local(), |rq, cpu, state| {
        state.charge(rq);
        state.sample_memory(rq, cpu);
        let number = entity::seat_of(rq, task);
        let Some(threads) = &state.threads else {
            return;
        };
        let Some(seat) = threads.get(number) else {
            return;
        };
        let one_task = seat.one_task;
        if let Some(process) = threads.process_if_active(number) {
            if entity::is_killed(task) {
                state.die(process);
            }
            let next = if one_task {
                state.end_task(cpu, process, task.pid())
            } else {
                state.end_process(cpu, process, task.pid());
                None
            };
            state.leave(cpu, number, LEAVE_SILENTLY);
            if next.is_none() {
                state.leave_process(cpu, process, bindings::pbs_eject_PBS_EJECT_PLAN as u16);
            }
        } else {
            state.leave(cpu, number, LEAVE_SILENTLY);
        }
        state.settle(rq, cpu);
    });
    if entity::has_policy(task) {
        leave_class(task);
    }
    // If it has a seat but not the policy, the caller that attaches it gives the seat up again.
}
