// SPDX-License-Identifier: GPL-2.0
//! A process that never ends its task does not take more from the others than
//! the plan allows it.
//!
//! These tests compare times. They may: the machine counts instructions for its
//! clock (a fixed icount), so a moment of the guest is a number of instructions
//! that it has executed, and depends neither on the host's speed nor on its
//! load.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, Device, EventKind, IDLE};

use super::check_said;
use crate::harness::{burn, ns, Counting, Node, Plan, Scene, Verdict, CONFIG, LEAD_IN_INSNS};
use crate::{check, check_eq};

const ROGUE: u32 = 1;
const ROUNDS: u32 = 8;
const ROGUE_INSNS: u64 = 5_000_000;
const OTHER_INSNS: u64 = 2_000_000;

/// A process computes for ever: t1 ends each of its slots, and it is reported as late.
pub fn rogue_loop_keeps_to_its_slots() -> Verdict {
    let node = rogue(|_| burn(1 << 40))?;
    let preempted = node.of(EventKind::Preempted);
    check_eq!(preempted.len(), ROUNDS as usize, "ends at t1\n{}", node.log());
    check_eq!(node.of(EventKind::Ceiling).len(), 0, "ceilings");
    // 12 million instructions beyond the plan, then 5 preemptions.
    check_said(
        &node,
        &[
            (EventKind::Late, Cause::Task, ROGUE, 0, 100),
            (EventKind::Late, Cause::Preemptions, ROGUE, 0, 100),
        ],
    )
}

/// A process calls the kernel for ever, and therefore retires hardly anything: the ceiling ends
/// each of its slots. If the clock counts, its work in the kernel is counted, too: there t1 ends
/// them.
pub fn rogue_calls_keep_to_their_slots() -> Verdict {
    let node = rogue(|_| loop {
        // SAFETY: no memory is involved.
        unsafe { libc::syscall(libc::SYS_getppid) };
    })?;
    let (end, other) = match Counting::here() {
        Counting::Exact => (EventKind::Ceiling, EventKind::Preempted),
        Counting::Clock => (EventKind::Preempted, EventKind::Ceiling),
    };
    check_eq!(node.of(end).len(), ROUNDS as usize, "ends by {}\n{}", end.name(), node.log());
    check_eq!(node.of(other).len(), 0, "ends by {}", other.name());
    Ok(())
}

/// Runs a plan in which the rogue has a slot in each round, and three others
/// one each, and compares when these have ended with the plan.
fn rogue(work: impl FnOnce(&Device)) -> Result<Node, String> {
    // Told or not, a failure must not depend on how far stress has fallen.
    let config = Config {
        thresholds: Threshold::T1 as u64
            | Threshold::T2Task as u64
            | Threshold::T2Preemptions as u64,
        // Told in its fourth slot, before the fifth preemption.
        t2_spacer_ns: ns(12_000_000),
        ..CONFIG
    };
    let others = 2..5;
    let mut plan = Plan::new(1).config(config).lead_in();
    // Of all slots up to the last one of each.
    let mut sum_insns = LEAD_IN_INSNS;
    let mut planned_insns = [0; 5];
    for task in 0..ROUNDS {
        plan = plan.slot(ROGUE, task, ROGUE_INSNS);
        sum_insns += ROGUE_INSNS;
        for process in others.clone() {
            plan = plan.slot(process, task, OTHER_INSNS);
            sum_insns += OTHER_INSNS;
            planned_insns[process as usize] = sum_insns;
        }
    }
    let mut scene = Scene::new()?;
    scene.process(ROGUE, work)?;
    for process in others.clone() {
        // As planned, with what the calls take.
        scene.tasks(process, &[OTHER_INSNS - 2_000; ROUNDS as usize])?;
    }
    let info = scene.node.device.info().map_err(|error| error.to_string())?;
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::ProcessEnded, others.len())?;
    // The rogue would go on for ever: the scene ends it.
    let Scene { node, .. } = scene;
    let log = node.log();

    let ns = |insns: u64| insns * 1_000_000 / info.rate_insns_per_ms;
    let execution = 1.0 - config.window_unallocated_ns as f64 / config.window_period_ns as f64;
    let ceiling_ns =
        ns(ROGUE_INSNS) * config.ceiling_factor_permille / 1_000 + config.ceiling_extra_ns;
    let reached = node.of(EventKind::Ceiling).len() as u64;
    let start_ns = node.first(EventKind::PlanInstalled, IDLE)?.time_ns;
    for process in others {
        let end_ns = node.first(EventKind::ProcessEnded, process)?.time_ns - start_ns;
        let planned_ns = ns(planned_insns[process as usize]) as f64 / execution;
        // Where t1 ends the rogue's slots no ceiling is allowed for.
        let limit_ns = planned_ns * 1.05 + (reached * ceiling_ns) as f64;
        println!(
            "process {process} ended after {end_ns} ns, planned {planned_ns:.0}, at most {limit_ns:.0}"
        );
        check!(
            (end_ns as f64) <= limit_ns,
            "process {process} ended after {end_ns} ns, planned {planned_ns:.0}, at most \
             {limit_ns:.0}\n{log}"
        );
        let tasks = node.of(EventKind::TaskEnded);
        let tasks = tasks.iter().filter(|event| event.process == process);
        check_eq!(tasks.count(), ROUNDS as usize, "tasks of process {process}\n{log}");
    }
    Ok(node)
}
