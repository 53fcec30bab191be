// SPDX-License-Identifier: GPL-2.0

//! Single instances, made by the initcall.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};
use kernel::{alloc::KBox, prelude::*};

/// The one instance of a type. The class is built in: a published instance stays for ever.
///
/// # Invariants
///
/// The pointer is null, or valid and read alone for as long as the kernel runs.
pub(crate) struct Published<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Published<T> {
    /// The absence of an instance.
    pub(crate) const fn none() -> Self {
        // INVARIANT: It is null.
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The instance, once there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: By the type's invariants.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Makes `value` the instance.
    pub(crate) fn publish(&self, value: Pin<KBox<T>>) {
        // INVARIANT: The value is leaked, and from here on only shared.
        self.0
            .store(ptr::from_ref(leak(value)).cast_mut(), Ordering::Release);
    }
}

/// Keeps a value for as long as the kernel runs.
pub(crate) fn leak<T>(pinned: Pin<KBox<T>>) -> &'static T {
    // SAFETY: Nothing moves out of a shared reference, and the memory is never freed.
    unsafe { &*KBox::into_raw(Pin::into_inner_unchecked(pinned)) }
}
