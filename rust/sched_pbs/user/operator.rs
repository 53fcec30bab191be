// SPDX-License-Identifier: GPL-2.0

//! Tools of an operator when a node misbehaves: `/sys/kernel/debug/pbs`, two SysRq keys, and a line
//! for each plan when the kernel panics.

use crate::{
    percpu::{cpus, drop_request::DropReason, works},
    rings::events,
    show::dump::{self, Log},
};
use core::fmt::{self, Write};
use kernel::{
    c_str,
    diagnostics::panic::{Notifier, Panics},
    prelude::*,
};

#[cfg(CONFIG_DEBUG_FS)]
use kernel::diagnostics::debugfs::{Text, TextFile};
#[cfg(CONFIG_MAGIC_SYSRQ)]
use kernel::diagnostics::sysrq::Key;

/// Registers all of these, for as long as the kernel runs. Parts that are not available are left
/// out.
pub(crate) fn register() {
    #[cfg(CONFIG_DEBUG_FS)]
    match TextFile::<Dumps>::new(c_str!("pbs")) {
        Ok(file) => core::mem::forget(file),
        Err(error) => pr_warn!("no file in debugfs: {error:?}\n"),
    }
    #[cfg(CONFIG_MAGIC_SYSRQ)]
    for (key, letter) in [(&DROP, b'P'), (&DUMP, b'B')] {
        if let Err(error) = key.register(letter) {
            pr_warn!("no SysRq key {}: {error:?}\n", letter as char);
        }
    }
    if let Err(error) = PANIC.register() {
        pr_warn!("nothing will be said in a panic: {error:?}\n");
    }
}

/// The dumps of all CPUs that have, or have had, a plan.
struct Dumps;

impl Dumps {
    fn write_some(out: &mut impl Write, most_threads: usize) -> fmt::Result {
        for cpu in cpus::all() {
            if events::of_cpu(cpu.number()).is_some() {
                dump::write(out, cpu, most_threads)?;
            }
        }
        Ok(())
    }
}

#[cfg(CONFIG_DEBUG_FS)]
impl Text for Dumps {
    fn write(out: &mut impl Write) -> fmt::Result {
        Dumps::write_some(out, usize::MAX)
    }
}

#[cfg(CONFIG_MAGIC_SYSRQ)]
static DROP: Key = Key::new(
    c_str!("drop-pbs-plans(P)"),
    c_str!("Drop PBS plans"),
    drop_all,
);

#[cfg(CONFIG_MAGIC_SYSRQ)]
static DUMP: Key = Key::new(
    c_str!("dump-pbs-plans(B)"),
    c_str!("Dump PBS plans"),
    dump_all,
);

/// Drops all plans as soon as a worker of an unbound workqueue gets any CPU: dropping sleeps, and
/// this is an interrupt.
#[cfg(CONFIG_MAGIC_SYSRQ)]
extern "C" fn drop_all(_key: u8) {
    for cpu in cpus::all().filter(|cpu| cpu.usage.has_plan()) {
        works::drop_soon(cpu, DropReason::SysRq);
    }
}

#[cfg(CONFIG_MAGIC_SYSRQ)]
extern "C" fn dump_all(_key: u8) {
    // The log takes every text.
    let _ = Dumps::write_some(&mut Log::new(), dump::THREADS_IN_LOG);
}

static PANIC: Notifier = Notifier::new::<Panic>();

struct Panic;

impl Panics for Panic {
    fn panics() {
        for cpu in cpus::all().filter(|cpu| cpu.usage.has_plan()) {
            // The log takes every text.
            let _ = dump::write_line(&mut Log::new(), cpu);
        }
    }
}
