// SPDX-License-Identifier: GPL-2.0
//! The instruction clock: each tier executes a plan, and goes on through what
//! can come between.

pub mod faults;
pub mod suspend;
pub mod swaps;
pub mod tickless;

use pbs_uapi::{Event, EventKind, Grant, Tier};

use crate::harness::{
    kernel_is_watched, line, overshoot_limit_insns, skip, sysfs, sysfs_number, Context, Node, Plan,
    Scene, Verdict, OVERHEAD_INSNS,
};
use crate::{check, check_eq};

/// Delay of the timer after the counter's interrupt; the timer stands in for an interrupt that QEMU
/// delivers late: 50 us.
const BACKSTOP_INSNS: u64 = 12_500;

/// The emulated x86-64 has no PMU; elsewhere a machine that finds none has failed.
fn needs_pmu() {
    if cfg!(target_arch = "x86_64") {
        skip("there is no PMU here, and so only one tier");
    }
}

/// Process 1 is cut by its t1, 2 too, 3 stays in its slots.
const BURNS: [&[u64]; 3] =
    [&[5_000_000, 2_000_000], &[4_500_000, 2_000_000], &[3_500_000, 3_500_000]];

/// Slots of 4,000,000 for both tasks of the three.
fn plan() -> Plan {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..2 {
        for process in 1..=3 {
            plan = plan.slot(process, task, 4_000_000);
        }
    }
    plan
}

pub fn tier_pmu_overflow() -> Verdict {
    needs_pmu();
    agrees(Tier::PmuOverflow)?;
    let before = sysfs_number("cpu0/overflows")?;
    executes_exactly(BACKSTOP_INSNS + overshoot_limit_insns())?;
    let interrupts = sysfs_number("cpu0/overflows")? - before;
    println!("{interrupts} interrupts of the counter");
    check!(interrupts > 0, "the counter never interrupted");
    agrees(Tier::PmuOverflow)
}

pub fn tier_pmu() -> Verdict {
    needs_pmu();
    agrees(Tier::Pmu)?;
    executes_exactly(overshoot_limit_insns())?;
    check_eq!(sysfs_number("cpu0/overflows")?, 0, "interrupts of a counter that was not set to");
    agrees(Tier::Pmu)
}

/// The list has a tier that does not exist for it.
pub fn unknown_tier_is_not_taken() -> Verdict {
    tier_pmu()
}

pub fn tier_clock() -> Verdict {
    agrees(Tier::Clock)?;
    let node = executes()?;
    by_the_clock(&node)?;
    agrees(Tier::Clock)
}

/// The device and sysfs, for the node and its CPU, say the same of the tier and
/// of the rate.
fn agrees(tier: Tier) -> Verdict {
    let info = Node::open()?.device.info().context("info")?;
    check_eq!(Tier::from_raw(info.tier), Some(tier), "tier by the device");
    check!(info.rate_insns_per_ms > 0, "no rate");
    for place in ["", "cpu0/"] {
        check_eq!(sysfs(&format!("{place}tier"))?, tier.name(), "{place}tier");
        check_eq!(
            sysfs_number(&format!("{place}rate_insns_per_ms"))?,
            info.rate_insns_per_ms as i64,
            "{place}rate"
        );
        check_eq!(
            sysfs_number(&format!("{place}rate_spread_permille"))?,
            info.rate_spread_permille as i64,
            "{place}spread of the rate"
        );
    }
    Ok(())
}

/// Executes the plan: in its order, with a preemption at t1.
fn executes() -> Result<Node, String> {
    let mut scene = Scene::new()?;
    for (process, burns) in (1..).zip(BURNS) {
        scene.tasks(process, burns)?;
    }
    let node = scene.run(&plan())?;
    check_eq!(
        node.grants(Grant::Slot),
        [(1, 1), (2, 2), (3, 3), (1, 4), (2, 5), (3, 6)],
        "granted slots\n{}",
        node.log()
    );
    for process in 1..=2u32 {
        let event = node.first(EventKind::Preempted, process)?;
        check_eq!(event.slot, u64::from(process), "preempted slot\n{}", node.log());
    }
    Ok(node)
}

/// The counts are exact, and t1 is met by this much at most.
fn executes_exactly(overshoot_limit_insns: u64) -> Verdict {
    let node = executes()?;
    for event in node.of(EventKind::Preempted) {
        let overshoot_insns = event.retired_insns.wrapping_sub(event.value);
        println!("preempted {overshoot_insns} instructions after t1");
        check!(
            overshoot_insns < overshoot_limit_insns,
            "overshoot {overshoot_insns}: {}",
            line(&event)
        );
    }
    for (event, burned_insns) in ends(&node)? {
        is_exact(&event, burned_insns)?;
    }
    Ok(())
}

fn by_the_clock(node: &Node) -> Verdict {
    for (event, burned_insns) in ends(node)? {
        is_about(&event, burned_insns)?;
    }
    Ok(())
}

/// Each end of a task, with what the task burned.
fn ends(node: &Node) -> Result<Vec<(Event, u64)>, String> {
    let mut ends = Vec::new();
    for (process, burns) in (1..).zip(BURNS) {
        for (task, &burned_insns) in (0..).zip(burns) {
            ends.push((node.task_ended(process, task)?, burned_insns));
        }
    }
    Ok(ends)
}

fn is_exact(event: &Event, burned_insns: u64) -> Verdict {
    check!(
        event.retired_insns.wrapping_sub(burned_insns) < OVERHEAD_INSNS,
        "burned {burned_insns}, but: {}",
        line(event)
    );
    Ok(())
}

/// Checks a count with the accuracy of the clock: time in the kernel is counted too, here and when
/// the rate is measured.
fn is_about(event: &Event, burned_insns: u64) -> Verdict {
    let share = if kernel_is_watched() { 4 } else { 12 };
    check!(
        event.retired_insns.abs_diff(burned_insns) < burned_insns / share,
        "burned {burned_insns}, but: {}",
        line(event)
    );
    Ok(())
}
