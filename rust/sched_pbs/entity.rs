// SPDX-License-Identifier: GPL-2.0

//! What `task_struct` and `struct rq` keep for the class.

use super::{
    cpu::{Cpu, State},
    threads::SeatNumber,
};
use kernel::{bindings, sched_class::RunQueue, task::Task};

/// The seat of a thread.
///
/// Stable only under the lock of its run queue; zero or not may be looked at without by who
/// orders it against that lock's holder in another way.
pub(crate) fn seat_of(task: &Task) -> SeatNumber {
    // SAFETY: The task is valid. The field is an aligned integer that others may write at the
    // same time, hence the volatile access.
    unsafe { core::ptr::addr_of!((*task.as_ptr()).pbs.seat).read_volatile() }
}

/// Gives a thread its seat, or takes it.
pub(crate) fn set_seat(_rq: &RunQueue, task: &Task, seat: SeatNumber) {
    // SAFETY: The task is valid, and it is written only by who holds the lock of its run queue.
    unsafe { core::ptr::addr_of_mut!((*task.as_ptr()).pbs.seat).write_volatile(seat) };
}

/// Whether the task's policy is `SCHED_PBS`: still so while another class runs it as a boosted
/// task.
pub(crate) fn has_policy(task: &Task) -> bool {
    // SAFETY: The task is valid; the policy changes under the lock of its run queue, and who looks
    // without it accepts an old answer.
    unsafe { core::ptr::addr_of!((*task.as_ptr()).policy).read_volatile() == bindings::SCHED_PBS }
}

/// Whether the class runs the task.
pub(crate) fn in_class(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid; the lock of the run queue keeps its class.
    unsafe {
        core::ptr::eq(
            (*task.as_ptr()).sched_class,
            core::ptr::addr_of!(bindings::pbs_sched_class),
        )
    }
}

/// The static nice value of the task.
pub(crate) fn nice(task: &Task) -> i32 {
    // SAFETY: The task is valid.
    unsafe { (*task.as_ptr()).static_prio - bindings::DEFAULT_PRIO as i32 }
}

/// The run time of the task so far, in nanoseconds, as of the last update.
pub(crate) fn run_time_ns(_rq: &RunQueue, task: &Task) -> u64 {
    // SAFETY: The task is valid; the lock of the run queue protects its entity.
    unsafe { (*task.as_ptr()).se.sum_exec_runtime }
}

/// Whether the thread is past the point from which it can't be attached any more.
pub(crate) fn is_exiting(task: &Task) -> bool {
    // SAFETY: The task is valid. The flag is written by the task itself, hence the volatile access.
    unsafe {
        core::ptr::addr_of!((*task.as_ptr()).flags).read_volatile() & bindings::PF_EXITING != 0
    }
}

/// The runnable threads of the class on this run queue.
pub(crate) fn nr_running(rq: &RunQueue) -> u32 {
    // SAFETY: The run queue is locked.
    unsafe { (*rq.as_ptr()).pbs.nr_running }
}

/// Counts one more runnable thread, for the class and for the run queue.
pub(crate) fn inc_running(rq: &mut RunQueue) {
    // SAFETY: The run queue is locked.
    unsafe { (*rq.as_ptr()).pbs.nr_running += 1 };
    rq.add_running(1);
}

/// Counts one runnable thread less.
pub(crate) fn dec_running(rq: &mut RunQueue) {
    // SAFETY: The run queue is locked.
    unsafe { (*rq.as_ptr()).pbs.nr_running -= 1 };
    rq.sub_running(1);
}

/// Gives the run queue its CPU's state.
pub(crate) fn set_cpu(rq: &mut RunQueue, cpu: &'static Cpu) {
    // SAFETY: The run queue is locked.
    unsafe { (*rq.as_ptr()).pbs.state = core::ptr::from_ref(cpu).cast_mut().cast() };
}

/// Calls `function` with the state of the run queue's CPU; `None` before the class is up.
///
/// This is the one way to that state: the lock of the run queue protects it.
pub(crate) fn with_state<'a, R>(
    rq: &'a mut RunQueue,
    function: impl FnOnce(&mut RunQueue, &'static Cpu, &'a mut State) -> R,
) -> Option<R> {
    // SAFETY: The run queue is locked; `set_cpu` wrote the pointer, to something static.
    let cpu = unsafe { (*rq.as_ptr()).pbs.state.cast::<Cpu>().as_ref() }?;
    // SAFETY: The state is reached by this function only, with its run queue locked, as `rq`
    // witnesses. It isn't entered twice: nobody gets at a second `&mut RunQueue` while `function`
    // has this one, and nothing that can be done to a `RunQueue` calls back into the class.
    let state = unsafe { &mut *cpu.state() };
    Some(function(rq, cpu, state))
}
