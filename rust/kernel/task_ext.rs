// SPDX-License-Identifier: GPL-2.0

//! What a scheduler needs of a [`Task`] beyond what [`task`](crate::task) has.
//!
//! C header: [`include/linux/sched/task.h`](srctree/include/linux/sched/task.h)

use crate::{bindings, cpu, error::to_result, prelude::*, task::Task, types::ARef};
use core::ptr::NonNull;

impl Task {
    /// Finds the thread that has this number in the PID namespace of the current task.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::task::Task;
    ///
    /// assert!(Task::find_by_vpid(i32::MAX).is_none());
    /// ```
    pub fn find_by_vpid(pid: i32) -> Option<ARef<Task>> {
        // SAFETY: May be called with any number.
        let task = unsafe { bindings::find_get_task_by_vpid(pid) };

        // SAFETY: The function has taken a reference count for its caller if it has found a task.
        // `Task` is transparent.
        NonNull::new(task).map(|task| unsafe { ARef::from_raw(task.cast()) })
    }

    /// Creates a reference from a C pointer.
    ///
    /// # Safety
    ///
    /// `task` must be valid for `'a`.
    pub unsafe fn from_raw<'a>(task: *mut bindings::task_struct) -> &'a Task {
        // SAFETY: By the function's requirements; `Task` is transparent.
        unsafe { &*task.cast() }
    }

    /// Returns the C structure.
    pub fn as_ptr(&self) -> *mut bindings::task_struct {
        self.0.get()
    }

    /// Tells whether this is a thread of the kernel, which has no user space.
    pub fn is_kthread(&self) -> bool {
        // SAFETY: By the type invariant, the task is valid. The read is volatile because the task
        // changes its flags itself; this one stays.
        let flags = unsafe { core::ptr::addr_of!((*self.0.get()).flags).read_volatile() };
        flags & bindings::PF_KTHREAD != 0
    }

    /// Returns whether this thread of a process works in the kernel for ever, as those of io_uring
    /// do.
    pub fn is_user_worker(&self) -> bool {
        // SAFETY: The task is valid; these flags are set when it is made.
        unsafe { (*self.0.get()).flags & (bindings::PF_USER_WORKER | bindings::PF_IO_WORKER) != 0 }
    }

    /// Whether the task's cpuset has that CPU. Sleeps.
    ///
    /// Another thread may change this at any time.
    pub fn cpuset_has(&self, cpu: u32) -> Result<bool> {
        if !cpu::is_possible(cpu) {
            return Ok(false);
        }
        // SAFETY: By the type invariant, the task is valid; `cpu` is the number of a CPU.
        match unsafe { bindings::cpuset_has_cpu(self.0.get(), cpu) } {
            error @ ..=-1 => Err(Error::from_errno(error)),
            has => Ok(has != 0),
        }
    }

    /// Asks the security modules whether the current task may change how this one is scheduled.
    pub fn may_be_scheduled(&self) -> Result {
        // SAFETY: By the type invariant, the task is valid.
        to_result(unsafe { bindings::security_task_setscheduler(self.0.get()) })
    }

    /// The CPUs that the task may run on now. Sleeps.
    pub fn affinity(&self) -> Result<Affinity> {
        // SAFETY: By the type invariant, the task is valid.
        let cpus = unsafe { bindings::task_copy_cpus(self.0.get()) };
        // INVARIANT: The copy is nobody else's.
        Ok(Affinity(NonNull::new(cpus).ok_or(ENOMEM)?))
    }

    /// Whether the task may run on `cpu` and nowhere else.
    ///
    /// Another thread may change this at any time.
    pub fn is_bound_to(&self, cpu: u32) -> bool {
        // SAFETY: The task is valid.
        unsafe { bindings::task_is_bound_to(self.0.get(), cpu) }
    }
}

/// Whether one more line may go to the kernel's log: for lines that a user can cause at will. Any
/// context but NMI, and not with a run queue locked, as for the line itself.
pub fn may_log() -> bool {
    // SAFETY: The C side has a lock of its own.
    unsafe { bindings::log_ratelimit() }
}

/// Lets others have the CPU that wait for it: for work that takes long, between its pieces.
///
/// Fails with [`EINTR`] if the current task has a fatal signal and should end that work.
pub fn give_way() -> Result {
    // SAFETY: The caller can sleep.
    unsafe { bindings::cond_resched() };
    // SAFETY: It looks at the flags of the current task.
    if unsafe { bindings::current_is_killed() } {
        Err(EINTR)
    } else {
        Ok(())
    }
}

/// What a task may change of another one's, or its own, affinity on behalf of a scheduling class.
#[cfg(CONFIG_SCHED_CLASS_PBS)]
impl Task {
    /// Lets the task run on this CPU only, and moves it there: sleeps until it is there, if it is
    /// the current one. Does not ask its cpuset.
    ///
    /// Fails with [`EINVAL`] if the CPU does not take it.
    pub fn bind_to_cpu(&self, cpu: u32) -> Result {
        if !cpu::is_possible(cpu) {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant, the task is valid; `cpu` is the number of a CPU.
        to_result(unsafe { bindings::task_bind_to_cpu(self.0.get(), cpu) })
    }

    /// Lets the task run where it could before, as far as its cpuset still has these CPUs. Sleeps.
    pub fn set_affinity(&self, affinity: &Affinity) -> Result {
        // SAFETY: By the type invariants, the task and the mask are valid.
        to_result(unsafe { bindings::task_set_cpus(self.0.get(), affinity.0.as_ptr()) })
    }

    /// Lets the task run on all CPUs that its cpuset and its user allow it. Sleeps.
    pub fn reset_affinity(&self) -> Result {
        // SAFETY: By the type invariant, the task is valid; no mask stands for what its user wants.
        to_result(unsafe { bindings::task_set_cpus(self.0.get(), core::ptr::null()) })
    }
}

/// A set of CPUs that a task may run on.
///
/// # Invariants
///
/// The pointer is to a mask that is this one's own.
pub struct Affinity(NonNull<bindings::cpumask>);

impl Drop for Affinity {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody uses it any more.
        unsafe { bindings::free_cpus(self.0.as_ptr()) };
    }
}
