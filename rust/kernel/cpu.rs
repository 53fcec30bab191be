// SPDX-License-Identifier: GPL-2.0

//! The CPUs of the machine.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)
//!
//! C header: [`include/linux/cpu.h`](srctree/include/linux/cpu.h)

use crate::{bindings, error::to_result, ffi::c_int, ffi::c_void, prelude::*};
use core::marker::PhantomData;

/// Returns the CPU on which this runs.
///
/// It stays the same only while the caller can't move: with preemption or interrupts off, or if it
/// is bound to one CPU.
#[inline]
pub fn current() -> u32 {
    // SAFETY: May be called anywhere.
    unsafe { bindings::raw_smp_processor_id() }
}

/// Returns one more than the greatest number that a CPU can have. Stays the same after boot.
pub fn nr_cpu_ids() -> u32 {
    // SAFETY: May be called anywhere.
    unsafe { bindings::get_nr_cpu_ids() }
}

/// Returns how many CPUs can ever come online. Stays the same after boot.
pub fn num_possible() -> u32 {
    // SAFETY: May be called anywhere.
    unsafe { bindings::num_possible_cpus() }
}

/// The number of a CPU that can come online, online or not.
///
/// # Invariants
///
/// There is such a CPU.
///
/// # Examples
///
/// ```
/// use kernel::cpu::PossibleCpu;
///
/// assert!(PossibleCpu::new(u32::MAX).is_none());
/// assert_eq!(PossibleCpu::new(0).map(PossibleCpu::number), Some(0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PossibleCpu(u32);

impl PossibleCpu {
    /// The CPU of that number, if there is one.
    pub fn new(number: u32) -> Option<Self> {
        // SAFETY: May be called with any number.
        let is_possible = unsafe { bindings::cpu_possible(number) };
        // INVARIANT: As was just asked; it does not change after boot.
        is_possible.then_some(Self(number))
    }

    /// Returns the number of the CPU.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The proof that interrupts are off on this CPU: its owner is neither interrupted nor moved to
/// another one.
///
/// # Invariants
///
/// Interrupts are off for all of `'a`.
///
/// # Examples
///
/// ```
/// use kernel::cpu;
///
/// // Both are of the same CPU.
/// cpu::without_interrupts(|_| assert_eq!(cpu::current(), cpu::current()));
/// ```
#[derive(Clone, Copy)]
pub struct InterruptsOff<'a>(PhantomData<(&'a (), *mut ())>);

impl InterruptsOff<'_> {
    /// # Safety
    ///
    /// Interrupts stay off as long as the new value or a copy of it exists.
    #[inline]
    pub unsafe fn new() -> Self {
        // INVARIANT: The caller's promise.
        Self(PhantomData)
    }
}

/// Calls `function` with interrupts off.
pub fn without_interrupts<R>(function: impl FnOnce(InterruptsOff<'_>) -> R) -> R {
    // SAFETY: May be called anywhere; they are restored below.
    let flags = unsafe { bindings::local_irq_save() };
    // SAFETY: They were just switched off. The value can't leave the call, as its life may be of
    // any length.
    let result = function(unsafe { InterruptsOff::new() });
    // SAFETY: The flags are those of above.
    unsafe { bindings::local_irq_restore(flags) };
    result
}

/// Whether the CPU takes tasks: it is online and not about to go.
pub fn is_active(cpu: u32) -> bool {
    // SAFETY: It only looks a bit up; a number that is no CPU's is not active.
    cpu < nr_cpu_ids() && unsafe { bindings::cpu_active(cpu) }
}

/// Returns whether a CPU is online. It stays so only while a [`HotplugReadGuard`] is held.
pub fn is_online(cpu: u32) -> bool {
    // SAFETY: May be called with any number.
    unsafe { bindings::cpu_online(cpu) }
}

/// Runs `function` on `cpu`, in process context there, and waits for it. Sleeps.
///
/// Fails with [`ENXIO`] if the CPU is not online.
pub fn call_on<F: FnMut() + Send>(cpu: u32, mut function: F) -> Result {
    /// # Safety
    ///
    /// `data` points to an `F` that nobody else uses during the call.
    unsafe extern "C" fn call<F: FnMut()>(data: *mut c_void) -> c_int {
        // SAFETY: `data` is the closure below, which its owner does not touch while it waits.
        unsafe { (*data.cast::<F>())() };
        0
    }

    if !is_online(cpu) {
        return Err(ENXIO);
    }
    // SAFETY: The closure outlives the call, since the call waits for its end, and may be sent.
    to_result(unsafe {
        bindings::smp_call_on_cpu(
            cpu,
            Some(call::<F>),
            core::ptr::addr_of_mut!(function).cast(),
            false,
        )
    })
}

/// Runs `function` on `cpu`, in the thread of the highest scheduling class, and waits for it. Until
/// its end that CPU executes nothing else but interrupts. Sleeps.
///
/// Fails with [`ENOENT`] if the CPU is not online.
#[cfg(CONFIG_SMP)]
pub fn stop_on<F: FnMut() + Send>(cpu: PossibleCpu, mut function: F) -> Result {
    /// # Safety
    ///
    /// `data` points to an `F` that nobody else uses during the call.
    unsafe extern "C" fn call<F: FnMut()>(data: *mut c_void) -> c_int {
        // SAFETY: `data` is the closure below, which its owner does not touch while it waits.
        unsafe { (*data.cast::<F>())() };
        0
    }

    // SAFETY: The closure outlives the call, since the call waits for its end, and may be sent.
    to_result(unsafe {
        bindings::stop_one_cpu(
            cpu.number(),
            Some(call::<F>),
            core::ptr::addr_of_mut!(function).cast(),
        )
    })
}

/// Goes through all CPUs that are online.
///
/// # Examples
///
/// ```
/// use kernel::cpu;
///
/// let _guard = cpu::hotplug_read_lock();
/// assert!(cpu::online().all(|cpu| cpu::PossibleCpu::new(cpu).is_some()));
/// assert!(cpu::online().count() <= cpu::num_possible() as usize);
/// ```
pub fn online() -> impl Iterator<Item = u32> {
    (0..nr_cpu_ids()).filter(|cpu| is_online(*cpu))
}

/// Guard during which no CPU comes or goes.
///
/// # Invariants
///
/// The task that holds this holds the lock of CPU hotplug for reading.
#[must_use = "CPUs come and go again when this is dropped"]
pub struct HotplugReadGuard {
    _not_send: PhantomData<*mut ()>,
}

/// Keeps CPUs from coming and going. Sleeps; not in a hotplug callback, where it is so already.
pub fn hotplug_read_lock() -> HotplugReadGuard {
    // SAFETY: May be called wherever sleeping is allowed.
    unsafe { bindings::cpus_read_lock() };
    // INVARIANT: The lock was just taken.
    HotplugReadGuard {
        _not_send: PhantomData,
    }
}

impl Drop for HotplugReadGuard {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, this task holds the lock.
        unsafe { bindings::cpus_read_unlock() };
    }
}
