// SPDX-License-Identifier: GPL-2.0
//! A plan on a CPU without a tick, of a kernel that was booted with `nohz_full=1`.
//!
//! The test sleeps on CPU 0 meanwhile: the emulated counter of the one CPU counts
//! what the other retires, too.

use std::fs;

use pbs_core::{Config, Threshold};
use pbs_uapi::{EventKind, Grant, Tier};

use super::{needs_pmu, BACKSTOP_INSNS};
use crate::harness::{
    burn, kernel_is_watched, line, now_ns, overshoot_limit_insns, sleep_ms, sysfs, Context,
    Counting, Mapping, Plan, Scene, Verdict, CONFIG,
};
use crate::linux::scene::set_affinity;
use crate::{check, check_eq};

/// The CPU without a tick.
const CPU: u32 = 1;
/// HZ of the kernel.
const TICKS_A_SECOND: u64 = 250;
/// Longest time that the test may take to sleep for a second, and a little before, and the number
/// of tries.
const LONGEST_SLEEP_NS: u64 = 1_600_000_000;
const TRIES: u32 = 10;
/// Greatest number of interrupts of the CPU in the second in which it has no tick.
const INTERRUPTS_A_SECOND: u64 = 10;
/// Instructions retired on CPU 0 meanwhile, beside a share of the time: the test reads events
/// there.
const OTHER_CPU_INSNS: u64 = 1_000_000;
/// Instructions that CPU 0 retires in a tick of its own. The emulated machine executes one CPU
/// after the other and counts for all: therefore this may come between a count and the interrupt
/// that notices it.
const OTHER_TICK_INSNS: u64 = 20_000;

pub fn no_tick_pmu() -> Verdict {
    needs_pmu();
    executes_without_tick(Tier::Pmu, 0)
}

pub fn no_tick_pmu_overflow() -> Verdict {
    needs_pmu();
    executes_without_tick(Tier::PmuOverflow, BACKSTOP_INSNS)
}

pub fn no_tick_clock() -> Verdict {
    executes_without_tick(Tier::Clock, 0)
}

/// t1 and t2_task, and no unallocated time for ten seconds: it takes interrupts to
/// begin and to end it.
fn config() -> Config {
    Config {
        sigma_t2_permille: 1100,
        thresholds: Threshold::T1 as u64 | Threshold::T2Task as u64,
        window_period_ns: 10_000_000_000,
        window_unallocated_ns: 100_000_000,
        ..CONFIG
    }
}

/// A process that runs for longer than a second loses the tick, is preempted at its
/// t1 all the same, and told late when it goes on.
fn executes_without_tick(tier: Tier, backstop_insns: u64) -> Verdict {
    alone_on_cpu_0()?;
    check_eq!(sysfs("cpu1/tier")?, tier.name(), "tier");
    for _ in 0..TRIES {
        if second_without_tick(tier, backstop_insns)? {
            return Ok(());
        }
    }
    Err(format!("{TRIES} times CPU 0 was kept from waking the test"))
}

/// Whether the test woke up when it was to: that the emulated machine gives CPU 0 next to
/// nothing for seconds while CPU 1 computes proves nothing.
fn second_without_tick(tier: Tier, backstop_insns: u64) -> Result<bool, String> {
    let overshoot_limit_insns = backstop_insns + overshoot_limit_insns() + OTHER_TICK_INSNS;
    const SLOT_INSNS: u64 = 600_000_000;
    const LATE_INSNS: u64 = 660_000_000;
    // A watched kernel believes its CPU to be slower, and so counts less by the clock.
    const BURNS: [&[u64]; 2] = [&[780_000_000, 20_000_000], &[3_500_000]];
    let plan = Plan::new(1)
        .config(config())
        .cpu(CPU)
        .lead_in()
        .slot(1, 0, SLOT_INSNS)
        .slot(2, 0, 4_000_000)
        .slot(1, 1, 300_000_000);
    let mut scene = Scene::new()?;
    for (process, burns) in (1..).zip(BURNS) {
        scene.tasks(process, burns)?;
    }
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::Grant, 1)?;
    let before_ns = now_ns();
    sleep_ms(100);
    let before = timer_interrupts(CPU)?;
    sleep_ms(1000);
    let interrupts = timer_interrupts(CPU)? - before;
    if now_ns() - before_ns > LONGEST_SLEEP_NS {
        scene.node.device.drop_plan(CPU).context("drop plan")?;
        return Ok(false);
    }
    println!("{interrupts} interrupts of the timer in a second");
    check!(has_no_tick(CPU)?, "CPU {CPU} has its tick");
    scene.node.read()?;
    check_eq!(
        scene.node.of(EventKind::Preempted).len(),
        0,
        "preemptions in that second\n{}",
        scene.node.log()
    );
    check!(interrupts < INTERRUPTS_A_SECOND, "{interrupts} interrupts of the timer in a second");

    let node = scene.finish()?;
    let log = node.log();
    check_eq!(node.grants(Grant::Slot), [(1, 1), (2, 2), (1, 3)], "granted slots\n{log}");
    let preempted = node.first(EventKind::Preempted, 1)?;
    check_eq!(preempted.slot, 1, "preempted slot\n{log}");
    let overshoot_insns = node.overshoot_insns(&preempted);
    println!("preempted {overshoot_insns} instructions after t1");
    check!(
        overshoot_insns < overshoot_limit_insns,
        "overshoot {overshoot_insns}: {}",
        line(&preempted)
    );
    let late = node.of(EventKind::Late);
    check_eq!(late.len(), 1, "late tasks\n{log}");
    check_eq!(late[0].value, LATE_INSNS, "t2_task\n{log}");
    let overshoot_insns = late[0].retired_insns.wrapping_sub(LATE_INSNS);
    println!("told late {overshoot_insns} instructions after t2_task");
    check!(
        overshoot_insns < overshoot_limit_insns,
        "overshoot {overshoot_insns}: {}",
        line(&late[0])
    );
    for (process, burns) in (1..).zip(BURNS) {
        for (task, &burned_insns) in (0..).zip(burns) {
            let ended = node.task_ended(process, task)?;
            println!("burned {burned_insns}, counted {}", ended.retired_insns);
            // The other CPU of a watched kernel has more to do.
            let share = if kernel_is_watched() { 10 } else { 100 };
            let over_insns = burned_insns / share + OTHER_CPU_INSNS;
            check!(
                Counting::here().agrees_within(over_insns, ended.retired_insns, burned_insns),
                "burned {burned_insns}, but: {}",
                line(&ended)
            );
        }
    }
    check_eq!(sysfs("cpu1/tier")?, tier.name(), "tier");
    Ok(true)
}

/// Memory that is mapped for somewhat longer than a second, in the middle of a slot, is in the peak
/// of the task: the CPU has no tick to sample memory in, but another one requests a sample once a
/// second.
pub fn no_tick_samples_memory() -> Verdict {
    const SECOND_INSNS: u64 = 250_000_000;
    const AROUND_INSNS: u64 = 25_000_000;
    alone_on_cpu_0()?;
    let plan = Plan::new(1).config(config()).cpu(CPU).lead_in().slot(1, 0, 4 * SECOND_INSNS);
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        burn(AROUND_INSNS);
        let memory = Mapping::touched();
        burn(SECOND_INSNS * 5 / 4);
        drop(memory);
        burn(AROUND_INSNS);
    })?;
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::Grant, 1)?;
    sleep_ms(500);
    check!(has_no_tick(CPU)?, "CPU {CPU} has its tick");
    let node = scene.finish()?;
    let ended = node.task_ended(1, 0)?;
    check_eq!(ended.preemptions, 0, "preemptions\n{}", node.log());
    let least_bytes = Mapping::BYTES as u64;
    println!("peak {} bytes", ended.peak_rss_bytes);
    check!(
        ended.peak_rss_bytes >= least_bytes && ended.peak_vm_bytes > ended.peak_rss_bytes,
        "{least_bytes} were mapped: peaks {} and {}",
        ended.peak_rss_bytes,
        ended.peak_vm_bytes
    );
    Ok(())
}

/// Binds the test to CPU 0, and sees that what it looks at would show a tick.
fn alone_on_cpu_0() -> Verdict {
    set_affinity(0, &[0]).map_err(|errno| format!("sched_setaffinity: errno {errno}"))?;
    let path = "/sys/devices/system/cpu/nohz_full";
    let text = fs::read_to_string(path).context(path)?;
    check_eq!(text.trim_end(), CPU.to_string(), "{path}");
    let before = timer_interrupts(0)?;
    let until_ns = now_ns() + 1_000_000_000 / 10;
    while now_ns() < until_ns {
        burn(1_000_000);
    }
    let ticks = timer_interrupts(0)? - before;
    println!("{ticks} interrupts of the timer in a tenth of a second with a tick");
    check!(
        ticks > TICKS_A_SECOND / 20,
        "{ticks} interrupts of the timer of CPU 0 in a tenth of a second"
    );
    check!(!has_no_tick(0)?, "CPU 0 has no tick");
    Ok(())
}

/// Number of interrupts of the timer of `cpu`.
fn timer_interrupts(cpu: u32) -> Result<u64, String> {
    let path = "/proc/interrupts";
    let text = fs::read_to_string(path).context(path)?;
    let mut of_timer = text
        .lines()
        .filter(|line| line.contains("arch_timer") || line.contains("Local timer interrupts"));
    let number = of_timer
        .next()
        .and_then(|line| line.split_whitespace().nth(1 + cpu as usize)?.parse().ok());
    number.ok_or_else(|| format!("{path}: no timer of CPU {cpu}"))
}

/// Whether the tick of `cpu` is off at the moment.
fn has_no_tick(cpu: u32) -> Result<bool, String> {
    let path = "/proc/timer_list";
    let text = fs::read_to_string(path).context(path)?;
    let mut lines = text.lines().map(str::trim);
    let stopped = lines
        .find(|line| *line == format!("cpu: {cpu}"))
        .and_then(|_| lines.find_map(|line| line.strip_prefix(".tick_stopped")))
        .map(|rest| rest.trim_start_matches([' ', ':']));
    match stopped {
        Some("0") => Ok(false),
        Some("1") => Ok(true),
        _ => Err(format!("{path}: no tick_stopped of CPU {cpu}")),
    }
}
