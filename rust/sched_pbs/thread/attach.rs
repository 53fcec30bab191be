// SPDX-License-Identifier: GPL-2.0

//! Entry of threads into the class.
//!
//! Entering is a change of policy, which takes process context. A thread has its seat before its
//! policy changes.

use super::{
    leave::{eject, give_up_seat, seat, LEAVE_CPUSET},
    park::new_stop_work,
};
use crate::{
    engine::members::LEAVE_SILENTLY,
    linux::{entity, sched_class},
    percpu::{cpu::Cpu, cpus},
    state::{rows::RowNumber, threads::StopWork, State},
};
use core::sync::atomic::{fence, Ordering};
use kernel::{bindings, prelude::*, sync::Arc, task::Task, task_work::TaskWork};

/// Reason why a thread was not attached.
pub(crate) enum AttachRefusal {
    /// No CPU's plan has the process.
    NoProcess,
    /// The process has a thread already, and not both are for one task.
    Occupied,
    /// The process has ended all its tasks.
    Done,
    /// The thread is attached already.
    Attached,
    /// The thread never returns to user space: a kernel thread, or one that works for io_uring.
    Kthread,
    /// The thread is exiting.
    Exiting,
    /// The thread's cpuset does not have the CPU of that number.
    Cpuset(u32),
    /// An error in the kernel.
    Kernel(Error),
}

impl From<Error> for AttachRefusal {
    fn from(error: Error) -> Self {
        AttachRefusal::Kernel(error)
    }
}

/// Makes `task` a thread of the plan process with that id. If this is refused, nothing has changed.
///
/// A thread that attaches itself may wait long for its new CPU, which plan processes have:
/// therefore it moves there with no lock held, and the conditions are checked again afterwards.
pub(crate) fn attach(task: &Task, id: u32, one_task: bool) -> Result<(), AttachRefusal> {
    if task.is_kthread() || task.is_user_worker() {
        return Err(AttachRefusal::Kthread);
    }
    let cpu = cpu_of(id).ok_or(AttachRefusal::NoProcess)?;
    cpu.lock(|_, _, state| find_row(state, id, one_task))
        .unwrap_or(Err(AttachRefusal::NoProcess))?;
    if entity::seat_cpu(task).is_some() {
        return Err(AttachRefusal::Attached);
    }
    if entity::is_exiting(task) {
        return Err(AttachRefusal::Exiting);
    }
    if !task.cpuset_has(cpu.id())? {
        return Err(AttachRefusal::Cpuset(cpu.number()));
    }
    let before = task.affinity()?;
    // Freed outside the lock, whether it is used or not.
    let mut work = Some(new_stop_work()?);
    sched_class::bind_to_cpu(task, cpu.id())?;
    let entered = enter(task, cpu, id, one_task, &mut work);
    if entered.is_err() && task.is_bound_to(cpu.id()) {
        // This fails if another caller has attached the thread: then it is right where it is.
        let _ = sched_class::set_affinity(task, &before);
    }
    entered
}

/// The row of a process that accepts one more thread.
fn find_row(state: &State, id: u32, one_task: bool) -> Result<RowNumber, AttachRefusal> {
    let (Some(threads), Some(node)) = (&state.threads, &state.node) else {
        return Err(AttachRefusal::NoProcess);
    };
    let process = node.plan().find(id).ok_or(AttachRefusal::NoProcess)?;
    if node.process(process).is_some_and(|info| info.done) {
        return Err(AttachRefusal::Done);
    }
    let row = threads.rows().row(process);
    match threads.get(threads.active(row)) {
        Some(active) if !(active.one_task && one_task) => Err(AttachRefusal::Occupied),
        _ => Ok(row),
    }
}

/// Makes a thread that is bound to `cpu` take a seat there and enter the class.
fn enter(
    task: &Task,
    cpu: &'static Cpu,
    id: u32,
    one_task: bool,
    work: &mut Option<Arc<TaskWork<StopWork>>>,
) -> Result<(), AttachRefusal> {
    // The CPU does not go before the thread is in the class, which it then leaves by that.
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let _seats = cpu.seats.lock_killable()?;
    let taken = cpu.lock(|rq, cpu, state| {
        let row = find_row(state, id, one_task)?;
        let threads = state.threads.as_mut().ok_or(AttachRefusal::NoProcess)?;
        let number = threads.take(task.into(), row, one_task, work)?;
        if !entity::take_seat(rq, task, number) {
            // Not the last reference: the caller has one.
            drop(threads.release(number));
            return Err(AttachRefusal::Attached);
        }
        state.refresh_presence(row);
        state.settle(rq, cpu);
        Ok(())
    });
    taken.unwrap_or(Err(AttachRefusal::Kernel(ENODEV)))?;

    // An exiting thread sets its flag and then checks for a seat; here it is the other way round:
    // therefore one of the two sees the other. The same applies to a cpuset that shrinks.
    fence(Ordering::SeqCst);
    let refused = if !task.is_bound_to(cpu.id()) {
        // Its affinity was changed before it had its seat; from now on that is refused.
        Some(AttachRefusal::Kernel(EAGAIN))
    } else if entity::is_exiting(task) {
        Some(AttachRefusal::Exiting)
    } else {
        match task.cpuset_has(cpu.id()) {
            Ok(true) => None,
            Ok(false) => Some(AttachRefusal::Cpuset(cpu.number())),
            Err(error) => Some(AttachRefusal::Kernel(error)),
        }
    };
    if let Some(refused) = refused {
        give_up_seat(cpu, task);
        return Err(refused);
    }
    if let Err(error) = sched_class::set_policy(task, bindings::SCHED_PBS, 0) {
        give_up_seat(cpu, task);
        return Err(AttachRefusal::Kernel(error));
    }
    // It had to leave meanwhile, as it exits, as its plan goes, or as its cpuset shrinks.
    let leaving = seat(task, |seat| seat.leaving).unwrap_or(0);
    if leaving == 0 {
        return Ok(());
    }
    eject(cpu, task)?;
    Err(match leaving {
        LEAVE_SILENTLY => AttachRefusal::Exiting,
        LEAVE_CPUSET => AttachRefusal::Cpuset(cpu.number()),
        _ => AttachRefusal::NoProcess,
    })
}

/// The CPU whose plan has the process.
pub(crate) fn cpu_of(id: u32) -> Option<&'static Cpu> {
    // A process that has ended may stand in the plan of another CPU too.
    let has = |cpu: &Cpu, also_done| {
        cpu.lock(|_, _, state| {
            let node = state.node.as_ref()?;
            let info = node.process(node.plan().find(id)?)?;
            Some(also_done || !info.done)
        })
        .flatten()
            == Some(true)
    };
    cpus::all()
        .find(|cpu| has(cpu, false))
        .or_else(|| cpus::all().find(|cpu| has(cpu, true)))
}
