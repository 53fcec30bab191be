// SPDX-License-Identifier: GPL-2.0

//! The fields of the class in `task_struct` and `struct rq`.

use super::{
    sched_class::{self, RunQueue},
    table::table,
};
use core::sync::atomic::{AtomicU32, Ordering};
use kernel::{bindings, task::Task};

/// Number of a seat; [`NO_SEAT`] is none.
pub(crate) type SeatNumber = u32;

/// No seat: zeroed memory means this.
pub(crate) const NO_SEAT: SeatNumber = 0;

/// Low bits of the field that hold the number of the seat. The others, except [`LET_ON`], hold the
/// CPU whose table it is in.
pub(crate) const NUMBER_BITS: u32 = 13;

/// The bit of the field that means that the thread has got the CPU since it began to wait.
const LET_ON: u32 = 1 << 31;

fn seat_field(task: &Task) -> u32 {
    // SAFETY: The task is valid. The field is an aligned integer that others may write at the
    // same time, hence the volatile access.
    unsafe { core::ptr::addr_of!((*task.as_ptr()).pbs.seat).read_volatile() }
}

/// The seat of a thread in the table of this CPU.
///
/// A thread that is attached while it sleeps may have its seat on another CPU than the run queue
/// that it last was on; it moves to the right one when it wakes up.
pub(crate) fn seat_of(rq: &RunQueue, task: &Task) -> SeatNumber {
    let field = seat_field(task);
    if cpu_of(field) == rq.cpu() {
        field & ((1 << NUMBER_BITS) - 1)
    } else {
        NO_SEAT
    }
}

/// The CPU whose table has the thread's seat; `None`: it has none.
///
/// The value changes under the lock of that CPU's seats, except by the thread's own exit and by
/// changes of its policy that others make.
pub(crate) fn seat_cpu(task: &Task) -> Option<u32> {
    match seat_field(task) {
        NO_SEAT => None,
        field => Some(cpu_of(field)),
    }
}

/// The CPU in the field of a thread that has a seat; some CPU without one.
fn cpu_of(field: u32) -> u32 {
    (field & !LET_ON) >> NUMBER_BITS
}

/// Whether the current thread has got the CPU since it began to wait.
pub(crate) fn is_let_on(current: &Task) -> bool {
    seat_field(current) & LET_ON != 0
}

/// Notes whether a thread, which has a seat here, has got the CPU since it began to wait.
pub(crate) fn set_let_on(_rq: &RunQueue, task: &Task, let_on: bool) {
    let field = seat_field(task) & !LET_ON | if let_on { LET_ON } else { 0 };
    // SAFETY: As in `clear_seat`.
    unsafe { core::ptr::addr_of_mut!((*task.as_ptr()).pbs.seat).write_volatile(field) };
}

/// Gives a thread its seat in the table of this CPU, unless it has one already, here or elsewhere.
/// Returns whether it has got the seat.
pub(crate) fn take_seat(rq: &RunQueue, task: &Task, seat: SeatNumber) -> bool {
    let field = rq.cpu() << NUMBER_BITS | seat;
    // SAFETY: The task is valid, and the field an aligned integer. Once it is not `NO_SEAT`, it is
    // written only under the lock of the run queue whose CPU has the seat; up to then it is
    // exchanged.
    let seat = unsafe { AtomicU32::from_ptr(core::ptr::addr_of_mut!((*task.as_ptr()).pbs.seat)) };
    seat.compare_exchange(NO_SEAT, field, Ordering::SeqCst, Ordering::Relaxed)
        .is_ok()
}

/// Takes from a thread the seat that it has in the table of this CPU.
pub(crate) fn clear_seat(_rq: &RunQueue, task: &Task) {
    // SAFETY: The task is valid. The field of a thread whose seat is here is written only under the
    // lock of this run queue.
    unsafe { core::ptr::addr_of_mut!((*task.as_ptr()).pbs.seat).write_volatile(NO_SEAT) };
}

/// Whether the task's policy is `SCHED_PBS`: still so while another class runs it as a boosted
/// task.
pub(crate) fn has_policy(task: &Task) -> bool {
    // SAFETY: The task is valid; the policy changes under the lock of its run queue, and a reader
    // without the lock accepts an old answer.
    unsafe { core::ptr::addr_of!((*task.as_ptr()).policy).read_volatile() == bindings::SCHED_PBS }
}

/// Whether the class runs the task.
pub(crate) fn in_class(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid; the lock of the run queue keeps its class.
    let class = unsafe { (*task.as_ptr()).sched_class };
    core::ptr::eq(class.cast(), table())
}

/// The static nice value of the task.
pub(crate) fn nice(task: &Task) -> i32 {
    // SAFETY: The task is valid. Others may change the value meanwhile, hence the volatile access.
    let prio = unsafe { core::ptr::addr_of!((*task.as_ptr()).static_prio).read_volatile() };
    prio - bindings::DEFAULT_PRIO as i32
}

/// The run time of the task so far, in nanoseconds, as of the last update.
pub(crate) fn run_time_ns(_rq: &RunQueue, task: &Task) -> u64 {
    // SAFETY: The task is valid; the lock of the run queue protects its entity.
    unsafe { (*task.as_ptr()).se.sum_exec_runtime }
}

/// Whether the thread is exiting: past the point from which it can't be attached any more, or just
/// before it.
pub(crate) fn is_exiting(task: &Task) -> bool {
    // SAFETY: The task is valid. The flags are written by the task itself, hence the volatile
    // access.
    let flags = unsafe { core::ptr::addr_of!((*task.as_ptr()).flags).read_volatile() };
    flags & (bindings::PF_POSTCOREDUMP | bindings::PF_EXITING) != 0
}

/// Whether the current thread, which exits, was killed by a signal.
pub(crate) fn is_killed(current: &Task) -> bool {
    // SAFETY: The task is valid; its flags are its own to write.
    unsafe { (*current.as_ptr()).flags & bindings::PF_SIGNALED != 0 }
}

/// Whether the current thread is in execve(2).
pub(crate) fn in_execve(current: &Task) -> bool {
    // SAFETY: The task is valid; it alone writes the other bits of the word.
    unsafe { (*current.as_ptr()).in_execve() != 0 }
}

/// The runnable threads of the class on this run queue.
pub(crate) fn nr_running(rq: &RunQueue) -> u32 {
    // SAFETY: The run queue is locked.
    unsafe { (*rq.as_ptr()).pbs.nr_running }
}

/// Counts one more runnable thread, for the class and for the run queue.
///
/// # Safety
///
/// As for [`RunQueue::add_running`].
pub(crate) unsafe fn inc_running(rq: &RunQueue) {
    // SAFETY: The run queue is locked; the rest is the caller's promise.
    unsafe {
        (*rq.as_ptr()).pbs.nr_running += 1;
        rq.add_running();
    }
}

/// Counts one runnable thread less.
///
/// # Safety
///
/// As for [`RunQueue::sub_running`].
pub(crate) unsafe fn dec_running(rq: &RunQueue) {
    // SAFETY: The run queue is locked; the rest is the caller's promise.
    unsafe {
        (*rq.as_ptr()).pbs.nr_running -= 1;
        rq.sub_running();
    }
}

/// Sets whether the class may have the CPU only as long as no lower class has a task to run.
pub(crate) fn set_lent(rq: &RunQueue, lent: bool) {
    // SAFETY: The run queue is locked.
    unsafe { (*rq.as_ptr()).pbs.lent = lent };
}

/// Notifies Linux around the class that the CPU of the run queue has a plan from now on, or none.
pub(crate) fn set_plan(rq: &RunQueue, has_plan: bool) {
    // SAFETY: The run queue is locked, and its clock up to date.
    unsafe { sched_class::bindings::sched_pbs_set_plan(rq.as_ptr(), has_plan) };
}

/// Notifies Linux around the class that one more CPU is about to have plans, or one less. Process
/// context, with the lock of CPU hotplug held: code is changed, on all present CPUs.
pub(crate) fn use_class(used: bool) {
    // SAFETY: This may be called any time in process context. Without the lock lockdep complains,
    // and a CPU that comes up meanwhile may find the code as it was.
    unsafe { sched_class::bindings::sched_pbs_use(used) };
}
