// SPDX-License-Identifier: GPL-2.0
//! Suspend to idle while a plan runs: the machine sleeps, with all processes in the
//! freezer, until the alarm of the real-time clock wakes it.
//!
//! The emulated machine has no idle state in which its clocks stop, so they go on, and
//! would be charged to a process that is wrongly taken for one that runs.

use std::fs;
use std::path::Path;

use pbs_core::Config;
use pbs_uapi::{EventKind, Grant, Tier};

use super::{agrees, is_about, is_exact, needs_pmu, BACKSTOP_INSNS};
use crate::harness::{
    boottime_ns, line, overshoot_limit_insns, set_sysfs, skip, sleep_ms, sysfs, Context, Counting,
    Node, Plan, Scene, Verdict, CONFIG,
};
use crate::linux::scene::{Trio, Waits, PLAN_CPU};
use crate::{check, check_eq};

/// For how long the machine is to sleep.
const ASLEEP_S: u64 = 3;

/// Part of that time that may pass before it sleeps: the alarm has a resolution of whole seconds,
/// all processes must be frozen, and the devices put to sleep.
const AWAKE_S: u64 = 2;

pub fn suspend_pmu() -> Verdict {
    needs_pmu();
    goes_on_after_suspend(Tier::Pmu)
}

pub fn suspend_pmu_overflow() -> Verdict {
    needs_pmu();
    goes_on_after_suspend(Tier::PmuOverflow)
}

pub fn suspend_clock() -> Verdict {
    needs_alarm();
    goes_on_after_suspend(Tier::Clock)
}

/// Instructions that each of two processes burns in its one task, and length of each slot of it:
/// three slots, the first two cut by t1. Each is longer than the test may wait for the CPU, and a
/// watched kernel takes some tenths of a second to suspend and to wake.
const BURN_INSNS: u64 = 450_000_000;
const SLOT_INSNS: u64 = 180_000_000;

/// The machine is suspended three times, each time in another slot with its t1 ahead.
/// The slots end at t1 as ever, and what is counted is what was burned.
fn goes_on_after_suspend(tier: Tier) -> Verdict {
    agrees(tier)?;
    let config = Config {
        // Longer than the machine sleeps.
        ceiling_extra_ns: 60_000_000_000,
        ..CONFIG
    };
    let mut plan = Plan::new(1).config(config).lead_in();
    for task in 0..3 {
        plan = plan.slot(1, task, SLOT_INSNS).slot(2, task, SLOT_INSNS);
    }
    let mut scene = Scene::new()?;
    for process in 1..=2 {
        scene.tasks(process, &[BURN_INSNS])?;
    }
    let mut scene = scene.start(&plan)?;
    for _ in 0..3 {
        // As a normal process the test gets the CPU in unallocated time.
        sleep_ms(490);
        scene.node.read()?;
        check_eq!(
            scene.node.of(EventKind::PlanEnded).len(),
            0,
            "ends of the plan\n{}",
            scene.node.log()
        );
        suspend()?;
    }
    let node = scene.finish()?;
    is_as_if_never_suspended(&node, tier)?;
    agrees(tier)
}

fn is_as_if_never_suspended(node: &Node, tier: Tier) -> Verdict {
    let log = node.log();
    // A frozen process is granted its slot once more when it is let go.
    let mut granted = node.grants(Grant::Slot);
    granted.dedup();
    check_eq!(granted, [(1, 1), (2, 2), (1, 3), (2, 4), (1, 5), (2, 6)], "granted slots\n{log}");
    check_eq!(node.of(EventKind::Ceiling).len(), 0, "slots that reached their ceiling\n{log}");
    check_eq!(node.of(EventKind::Tier).len(), 0, "changes of the tier\n{log}");
    let limit_insns = match tier {
        Tier::PmuOverflow => BACKSTOP_INSNS + overshoot_limit_insns(),
        Tier::Pmu | Tier::Clock => overshoot_limit_insns(),
    };
    for process in 1..=2 {
        let preempted: Vec<_> = node
            .of(EventKind::Preempted)
            .into_iter()
            .filter(|event| event.process == process)
            .collect();
        check_eq!(preempted.len(), 2, "preemptions of {process}\n{log}");
        for event in &preempted {
            let overshoot_insns = node.overshoot_insns(event);
            println!("preempted {overshoot_insns} instructions after t1");
            check!(
                overshoot_insns < limit_insns,
                "overshoot {overshoot_insns}: {}\n{log}",
                line(event)
            );
        }
        let ended = node.task_ended(process, 0)?;
        println!("burned {BURN_INSNS}, counted {}", ended.retired_insns);
        match Counting::here() {
            Counting::Exact => is_exact(&ended, BURN_INSNS)?,
            Counting::Clock => is_about(&ended, BURN_INSNS)?,
        }
    }
    Ok(())
}

/// A process that is blocked, one that runs and one that waits are so again after it,
/// and go on to the end of the plan.
pub fn suspend_holds_nobody() -> Verdict {
    needs_alarm();
    for waits in [Waits::AtACall, Waits::InUserCode] {
        holds_nobody(waits).map_err(|why| format!("{waits:?}: {why}"))?;
    }
    Ok(())
}

fn holds_nobody(waits: Waits) -> Verdict {
    let trio = Trio::waiting(waits)?;
    let tier = sysfs(&format!("cpu{PLAN_CPU}/tier"))?;
    let before = trio.waiting.words.progress();
    for _ in 0..2 {
        suspend()?;
        trio.running.runs()?;
        check_eq!(
            trio.waiting.words.progress(),
            before,
            "turns of the waiting process; it ran before its slot"
        );
        check_eq!(trio.blocked.words.progress(), 1, "the blocked process ran");
    }
    check_eq!(sysfs(&format!("cpu{PLAN_CPU}/tier"))?, tier, "tier of CPU {PLAN_CPU}");
    trio.goes_on_to_the_end()
}

/// The clock that wakes the machine.
const ALARM: &str = "/sys/class/rtc/rtc0/wakealarm";

/// The emulated x86-64 is without it; elsewhere a machine that has none has failed.
fn needs_alarm() {
    if cfg!(target_arch = "x86_64") && !Path::new(ALARM).exists() {
        skip("nothing would wake this machine up again");
    }
}

/// Suspends the machine, and returns when it is awake again. Fails unless it slept.
fn suspend() -> Verdict {
    // Who is frozen does not stand still by any fault.
    set_sysfs("watchdog_ms", "500")?;
    let successes = "/sys/power/suspend_stats/success";
    let number = || -> Result<u64, String> {
        let text = fs::read_to_string(successes).context(successes)?;
        text.trim_end().parse().context(successes)
    };
    let state = "/sys/power/state";
    let before = number()?;
    let before_ns = boottime_ns();
    fs::write(ALARM, format!("+{ASLEEP_S}")).context(ALARM)?;
    fs::write(state, "freeze").context(state)?;
    let took_ms = (boottime_ns() - before_ns) / 1_000_000;
    println!("awake after {took_ms} ms");
    check!(took_ms >= (ASLEEP_S - AWAKE_S) * 1000, "awake after {took_ms} ms only");
    check_eq!(number()?, before + 1, "{successes}");
    Ok(())
}
