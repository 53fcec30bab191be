// SPDX-License-Identifier: GPL-2.0
//! A task without end is signalled again and again (Leppert 2021, 3.3.9): here once a plan,
//! for each cause.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, Event, EventKind};
use pbs_vmtest::harness::{burn, ns, Context, Plan, Scene};
use serde_json::{json, Value};

const ROGUE: u32 = 1;
const SLOT_INSNS: u64 = 2_000_000;
const OTHER_INSNS: u64 = 500_000;
const SLOTS: u32 = 60;
/// Number of plans that the rogue gets to see.
const PLANS: u64 = 5;

const TASK: u64 = Threshold::T2Task as u64;
const BOTH: u64 = TASK | Threshold::T2Preemptions as u64;

fn config(watched: u64) -> Config {
    Config {
        no_preemption_ns: ns(100_000),
        t2_spacer_ns: ns(1_000_000),
        thresholds: Threshold::T1 as u64 | watched,
        t1_spares_last_slot: 0,
        ..Config::DEFAULT
    }
}

/// A plan in which the rogue has a slot in each round; its first task is that long.
fn plan(id: u64, first_insns: u64, watched: u64) -> Plan {
    let mut plan = Plan::new(id).config(config(watched)).lead_in();
    for round in 0..SLOTS {
        let insns = if round == 0 { first_insns } else { SLOT_INSNS };
        plan = plan.slot(ROGUE, round, insns).slot(2, round, OTHER_INSNS);
    }
    plan
}

fn count(events: &[Event], cause: Cause) -> usize {
    let of_it =
        events.iter().filter(|event| event.process == ROGUE && event.reason == cause as u16);
    of_it.count()
}

/// One plan to its end, and no other.
fn one_plan() -> Result<Value, String> {
    let mut scene = Scene::new()?;
    scene.process(ROGUE, |_| burn(1 << 40))?;
    scene.tasks(2, &[OTHER_INSNS - 2_000; SLOTS as usize])?;
    let mut scene = scene.start(&plan(1, SLOT_INSNS, BOTH))?;
    scene.node.read_until(EventKind::ProcessEnded, 1)?;
    let late = scene.node.of(EventKind::Late);
    let preempted = scene.node.of(EventKind::Preempted);
    Ok(json!({
        "slots": SLOTS,
        "preemptions": preempted.iter().filter(|event| event.process == ROGUE).count(),
        "signals_task": count(&late, Cause::Task),
        "signals_preemptions": count(&late, Cause::Preemptions),
    }))
}

/// After each failure a plan that deals with it, and takes the task for a quarter longer than
/// it has become, as the planner does.
fn answered() -> Result<Value, String> {
    let mut scene = Scene::new()?;
    scene.process(ROGUE, |_| burn(1 << 40))?;
    scene.tasks(2, &[OTHER_INSNS - 2_000; SLOTS as usize])?;
    let mut scene = scene.start(&plan(1, SLOT_INSNS, TASK))?;
    let mut planned_insns = vec![SLOT_INSNS];
    for id in 2..=PLANS {
        let number = id as usize - 1;
        scene.node.read_until(EventKind::Late, number)?;
        let late = scene.node.of(EventKind::Late);
        let last = late.last().ok_or("no failure")?;
        // It has gone on since then.
        let known = scene.node.device.process(ROGUE).context("ask for the rogue")?;
        let known = known.ok_or("the rogue is not known")?;
        let insns = known.retired_insns * 5 / 4;
        planned_insns.push(insns);
        scene.node.load(&plan(id, insns, TASK).dealt(last.seq + 1))?;
    }
    scene.node.read_until(EventKind::Late, PLANS as usize)?;
    let late = scene.node.of(EventKind::Late);
    Ok(json!({
        "plans": PLANS,
        "planned_insns": planned_insns,
        "signals_task": count(&late, Cause::Task),
    }))
}

pub fn study() -> Result<Value, String> {
    Ok(json!({
        "one_plan": one_plan()?,
        "answered": answered()?,
    }))
}
