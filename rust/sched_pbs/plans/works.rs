// SPDX-License-Identifier: GPL-2.0

//! The work that interrupts leave to process context: threads leave the class, and counters that
//! have failed are tried again.

use super::{calibrate, control, usage};
use crate::{
    percpu::{
        cpus,
        works::{recover_later, Ejection, Recovery},
    },
    thread::leave,
};
use kernel::{sync::Arc, workqueue::WorkItem};

impl WorkItem for Ejection {
    type Pointer = Arc<Ejection>;

    fn run(_this: Arc<Ejection>) {
        for cpu in cpus::all() {
            leave::eject_leaving(cpu);
        }
        usage::give_all_back();
    }
}

impl WorkItem for Recovery {
    type Pointer = Arc<Recovery>;

    fn run(_this: Arc<Recovery>) {
        let Ok(control) = control::get() else { return };
        let _hotplug = kernel::cpu::hotplug_read_lock();
        // No CPU takes a counter for its first plan meanwhile, or gives one back.
        let _control = control.lock();
        let mut all = true;
        for cpu in cpus::online() {
            all &= calibrate::recover(cpu);
        }
        if !all {
            recover_later();
        }
    }
}
