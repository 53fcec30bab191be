// SPDX-License-Identifier: GPL-2.0

//! Functions of a [`Task`] for schedulers, beyond those of [`task`](crate::task).
//!
//! C header: [`include/linux/sched/task.h`](srctree/include/linux/sched/task.h)

use crate::{bindings, cpu::PossibleCpu, error::to_result, prelude::*, task::Task, types::ARef};
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

    /// Returns whether this is a thread of the kernel, which has no user space.
    pub fn is_kthread(&self) -> bool {
        // SAFETY: By the type invariant, the task is valid. The read is volatile because the task
        // changes its flags itself; this one stays.
        let flags = unsafe { core::ptr::addr_of!((*self.0.get()).flags).read_volatile() };
        flags & bindings::PF_KTHREAD != 0
    }

    /// Returns whether this thread of a process works in the kernel for ever, as those of io_uring
    /// do.
    pub fn is_user_worker(&self) -> bool {
        // SAFETY: As in `is_kthread`; these flags are set when the task is made.
        let flags = unsafe { core::ptr::addr_of!((*self.0.get()).flags).read_volatile() };
        flags & (bindings::PF_USER_WORKER | bindings::PF_IO_WORKER) != 0
    }

    /// Whether the task's cpuset has that CPU. Sleeps.
    ///
    /// Another thread may change this at any time.
    pub fn cpuset_has(&self, cpu: PossibleCpu) -> Result<bool> {
        // SAFETY: By the type invariant, the task is valid; there is such a CPU.
        match unsafe { bindings::cpuset_has_cpu(self.0.get(), cpu.number()) } {
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
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::cpu::{without_interrupts, PossibleCpu};
    ///
    /// // In any context: interrupts stay off.
    /// without_interrupts(|_| {
    ///     if let Some(cpu) = PossibleCpu::new(0) {
    ///         let _ = current!().is_bound_to(cpu);
    ///     }
    /// });
    /// ```
    pub fn is_bound_to(&self, cpu: PossibleCpu) -> bool {
        // SAFETY: The task is valid; there is such a CPU.
        unsafe { bindings::task_is_bound_to(self.0.get(), cpu.number()) }
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
///
/// # Examples
///
/// ```
/// use kernel::task_ext::give_way;
///
/// let mut sum = 0;
/// for piece in 0..4 {
///     give_way()?;
///     sum += piece;
/// }
/// assert_eq!(sum, 6);
/// # Ok::<(), Error>(())
/// ```
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

/// A set of CPUs that a task may run on.
///
/// # Examples
///
/// ```
/// let before = current!().affinity()?;
/// assert!(!before.as_ptr().is_null());
/// # Ok::<(), Error>(())
/// ```
///
/// # Invariants
///
/// The pointer is to a mask that is this one's own.
pub struct Affinity(NonNull<bindings::cpumask>);

impl Affinity {
    /// Returns the C structure.
    pub fn as_ptr(&self) -> *const bindings::cpumask {
        self.0.as_ptr()
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody uses it any more.
        unsafe { bindings::free_cpus(self.0.as_ptr()) };
    }
}
