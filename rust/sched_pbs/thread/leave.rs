// SPDX-License-Identifier: GPL-2.0

//! Exit of threads from the class.
//!
//! A thread is made to leave with the run queue locked, and leaves by a change of its policy, which
//! takes process context. It gives its seat up when the class is notified that it has left.

use crate::{
    engine::members::LEAVE_SILENTLY,
    linux::{entity, sched_class},
    percpu::{cpu::Cpu, cpus, requests::Request},
    state::threads::{Seat, SeatNumber, MAX_THREADS, NO_SEAT},
};
use kernel::{
    bindings,
    prelude::*,
    task::Task,
    task_ext::{give_way, may_log},
};

/// The CPU whose table has the seat of a thread; `None`: it has none.
fn seat_cpu(task: &Task) -> Option<&'static Cpu> {
    cpus::get(entity::seat_cpu(task)?)
}

/// Reason why a thread leaves whose cpuset has lost its CPU.
pub(super) const LEAVE_CPUSET: u16 = bindings::pbs_eject_PBS_EJECT_CPUSET as u16;

/// Makes a thread leave its plan whose cpuset has lost the plan's CPU. Process context, with the
/// lock of all cpusets held: therefore the thread follows its cpuset only when it has left.
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
    let Some(cpu) = seat_cpu(task) else {
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
        // The task may be the caller.
        state.charge(rq);
        state.leave(cpu, number, LEAVE_CPUSET);
        state.settle(rq, cpu);
        cpu.requests.add(Request::Eject);
    });
}

/// Calls `function` with the thread's seat, if it has one.
pub(super) fn seat<R>(task: &Task, function: impl FnOnce(&Seat) -> R) -> Option<R> {
    let cpu = seat_cpu(task)?;
    cpu.lock(|rq, _, state| {
        let seat = state.threads.as_ref()?.get(entity::seat_of(rq, task))?;
        Some(function(seat))
    })
    .flatten()
}

/// Takes the seat of a thread whose policy is another one, if it has one of that CPU.
///
/// On another CPU, a thread that is about to be attached has a seat before it has the policy: that
/// seat is its attacher's, who holds the `seats` of that CPU.
pub(super) fn give_up_seat(cpu: &Cpu, task: &Task) {
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

/// Takes `task` out of the class on request; its process continues without it.
pub(crate) fn detach(task: &Task) -> Result {
    let cpu = seat_cpu(task).ok_or(ESRCH)?;
    let _seats = cpu.seats.lock_killable()?;
    let attached = cpu.lock(|rq, cpu, state| {
        let number = entity::seat_of(rq, task);
        if number == NO_SEAT {
            return false;
        }
        // The task may be the caller.
        state.charge(rq);
        state.leave(cpu, number, bindings::pbs_eject_PBS_EJECT_DETACHED as u16);
        state.settle(rq, cpu);
        true
    });
    if attached != Some(true) {
        return Err(ESRCH);
    }
    eject(cpu, task)
}

/// Number of seats that are checked with the run queue locked.
const SEATS_A_LOCK: SeatNumber = 256;

/// Takes the threads that are to leave out of the class. Sleeps.
pub(crate) fn eject_leaving(cpu: &Cpu) {
    let _seats = cpu.seats.lock();
    // Once through the table, piece by piece: a thread that is made to leave meanwhile in a seat
    // that was passed comes with a request of its own.
    let end = MAX_THREADS as SeatNumber + 1;
    let mut from = NO_SEAT;
    while from < end {
        let _ = give_way();
        let to = end.min(from + SEATS_A_LOCK);
        let found = cpu.lock_for_change(|_, _, state| {
            let threads = state.threads.as_ref()?;
            let (number, task) = threads.find_leaving(from..to)?;
            Some((number, task.clone(), threads.get(number)?.leaving))
        });
        let Some((number, task, reason)) = found.flatten() else {
            from = to;
            continue;
        };
        from = number + 1;
        if eject(cpu, &task).is_err() {
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
/// [`switched_from`](sched_class::SchedClass::switched_from) has taken the seat of a thread that
/// the class was running. This handles threads that were not in the class at that moment: boosted
/// by another class, or attached and asleep on another CPU.
#[no_mangle]
extern "C" fn sched_pbs_left(task: *mut bindings::task_struct) {
    // SAFETY: The caller has a reference to the task.
    let task = unsafe { Task::from_raw(task) };
    if let Some(cpu) = seat_cpu(task) {
        give_up_seat(cpu, task);
    }
    // If it waits at the edge of user space, its wait is over.
    sched_class::wake_up(task);
}

/// Makes the current thread leave the class, as requested, unless it has left it meanwhile: the
/// requester may have taken it out already, and it may have been attached again since.
pub(crate) fn leave_as_told(task: &Task) {
    let Some(cpu) = seat_cpu(task) else {
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

/// Logs for an operator that a thread had to leave its plan.
///
/// No line is logged for a thread that is done, nor for one that left on request: by
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

/// Moves a thread that has left because its cpuset has lost the CPU to the CPUs of its cpuset.
fn follow_cpuset(task: &Task, reason: u16) {
    if reason == LEAVE_CPUSET {
        // This fails if the thread has been attached again; then it is where it should be.
        let _ = sched_class::reset_affinity(task);
    }
}

/// Makes the current thread leave the class.
pub(super) fn leave_class(task: &Task) {
    // This can't fail for a fair policy, and ends with `sched_pbs_left`. A thread that has not got
    // the policy yet is taken out by the caller that attaches it.
    let _ = sched_class::set_policy(task, bindings::SCHED_NORMAL, entity::nice(task));
}

/// Gives a thread back to the fair class, whose seat is one of `cpu`. Its `seats` are locked.
///
/// The run queue was locked when the thread was seen to be one that is to leave. Another policy
/// that somebody sets between that and this call is lost, as if it had been set earlier.
pub(super) fn eject(cpu: &Cpu, task: &Task) -> Result {
    sched_class::set_policy(task, bindings::SCHED_NORMAL, entity::nice(task))?;
    // If it did not have our policy, its seat was not taken yet.
    give_up_seat(cpu, task);
    Ok(())
}
