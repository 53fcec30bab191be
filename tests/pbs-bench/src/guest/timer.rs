// SPDX-License-Identifier: GPL-2.0
//! Number of expiries of the class's timer in a slot.
//!
//! A tracepoint at each expiry and one at the begin of each slot leave records in the kernel's
//! buffer, which is read after the run. They make the way from the timer to user space some hundred
//! instructions longer. The class's own count, which a run without them has, too, shows whether
//! that changes the number of expiries.

use std::fs;

use pbs_vmtest::check;
use pbs_vmtest::harness::{sysfs_number, Context, Verdict};

use super::count::{preempted_turns, SLOTS_MET};
use super::named::Named;
use super::probe::Probe;
use super::switch;

const TRACEFS: &str = "/sys/kernel/tracing";
const EXPIRY: &str = "events/timer/hrtimer_expire_entry";
const SLOT_BEGIN: &str = "events/pbs/pbs_slot_begin";

const UNIT: &str = "expiries";

/// Slots by how often the timer expired in them; the last ones: that often or more.
const BINS: [&str; 5] =
    ["timer-slots-0", "timer-slots-1", "timer-slots-2", "timer-slots-3", "timer-slots-more"];

fn set(file: &str, text: &str) -> Verdict {
    let path = format!("{TRACEFS}/{file}");
    fs::write(&path, text).context(&path)
}

/// `HrTimer::<sched_pbs::cpu::Expiry>::run`, the timer's handler, as the compiler names it.
const HANDLER: [&str; 2] = ["7hrtimer", "9sched_pbs3cpu6ExpiryE3run"];

fn handler_address() -> Result<String, String> {
    let symbols = fs::read_to_string("/proc/kallsyms").context("kallsyms")?;
    let mut lines = symbols.lines();
    let handler = lines.find(|line| HANDLER.iter().all(|part| line.contains(part)));
    let address = handler.and_then(|line| line.split(' ').next());
    let address = address.ok_or("the handler of the class's timer has no symbol")?;
    Ok(format!("0x{address}"))
}

/// Returns the records made while `run` runs.
fn trace_of(run: impl FnOnce() -> Verdict) -> Result<String, String> {
    set(&format!("{EXPIRY}/filter"), &format!("function == {}", handler_address()?))?;
    set("trace", "")?;
    let switch = |on| {
        set(&format!("{EXPIRY}/enable"), on)?;
        set(&format!("{SLOT_BEGIN}/enable"), on)
    };
    switch("1")?;
    let done = run();
    switch("0")?;
    set(&format!("{EXPIRY}/filter"), "0")?;
    done?;
    let path = format!("{TRACEFS}/trace");
    fs::read_to_string(&path).context(&path)
}

/// Number of expiries of the timer in each slot of a process, the last one apart.
fn expiries_by_slot(trace: &str) -> Vec<u64> {
    let mut slots = Vec::new();
    let mut expiries: Option<u64> = None;
    for line in trace.lines() {
        if line.contains(": hrtimer_expire_entry: ") {
            expiries = expiries.map(|number| number + 1);
        } else if line.contains(": pbs_slot_begin: ") {
            slots.extend(expiries);
            let idle = line.contains(" process=-1 ");
            expiries = (!idle).then_some(0);
        }
    }
    slots
}

/// Number of expiries of the timer in a whole run.
fn expiries_of(run: impl FnOnce() -> Verdict) -> Result<f64, String> {
    let number = || sysfs_number("cpu0/timer_interrupts");
    let before = number()?;
    run()?;
    Ok((number()? - before) as f64)
}

/// Number of expiries of the timer in a slot whose task ends far from every threshold, and needs
/// none.
pub fn per_task_end(probe: &Probe) -> Result<Vec<Named>, String> {
    let expiries = expiries_of(|| switch::early_tasks(probe).map(|_| ()))?;
    let per_switch = expiries / switch::SWITCHES as f64;
    Ok(vec![Named::new("timer-per-task-end", per_switch, UNIT)])
}

pub fn per_slot() -> Result<Vec<Named>, String> {
    let run = || preempted_turns().map(|_| ());
    let in_run = expiries_of(run)?;
    let mut trace = String::new();
    let in_traced_run = expiries_of(|| {
        trace = trace_of(run)?;
        Ok(())
    })?;
    let mut slots = expiries_by_slot(&trace);
    check!(slots.len() >= SLOTS_MET, "{} slots were traced", slots.len());
    slots.sort_unstable();
    let at = |percent: usize| slots[(slots.len() - 1) * percent / 100] as f64;
    let mut figures = vec![
        Named::new("timer-per-slot-p50", at(50), UNIT),
        Named::new("timer-per-slot-p99", at(99), UNIT),
        Named::new("timer-per-run", in_run, UNIT),
        Named::new("timer-per-run-traced", in_traced_run, UNIT),
    ];
    for (number, name) in (0..).zip(BINS) {
        let last = number + 1 == BINS.len() as u64;
        let of_bin = |&&expiries: &&u64| expiries == number || last && expiries > number;
        let count = slots.iter().filter(of_bin).count();
        figures.push(Named::new(name, count as f64, "slots"));
    }
    Ok(figures)
}
