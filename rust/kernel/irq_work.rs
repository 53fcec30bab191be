// SPDX-License-Identifier: GPL-2.0

//! Work that is put off to interrupt context.
//!
//! It can be queued in every context, NMIs and sections under a run-queue lock included, and runs
//! as soon as interrupts are on.
//!
//! C header: [`include/linux/irq_work.h`](srctree/include/linux/irq_work.h)
//!
//! # Examples
//!
//! ```
//! use core::sync::atomic::{AtomicU32, Ordering};
//! use kernel::irq_work::{IrqWork, IrqWorkCallback};
//!
//! struct Count(AtomicU32);
//!
//! impl IrqWorkCallback for Count {
//!     fn run(this: &IrqWork<Self>) {
//!         this.0.fetch_add(1, Ordering::Relaxed);
//!     }
//! }
//!
//! let work = KBox::pin_init(IrqWork::new(Count(AtomicU32::new(0))), GFP_KERNEL)?;
//! assert!(work.queue());
//! work.sync();
//! assert_eq!(work.0.load(Ordering::Relaxed), 1);
//!
//! # #[cfg(CONFIG_SMP)]
//! if let Some(cpu) = kernel::cpu::PossibleCpu::new(0) {
//!     assert!(work.queue_on(cpu));
//!     work.sync();
//!     assert_eq!(work.0.load(Ordering::Relaxed), 2);
//! }
//! # Ok::<(), Error>(())
//! ```

use crate::{bindings, container_of, cpu::PossibleCpu, prelude::*, types::Opaque};
use core::ops::Deref;

/// The data of an [`IrqWork`], and what to do with it.
pub trait IrqWorkCallback: Sized + Send + Sync + 'static {
    /// Called in interrupt context. The work can be queued again from here on.
    ///
    /// It must not sleep. A spinlock, such as that of a
    /// [`WaitQueue`](crate::wait_queue::WaitQueue), may be taken only if the work was made with
    /// [`IrqWork::new`].
    fn run(this: &IrqWork<Self>);
}

/// A work item together with its data.
///
/// # Invariants
///
/// `work` is initialised, and its function is [`IrqWork::run`] of the same `T`.
#[pin_data(PinnedDrop)]
pub struct IrqWork<T: IrqWorkCallback> {
    #[pin]
    work: Opaque<bindings::irq_work>,
    data: T,
}

// SAFETY: A `struct irq_work` may be handled by any thread; `T` is `Send`.
unsafe impl<T: IrqWorkCallback> Send for IrqWork<T> {}

// SAFETY: A `struct irq_work` is claimed atomically, so its functions may be called concurrently;
// `T` is `Sync`.
unsafe impl<T: IrqWorkCallback> Sync for IrqWork<T> {}

impl<T: IrqWorkCallback> IrqWork<T> {
    /// Creates a work item that is not queued. On a real-time kernel it runs in a thread.
    pub fn new(data: T) -> impl PinInit<Self> {
        // INVARIANT: The closure initialises the work item with this function.
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes.
            work <- Opaque::ffi_init(|slot| unsafe {
                bindings::init_irq_work(slot, Some(Self::run))
            }),
            data,
        })
    }

    /// Creates a work item that is not queued. It runs in hard interrupt context on every kernel.
    pub fn new_hard(data: T) -> impl PinInit<Self> {
        // INVARIANT: The closure initialises the work item with this function.
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes.
            work <- Opaque::ffi_init(|slot| unsafe {
                bindings::init_irq_work_hard(slot, Some(Self::run))
            }),
            data,
        })
    }

    /// Queues the work on this CPU. Returns `false` if it was queued already and has not begun.
    pub fn queue(&self) -> bool {
        // SAFETY: By the type invariant, the work item is initialised. It stays where it is until
        // it is dropped, since it is pinned, and dropping it waits for it.
        unsafe { bindings::irq_work_queue(self.work.get()) }
    }

    /// Queues the work on another CPU. Not in an NMI.
    ///
    /// Returns `false` if it was queued already and has not begun, or if the CPU is offline.
    #[cfg(CONFIG_SMP)]
    #[inline]
    pub fn queue_on(&self, cpu: PossibleCpu) -> bool {
        // SAFETY: As in `queue`; there is such a CPU.
        unsafe { bindings::irq_work_queue_online(self.work.get(), cpu.number() as _) }
    }

    /// Returns whether the work is queued and has not begun.
    pub fn is_pending(&self) -> bool {
        // SAFETY: By the type invariant, the work item is initialised.
        unsafe { bindings::irq_work_is_pending(self.work.get()) }
    }

    /// Waits until the work is neither queued nor running. May sleep; interrupts must be on.
    pub fn sync(&self) {
        // SAFETY: By the type invariant, the work item is initialised.
        unsafe { bindings::irq_work_sync(self.work.get()) };
    }

    /// The function of the `struct irq_work`.
    ///
    /// # Safety
    ///
    /// `work` must be the `work` of a valid [`IrqWork<T>`].
    unsafe extern "C" fn run(work: *mut bindings::irq_work) {
        // SAFETY: By the function's requirements, `work` lies in an `IrqWork<T>`, which is valid
        // until this function has returned, since dropping it waits for that.
        T::run(unsafe { &*container_of!(work, IrqWork<T>, work) });
    }
}

impl<T: IrqWorkCallback> Deref for IrqWork<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}

#[pinned_drop]
impl<T: IrqWorkCallback> PinnedDrop for IrqWork<T> {
    fn drop(self: Pin<&mut Self>) {
        self.sync();
    }
}
