// SPDX-License-Identifier: GPL-2.0

//! Plan-based scheduling: the class `SCHED_PBS`.
//!
//! A plan gives each CPU an ordered list of slots, measured in retired user instructions, for
//! processes whose tasks are known in length. The policy is in [`pbs_core`], which knows nothing of
//! the kernel; the interfaces of the kernel are in the `kernel` crate. Here the two are joined.
//!
//! | module | what it does | context |
//! |---|---|---|
//! | [`engine::class`] | the callbacks of the core scheduler | run queue locked |
//! | [`percpu::cpu`] | a CPU: its timer, its irq_work, its counts | any but NMI |
//! | [`percpu::state`] | the state of a CPU: from a decision to a thread that runs | run queue locked |
//! | [`percpu::threads`] | the threads that are attached to a CPU's plan | run queue locked |
//! | [`thread::park`] | waiting, at the edge of user space | the waiting thread |
//! | [`percpu::insn_clock`] | the count of instructions, in three tiers | run queue locked |
//! | [`plans::calibrate`] | the rate, and what a CPU can count | process, on the CPU |
//! | [`thread::attach`] | threads enter the class, end tasks, exit, leave | process |
//! | [`plans::usage`] | what a CPU has only while it has a plan | process |
//! | [`plans::change`] | plans are installed, dropped, read back; CPUs go | process |
//! | [`show::process`] | what is known of one process | process |
//! | [`percpu::events`] | the ring of events and its readers | any |
//! | [`user::inputs`] | what the policy is told, for who records it | run queue locked; process |
//! | [`protect::watchdog`] | the watchdog, and why plans are dropped | interrupt |
//! | [`show::dump`] | all of a CPU's state in words | any |
//! | [`user::operator`] | SysRq keys, debugfs, panics | any |
//! | [`protect::fault`] | faults made on purpose, for tests | run queue locked |
//! | [`linux::trace`] | the tracepoints | any |
//! | [`user::device`], [`linux::wire`] | `/dev/pbs_plan` | process |
//! | [`user::sysfs`] | `/sys/kernel/pbs/` | process |
//! | [`linux::sched_class`] | the core scheduler's interface, made safe | run queue locked |
//! | [`show::proc`] | what `/proc`, debugfs and an oops show | any |
//! | [`linux::entity`] | the fields of `task_struct` and `struct rq` | run queue locked |
//!
//! # Locks
//!
//! In the order of taking: the CPU hotplug lock (readers: who installs or drops a plan), the
//! control mutex ([`plans::global::Pbs::control`]: one change of plans at a time), the seats of one CPU
//! ([`percpu::cpu::Cpu::seats`]: one thread enters or leaves the class there at a time), the lock of one run
//! queue (all of a CPU's [`percpu::state::State`]), and the raw lock of the event ring, which is
//! held for a copy. The timer and the irq_work take the lock of their CPU's run queue from hard
//! interrupt context. Nothing is allocated or freed and nothing sleeps under the lock of a run queue,
//! and nobody is woken but who sleeps on it and is granted the CPU ([`percpu::cpu::wake_granted`]).

// What `pin_init!` makes of a CPU.
#![recursion_limit = "256"]

use crate::{
    engine::class,
    linux::sched_class,
    plans::{change, global},
    user::{device, inputs, operator, sysfs},
};
use kernel::prelude::*;

mod engine;
mod linux;
// A whole crate, of which the class does not need everything: public, so that this is no warning.
#[forbid(unsafe_code)]
#[path = "../pbs_core/src/mod.rs"]
pub mod pbs_core;
mod percpu;
mod plans;
mod protect;
mod show;
mod state;
mod thread;
mod user;

/// Prefix of messages in the kernel log.
const __LOG_PREFIX: &[u8] = b"pbs\0";

kernel::late_initcall!(init);

/// Brings the class up, after the PMU drivers.
fn init() -> Result {
    if !sched_class::is_between_deadline_and_real_time(class::table()) {
        pr_err!("the class does not stand between deadline and real time\n");
        return Err(EINVAL);
    }
    global::Pbs::publish()?;
    // What is registered stays for as long as the kernel runs.
    core::mem::forget(kernel::cpuhp::Registration::<change::CpuUp>::new()?);
    core::mem::forget(sysfs::create()?);
    core::mem::forget(device::register()?);
    core::mem::forget(inputs::register()?);
    operator::register();
    pr_info!(
        "plan-based scheduling: {} instructions per ms, counted by the {}\n",
        global::rate().insns_per_ms(),
        global::tier().name(),
    );
    Ok(())
}
