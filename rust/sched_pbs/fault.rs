// SPDX-License-Identifier: GPL-2.0

//! Faults of a counter, made on purpose: for tests of what the class does about them.
//!
//! Each lasts until the class has got a new counter.

use super::{cpu::Cpu, sched_class};
use kernel::{cpu::InterruptsOff, prelude::*};

/// What can be made to happen, as it is written to `cpuN/fault`.
pub(crate) const NAMES: &str = "stop take multiplex silence";

/// Makes it happen to the counter of `cpu`; fails with `ENODEV` if that has none, as without a plan.
pub(crate) fn inject(cpu: &&'static Cpu, text: &str) -> Result {
    match text {
        // The hardware counter stands still, and nobody says so.
        "stop" => on_counter(cpu, |off, clock| {
            clock.counter().map(|counter| counter.halt(off))
        }),
        // The counter is not on the PMU any more.
        "take" => on_counter(cpu, |off, clock| {
            clock.counter().map(|counter| counter.disable_local(off))
        }),
        // The counter was on the PMU for a part of the time.
        "multiplex" => on_counter(cpu, |_, clock| clock.pretend_multiplexed()),
        // The counter's interrupts do not come.
        "silence" => on_counter(cpu, |_, clock| clock.counter().map(|_| cpu.silence())),
        _ => Err(EINVAL),
    }
}

fn on_counter(
    cpu: &'static Cpu,
    mut break_it: impl FnMut(InterruptsOff<'_>, &mut super::clock::InsnClock) -> Option<()> + Send,
) -> Result {
    let mut done = None;
    sched_class::call_on(cpu.number(), || {
        done = cpu
            .lock(|rq, _, state| break_it(rq.interrupts_off(), &mut state.insn_clock))
            .flatten();
    })?;
    done.ok_or(ENODEV)
}
