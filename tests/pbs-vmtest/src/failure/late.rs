// SPDX-License-Identifier: GPL-2.0
//! Each t2: told once, at the instruction, by its own number.

use pbs_core::Threshold;
use pbs_uapi::{Cause, EventKind, Grant};

use super::{check_just_beyond, check_said, config};
use crate::harness::{burn, ns, overshoot_limit_insns, sleep_ms, Counting, Plan, Scene, Verdict};
use crate::{check, check_eq};

const TASK_INSNS: u64 = 1_000_000;
const T2_TASK_INSNS: i64 = 1_500_000;

/// A task that runs beyond t2_task is told once, when it gets there, wherever it
/// runs: in its own slot, in the next one of its process, in an idle slot, in
/// the slot of one that is blocked, and after the plan. One that ends just below
/// is not.
pub fn late_by_t2_task() -> Verdict {
    let own = |plan: Plan| plan.slot(1, 0, TASK_INSNS).slot(2, 0, TASK_INSNS);
    let (t2, both) = (config(&[Threshold::T2Task]), config(&[Threshold::T1, Threshold::T2Task]));
    let cases = [
        ("its own slot", own(Plan::new(1).config(t2).lead_in()), 1, Grant::Slot),
        (
            "the next slot of its process",
            own(Plan::new(1).config(both).lead_in()).slot(1, 1, TASK_INSNS),
            3,
            Grant::Slot,
        ),
        (
            "an idle slot",
            own(Plan::new(1).config(both).lead_in()).idle(10 * TASK_INSNS),
            3,
            Grant::IdleSlot,
        ),
        (
            "the slot of a blocked process",
            own(Plan::new(1).config(both).lead_in()).slot(3, 0, TASK_INSNS),
            3,
            Grant::BlockedSlot,
        ),
        (
            "after the plan",
            own(Plan::new(1).config(both).lead_in()),
            pbs_uapi::NO_SLOT,
            Grant::AfterPlan,
        ),
    ];
    for (place, plan, slot, reason) in cases {
        println!("{place}:");
        let mut scene = Scene::new()?;
        let blocked = reason == Grant::BlockedSlot;
        scene.process(1, |device| {
            burn(2 * TASK_INSNS);
            if slot == 3 && reason == Grant::Slot {
                device.task_end(None).expect("task end");
                burn(TASK_INSNS / 10);
            }
        })?;
        scene.tasks(2, &[Counting::here().below(T2_TASK_INSNS as u64)])?;
        if blocked {
            scene.process(3, |_| {
                sleep_ms(30);
                burn(TASK_INSNS / 10);
            })?;
        }
        let node = scene.run(&plan)?;
        check_said(&node, &[(EventKind::Late, Cause::Task, 1, 0, 100)])?;
        let event = node.signals()[0];
        check_eq!(event.value, T2_TASK_INSNS as u64, "t2_task");
        check_eq!(event.slot, slot, "slot of the signal\n{}", node.log());
        let grants = node.grants(reason);
        check!(grants.contains(&(1, slot)), "it did not run in {place}\n{}", node.log());
        check_eq!(event.planned_insns, TASK_INSNS, "planned");
        check_eq!(event.lateness_insns, event.retired_insns as i64 - TASK_INSNS as i64, "lateness");
        check_just_beyond(place, event.retired_insns as i64, T2_TASK_INSNS)?;
    }
    Ok(())
}

/// A process whose tasks are each a little late is told when their sum is
/// beyond t2_process, once.
pub fn late_by_t2_process() -> Verdict {
    let mut plan = Plan::new(1).config(config(&[Threshold::T2Process])).lead_in();
    for task in 0..5 {
        plan = plan.slot(1, task, TASK_INSNS).slot(2, task, TASK_INSNS);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &[1_200_000; 5])?;
    // Its capacity buffer of a tenth covers this.
    scene.tasks(2, &[Counting::here().below(1_100_000); 5])?;
    let node = scene.run(&plan)?;
    check_said(&node, &[(EventKind::Late, Cause::Process, 1, 2, 100)])?;
    let event = node.signals()[0];
    check_eq!(event.value, 500_000, "t2_process");
    check_just_beyond("lateness", event.lateness_insns, 500_000)
}

/// The plan buffer lets a process be later: by the share of it that its
/// progress has cleared.
pub fn late_by_plan_buffer() -> Verdict {
    let mut config = config(&[Threshold::T2Process]);
    config.t2_min_process_ns = 0;
    // A tenth of the buffer may be used up, when all is retired.
    let mut plan = Plan::new(1).config(config).buffer(1, 10 * TASK_INSNS).lead_in();
    for task in 0..5 {
        plan = plan.slot(1, task, TASK_INSNS);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &[900_000, 2_000_000, 900_000, 900_000, 900_000])?;
    let node = scene.run(&plan)?;
    check_said(&node, &[(EventKind::Late, Cause::Process, 1, 1, 100)])?;
    // With x instructions in its second task the process is late by
    // x − 1,100,000, and may be by 1,000,000 · (900,000 + x) / 5,000,000: they
    // meet where both are 500,000. Its capacity buffer is 200,000.
    let event = node.signals()[0];
    // It has risen by a fifth of what was noticed too late.
    let most_insns = Counting::here().over_insns(900_000) + overshoot_limit_insns() / 5;
    check!(
        event.value.abs_diff(500_000) < most_insns,
        "t2_process is {}\n{}",
        event.value,
        node.log()
    );
    check_just_beyond("lateness", event.lateness_insns, event.value as i64)
}

/// Processes that are each within their limits are together beyond t2_node.
pub fn late_by_t2_node() -> Verdict {
    let mut config = config(&[Threshold::T2Process, Threshold::T2Node]);
    config.t2_min_process_ns = ns(420_000);
    // 420,000 for each, so 840,000 when both have begun; a tenth of what they
    // have begun is less.
    let mut plan = Plan::new(1).config(config).lead_in();
    for task in 0..3 {
        plan = plan.slot(1, task, TASK_INSNS).slot(2, task, TASK_INSNS);
    }
    let mut scene = Scene::new()?;
    let within_insns = Counting::here().below(1_410_000);
    scene.tasks(1, &[within_insns, 900_000, 900_000])?;
    scene.tasks(2, &[within_insns, 1_010_000, 900_000])?;
    let node = scene.run(&plan)?;
    check_said(&node, &[])?;

    // This time the second process is late in both.
    let mut scene = Scene::new()?;
    config.thresholds = Threshold::T2Node as u64;
    let mut plan = Plan::new(2).config(config).lead_in();
    for task in 0..3 {
        plan = plan.slot(1, task, TASK_INSNS).slot(2, task, TASK_INSNS);
    }
    scene.tasks(1, &[1_400_000, 1_050_000, 900_000])?;
    scene.tasks(2, &[1_300_000, 1_400_000, 900_000])?;
    let node = scene.run(&plan)?;
    check_said(&node, &[(EventKind::Late, Cause::Node, 2, 1, 100)])?;
    let event = node.signals()[0];
    check_eq!(event.value, 840_000, "t2_node");
    check_just_beyond("lateness of the node", event.node_lateness_insns, 840_000)?;
    let others_insns = event.node_lateness_insns - event.lateness_insns;
    check!(
        Counting::here().agrees_within(10_000, (2_000_000 + others_insns) as u64, 2_450_000),
        "the other process is late by {others_insns}\n{}",
        node.log()
    );
    Ok(())
}

/// A task that is preempted MAX_PREEMPTIONS times is told at the last of them,
/// and not again.
pub fn late_by_t2_preemptions() -> Verdict {
    let mut plan =
        Plan::new(1).config(config(&[Threshold::T1, Threshold::T2Preemptions])).lead_in();
    for task in 0..8 {
        plan = plan.slot(1, task, TASK_INSNS).slot(2, task, TASK_INSNS);
    }
    let mut scene = Scene::new()?;
    scene.process(1, |_| burn(8 * TASK_INSNS))?;
    scene.tasks(2, &[900_000; 8])?;
    let node = scene.run(&plan)?;
    check_said(&node, &[(EventKind::Late, Cause::Preemptions, 1, 0, 100)])?;
    let event = node.signals()[0];
    check_eq!((event.value, event.preemptions), (3, 3), "preemptions");
    let preempted = node.of(EventKind::Preempted);
    check!(
        preempted.len() > 3,
        "it was not preempted again, so this proves nothing\n{}",
        node.log()
    );
    check_eq!(preempted[2].seq + 1, event.seq, "the event before it");
    Ok(())
}
