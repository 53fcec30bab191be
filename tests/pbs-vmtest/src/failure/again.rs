// SPDX-License-Identifier: GPL-2.0
//! A plan that does not deal with a failure hears of it again.

use pbs_core::Threshold;
use pbs_uapi::{Cause, EventKind};

use super::dealt::{process_scene, BEFORE};
use super::{check_said, config};
use crate::harness::{overshoot_limit_insns, Plan, Scene, Verdict};
use crate::{check, check_eq};

/// A task that is still beyond t2_task is told at once under the new plan; a
/// process, and the node, as soon as a task of it is late, with the lateness
/// that they had before.
pub fn failure_is_told_again() -> Verdict {
    let plan = |id| {
        Plan::new(id).config(config(&[Threshold::T2Task])).idle(5_000_000).slot(1, 0, 1_000_000)
    };
    let mut scene = Scene::new()?;
    scene.tasks(1, &[100_000_000])?;
    let mut scene = scene.start(&plan(1))?;
    scene.node.read_until(EventKind::Late, 1)?;
    // It deals with all before the signal, and not with the signal.
    let seq = scene.node.signals()[0].seq;
    scene.node.load(&plan(2).dealt(seq))?;
    let node = scene.finish()?;
    check_said(&node, &[(EventKind::Late, Cause::Task, 1, 0, 100); 2])?;
    let [first, again] = [0, 1].map(|index| node.signals()[index]);
    check_eq!((first.plan_id, again.plan_id), (1, 2), "plans of the signals");
    check!(again.retired_insns > first.retired_insns, "the task lost counts\n{}", node.log());

    let node = process_scene(|process_seq, _| process_seq)?;
    let again = BEFORE.map(|(kind, cause, process, _, level)| (kind, cause, process, 2, level));
    check_said(&node, &[BEFORE, again].concat())?;
    let event = node.signals()[2];
    check_eq!(event.plan_id, 2, "plan of the second signal");
    let most_insns = 1_000_000 + overshoot_limit_insns() as i64;
    check!(
        (985_000..most_insns).contains(&event.lateness_insns),
        "lateness {}\n{}",
        event.lateness_insns,
        node.log()
    );
    Ok(())
}
