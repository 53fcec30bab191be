// SPDX-License-Identifier: GPL-2.0

//! Plan-based scheduling: the class `SCHED_PBS`.
//!
//! A plan gives each CPU an ordered list of slots, measured in retired user instructions, for
//! processes whose tasks are known in length. The policy is in [`pbs_core`], which knows nothing of
//! the kernel; the interfaces of the kernel are in the `kernel` crate. Here the two are joined.
//!
//! | module | what it does | context |
//! |---|---|---|
//! | [`class`] | the callbacks of the core scheduler | run queue locked |
//! | [`cpu`] | a CPU: its timer, its irq_work, its counts | any but NMI |
//! | [`state`] | the state of a CPU: from a decision to a thread that runs | run queue locked |
//! | [`threads`] | the threads that are attached to a CPU's plan | run queue locked |
//! | [`park`] | waiting, at the edge of user space | the waiting thread |
//! | [`clock`] | the count of instructions, in three tiers | run queue locked |
//! | [`calibrate`] | the rate, and what a CPU can count | process, on the CPU |
//! | [`attach`] | threads enter the class, end tasks, exit, leave | process |
//! | [`usage`] | what a CPU has only while it has a plan | process |
//! | [`plan`] | plans are installed, dropped, read back; CPUs go | process |
//! | [`process`] | what is known of one process | process |
//! | [`events`] | the ring of events and its readers | any |
//! | [`record`] | what the policy is told, for who records it | run queue locked; process |
//! | [`watch`] | the watchdog, and why plans are dropped | interrupt |
//! | [`dump`] | all of a CPU's state in words | any |
//! | [`operator`] | SysRq keys, debugfs, panics | any |
//! | [`fault`] | faults made on purpose, for tests | run queue locked |
//! | [`trace`] | the tracepoints | any |
//! | [`device`], [`wire`] | `/dev/pbs_plan` | process |
//! | [`sysfs`] | `/sys/kernel/pbs/` | process |
//! | [`sched_class`] | the core scheduler's interface, made safe | run queue locked |
//! | [`show`] | what `/proc`, debugfs and an oops show | any |
//! | [`entity`] | the fields of `task_struct` and `struct rq` | run queue locked |
//!
//! # Locks
//!
//! In the order of taking: the CPU hotplug lock (readers: who installs or drops a plan), the
//! control mutex ([`global::Pbs::control`]: one change of plans at a time), the seats of one CPU
//! ([`cpu::Cpu::seats`]: one thread enters or leaves the class there at a time), the lock of one run
//! queue (all of a CPU's [`state::State`]), and the raw lock of the event ring, which is
//! held for a copy. The timer and the irq_work take the lock of their CPU's run queue from hard
//! interrupt context. Nothing is allocated or freed and nothing sleeps under the lock of a run queue,
//! and nobody is woken but who sleeps on it and is granted the CPU ([`cpu::wake_granted`]).

// What `pin_init!` makes of a CPU.
#![recursion_limit = "256"]

use kernel::prelude::*;

mod attach;
mod calibrate;
mod class;
mod clock;
mod cpu;
mod device;
mod dump;
mod entity;
mod events;
mod fault;
mod global;
mod operator;
mod order;
mod park;
// A whole crate, of which the class does not need everything: public, so that this is no warning.
#[forbid(unsafe_code)]
#[path = "../pbs_core/src/mod.rs"]
pub mod pbs_core;
mod plan;
mod process;
mod record;
mod rows;
mod sched_class;
mod show;
mod state;
mod storage;
mod sysfs;
mod threads;
mod trace;
mod usage;
mod watch;
mod wire;

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
    core::mem::forget(kernel::cpuhp::Registration::<plan::CpuUp>::new()?);
    core::mem::forget(sysfs::create()?);
    core::mem::forget(device::register()?);
    core::mem::forget(record::register()?);
    operator::register();
    pr_info!(
        "plan-based scheduling: {} instructions per ms, counted by the {}\n",
        global::rate().insns_per_ms(),
        global::tier().name(),
    );
    Ok(())
}
