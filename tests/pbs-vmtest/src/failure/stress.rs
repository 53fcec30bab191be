// SPDX-License-Identifier: GPL-2.0
//! Stress: after a plan, signals about processes and the node wait.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, Event, EventKind, IDLE};

use super::{check_said, config};
use crate::harness::{
    burn, now_ns, ns, overshoot_limit_insns, sleep_ms, sysfs_number, Counting, Node, Plan, Scene,
    Verdict,
};
use crate::{check, check_eq};

const RESET: u64 = 50;
const GAIN_INSNS: u64 = 100_000;
const TICK_NS: u64 = 4_000_000;

fn stressed() -> Config {
    Config {
        stress_reset: RESET,
        stress_gain_ns: ns(GAIN_INSNS),
        nominal_tick_ns: TICK_NS,
        ..config(&[Threshold::T2Task, Threshold::T2Process, Threshold::T2Node])
    }
}

/// A task runs away right after the plan has come: t2_task is told where it
/// always is; t2_process and t2_node only when stress has fallen to meet them.
pub fn stress_holds_signals_back() -> Verdict {
    let plan = Plan::new(1).config(stressed()).lead_in().slot(1, 0, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[20_000_000])?;
    let node = scene.run(&plan)?;
    said_under_stress(&node)?;
    let [task, process, _] = signals(&node)?;
    check!(
        task.retired_insns <= 1_500_000 + overshoot_limit_insns(),
        "stress held t2_task back\n{}",
        node.log()
    );
    check!(
        process.lateness_insns > 3_000_000,
        "stress did not hold t2_process back\n{}",
        node.log()
    );
    Ok(())
}

/// Stress falls with the time: also while a task, too late already, retires
/// next to nothing.
pub fn stress_falls_with_time() -> Verdict {
    let plan = Plan::new(1).config(stressed()).lead_in().slot(1, 0, 1_000_000);
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        burn(2_600_000);
        let start_ns = now_ns();
        while now_ns() - start_ns < 300_000_000 {
            for _ in 0..100 {
                // SAFETY: no memory is involved.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
        }
    })?;
    let scene = scene.start(&plan)?;
    // What sysfs says of it; this runs in unallocated time, so the moments are
    // rough.
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(sysfs_number("cpu0/stress")?);
        sleep_ms(60);
    }
    println!("stress in sysfs: {seen:?}");
    check!(
        seen[0] > 40 && seen.is_sorted_by(|a, b| a >= b) && seen[4] == 0,
        "stress in sysfs was {seen:?}"
    );
    let node = scene.finish()?;
    said_under_stress(&node)?;
    let [_, process, _] = signals(&node)?;
    let start_ns = node.first(EventKind::PlanInstalled, IDLE)?.time_ns;
    check!(
        process.time_ns - start_ns > 10 * TICK_NS,
        "it was told too soon for stress to have fallen\n{}",
        node.log()
    );
    // It came with a tick, or the moment the limit was met.
    let late_ns = (process.time_ns - start_ns) % TICK_NS;
    let over_insns = process.lateness_insns - process.value as i64;
    println!("told {late_ns} ns after a tick, {over_insns} instructions too late");
    check!(
        late_ns < 200_000 || over_insns < 5_000 + overshoot_limit_insns() as i64,
        "told {late_ns} ns after a tick\n{}",
        node.log()
    );
    Ok(())
}

fn signals(node: &Node) -> Result<[Event; 3], String> {
    let signals = node.signals();
    signals.try_into().map_err(|_| format!("not three signals:\n{}", node.log()))
}

/// The task is told first, then the process and the node, with the stress of
/// their moments in their limits.
fn said_under_stress(node: &Node) -> Verdict {
    check_said(
        node,
        &[
            (EventKind::Late, Cause::Task, 1, 0, 100),
            (EventKind::Late, Cause::Process, 1, 0, 100),
            (EventKind::Late, Cause::Node, 1, 0, 100),
        ],
    )?;
    let start_ns = node.first(EventKind::PlanInstalled, IDLE)?.time_ns;
    let [task, process, late_node] = signals(node)?;
    for event in [task, process, late_node] {
        let ticks = (event.time_ns - start_ns) / TICK_NS;
        check_eq!(
            u64::from(event.stress),
            RESET.saturating_sub(ticks),
            "stress {ticks} ticks after the plan\n{}",
            node.log()
        );
    }
    let stress_insns = |event: &Event| u64::from(event.stress) * GAIN_INSNS;
    check_eq!(process.value, stress_insns(&process).max(500_000), "t2_process\n{}", node.log());
    check_eq!(
        late_node.value,
        (100_000 + stress_insns(&late_node)).max(500_000),
        "t2_node\n{}",
        node.log()
    );
    let too_late_insns = match Counting::here() {
        Counting::Exact => 1_000,
        Counting::Clock => overshoot_limit_insns(),
    };
    // A point more of stress would have held each of them back.
    for (event, lateness_insns) in
        [(process, process.lateness_insns), (late_node, late_node.node_lateness_insns)]
    {
        let over_insns = lateness_insns - event.value as i64;
        check!(
            (1..=(GAIN_INSNS + too_late_insns) as i64).contains(&over_insns),
            "told {over_insns} instructions beyond its limit\n{}",
            node.log()
        );
    }
    Ok(())
}
