// SPDX-License-Identifier: GPL-2.0

//! Notification of a panic of the kernel.
//!
//! C header: [`include/linux/panic_notifier.h`](srctree/include/linux/panic_notifier.h)

use crate::{
    bindings,
    error::{to_result, Result},
    ffi::{c_int, c_ulong, c_void},
    types::Opaque,
};

/// Registration of a function that is called when the kernel panics.
#[repr(transparent)]
pub struct Notifier(Opaque<bindings::notifier_block>);

// SAFETY: The list that it is in has a lock of its own.
unsafe impl Sync for Notifier {}

impl Notifier {
    /// `function` is called with interrupts off, on the one CPU that is left: it must not wait for
    /// anything, as no other CPU continues.
    pub const fn new<T: Panics>() -> Self {
        Self(Opaque::new(bindings::notifier_block {
            notifier_call: Some(call::<T>),
            next: core::ptr::null_mut(),
            priority: 0,
        }))
    }

    /// Registers the function for ever.
    pub fn register(&'static self) -> Result {
        // SAFETY: The block lives for ever, and nobody but the list writes to it.
        to_result(unsafe {
            bindings::atomic_notifier_chain_register(
                core::ptr::addr_of_mut!(bindings::panic_notifier_list),
                self.0.get(),
            )
        })
    }
}

/// Reaction to a panic of the kernel.
pub trait Panics {
    /// See [`Notifier::new`].
    fn panics();
}

/// # Safety
///
/// C code may call this in any context.
unsafe extern "C" fn call<T: Panics>(
    _: *mut bindings::notifier_block,
    _: c_ulong,
    _: *mut c_void,
) -> c_int {
    T::panics();
    0
}
