// SPDX-License-Identifier: GPL-2.0

//! Notification of CPUs that come and go.
//!
//! C header: [`include/linux/cpuhotplug.h`](srctree/include/linux/cpuhotplug.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{c_str, cpuhp::{CpuHotplug, Registration}};
//!
//! struct Watcher;
//!
//! impl CpuHotplug for Watcher {
//!     const NAME: &'static CStr = c_str!("example/watcher:online");
//!
//!     fn online(cpu: u32) -> Result {
//!         pr_info!("CPU {} is there\n", cpu);
//!         Ok(())
//!     }
//!
//!     fn offline(cpu: u32) -> Result {
//!         pr_info!("CPU {} is going\n", cpu);
//!         Ok(())
//!     }
//! }
//!
//! let registration = Registration::<Watcher>::new()?;
//! # Ok::<(), Error>(())
//! ```

use crate::{
    bindings,
    error::from_result,
    ffi::{c_int, c_uint},
    prelude::*,
    str::CStr,
};
use core::marker::PhantomData;

/// Handlers for a CPU that comes or goes.
///
/// Both functions are called in process context on the CPU itself, by a thread that is bound to it,
/// and may sleep. Normal tasks can run there at that time.
pub trait CpuHotplug {
    /// The name of the state, as `/sys/devices/system/cpu/hotplug/states` shows it.
    const NAME: &'static CStr;

    /// `cpu` is online. An error makes it go offline again.
    fn online(cpu: u32) -> Result;

    /// `cpu` is about to go offline. An error keeps it online.
    fn offline(cpu: u32) -> Result;
}

/// A registered [`CpuHotplug`]. Dropping it calls [`CpuHotplug::offline`] for all CPUs, and sleeps.
///
/// # Invariants
///
/// `state` was allocated for the functions of `T` and not been removed.
pub struct Registration<T: CpuHotplug> {
    state: bindings::cpuhp_state,
    _functions: PhantomData<fn(T)>,
}

impl<T: CpuHotplug> Registration<T> {
    /// Registers `T` for the dynamic part of the online states (`CPUHP_AP_ONLINE_DYN`), and calls
    /// [`CpuHotplug::online`] for the CPUs that are online already. Sleeps.
    ///
    /// If one of these calls fails, so does this; the others are undone.
    pub fn new() -> Result<Self> {
        // SAFETY: The name and the functions live for ever.
        let ret = unsafe {
            bindings::__cpuhp_setup_state(
                bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
                T::NAME.as_char_ptr(),
                true,
                Some(Self::startup),
                Some(Self::teardown),
                false,
            )
        };
        match u32::try_from(ret) {
            // INVARIANT: A call that does not fail returns the state which it allocated.
            Ok(state) => Ok(Self {
                state: state as _,
                _functions: PhantomData,
            }),
            Err(_) => Err(Error::from_errno(ret)),
        }
    }

    /// # Safety
    ///
    /// C code must call this in process context on `cpu`, which is online.
    unsafe extern "C" fn startup(cpu: c_uint) -> c_int {
        from_result(|| T::online(cpu).map(|()| 0))
    }

    /// # Safety
    ///
    /// C code must call this in process context on `cpu`, which is about to go offline.
    unsafe extern "C" fn teardown(cpu: c_uint) -> c_int {
        from_result(|| T::offline(cpu).map(|()| 0))
    }
}

impl<T: CpuHotplug> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the state is there and belongs to this.
        unsafe { bindings::__cpuhp_remove_state(self.state, true) };
    }
}
