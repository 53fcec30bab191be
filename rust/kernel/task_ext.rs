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

    /// Lets the task run on this CPU only, and moves it there. Sleeps.
    ///
    /// Fails with [`EINVAL`] if the task's cpuset or the CPU itself does not allow it.
    pub fn bind_to_cpu(&self, cpu: u32) -> Result {
        if !cpu::is_possible(cpu) {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant, the task is valid; `cpu` is the number of a CPU, and the
        // mask lives for ever.
        to_result(unsafe {
            bindings::set_cpus_allowed_ptr(self.0.get(), bindings::cpumask_of(cpu))
        })
    }

    /// Whether the task may run on `cpu` and nowhere else.
    ///
    /// Another thread may change this at any time.
    pub fn is_bound_to(&self, cpu: u32) -> bool {
        // SAFETY: The task is valid.
        unsafe { bindings::task_is_bound_to(self.0.get(), cpu) }
    }
}
