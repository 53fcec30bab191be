// SPDX-License-Identifier: GPL-2.0

//! Resources that a CPU has only while it is used: while it has a plan that continues, or threads
//! of one.
//!
//! A used CPU has its counter, the class is asked for a task, and Linux around the class treats the
//! CPU as one that has a plan. Therefore a machine without plans does nothing for them, and its
//! counters belong to others. All of this is done in process context, with the lock of CPU hotplug
//! and the control mutex held.

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

/// Gives the CPU, which is about to get a plan, the resources for it.
pub(crate) fn take(_control: &mut Control, cpu: &'static Cpu) {
    if !cpu.usage.set_used(true) {
        entity::use_class(true);
    } else if cpu.counter.tier() == Tier::Clock || has_counter(cpu) {
        // It counts, or will be tried again. A CPU that has gone and come back has no counter, even
        // if a thread of its plan was left.
        return;
    }
    let tier = cpu.counter.best_tier();
    let mut counter = calibrate::counter(cpu, tier);
    // A missing counter is detected like one that fails later, by the first check of it.
    drop(cpu.lock(|_, _, state| state.insn_clock.install(counter.take(), tier)));
}

/// Takes the resources back if the CPU has lost its plan and its last thread.
///
/// Called after the plan, the last seat or the last slot has gone.
pub(crate) fn give_back(_control: &mut Control, cpu: &'static Cpu) {
    // No thread can take a seat without a plan, and no plan can arrive as long as the mutex is
    // held.
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
    // Outside the lock, because it sleeps.
    drop(counter);
    // The tier in which it will try to count again.
    cpu.counter.set_tier(best);
    entity::use_class(false);
}

/// Calls [`give_back`] for all CPUs. Takes both locks.
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
