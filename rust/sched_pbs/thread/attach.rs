// SPDX-License-Identifier: GPL-2.0

//! Threads enter the class and leave it.
//!
//! Entering and leaving is changing the policy, which takes process context. A thread has its seat
//! before its policy changes, and gives it up when the class is told that it has left.

use crate::{
    engine::members::LEAVE_SILENTLY,
    linux::{
        entity,
        sched_class::{self, RunQueueGuard},
    },
    percpu::cpu::{finish, Cpu},
    plans::{
        change,
        global::{pbs, Pbs},
    },
    state::{
        rows::Row,
        threads::{Seat, SeatNumber, Stop, MAX_THREADS, NO_SEAT},
        State,
    },
    thread::park::{self, Place, Step},
};
use core::sync::atomic::{fence, Ordering};
use kernel::{
    bindings,
    prelude::*,
    sync::Arc,
    task::Task,
    task_ext::{give_way, may_log},
    task_work::TaskWork,
};

/// Why a thread was not attached.
pub(crate) enum Refused {
    /// No CPU's plan has the process.
    NoProcess,
    /// The process has a thread already, and not both are for one task.
    Occupied,
    /// The process has ended all its tasks.
    Done,
    /// The thread is attached already.
    Attached,
    /// The thread never comes to user space: a kernel thread, or one that works for io_uring.
    Kthread,
    /// The thread is exiting.
    Exiting,
    /// The thread's cpuset does not have the CPU of that number.
    Cpuset(u32),
    /// Something in the kernel failed.
    Kernel(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::Kernel(error)
    }
}

/// Makes `task` a thread of the plan process with that id. If it is refused, nothing has changed.
///
/// A thread that attaches itself may wait long for its new CPU, which plan processes have: so it
/// goes there with no lock held, and what was found before is looked at again.
pub(crate) fn attach(task: &Task, id: u32, one_task: bool) -> Result<(), Refused> {
    if task.is_kthread() || task.is_user_worker() {
        return Err(Refused::Kthread);
    }
    let pbs = pbs().ok_or(Refused::Kernel(ENODEV))?;
    let cpu = cpu_of(pbs, id).ok_or(Refused::NoProcess)?;
    cpu.lock(|_, _, state| find_row(state, id, one_task))
        .unwrap_or(Err(Refused::NoProcess))?;
    if entity::seat_cpu(task).is_some() {
        return Err(Refused::Attached);
    }
    if entity::is_exiting(task) {
        return Err(Refused::Exiting);
    }
    if !task.cpuset_has(cpu.id())? {
        return Err(Refused::Cpuset(cpu.number()));
    }
    let before = task.affinity()?;
    // Freed outside the lock, whether it is used or not.
    let mut work = Some(Stop::new()?);
    sched_class::bind_to_cpu(task, cpu.id())?;
    let entered = enter(task, cpu, id, one_task, &mut work);
    if entered.is_err() && task.is_bound_to(cpu.id()) {
        // It fails if the thread has been attached by somebody else, and is right where it is.
        let _ = sched_class::set_affinity(task, &before);
    }
    entered
}

/// The row of a process that takes one more thread.
fn find_row(state: &State, id: u32, one_task: bool) -> Result<Row, Refused> {
    let (Some(threads), Some(node)) = (&state.threads, &state.node) else {
        return Err(Refused::NoProcess);
    };
    let process = node.plan().find(id).ok_or(Refused::NoProcess)?;
    if node.process(process).is_some_and(|info| info.done) {
        return Err(Refused::Done);
    }
    let row = threads.rows().row(process);
    match threads.get(threads.active(row)) {
        Some(active) if !(active.one_task && one_task) => Err(Refused::Occupied),
        _ => Ok(row),
    }
}

/// A thread that is bound to `cpu` takes a seat there and enters the class.
fn enter(
    task: &Task,
    cpu: &'static Cpu,
    id: u32,
    one_task: bool,
    work: &mut Option<Arc<TaskWork<Stop>>>,
) -> Result<(), Refused> {
    // The CPU does not go before the thread is in the class, and so leaves it by that.
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let _seats = cpu.seats.lock_killable()?;
    let taken = cpu.lock(|rq, cpu, state| {
        let row = find_row(state, id, one_task)?;
        let threads = state.threads.as_mut().ok_or(Refused::NoProcess)?;
        let number = threads.take(task.into(), row, one_task, work)?;
        if !entity::take_seat(rq, task, number) {
            // Not the last reference: the caller has one.
            drop(threads.release(number));
            return Err(Refused::Attached);
        }
        state.refresh_presence(row);
        state.settle(rq, cpu);
        Ok(())
    });
    taken.unwrap_or(Err(Refused::Kernel(ENODEV)))?;

    // An exiting thread sets its flag and then looks for a seat; here it is the other way round,
    // so one of the two sees the other. The same goes for a cpuset that shrinks.
    fence(Ordering::SeqCst);
    let refused = if !task.is_bound_to(cpu.id()) {
        // Its affinity was changed before it had its seat; from now on that is refused.
        Some(Refused::Kernel(EAGAIN))
    } else if entity::is_exiting(task) {
        Some(Refused::Exiting)
    } else {
        match task.cpuset_has(cpu.id()) {
            Ok(true) => None,
            Ok(false) => Some(Refused::Cpuset(cpu.number())),
            Err(error) => Some(Refused::Kernel(error)),
        }
    };
    if let Some(refused) = refused {
        give_up_seat(task);
        return Err(refused);
    }
    if let Err(error) = sched_class::set_policy(task, bindings::SCHED_PBS, 0) {
        give_up_seat(task);
        return Err(Refused::Kernel(error));
    }
    // It was told to leave meanwhile, as it exits, as its plan goes, or as its cpuset shrinks.
    let leaving = seat(task, |seat| seat.leaving).unwrap_or(0);
    if leaving == 0 {
        return Ok(());
    }
    eject(task)?;
    Err(match leaving {
        LEAVE_SILENTLY => Refused::Exiting,
        LEAVE_CPUSET => Refused::Cpuset(cpu.number()),
        _ => Refused::NoProcess,
    })
}

/// Why a thread leaves whose cpuset has lost its CPU.
const LEAVE_CPUSET: u16 = bindings::pbs_eject_PBS_EJECT_CPUSET as u16;

/// A cpuset that has lost the CPU of a thread's plan sends the thread out of that. Process context,
/// with the lock of all cpusets held: so the thread follows its cpuset only when it has left.
///
/// # Safety
///
/// `task` and `cpus` are valid.
#[no_mangle]
unsafe extern "C" fn sched_pbs_cpuset_changed(
    task: *mut bindings::task_struct,
    cpus: *const bindings::cpumask,
) {
    // SAFETY: The caller has a reference to the task.
    let task = unsafe { Task::from_raw(task) };
    let Some(cpu) = entity::seat_cpu(task).and_then(|cpu| pbs()?.cpu(cpu)) else {
        return;
    };
    // SAFETY: The caller's mask is valid, and has a place for each CPU.
    if unsafe { bindings::cpumask_has_cpu(cpus, cpu.number()) } {
        return;
    }
    cpu.lock(|rq, cpu, state| {
        let number = entity::seat_of(rq, task);
        if number == NO_SEAT {
            return;
        }
        // It may be the caller.
        state.charge(rq);
        state.leave(cpu, number, LEAVE_CPUSET);
        state.settle(rq, cpu);
        cpu.request_ejection();
    });
}

/// Calls `function` with the thread's seat, if it has one.
fn seat<R>(task: &Task, function: impl FnOnce(&Seat) -> R) -> Option<R> {
    let cpu = pbs()?.cpu(entity::seat_cpu(task)?)?;
    cpu.lock(|rq, _, state| {
        let seat = state.threads.as_ref()?.get(entity::seat_of(rq, task))?;
        Some(function(seat))
    })
    .flatten()
}

/// Takes the seat of a thread whose policy is another one, if it has one.
fn give_up_seat(task: &Task) {
    let Some(cpu) = entity::seat_cpu(task).and_then(|cpu| pbs()?.cpu(cpu)) else {
        return;
    };
    cpu.lock(|rq, cpu, state| {
        let number = entity::seat_of(rq, task);
        let Some(seat) = state.threads.as_ref().and_then(|t| t.get(number)) else {
            return;
        };
        let entered = seat.entered;
        if !entity::has_policy(task) {
            let policy = bindings::pbs_eject_PBS_EJECT_POLICY as u16;
            state.leave(cpu, number, if entered { policy } else { LEAVE_SILENTLY });
            state.release(cpu, number);
            entity::clear_seat(rq, task);
            state.settle(rq, cpu);
        }
    });
}

/// The CPU whose plan has the process.
pub(crate) fn cpu_of(pbs: &Pbs, id: u32) -> Option<&'static Cpu> {
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
    pbs.cpus()
        .find(|cpu| has(cpu, false))
        .or_else(|| pbs.cpus().find(|cpu| has(cpu, true)))
}

/// Takes `task` out of the class at somebody's wish; its process goes on without it.
pub(crate) fn detach(task: &Task) -> Result {
    let pbs = pbs().ok_or(ENODEV)?;
    let cpu = entity::seat_cpu(task)
        .and_then(|cpu| pbs.cpu(cpu))
        .ok_or(ESRCH)?;
    let _seats = cpu.seats.lock_killable()?;
    let attached = cpu.lock(|rq, cpu, state| {
        let number = entity::seat_of(rq, task);
        if number == NO_SEAT {
            return false;
        }
        // It may be the caller.
        state.charge(rq);
        state.leave(cpu, number, bindings::pbs_eject_PBS_EJECT_DETACHED as u16);
        state.settle(rq, cpu);
        true
    });
    if attached != Some(true) {
        return Err(ESRCH);
    }
    eject(task)
}

/// How a task of the current thread ended.
pub(crate) struct TaskEnded {
    /// The next task of its process; `None`: that was the last.
    pub(crate) next: Option<u32>,
}

/// Why the current thread can't end its task.
pub(crate) enum NotEnded {
    /// It isn't attached.
    NotAttached,
    /// Another thread of its process has its turn.
    NotActive,
    /// Its task is this one.
    Other(u32),
}

/// The current thread's task ends.
///
/// This records the end, and if the thread has to wait it waits right here. A signal ends that, and
/// the system call succeeds all the same: it must not be restarted and end the next task. The
/// thread then waits on its way to user space.
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
            // Nothing is left of the plan for it: it goes on as a normal thread.
            return Ok((next, Step::Leave));
        }
        Ok((
            next,
            park::settle(rq, cpu, state, task, number, Place::SystemCall),
        ))
    })
    .unwrap_or(Err(NotEnded::NotAttached))?;
    park::wait(task, step, Place::SystemCall);
    Ok(TaskEnded { next })
}

/// Called by every exiting thread, before its memory map goes.
#[no_mangle]
extern "C" fn sched_pbs_exit(task: *mut bindings::task_struct) {
    // SAFETY: The caller is the thread itself, so it is valid during the call.
    let task = unsafe { Task::from_raw(task) };
    // Orders the look for a seat after the thread's exiting flag, see `attach`.
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
    // If it has a seat but not the policy, who is attaching it gives the seat up again.
}

/// How many seats are looked at with the run queue locked.
const SEATS_A_LOCK: SeatNumber = 256;

/// Takes the threads that are to leave out of the class. Sleeps.
pub(crate) fn eject_leaving(cpu: &Cpu) {
    let _seats = cpu.seats.lock();
    // Once through the table, piece by piece: who is told to leave meanwhile in a seat that was
    // passed comes with a request of its own.
    let end = MAX_THREADS as SeatNumber + 1;
    let mut from = NO_SEAT;
    while from < end {
        let _ = give_way();
        let to = end.min(from + SEATS_A_LOCK);
        let found = change::with_locked(cpu, |_, _, state| {
            let threads = state.threads.as_ref()?;
            let (number, task) = threads.find_leaving(from..to)?;
            Some((number, task.clone(), threads.get(number)?.leaving))
        });
        let Some((number, task, reason)) = found.flatten() else {
            from = to;
            continue;
        };
        from = number + 1;
        if eject(&task).is_err() {
            pr_warn!(
                "thread {} could not be taken out of the class\n",
                task.pid()
            );
        } else {
            log_left(cpu, &task, reason);
            follow_cpuset(&task, reason);
        }
    }
}

/// Called when the policy of `task` was changed from `SCHED_PBS` to another, with no lock held.
///
/// [`switched_from`](sched_class::SchedClass::switched_from) has taken the seat of a thread
/// that the class was running. Here is who was not in the class at that moment: boosted by another
/// class, or attached and asleep on another CPU.
#[no_mangle]
extern "C" fn sched_pbs_left(task: *mut bindings::task_struct) {
    // SAFETY: The caller has a reference to the task.
    let task = unsafe { Task::from_raw(task) };
    give_up_seat(task);
    // If it waits at the edge of user space, it has nothing to wait for any more.
    sched_class::wake_up(task);
}

/// The current thread leaves the class, as it was told to, unless it has left it meanwhile: who
/// told it may have taken it out already, and it may have been attached again since.
pub(crate) fn leave_as_told(task: &Task) {
    let Some(cpu) = entity::seat_cpu(task).and_then(|cpu| pbs()?.cpu(cpu)) else {
        return;
    };
    let Ok(seats) = cpu.seats.lock_killable() else {
        // It exits, and leaves the class by that.
        return;
    };
    let reason = seat(task, |seat| seat.leaving).unwrap_or(0);
    if reason != 0 {
        leave_class(task);
    }
    drop(seats);
    if reason != 0 {
        log_left(cpu, task, reason);
    }
    follow_cpuset(task, reason);
}

/// Tells an operator that a thread had to leave its plan.
///
/// There is no line for one that is done, nor for one of which somebody wanted just this: by
/// `PBS_IOC_DETACH` or another policy.
fn log_left(cpu: &Cpu, task: &Task, reason: u16) {
    let why = match u32::from(reason) {
        bindings::pbs_eject_PBS_EJECT_PLAN => "the plan has its process no longer",
        bindings::pbs_eject_PBS_EJECT_DROPPED => "the plan was dropped",
        bindings::pbs_eject_PBS_EJECT_FAULT => "the plan was dropped for a fault",
        bindings::pbs_eject_PBS_EJECT_CPU_GONE => "the CPU goes offline",
        bindings::pbs_eject_PBS_EJECT_CPUSET => "its cpuset has lost the CPU",
        _ => return,
    };
    if may_log() {
        pr_info!(
            "CPU {}: thread {} has left the plan: {why}\n",
            cpu.number(),
            task.pid()
        );
    }
}

/// A thread that has left because its cpuset has lost the CPU goes where that is.
fn follow_cpuset(task: &Task, reason: u16) {
    if reason == LEAVE_CPUSET {
        // It fails if the thread has been attached again; then it is where it is to be.
        let _ = sched_class::reset_affinity(task);
    }
}

/// The current thread leaves the class.
fn leave_class(task: &Task) {
    // This can't fail for a fair policy, and ends with `sched_pbs_left`. A thread that has not got
    // the policy yet is taken out by who is attaching it.
    let _ = sched_class::set_policy(task, bindings::SCHED_NORMAL, entity::nice(task));
}

/// Gives a thread back to the fair class.
fn eject(task: &Task) -> Result {
    sched_class::set_policy(task, bindings::SCHED_NORMAL, entity::nice(task))?;
    // Had it no policy of ours, nobody has taken its seat yet.
    give_up_seat(task);
    Ok(())
}
