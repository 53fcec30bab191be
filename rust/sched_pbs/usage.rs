// SPDX-License-Identifier: GPL-2.0

//! What a CPU has only while it is used: while it has a plan that goes on, or threads of one.
//!
//! The class is asked for a task then, and Linux around the class takes the CPU for one that has a
//! plan. So a machine without plans does nothing for them. All of this is done in process context,
//! with the lock of CPU hotplug and the control mutex held.

use super::{
    cpu::Cpu,
    entity,
    global::{Control, Pbs},
};

/// The CPU is about to get a plan.
pub(crate) fn take(_control: &mut Control, cpu: &'static Cpu) {
    if !cpu.set_used(true) {
        entity::use_class(true);
    }
}

/// The CPU may have lost its plan and its last thread: then it gives back what it has for them.
///
/// Whoever takes its plan away asks for that, whoever takes it the last seat, and the last slot.
pub(crate) fn give_back(_control: &mut Control, cpu: &'static Cpu) {
    // Nobody can take a seat without a plan, which nobody brings as long as the mutex is held.
    if !may_give_back(cpu) {
        return;
    }
    cpu.set_used(false);
    cpu.lock(|rq, _, _| entity::set_plan(rq, false));
    entity::use_class(false);
}

/// The same for all CPUs. Takes both locks.
pub(crate) fn give_all_back(pbs: &Pbs) {
    if !pbs.cpus().any(may_give_back) {
        return;
    }
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = pbs.control.lock();
    for cpu in pbs.cpus() {
        give_back(&mut control, cpu);
    }
}

fn may_give_back(cpu: &Cpu) -> bool {
    cpu.is_used() && cpu.lock(|_, _, state| state.is_unused()) != Some(false)
}
