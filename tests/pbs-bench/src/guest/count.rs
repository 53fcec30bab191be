// SPDX-License-Identifier: GPL-2.0
//! Accuracy of the counts: of tasks, and of slots that end at t1. The events contain the kernel's
//! counts, and the loops are known.

use pbs_uapi::EventKind;
use pbs_vmtest::harness::{burn, rate, Node, Plan, Scene, CONFIG};
use pbs_vmtest::{check, check_eq};

use super::named::Named;

/// Greatest error of the kernel's counts of tasks that are longer than their slots and take turns
/// with others, compared with their loops.
pub fn accounting_percent() -> Result<f64, String> {
    const BURNS: [[u64; 3]; 2] =
        [[10_000_000, 25_000_000, 50_000_000], [10_000_000, 8_000_000, 30_000_000]];
    let mut plan = Plan::new(1).lead_in();
    for task in 0..3 {
        for (process, burns) in (1..).zip(&BURNS) {
            plan = plan.slot(process, task, burns[task as usize] * 9 / 10);
        }
    }
    let mut scene = Scene::new()?;
    for (process, burns) in (1..).zip(&BURNS) {
        scene.tasks(process, burns)?;
    }
    let node = scene.run(&plan)?;
    check!(node.of(EventKind::Preempted).len() > 2, "hardly a task met t1:\n{}", node.log());
    let mut worst = 0f64;
    for (process, burns) in (1..).zip(&BURNS) {
        for (task, &burned) in (0..).zip(burns) {
            let retired = node.task_ended(process, task)?.retired_insns;
            worst = worst.max(retired.abs_diff(burned) as f64 / burned as f64);
        }
    }
    Ok(worst * 100.0)
}

const SLOT_INSNS: u64 = 250_000;
const SLOTS: u32 = 502;
const PROCESSES: u32 = 2;

/// Slots that end at t1 in [`preempted_turns`], but for the first of each process.
pub const SLOTS_MET: usize = ((SLOTS - 1) * PROCESSES) as usize;

/// Two tasks without end take turns, slot by slot: what was told of them, and t1.
pub fn preempted_turns() -> Result<(Node, u64), String> {
    let mut config = CONFIG;
    config.max_preemptions = 1_000_000;
    // A kernel that checks itself takes so long that slots would reach their
    // ceilings before t1.
    config.ceiling_factor_permille = 100_000;
    // The timer expires for nothing but t1: no change of windows in a run, and no
    // other threshold.
    config.window_period_ns = 10_000_000_000;
    config.window_unallocated_ns = config.window_period_ns / 100;
    config.thresholds = pbs_core::Threshold::T1 as u64;
    let mut plan = Plan::new(1).config(config).lead_in();
    for task in 0..SLOTS {
        for process in 1..=PROCESSES {
            plan = plan.slot(process, task, SLOT_INSNS);
        }
    }
    let t1_insns = pbs_core::Policy::new(config, rate()).t1_of_slot_insns(SLOT_INSNS, false);
    let t1_insns = t1_insns.ok_or("t1 is off")?;
    let mut scene = Scene::new()?;
    for process in 1..=PROCESSES {
        // One task, which takes all slots, however far each goes beyond t1; the
        // others never begin.
        scene.process(process, |_| burn(u64::from(SLOTS) * (t1_insns + SLOT_INSNS / 2)))?;
    }
    let mut scene = scene.start(&plan)?;
    for child in &mut scene.children {
        child.wait_ok()?;
    }
    scene.node.read()?;
    Ok((scene.node, t1_insns))
}

/// Overshoot of slots beyond t1, over 1,000 of them.
pub fn overshoot() -> Result<Vec<Named>, String> {
    let (node, t1_insns) = preempted_turns()?;
    let mut over_insns = Vec::new();
    for process in 1..=PROCESSES {
        let preempted = node.of(EventKind::Preempted);
        let retired = preempted.iter().filter(|event| event.process == process && event.task == 0);
        let retired: Vec<u64> = retired.map(|event| event.retired_insns).collect();
        // Between two preemptions of a process lies one slot of it.
        for pair in retired.windows(2) {
            over_insns.push((pair[1] - pair[0]).saturating_sub(t1_insns));
        }
    }
    check_eq!(over_insns.len(), SLOTS_MET, "slots that met t1");
    over_insns.sort_unstable();
    let at = |percent: usize| over_insns[(over_insns.len() - 1) * percent / 100] as f64;
    Ok(vec![
        Named::insns("overshoot-p50", at(50)),
        Named::insns("overshoot-p99", at(99)),
        Named::insns("overshoot-max", at(100)),
    ])
}
