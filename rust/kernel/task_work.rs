// SPDX-License-Identifier: GPL-2.0

//! Work that a task does itself, when it is about to return to user space.
//!
//! There it holds no lock of the kernel, and may sleep for as long as it has to.
//!
//! C header: [`include/linux/task_work.h`](srctree/include/linux/task_work.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{sync::Arc, task_work::{TaskWork, TaskWorkCallback}};
//!
//! struct Greeting;
//!
//! impl TaskWorkCallback for Greeting {
//!     fn run(_this: &Arc<TaskWork<Self>>) {
//!         pr_info!("task {} is on its way out\n", current!().pid());
//!     }
//! }
//!
//! fn greet_later(work: &Arc<TaskWork<Greeting>>) -> Result {
//!     TaskWork::add(work, current!()).map(|_| ())
//! }
//!
//! let work = Arc::pin_init(TaskWork::new(Greeting), GFP_KERNEL)?;
//! assert!(!work.is_pending());
//! # Ok::<(), Error>(())
//! ```

use crate::{
    bindings, container_of, error::to_result, prelude::*, sync::Arc, task::Task, types::Opaque,
};
use core::{
    cell::UnsafeCell,
    ops::Deref,
    sync::atomic::{AtomicBool, Ordering},
};

/// Whether `task` has work of any kind to do before it returns to user space.
pub fn is_pending(task: &Task) -> bool {
    // SAFETY: A `Task` is valid; the pointer is only read, atomically.
    unsafe { bindings::task_work_pending(task.as_ptr()) }
}

/// The data of a [`TaskWork`], and what to do with it.
pub trait TaskWorkCallback: Sized + Send + Sync + 'static {
    /// Called in the context of the task, at the edge of user space or while the task exits.
    ///
    /// It may sleep. The work can be added again from here on. What the task had to do before the
    /// work was added, for instance to give up the last reference to a file that it closed, has
    /// been done by then, so that nobody waits for it if this sleeps.
    fn run(this: &Arc<TaskWork<Self>>);
}

/// A work item together with its data.
///
/// # Invariants
///
/// - `head` is initialised.
/// - While `pending` is set, `head` belongs to whoever set it: it is in the list of at most one
///   task, and that list owns a reference count of the [`Arc`] around this.
#[pin_data]
pub struct TaskWork<T: TaskWorkCallback> {
    #[pin]
    head: Opaque<bindings::callback_head>,
    pending: AtomicBool,
    /// Whether the work has been put behind the task's older work. Belongs to the owner of `head`.
    is_last: UnsafeCell<bool>,
    data: T,
}

// SAFETY: `head` and `is_last` belong to one owner at a time, which may be any thread; `T` is
// `Send`.
unsafe impl<T: TaskWorkCallback> Send for TaskWork<T> {}

// SAFETY: `pending` hands `head` and `is_last` from one owner to the next; `T` is `Sync`.
unsafe impl<T: TaskWorkCallback> Sync for TaskWork<T> {}

impl<T: TaskWorkCallback> TaskWork<T> {
    /// Creates a work item that is not pending.
    pub fn new(data: T) -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes.
            head <- Opaque::ffi_init(|slot| unsafe {
                bindings::init_task_work(slot, Some(Self::run))
            }),
            pending: AtomicBool::new(false),
            is_last: UnsafeCell::new(false),
            data,
        })
    }

    /// Makes `task` do the work before it returns to user space (`TWA_RESUME`).
    ///
    /// `Ok(false)` means that the work is pending already. Fails with [`ESRCH`] if the task is so
    /// far in its exit that it does no more work. Neither sleeps nor allocates; a run-queue lock
    /// may be held.
    pub fn add(this: &Arc<Self>, task: &Task) -> Result<bool> {
        // INVARIANT: If it was not set before, `head` belongs to this function now. Acquire pairs
        // with the releases below and in `run`.
        if this.pending.swap(true, Ordering::Acquire) {
            return Ok(false);
        }
        // SAFETY: `is_last` belongs to this function, see above.
        unsafe { *this.is_last.get() = false };

        let owned = Arc::into_raw(this.clone());
        // SAFETY: `head` belongs to this function, is initialised, and stays valid since the list
        // owns the reference count that was just taken. A `Task` is valid.
        let ret = to_result(unsafe {
            bindings::task_work_add(
                task.0.get(),
                this.head.get(),
                bindings::task_work_notify_mode_TWA_RESUME
                    | bindings::task_work_notify_mode_TWAF_NO_ALLOC,
            )
        });
        if let Err(error) = ret {
            // INVARIANT: The list has not taken `head`, so it belongs to nobody again.
            this.pending.store(false, Ordering::Release);
            // SAFETY: The pointer comes from `into_raw`, and the list has not taken it.
            drop(unsafe { Arc::from_raw(owned) });
            return Err(error);
        }
        Ok(true)
    }

    /// Returns whether the work is to be done and has not begun.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// The function of the `struct callback_head`.
    ///
    /// # Safety
    ///
    /// Must be called once for each successful [`TaskWork::add`], by the task that it named, with
    /// the `head` of the [`TaskWork`], after `head` was removed from the task's list.
    unsafe extern "C" fn run(head: *mut bindings::callback_head) {
        // SAFETY: By the function's requirements, `head` lies in a `TaskWork<T>`, and the reference
        // count that the list owned is handed to this function.
        let this = unsafe { Arc::from_raw(container_of!(head, TaskWork<T>, head)) };

        // A task's list is last in, first out. Going through it once more lets the older works
        // pass, which must not wait for this one.
        //
        // SAFETY: `is_last` belongs to the owner of `head`, which is this function.
        if !unsafe { core::mem::replace(&mut *this.is_last.get(), true) } {
            // SAFETY: As in `add`. The current task is valid.
            let ret = unsafe {
                bindings::task_work_add(
                    bindings::get_current(),
                    head,
                    bindings::task_work_notify_mode_TWA_RESUME
                        | bindings::task_work_notify_mode_TWAF_NO_ALLOC,
                )
            };
            if ret == 0 {
                // The list owns the reference count again.
                let _ = Arc::into_raw(this);
                return;
            }
        }

        // INVARIANT: `head` is in no list, so it belongs to nobody.
        this.pending.store(false, Ordering::Release);
        T::run(&this);
    }
}

impl<T: TaskWorkCallback> Deref for TaskWork<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}
