// SPDX-License-Identifier: GPL-2.0

//! Dropping of plans that go wrong, whose lease is over, or that an operator wants gone.

use crate::{
    percpu::{
        cpu::Cpu,
        cpus,
        works::{self, Dropping},
    },
    plans::{change, control},
    show::dump,
};
use core::fmt::Write;
use kernel::{prelude::*, sync::Arc, task_ext::may_log, workqueue::WorkItem};

impl WorkItem for Dropping {
    type Pointer = Arc<Dropping>;

    fn run(_this: Arc<Dropping>) {
        for cpu in cpus::all().filter(|cpu| cpu.drop_request.is_pending()) {
            drop_requested(cpu);
        }
    }
}

/// Drops the plan of a CPU if that was requested, and logs that.
fn drop_requested(cpu: &'static Cpu) {
    let Ok(control) = control::get() else { return };
    let _hotplug = kernel::cpu::hotplug_read_lock();
    let mut control = control.lock();
    let Some(reason) = cpu.take_drop() else {
        return;
    };
    // The fault is visible only as long as the plan is there.
    let logs = may_log();
    let text = (logs && reason.is_fault()).then(|| dump::text(cpu));
    // This fails if the CPU has gone offline, and with it the plan.
    let removed = change::remove(&mut control, cpu, Some(reason)).unwrap_or(false);
    drop(control);
    if removed {
        // In another work item: a thread that takes long to be taken out keeps no other CPU
        // waiting.
        works::eject_soon();
        if logs {
            pr_err!(
                "CPU {}: the plan was dropped: {}\n",
                cpu.number(),
                reason.text()
            );
        }
        if let Some(text) = text {
            // The dump is ASCII.
            let text = core::str::from_utf8(&text).unwrap_or_default();
            // The log takes every text.
            let _ = dump::Log::new().write_str(text);
        }
    }
}
