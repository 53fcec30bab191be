// SPDX-License-Identifier: GPL-2.0
//! Limits of t1: the excess of a task over its plan, and its interruptions (Leppert 2021, 1.1 and
//! 3.2.2).

use pbs_core::{Config, Threshold};
use pbs_uapi::EventKind;
use pbs_vmtest::harness::{burn, ns, Node, Plan, Scene};
use pbs_vmtest::{check, check_eq};
use serde_json::{json, Value};

/// The tick that the thesis counts in, scaled: its ratios are what is claimed.
const TICK_INSNS: u64 = 20_000;

/// PREEMPTION_LIMIT of the study, in ticks: what the thesis's σ allows its long task.
const LIMIT_TICKS: u64 = 500;

/// t1 as in the thesis, and nothing else.
fn config(no_preemption_ticks: u64) -> Config {
    Config {
        no_preemption_ns: ns(no_preemption_ticks * TICK_INSNS),
        preemption_limit_ns: ns(LIMIT_TICKS * TICK_INSNS),
        t1_spares_last_slot: 0,
        thresholds: Threshold::T1 as u64,
        max_preemptions: 1_000,
        ..Config::DEFAULT
    }
}

/// Instructions that a task without end has retired when t1 ends its slot.
fn retired_at_t1_insns(length_ticks: u64) -> Result<u64, String> {
    let length_insns = length_ticks * TICK_INSNS;
    let plan = Plan::new(1).config(config(1)).lead_in().slot(1, 0, length_insns);
    let mut scene = Scene::new()?;
    scene.process(1, |_| burn(2 * length_insns))?;
    let node = scene.run(&plan)?;
    let preempted = node.of(EventKind::Preempted);
    check_eq!(preempted.len(), 1, "ends at t1\n{}", node.log());
    Ok(preempted[0].retired_insns)
}

fn lengths() -> Result<Vec<Value>, String> {
    let mut lengths = Vec::new();
    for length_ticks in [100, 10_000, 20_000] {
        let retired_insns = retired_at_t1_insns(length_ticks)?;
        let retired_ticks = retired_insns as f64 / TICK_INSNS as f64;
        lengths.push(json!({
            "planned_ticks": length_ticks,
            "retired_ticks": retired_ticks,
            "over_ticks": retired_ticks - length_ticks as f64,
            "retired_insns": retired_insns,
        }));
    }
    Ok(lengths)
}

/// A task that was planned for one tick takes so many tenths of a tick; others of the process
/// and another process follow.
fn interruptions(tenths: u64, no_preemption_ticks: u64) -> Result<usize, String> {
    let mut plan = Plan::new(1).config(config(no_preemption_ticks)).lead_in();
    for task in 0..6 {
        plan = plan.slot(1, task, TICK_INSNS).slot(2, task, TICK_INSNS);
    }
    let mut scene = Scene::new()?;
    let short = TICK_INSNS / 2;
    scene.tasks(1, &[TICK_INSNS * tenths / 10, short, short, short, short, short])?;
    scene.tasks(2, &[short; 6])?;
    let node = scene.run(&plan)?;
    Ok(of_first_task(&node))
}

fn of_first_task(node: &Node) -> usize {
    let preempted = node.of(EventKind::Preempted);
    let of_it = preempted.iter().filter(|event| (event.process, event.task) == (1, 0));
    of_it.count()
}

fn no_preemption() -> Result<Vec<Value>, String> {
    let mut cases = Vec::new();
    for tenths in [30, 35, 40] {
        cases.push(json!({
            "retired_tenths": tenths,
            "interruptions_without": interruptions(tenths, 0)?,
            "interruptions_with": interruptions(tenths, 1)?,
        }));
    }
    Ok(cases)
}

/// 10^9 planned instructions, and 100 more, with the node's own configuration.
fn nearly_as_planned() -> Result<Value, String> {
    const PLANNED_INSNS: u64 = 1_000_000_000;
    let plan =
        Plan::new(1).without_config().lead_in().slot(1, 0, PLANNED_INSNS).slot(2, 0, TICK_INSNS);
    let mut scene = Scene::new()?;
    // The process retires some hundred instructions around its loop.
    scene.tasks(1, &[PLANNED_INSNS + 100])?;
    scene.tasks(2, &[TICK_INSNS])?;
    let node = scene.run(&plan)?;
    let retired_insns = node.task_ended(1, 0)?.retired_insns;
    check!(retired_insns >= PLANNED_INSNS + 100, "{retired_insns} were counted of a longer loop");
    Ok(json!({
        "planned_insns": PLANNED_INSNS,
        "retired_insns": retired_insns,
        "over_insns": retired_insns - PLANNED_INSNS,
        "failures": node.of(EventKind::Late).len() + node.of(EventKind::Early).len(),
        "preemptions": node.of(EventKind::Preempted).len(),
    }))
}

pub fn study() -> Result<Value, String> {
    Ok(json!({
        "tick_insns": TICK_INSNS,
        "preemption_limit_ticks": LIMIT_TICKS,
        "lengths": lengths()?,
        "no_preemption": no_preemption()?,
        "nearly_as_planned": nearly_as_planned()?,
    }))
}
