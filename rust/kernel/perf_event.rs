// SPDX-License-Identifier: GPL-2.0

//! Performance counters that the kernel keeps for itself.
//!
//! C header: [`include/linux/perf_event.h`](srctree/include/linux/perf_event.h)

/// What a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HardwareEvent {
    /// Retired instructions.
    Instructions,
    /// CPU cycles.
    CpuCycles,
}

/// What a counter counts, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterOptions {
    /// The event to count.
    pub event: HardwareEvent,
    /// Do not count in user space.
    pub exclude_user: bool,
    /// Do not count in the kernel.
    pub exclude_kernel: bool,
    /// Do not count in the hypervisor.
    pub exclude_hv: bool,
    /// Stay on the PMU always; fail rather than share a hardware counter with others.
    pub pinned: bool,
}

impl CounterOptions {
    /// The instructions that are retired in user space, on a hardware counter of their own.
    pub const fn user_instructions() -> Self {
        Self {
            event: HardwareEvent::Instructions,
            exclude_user: false,
            exclude_kernel: true,
            exclude_hv: true,
            pinned: true,
        }
    }
}

#[cfg(CONFIG_PERF_EVENTS)]
mod counter {
    use super::{CounterOptions, HardwareEvent};
    use crate::{
        bindings, cpu,
        error::{from_err_ptr, to_result},
        prelude::*,
    };
    use core::ptr::{self, NonNull};

    /// A counter of everything that runs on one CPU.
    ///
    /// When its CPU goes offline the counter dies: from then on it can't be read, not even once
    /// the CPU is back. Whoever needs it longer creates it anew when the CPU comes online.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{cpu, perf_event::{CounterOptions, KernelCounter}};
    ///
    /// match KernelCounter::new(cpu::current(), &CounterOptions::user_instructions()) {
    ///     Ok(counter) => pr_info!("{:?} instructions so far\n", counter.read_local()),
    ///     Err(error) => pr_info!("no counter: {:?}\n", error),
    /// }
    /// ```
    ///
    /// # Invariants
    ///
    /// `event` is a counter of `cpu` that this owns.
    pub struct KernelCounter {
        event: NonNull<bindings::perf_event>,
        cpu: u32,
    }

    // SAFETY: A `struct perf_event` may be used and released by any thread.
    unsafe impl Send for KernelCounter {}

    // SAFETY: A `struct perf_event` may be read concurrently.
    unsafe impl Sync for KernelCounter {}

    impl KernelCounter {
        /// Creates a counter on an online CPU and starts it. Sleeps.
        ///
        /// Fails with [`ENOENT`] or another error if the machine has no such counter.
        pub fn new(cpu: u32, options: &CounterOptions) -> Result<Self> {
            if !cpu::is_online(cpu) {
                return Err(ENODEV);
            }
            let mut attr = bindings::perf_event_attr {
                type_: bindings::perf_type_id_PERF_TYPE_HARDWARE,
                size: core::mem::size_of::<bindings::perf_event_attr>() as u32,
                config: match options.event {
                    HardwareEvent::Instructions => bindings::perf_hw_id_PERF_COUNT_HW_INSTRUCTIONS,
                    HardwareEvent::CpuCycles => bindings::perf_hw_id_PERF_COUNT_HW_CPU_CYCLES,
                }
                .into(),
                ..Default::default()
            };
            attr.set_exclude_user(options.exclude_user.into());
            attr.set_exclude_kernel(options.exclude_kernel.into());
            attr.set_exclude_hv(options.exclude_hv.into());
            attr.set_pinned(options.pinned.into());

            // SAFETY: `attr` is valid for the call, which copies it. No task and no overflow
            // handler are named, and both may be null.
            let event = from_err_ptr(unsafe {
                bindings::perf_event_create_kernel_counter(
                    &mut attr,
                    cpu as _,
                    ptr::null_mut(),
                    None,
                    ptr::null_mut(),
                )
            })?;
            // INVARIANT: The call has given a new counter of `cpu` to its caller.
            Ok(Self {
                event: NonNull::new(event).ok_or(ENODEV)?,
                cpu,
            })
        }

        /// Reads the counter, on its own CPU only.
        ///
        /// May be called in any context, NMIs and sections under a run-queue lock included. Fails
        /// with [`EINVAL`] on another CPU, and with [`EBUSY`] if the PMU has no room for the
        /// counter.
        #[inline]
        pub fn read_local(&self) -> Result<u64> {
            let mut value = 0;
            // SAFETY: By the type invariant, the counter is valid. `value` is valid for writes,
            // and the other results may be null.
            to_result(unsafe {
                bindings::perf_event_read_local(
                    self.event.as_ptr(),
                    &mut value,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            })?;
            Ok(value)
        }

        /// Returns the CPU whose events are counted.
        pub fn cpu(&self) -> u32 {
            self.cpu
        }
    }

    impl Drop for KernelCounter {
        /// Stops the counter and gives it back. Sleeps.
        fn drop(&mut self) {
            // SAFETY: By the type invariant, this owns the counter.
            unsafe { bindings::perf_event_release_kernel(self.event.as_ptr()) };
        }
    }
}

#[cfg(not(CONFIG_PERF_EVENTS))]
mod counter {
    use super::CounterOptions;
    use crate::prelude::*;
    use core::convert::Infallible;

    /// A counter, in a kernel without any: there is no value of this type.
    pub struct KernelCounter(Infallible);

    impl KernelCounter {
        /// Fails with [`ENODEV`], since the kernel has no performance counters.
        pub fn new(_cpu: u32, _options: &CounterOptions) -> Result<Self> {
            Err(ENODEV)
        }

        /// Reads the counter.
        pub fn read_local(&self) -> Result<u64> {
            match self.0 {}
        }

        /// Returns the CPU whose events are counted.
        pub fn cpu(&self) -> u32 {
            match self.0 {}
        }
    }
}

pub use counter::KernelCounter;
