// SPDX-License-Identifier: GPL-2.0
//! Overshoot of slots beyond t1, and the cost to notice it, by the way in which the machine was
//! booted (Leppert 2021, 3.1.3 and 5.1): `pbs.tier=`, without a PMU, or with timers that expire at
//! ticks alone (`highres=off`).
//!
//! The counts of a tier can't show its own error. Therefore the two processes of the plan count
//! their own instructions: each leaves its count where the other, when its slot has begun, reads
//! it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use pbs_core::{Config, Policy, Threshold};
use pbs_uapi::EventKind;
use pbs_vmtest::check;
use pbs_vmtest::counter::Counter;
use pbs_vmtest::harness::{rate, sysfs, sysfs_number, Plan, Scene};
use pbs_vmtest::shared;
use serde_json::{json, Value};

const SLOT_INSNS: u64 = 1_000_000;
/// Slots of each process.
const SLOTS: u32 = 150;

/// Instructions of a turn of the loop.
const TURN_INSNS: u64 = 7;

/// Counts its own instructions from `count` on into `mine`, until `other` is not `seen` any
/// more, or the count is `end`.
#[inline(never)]
fn count_until(mine: &AtomicU64, other: &AtomicU64, count: u64, seen: u64, end: u64) -> u64 {
    let mut count = count;
    // SAFETY: writes `mine` and reads `other`, which are words of memory.
    unsafe {
        std::arch::asm!(
            "2: str {n}, [{mine}]",
            "ldr {t}, [{other}]",
            "cmp {t}, {seen}",
            "b.ne 3f",
            "add {n}, {n}, {turn}",
            "cmp {n}, {end}",
            "b.lo 2b",
            "3:",
            n = inout(reg) count,
            t = out(reg) _,
            mine = in(reg) mine.as_ptr(),
            other = in(reg) other.as_ptr(),
            seen = in(reg) seen,
            end = in(reg) end,
            turn = const TURN_INSNS,
            options(nostack),
        );
    }
    count
}

/// Work of a process: in each of its slots it notes the progress of the other one.
fn turns(counts: &[AtomicU64], me: usize, notes: &[AtomicU64], end: u64) {
    let (mine, other) = (&counts[me], &counts[1 - me]);
    let (mut count, mut seen, mut noted) = (0, 0, 0);
    while count < end {
        count = count_until(mine, other, count, seen, end);
        let now = other.load(SeqCst);
        if now != seen {
            seen = now;
            if let Some(note) = notes.get(noted) {
                note.store(now, SeqCst);
                noted += 1;
            }
        }
    }
}

/// Configuration in which only t1 ends a slot.
fn config() -> Config {
    Config {
        max_preemptions: 1_000_000,
        no_preemption_ns: 10_000,
        ceiling_factor_permille: 100_000,
        window_period_ns: 10_000_000_000,
        window_unallocated_ns: 100_000_000,
        thresholds: Threshold::T1 as u64,
        t1_spares_last_slot: 0,
        ..Config::DEFAULT
    }
}

fn at(sorted: &[i64], percent: usize) -> i64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn spread(mut over_insns: Vec<i64>) -> Value {
    over_insns.sort_unstable();
    json!({
        "slots": over_insns.len(),
        "least_insns": at(&over_insns, 0),
        "p50_insns": at(&over_insns, 50),
        "p99_insns": at(&over_insns, 99),
        "greatest_insns": at(&over_insns, 100),
    })
}

pub fn study() -> Result<Value, String> {
    let t1_insns = Policy::new(config(), rate()).t1_of_slot_insns(SLOT_INSNS, false);
    let t1_insns = t1_insns.ok_or("t1 is off")?;
    let mut plan = Plan::new(1).config(config()).lead_in();
    for task in 0..SLOTS {
        plan = plan.slot(1, task, SLOT_INSNS).slot(2, task, SLOT_INSNS);
    }
    let words = shared::of_processes(2 + 2 * SLOTS as usize)?;
    let (counts, notes) = words.split_at(2);
    let notes: Vec<_> = notes.chunks(SLOTS as usize).collect();
    let end = u64::from(SLOTS) * (t1_insns + SLOT_INSNS);
    let mut scene = Scene::new()?;
    for (me, notes) in notes.iter().enumerate() {
        scene.process(me as u32 + 1, |_| turns(counts, me, notes, end))?;
    }
    let counter = Counter::new().ok();
    let number = |file: &str| sysfs_number(file);
    let before = (number("cpu0/timer_interrupts")?, number("cpu0/overflows")?);
    let mut scene = scene.start(&plan)?;
    let kernel_insns = counter.as_ref().map(Counter::read);
    // All slots are over when each process has met its t1 that often.
    let slots = 2 * SLOTS as usize;
    scene.node.read_until(EventKind::Preempted, slots - 2)?;
    let kernel_insns = counter.as_ref().zip(kernel_insns).map(|(it, then)| it.read() - then);
    let after = (number("cpu0/timer_interrupts")?, number("cpu0/overflows")?);
    let node = &scene.node;
    let mut counted = Vec::new();
    for process in 1..=2 {
        let preempted = node.of(EventKind::Preempted);
        let retired = preempted.iter().filter(|event| event.process == process);
        let retired: Vec<u64> = retired.map(|event| event.retired_insns).collect();
        counted.extend(retired.windows(2).map(|pair| (pair[1] - pair[0]) as i64 - t1_insns as i64));
    }
    let mut real = Vec::new();
    for notes in &notes {
        let notes = notes.iter().map(|note| note.load(SeqCst));
        let notes: Vec<u64> = notes.take_while(|&note| note != 0).collect();
        check!(notes.len() > 10, "slots were not seen to change");
        // The last one may be the end of the other.
        let whole = &notes[..notes.len() - 1];
        real.extend(whole.windows(2).map(|pair| (pair[1] - pair[0]) as i64 - t1_insns as i64));
    }
    let per_slot = |count: f64| count / slots as f64;
    Ok(json!({
        "tier": sysfs("cpu0/tier")?,
        "rate_insns_per_ms": rate().insns_per_ms(),
        "slot_insns": SLOT_INSNS,
        "t1_insns": t1_insns,
        // By the loops' own count, to 7 instructions and those of noting.
        "beyond_t1": spread(real),
        "beyond_t1_by_the_tier": spread(counted),
        "kernel_insns_per_slot": kernel_insns.map(|insns| per_slot(insns as f64)),
        "timer_interrupts_per_slot": per_slot((after.0 - before.0) as f64),
        "overflows_per_slot": per_slot((after.1 - before.1) as f64),
    }))
}
