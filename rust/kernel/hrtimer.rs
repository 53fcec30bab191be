// SPDX-License-Identifier: GPL-2.0

//! High-resolution timers whose handlers run in hard interrupt context on the CPU that armed them.
//!
//! Only the kind that a scheduler needs is here: `CLOCK_MONOTONIC`, pinned, hard. Such a timer can
//! be armed with a run-queue lock held.
//!
//! C header: [`include/linux/hrtimer.h`](srctree/include/linux/hrtimer.h)
//!
//! # Examples
//!
//! ```
//! use core::sync::atomic::{AtomicU32, Ordering};
//! use kernel::hrtimer::{HrTimer, HrTimerCallback, Restart};
//!
//! struct Ticks(AtomicU32);
//!
//! impl HrTimerCallback for Ticks {
//!     fn expired(this: &HrTimer<Self>) -> Restart {
//!         match this.0.fetch_add(1, Ordering::Relaxed) {
//!             0..=2 => Restart::At(this.expires_ns() + 1_000_000),
//!             _ => Restart::No,
//!         }
//!     }
//! }
//!
//! let timer = KBox::pin_init(HrTimer::new(Ticks(AtomicU32::new(0))), GFP_KERNEL)?;
//! timer.start_rel(1_000_000);
//! assert!(timer.is_armed());
//! timer.cancel();
//! assert!(!timer.is_armed());
//! # Ok::<(), Error>(())
//! ```

use crate::{bindings, container_of, prelude::*, types::Opaque};
use core::ops::Deref;

/// Absolute time on the arming CPU, handler in hard interrupt context.
const MODE_ABS: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_ABS_PINNED_HARD;
/// Time from now on the arming CPU, handler in hard interrupt context.
const MODE_REL: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD;

/// Next state of a timer that has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// The timer stays as it is: not armed, unless the handler has armed it.
    No,
    /// The timer is armed again for this absolute time in nanoseconds.
    At(u64),
}

/// The data of an [`HrTimer`], and what to do when it expires.
pub trait HrTimerCallback: Sized + Send + Sync + 'static {
    /// Called in hard interrupt context, interrupts off, on the CPU that armed the timer.
    ///
    /// It may take a run-queue lock, and it may arm the timer itself.
    fn expired(this: &HrTimer<Self>) -> Restart;
}

/// A timer together with the data of its handler.
///
/// # Invariants
///
/// `timer` is initialised, and its function is [`HrTimer::run`] of the same `T`.
#[pin_data(PinnedDrop)]
pub struct HrTimer<T: HrTimerCallback> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    data: T,
}

// SAFETY: A `struct hrtimer` may be handled by any thread; `T` is `Send`.
unsafe impl<T: HrTimerCallback> Send for HrTimer<T> {}

// SAFETY: The functions of a `struct hrtimer` lock its base, so they may be called concurrently;
// `T` is `Sync`.
unsafe impl<T: HrTimerCallback> Sync for HrTimer<T> {}

impl<T: HrTimerCallback> HrTimer<T> {
    /// Creates a timer that is not armed.
    pub fn new(data: T) -> impl PinInit<Self> {
        // INVARIANT: The closure initialises the timer and sets its function.
        pin_init!(Self {
            timer <- Opaque::ffi_init(|slot: *mut bindings::hrtimer| {
                // SAFETY: `slot` is valid for writes.
                unsafe {
                    bindings::hrtimer_init(slot, bindings::CLOCK_MONOTONIC as _, MODE_ABS)
                };
                // SAFETY: `slot` was just initialised, and nobody else knows it yet.
                unsafe { (*slot).function = Some(Self::run) };
            }),
            data,
        })
    }

    /// Arms the timer for an absolute time, on the CPU of the caller.
    ///
    /// If it was armed already, the new time replaces the old one. May be called in any context but
    /// an NMI; a run-queue lock may be held.
    pub fn start_abs(&self, ns: u64) {
        self.start(ns, MODE_ABS)
    }

    /// Arms the timer for a time from now. See [`HrTimer::start_abs`].
    pub fn start_rel(&self, ns: u64) {
        self.start(ns, MODE_REL)
    }

    fn start(&self, ns: u64, mode: bindings::hrtimer_mode) {
        let time = i64::try_from(ns).unwrap_or(i64::MAX);
        // SAFETY: By the type invariant, the timer is initialised. It stays where it is until it is
        // dropped, since it is pinned, and dropping it cancels it.
        unsafe { bindings::hrtimer_start_range_ns(self.timer.get(), time, 0, mode) };
    }

    /// Disarms the timer if its handler is not running.
    ///
    /// Returns `false` if the handler is running on some CPU at this moment. May be called in any
    /// context but an NMI; a run-queue lock may be held.
    pub fn try_cancel(&self) -> bool {
        // SAFETY: By the type invariant, the timer is initialised.
        unsafe { bindings::hrtimer_try_to_cancel(self.timer.get()) >= 0 }
    }

    /// Disarms the timer and waits until its handler is not running.
    ///
    /// Must not be called by the handler, nor with a lock held that the handler takes. A handler
    /// that arms its own timer is waited for, and the timer disarmed again.
    pub fn cancel(&self) {
        // SAFETY: By the type invariant, the timer is initialised.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }

    /// Returns whether the timer is armed. While the handler runs it is not, unless armed again.
    #[inline]
    pub fn is_armed(&self) -> bool {
        // SAFETY: By the type invariant, the timer is initialised.
        unsafe { bindings::hrtimer_is_queued(self.timer.get()) }
    }

    /// Returns the time for which the timer was last armed, in nanoseconds of `CLOCK_MONOTONIC`.
    ///
    /// If another CPU is arming the timer at the same time, it may be the old or the new time.
    #[inline]
    pub fn expires_ns(&self) -> u64 {
        // SAFETY: By the type invariant, the timer is initialised. The read is volatile because C
        // code writes the field under a lock which is not held here.
        let expires =
            unsafe { core::ptr::addr_of!((*self.timer.get()).node.expires).read_volatile() };
        expires.max(0) as u64
    }

    /// The function of the `struct hrtimer`.
    ///
    /// # Safety
    ///
    /// `timer` must be the `timer` of a valid [`HrTimer<T>`].
    unsafe extern "C" fn run(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: By the function's requirements, `timer` lies in an `HrTimer<T>`, which is valid
        // until the handler has returned, since dropping it waits for that.
        let this = unsafe { &*container_of!(timer, HrTimer<T>, timer) };

        // Starting it here, rather than letting C code do so after the return, is right also when
        // the handler or another CPU has armed it in the meantime.
        if let Restart::At(ns) = T::expired(this) {
            this.start_abs(ns);
        }
        bindings::hrtimer_restart_HRTIMER_NORESTART
    }
}

impl<T: HrTimerCallback> Deref for HrTimer<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}

#[pinned_drop]
impl<T: HrTimerCallback> PinnedDrop for HrTimer<T> {
    fn drop(self: Pin<&mut Self>) {
        self.cancel();
    }
}
