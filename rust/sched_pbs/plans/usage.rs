// SPDX-License-Identifier: GPL-2.0

//! What a CPU has only while it is used: while it has a plan that goes on, or threads of one.
//!
//! It has its counter then, the class is asked for a task, and Linux around the class takes the CPU
//! for one that has a plan. So a machine without plans does nothing for them, and its counters
//! belong to others. All of this is done in process context, with the lock of CPU hotplug and the
//! control mutex held.

use super::{
    calibrate,
    control::{self, Control},
};
use crate::{
    linux::entity,
    pbs_core::EventKind,
    percpu::{cpu::Cpu, cpus},
    state::insn_clock::{Tier, TierCause},
};

/// The CPU is about to get a plan.
pub(crate) fn take(_control: &mut Control, cpu: &'static Cpu) {
    if !cpu.usage.set_used(true) {
        entity::use_class(true);
    } else if cpu.counter.tier() == Tier::Clock || has_counter(cpu) {
        // It counts, or will be tried again. A CPU that has gone and come has no counter, even if a
        // thread of its plan was left.
        return;
    }
    let tier = cpu.counter.best_tier();
    let mut counter = calibrate::counter(cpu, tier);
    // If it is not to be had, that is found out as of one that fails later: the first look at it
    // says so.
    drop(cpu.lock(|_, _, state| state.insn_clock.install(counter.take(), tier)));
}

/// The CPU may have lost its plan and its last thread: then it gives back what it has for them.
///
/// Whoever takes its plan away asks for that, whoever takes it the last seat, and the last slot.
pub(crate) fn give_back(_control: &mut Control, cpu: &'static Cpu) {
    // Nobody can take a seat without a plan, which nobody brings as long as the mutex is held.
    if !may_give_back(cpu) {
        return;
    }
    cpu.usage.set_used(false);
    let best = cpu.counter.best_tier();
    let counter = cpu.lock(|rq, cpu, state| {
        entity::set_plan(rq, false);
        if cpu.counter.tier() != best {
            let cause = TierCause::Returned as u16;
            state.tell(cpu, EventKind::Tier, None, cause, best as u64, 0);
        }
        state.insn_clock.install(None, Tier::Clock)
    });
    // Outside the lock, as it sleeps.
    drop(counter);
    // That is how it will try to count again.
    cpu.counter.set_tier(best);
    entity::use_class(false);
}

/// The same for all CPUs. Takes both locks.
pub(crate) fn give_all_back() {
    let Ok(control) = control::get() else { return };
    if !cpus::all().any(may_give_back) {
        return;
    }
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = control.lock();
    for cpu in cpus::all() {
        give_back(&mut control, cpu);
    }
}

fn has_counter(cpu: &Cpu) -> bool {
    cpu.lock(|_, _, state| state.insn_clock.counter().is_some()) == Some(true)
}

fn may_give_back(cpu: &Cpu) -> bool {
    cpu.usage.is_used() && cpu.lock(|_, _, state| state.is_unused()) != Some(false)
}
