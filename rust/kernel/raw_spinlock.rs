// SPDX-License-Identifier: GPL-2.0

//! Spinlocks that can be taken in any context but an NMI.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::{
    bindings,
    ffi::{c_char, c_ulong},
    sync::lock::{Backend, Lock},
};

/// Creates a [`RawSpinLock`] initialiser with the given name and a newly-created lock class.
#[macro_export]
macro_rules! new_raw_spinlock {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::raw_spinlock::RawSpinLock::new(
            $inner, $crate::optional_name!($($name)?), $crate::static_lock_class!())
    };
}
pub use new_raw_spinlock;

/// A spinlock that spins also on real-time kernels, and keeps interrupts off while it is held.
///
/// This makes it fit for data that are used with a run-queue lock held. What is done under it must
/// be short, and must not sleep, allocate or wake up.
///
/// # Examples
///
/// ```
/// use kernel::raw_spinlock::{new_raw_spinlock, RawSpinLock};
///
/// let lock = KBox::pin_init(new_raw_spinlock!(1, "example"), GFP_KERNEL)?;
/// *lock.lock() += 1;
/// assert_eq!(*lock.lock(), 2);
/// # Ok::<(), Error>(())
/// ```
pub type RawSpinLock<T> = Lock<T, RawSpinLockBackend>;

/// A kernel `raw_spinlock_t` lock backend.
pub struct RawSpinLockBackend;

// SAFETY: The kernel's `raw_spinlock_t` ensures mutual exclusion. `relock` uses the default
// implementation that always calls the same locking method.
unsafe impl Backend for RawSpinLockBackend {
    type State = bindings::raw_spinlock_t;
    /// The interrupt flags from before.
    type GuardState = c_ulong;

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The safety requirements ensure that `ptr` is valid for writes, and `name` and
        // `key` are valid for read indefinitely.
        unsafe { bindings::raw_spin_lock_init_key(ptr, name, key) }
    }

    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The safety requirements of this function ensure that `ptr` points to valid
        // memory, and that it has been initialised before.
        unsafe { bindings::raw_spin_lock_irqsave(ptr) }
    }

    unsafe fn unlock(ptr: *mut Self::State, flags: &Self::GuardState) {
        // SAFETY: The safety requirements of this function ensure that `ptr` is valid and that the
        // caller is the owner of the spinlock; `flags` are what `lock` returned.
        unsafe { bindings::raw_spin_unlock_irqrestore(ptr, *flags) }
    }
}
