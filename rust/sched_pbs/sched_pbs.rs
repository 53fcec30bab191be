// SPDX-License-Identifier: GPL-2.0

//! Plan-based scheduling: the class `SCHED_PBS`.
//!
//! A plan gives each CPU an ordered list of slots, measured in retired user instructions, for
//! processes whose tasks are known in length. The policy is in [`pbs_core`], which does not depend
//! on the kernel; the interfaces of the kernel are in the `kernel` crate. Here the two are joined.
//!
//! # Floors
//!
//! Each folder is a floor, the lowest first. A file names files of its own floor and of lower
//! floors alone, and the files of a floor form no circle. Linux calls the class from below: a
//! timer, a work item, the table of the class is declared where it is stored, and a higher floor
//! implements its trait.
//!
//! | floor | subject | context |
//! |---|---|---|
//! | [`linux`] | the parts of Linux that the class uses, made safe | any |
//! | [`rings`] | rings that user space maps: events, inputs of the policy | run queue locked |
//! | [`state`] | the state of one CPU, a file for each subject | run queue locked |
//! | [`percpu`] | each CPU: its state behind the lock, timer, counter, requests | any but NMI |
//! | [`engine`] | from an interrupt to the thread that runs next | run queue locked |
//! | [`thread`] | one thread enters, waits, ends tasks, leaves | process |
//! | [`plans`] | plans are installed, dropped, read back; CPUs come and go | process |
//! | [`show`] | the state of plans, in words and records | any |
//! | [`protect`] | plans that go wrong are dropped: watchdog, leases, faults | interrupt; process |
//! | [`user`] | interfaces of user space: devices, sysfs, debugfs, SysRq keys | process |
//!
//! # Locks
//!
//! In the order of taking: the CPU hotplug lock (readers: installing or dropping a plan), the
//! control mutex ([`plans::control`]: one change of plans at a time), the seats of one CPU
//! ([`percpu::cpu::Cpu::seats`]: one thread enters or leaves the class there at a time), and the
//! lock of one run queue (all of a CPU's [`state::State`]). The rings have no lock. The timer and
//! the irq_work take the lock of their CPU's run queue from hard interrupt context. Nothing is
//! allocated or freed and nothing sleeps under the lock of a run queue. The only thread that is
//! woken under it sleeps on it and is granted the CPU ([`engine::lock::wake_granted`]).

use crate::{
    linux::{sched_class, table::table},
    percpu::{cpus, works},
    plans::{control, hotplug},
    protect::watchdog,
    rings::{events, inputs as input_rings},
    user::{device, inputs, operator, sysfs},
};
use kernel::prelude::*;

mod engine;
mod linux;
// A whole crate, of which the class does not need everything: public to avoid warnings.
#[forbid(unsafe_code)]
#[path = "../pbs_core/src/mod.rs"]
pub mod pbs_core;
mod percpu;
mod plans;
mod protect;
mod rings;
mod show;
mod state;
mod thread;
mod user;

/// Prefix of messages in the kernel log.
const __LOG_PREFIX: &[u8] = b"pbs\0";

kernel::late_initcall!(init);

/// Brings the class up, after the PMU drivers.
fn init() -> Result {
    if !sched_class::is_between_deadline_and_real_time(table()) {
        pr_err!("the class does not stand between deadline and real time\n");
        return Err(EINVAL);
    }
    events::publish()?;
    input_rings::publish()?;
    works::publish()?;
    control::publish()?;
    watchdog::publish()?;
    cpus::publish()?;
    // Registrations last for as long as the kernel runs.
    core::mem::forget(kernel::cpuhp::Registration::<hotplug::CpuUp>::new()?);
    core::mem::forget(sysfs::create()?);
    core::mem::forget(device::register()?);
    core::mem::forget(inputs::register()?);
    operator::register();
    pr_info!(
        "plan-based scheduling: {} instructions per ms, counted by the {}\n",
        cpus::rate().insns_per_ms(),
        cpus::tier().name(),
    );
    Ok(())
}
