// SPDX-License-Identifier: GPL-2.0

//! Queues of tasks that wait for a condition.
//!
//! Unlike a [`CondVar`](crate::sync::CondVar), a [`WaitQueue`] belongs to no lock: therefore an
//! interrupt handler may wake it.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)
//!
//! # Examples
//!
//! ```
//! use core::sync::atomic::{AtomicBool, Ordering};
//! use kernel::wait_queue::{new_wait_queue, WaitQueue};
//!
//! #[pin_data]
//! struct Door {
//!     open: AtomicBool,
//!     #[pin]
//!     queue: WaitQueue,
//! }
//!
//! impl Door {
//!     fn open(&self) {
//!         self.open.store(true, Ordering::Release);
//!         self.queue.wake_all();
//!     }
//!
//!     fn pass(&self) -> Result {
//!         self.queue.wait_interruptible(|| self.open.load(Ordering::Acquire))
//!     }
//! }
//!
//! let door = KBox::pin_init(pin_init!(Door {
//!     open: AtomicBool::new(false),
//!     queue <- new_wait_queue!("Door::queue"),
//! }), GFP_KERNEL)?;
//! door.open();
//! door.pass()?;
//! # Ok::<(), Error>(())
//! ```

use crate::{
    bindings,
    prelude::*,
    str::CStr,
    sync::LockClassKey,
    task::{TASK_INTERRUPTIBLE, TASK_NORMAL},
    types::Opaque,
};

/// Creates a [`WaitQueue`] initialiser with the given name and a newly-created lock class.
#[macro_export]
macro_rules! new_wait_queue {
    ($($name:literal)?) => {
        $crate::wait_queue::WaitQueue::new(
            $crate::optional_name!($($name)?), $crate::static_lock_class!())
    };
}
pub use new_wait_queue;

/// A queue of tasks that wait for a condition.
///
/// # Invariants
///
/// `head` is initialised.
#[pin_data]
pub struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A `struct wait_queue_head` may be used by any thread.
unsafe impl Send for WaitQueue {}

// SAFETY: A `struct wait_queue_head` has a lock of its own, so it may be used concurrently.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Creates an empty queue. See [`new_wait_queue`].
    pub fn new(name: &'static CStr, key: &'static LockClassKey) -> impl PinInit<Self> {
        // INVARIANT: The closure initialises `head`.
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes, and `name` and `key` live for ever.
            head <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// Wakes all waiting threads, to check the condition again.
    ///
    /// May be called in interrupt context, but not with a run-queue lock or another raw spinlock
    /// held.
    pub fn wake_all(&self) {
        // SAFETY: By the type invariant, `head` is initialised.
        unsafe { bindings::__wake_up(self.head.get(), TASK_NORMAL, 0, core::ptr::null_mut()) };
    }

    /// Sleeps until `condition` is true.
    ///
    /// It is looked at before going to sleep and after each [`WaitQueue::wake_all`]; it must not
    /// sleep itself. Fails with [`ERESTARTSYS`] if a signal arrives first.
    pub fn wait_interruptible(&self, mut condition: impl FnMut() -> bool) -> Result {
        if condition() {
            return Ok(());
        }
        let wait = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `wait` is valid for writes. It is not moved from here on.
        unsafe { bindings::init_wait(wait.get()) };

        let result = loop {
            // SAFETY: By the type invariant, `head` is initialised, and so is `wait`.
            let interrupted = unsafe {
                bindings::prepare_to_wait_event(self.head.get(), wait.get(), TASK_INTERRUPTIBLE)
            } != 0;
            if condition() {
                break Ok(());
            }
            if interrupted {
                break Err(ERESTARTSYS);
            }
            // SAFETY: May be called whenever sleeping is allowed.
            unsafe { bindings::schedule() };
        };

        // SAFETY: As above. This removes `wait` from the queue before it goes out of scope.
        unsafe { bindings::finish_wait(self.head.get(), wait.get()) };
        result
    }

    /// Returns the C structure.
    pub(crate) fn as_ptr(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }
}
