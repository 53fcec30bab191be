// SPDX-License-Identifier: GPL-2.0

//! Faults made on purpose, for tests of the class's reaction.
//!
//! The faults of a counter last until the class has got a new one, those of the class until the
//! plan of the CPU has gone. Without `CONFIG_SCHED_CLASS_PBS_FAULTS` there are none.

#[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
pub(crate) use provoked::{inject, NAMES};

#[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
mod provoked {
    use crate::{
        linux::sched_class,
        percpu::cpu::Cpu,
        state::faults::Fault,
        state::{insn_clock::InsnClock, State},
    };
    use kernel::{clock, cpu::InterruptsOff, prelude::*};

    /// Names of the faults, as they are written to `cpuN/fault`.
    pub(crate) const NAMES: &str =
        "stop take multiplex silence decision wake_up timer count hog state";

    /// Longest time for which a hog has the CPU, if its plan is not dropped before.
    const HOG_NS: u64 = 60_000_000_000;

    /// Injects the fault into `cpu`.
    pub(crate) fn inject(cpu: &&'static Cpu, text: &str) -> Result {
        match text {
            // The hardware counter stands still, without a report.
            "stop" => on_counter(cpu, |off, clock| {
                clock.counter().map(|counter| counter.halt(off))
            }),
            // The counter is not on the PMU any more.
            "take" => on_counter(cpu, |off, clock| {
                clock.counter().map(|counter| counter.disable_local(off))
            }),
            // The counter was on the PMU for a part of the time.
            "multiplex" => on_counter(cpu, |_, clock| clock.pretend_multiplexed()),
            // The counter's interrupts do not arrive.
            "silence" => on_counter(cpu, |_, clock| {
                clock.counter().map(|_| cpu.counter.silence())
            }),
            "decision" => fail(cpu, Fault::Decision),
            "wake_up" => fail(cpu, Fault::WakeUp),
            "timer" => fail(cpu, Fault::Timer),
            // The counter stands still, and the detection of that fails as well.
            "count" => {
                fail(cpu, Fault::Look)?;
                on_counter(cpu, |off, clock| {
                    clock.counter().map(|counter| counter.halt(off))
                })
            }
            "hog" => hog(cpu),
            "state" => on_state(cpu, |_, state| {
                state.node.as_mut()?.contradict();
                Some(())
            }),
            _ => Err(EINVAL),
        }
    }

    /// Occupies the CPU with a task that is more urgent than any plan.
    fn hog(cpu: &'static Cpu) -> Result {
        kernel::cpu::stop_on(cpu.id(), || {
            let since_ns = clock::monotonic_ns();
            while cpu.usage.has_plan() && clock::monotonic_ns() - since_ns < HOG_NS {
                core::hint::spin_loop();
            }
        })
    }

    fn fail(cpu: &'static Cpu, fault: Fault) -> Result {
        // SAFETY: This sleeps, which is allowed here.
        unsafe { kernel::bindings::pbs_fault_enable() };
        on_state(cpu, |_, state| {
            state.node.as_ref()?;
            state.faults.add(fault);
            Some(())
        })
    }

    fn on_counter(
        cpu: &'static Cpu,
        mut break_it: impl FnMut(InterruptsOff<'_>, &mut InsnClock) -> Option<()> + Send,
    ) -> Result {
        on_state(cpu, |off, state| break_it(off, &mut state.insn_clock))
    }

    /// Breaks a part of the CPU's state, on the CPU itself. Fails with `ENODEV` if that part does
    /// not exist.
    fn on_state(
        cpu: &'static Cpu,
        mut break_it: impl FnMut(InterruptsOff<'_>, &mut State) -> Option<()> + Send,
    ) -> Result {
        let mut done = None;
        sched_class::call_on(cpu.number(), || {
            done = cpu
                .lock(|rq, _, state| break_it(rq.interrupts_off(), state))
                .flatten();
        })?;
        done.ok_or(ENODEV)
    }
}
