// SPDX-License-Identifier: GPL-2.0

//! Performance counters that the kernel keeps for itself.
//!
//! A counter counts, and if it is made with [`KernelCounter::with_overflow`] it also interrupts
//! when it has counted as much as [`KernelCounter::overflow_after`] said last. The interrupt may be
//! an NMI.
//!
//! C header: [`include/linux/perf_event.h`](srctree/include/linux/perf_event.h)

/// Hardware event that a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HardwareEvent {
    /// Retired instructions.
    Instructions,
    /// CPU cycles.
    CpuCycles,
}

/// Event and scope of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterOptions {
    /// The event to count.
    pub event: HardwareEvent,
    /// Leave out user space.
    pub exclude_user: bool,
    /// Leave out the kernel.
    pub exclude_kernel: bool,
    /// Leave out the hypervisor.
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

/// Handler for the overflow of a counter.
pub trait OverflowHandler: Sync + 'static {
    /// Called on the counter's CPU, in an interrupt that may be an NMI.
    ///
    /// It must not take a lock that is taken elsewhere; an [`IrqWork`](crate::irq_work::IrqWork)
    /// does the rest.
    fn overflow(&self);
}

/// Count of a counter, and the time for which it could count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The count.
    pub count: u64,
    /// For how long the counter was wanted, in nanoseconds.
    pub enabled_ns: u64,
    /// For how long of that it was on the PMU: less if it shares a hardware counter with others.
    pub running_ns: u64,
}

#[cfg(CONFIG_PERF_EVENTS)]
mod counter {
    use super::{CounterOptions, HardwareEvent, OverflowHandler, Reading};
    use crate::{
        bindings,
        cpu::{self, InterruptsOff},
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
    ///     Ok(counter) => {
    ///         pr_info!("{:?} instructions so far\n", counter.read_local());
    ///         // Cheaper, where interrupts are off anyway.
    ///         let count = cpu::without_interrupts(|off| counter.read_active(off));
    ///         pr_info!("now {:?}\n", count);
    ///     }
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
            Self::create(cpu, options, None, ptr::null_mut())
        }

        /// Creates a counter that calls `handler` when it overflows. Sleeps.
        ///
        /// It does so for the first time after [`KernelCounter::overflow_after`]. Fails as
        /// [`KernelCounter::new`] does, and if the PMU can't interrupt.
        pub fn with_overflow<T: OverflowHandler>(
            cpu: u32,
            options: &CounterOptions,
            handler: &'static T,
        ) -> Result<Self> {
            let context = ptr::from_ref(handler).cast_mut().cast();
            Self::create(cpu, options, Some(Self::overflow::<T>), context)
        }

        /// The overflow handler of the `struct perf_event`.
        ///
        /// # Safety
        ///
        /// The event was created with the address of a static `T` as the context.
        unsafe extern "C" fn overflow<T: OverflowHandler>(
            event: *mut bindings::perf_event,
            _data: *mut bindings::perf_sample_data,
            _regs: *mut bindings::pt_regs,
        ) {
            // SAFETY: The event is valid during the call; the context is as the function requires.
            let handler = unsafe { &*(*event).overflow_handler_context.cast::<T>() };
            handler.overflow();
        }

        fn create(
            cpu: u32,
            options: &CounterOptions,
            handler: bindings::perf_overflow_handler_t,
            context: *mut core::ffi::c_void,
        ) -> Result<Self> {
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
            if handler.is_some() {
                // So long that it never ends by itself.
                attr.__bindgen_anon_1.sample_period = 1 << 62;
            }

            // SAFETY: `attr` is valid for the call, which copies it. No task is named, which may
            // be null; `handler` is null or `Self::overflow` with the context that it requires.
            let event = from_err_ptr(unsafe {
                bindings::perf_event_create_kernel_counter(
                    &mut attr,
                    cpu as _,
                    ptr::null_mut(),
                    handler,
                    context,
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
        pub fn read_local(&self) -> Result<Reading> {
            let mut reading = Reading {
                count: 0,
                enabled_ns: 0,
                running_ns: 0,
            };
            // SAFETY: By the type invariant, the counter is valid. The results are valid for
            // writes.
            to_result(unsafe {
                bindings::perf_event_read_local(
                    self.event.as_ptr(),
                    &mut reading.count,
                    &mut reading.enabled_ns,
                    &mut reading.running_ns,
                )
            })?;
            Ok(reading)
        }

        /// Reads the count alone, on the counter's own CPU: cheaper than
        /// [`KernelCounter::read_local`].
        ///
        /// Fails with [`EBUSY`] if the counter is not on the PMU of this CPU.
        #[inline]
        pub fn read_active(&self, _: InterruptsOff<'_>) -> Result<u64> {
            let mut count = 0;
            // SAFETY: By the type invariant, the counter is valid. `count` is valid for writes. The
            // function looks whether the counter is on this CPU, from which it does not go while
            // interrupts are off.
            to_result(unsafe {
                bindings::perf_event_read_active(self.event.as_ptr(), &mut count)
            })?;
            Ok(count)
        }

        /// Makes the counter overflow after `count` more events, on the counter's own CPU.
        ///
        /// The count continues as before. Fails with [`EBUSY`] if the counter is not on the PMU of
        /// this CPU.
        pub fn overflow_after(&self, _: InterruptsOff<'_>, count: u64) -> Result {
            // SAFETY: As in `read_active`.
            to_result(unsafe {
                bindings::perf_event_overflow_after(self.event.as_ptr(), count.clamp(2, 1 << 62))
            })
        }

        /// Takes the counter off the PMU, on its own CPU; elsewhere nothing happens.
        pub fn disable_local(&self, _: InterruptsOff<'_>) {
            if cpu::current() != self.cpu {
                return;
            }
            // SAFETY: By the type invariant, the counter is valid, and it is one of this CPU, which
            // stays this one while interrupts are off.
            unsafe { bindings::perf_event_disable_local(self.event.as_ptr()) };
        }

        /// Makes the counter stand still without a sign of it, for tests: on its own CPU.
        pub fn halt(&self, _: InterruptsOff<'_>) {
            // SAFETY: As in `read_active`.
            unsafe { bindings::perf_event_halt(self.event.as_ptr()) };
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
    use super::{CounterOptions, OverflowHandler, Reading};
    use crate::{cpu::InterruptsOff, prelude::*};
    use core::convert::Infallible;

    /// A counter, in a kernel without any: there is no value of this type.
    pub struct KernelCounter(Infallible);

    impl KernelCounter {
        /// Fails with [`ENODEV`], since the kernel has no performance counters.
        pub fn new(_cpu: u32, _options: &CounterOptions) -> Result<Self> {
            Err(ENODEV)
        }

        /// Fails with [`ENODEV`], since the kernel has no performance counters.
        pub fn with_overflow<T: OverflowHandler>(
            _cpu: u32,
            _options: &CounterOptions,
            _handler: &'static T,
        ) -> Result<Self> {
            Err(ENODEV)
        }

        /// Reads the counter.
        pub fn read_local(&self) -> Result<Reading> {
            match self.0 {}
        }

        /// Reads the count alone.
        pub fn read_active(&self, _: InterruptsOff<'_>) -> Result<u64> {
            match self.0 {}
        }

        /// Makes the counter overflow after `count` more events.
        pub fn overflow_after(&self, _: InterruptsOff<'_>, _count: u64) -> Result {
            match self.0 {}
        }

        /// Takes the counter off the PMU.
        pub fn disable_local(&self, _: InterruptsOff<'_>) {
            match self.0 {}
        }

        /// Makes the counter stand still.
        pub fn halt(&self, _: InterruptsOff<'_>) {
            match self.0 {}
        }

        /// Returns the CPU whose events are counted.
        pub fn cpu(&self) -> u32 {
            match self.0 {}
        }
    }
}

pub use counter::KernelCounter;
