// SPDX-License-Identifier: GPL-2.0
//! Each t-2: told at the early end of a task.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, EventKind};

use super::{check_said, config};
use crate::harness::{ns, Counting, Plan, Scene, Verdict};
use crate::{check, check_eq};

/// A task that ends below tm2_task is told, behind its end; one that ends just
/// above it is not, nor one so short that the spacer is all of it.
pub fn early_by_tm2_task() -> Verdict {
    let config = Config {
        preemption_limit_ns: ns(500_000),
        t2_task_signaling_limit_ns: ns(1_000_000),
        ..config(&[Threshold::Tm2Task])
    };
    // (planned, burned, tm2_task if it is early)
    let counting = Counting::here();
    let tasks = [
        (1_000_000, 400_000, Some(500_000)),
        (1_000_000, 510_000, None),
        (1_000_000, counting.below(500_000), Some(500_000)),
        // No more early than T2_TASK_SIGNALING_LIMIT is left untold.
        (10_000_000, 8_900_000, Some(9_000_000)),
        (10_000_000, 9_100_000, None),
        (100_000, 1_000, None),
    ];
    let mut plan = Plan::new(1).config(config).lead_in();
    for (task, &(planned_insns, ..)) in (0..).zip(&tasks) {
        plan = plan.slot(1, task, planned_insns);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &tasks.map(|task| task.1))?;
    let node = scene.run(&plan)?;
    let early = || (0..).zip(&tasks).filter(|(_, task)| task.2.is_some());
    let expected: Vec<_> =
        early().map(|(task, _)| (EventKind::Early, Cause::Task, 1, task, 100)).collect();
    check_said(&node, &expected)?;
    for (event, (task, &(planned_insns, burned_insns, tm2_task))) in
        node.signals().iter().zip(early())
    {
        check_eq!(Some(event.value), tm2_task, "tm2_task of task {task}");
        check_eq!(event.planned_insns, planned_insns, "planned length");
        check!(
            counting.agrees(event.retired_insns, burned_insns),
            "task {task} retired {}\n{}",
            event.retired_insns,
            node.log()
        );
        check_eq!(
            node.task_ended(1, task)?.seq + 1,
            event.seq,
            "the signal follows the end\n{}",
            node.log()
        );
    }
    Ok(())
}

/// Tasks that are each a little early make the node early, which is told once;
/// and not at all while there is stress.
pub fn early_by_tm2_node() -> Verdict {
    let calm = Config { tm2_node_lower_bound_ns: ns(1_000_000), ..config(&[Threshold::Tm2Node]) };
    let stressed = Config { stress_reset: 1_000_000, stress_gain_ns: 1, ..calm };
    let run = |config| {
        let mut plan = Plan::new(1).config(config).lead_in();
        for task in 0..4 {
            plan = plan.slot(1, task, 1_000_000).slot(2, task, 1_000_000);
        }
        let mut scene = Scene::new()?;
        for process in 1..3 {
            scene.tasks(process, &[700_000; 4])?;
        }
        scene.run(&plan)
    };
    let node = run(calm)?;
    // A tenth of what they have ended is less.
    check_said(&node, &[(EventKind::Early, Cause::Node, 2, 1, 100)])?;
    let event = node.signals()[0];
    check_eq!(event.value as i64, -1_000_000, "tm2_node");
    check!(
        // Four tasks, each 300,000 early.
        Counting::here().agrees_within(
            10_000,
            (4_000_000 + event.node_lateness_insns) as u64,
            4 * 700_000
        ),
        "lateness of the node is {}\n{}",
        event.node_lateness_insns,
        node.log()
    );
    check_said(&run(stressed)?, &[])
}
