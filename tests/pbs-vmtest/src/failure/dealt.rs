// SPDX-License-Identifier: GPL-2.0
//! A plan that deals with a failure: it is not told again, and what it was
//! about begins anew.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, EventKind};

use super::{check_just_beyond, check_said, config};
use crate::harness::{burn, needs_counter, Context, Counting, Node, Plan, Scene, Verdict};
use crate::input::kit::{last_refusal, refused};
use crate::{check, check_eq};

/// The second plan was in force before that task ended.
fn swapped_before_end(node: &Node, process: u32, task: u32) -> Verdict {
    let installed = node.of(EventKind::PlanInstalled);
    check_eq!(installed.len(), 2, "plans\n{}", node.log());
    check!(
        installed[1].seq < node.task_ended(process, task)?.seq,
        "the second plan came too late to prove anything\n{}",
        node.log()
    );
    Ok(())
}

/// A task beyond t2_task is not told of again under a plan that deals with it,
/// unless that plan makes it longer and the task is beyond that, too. Its count
/// goes on.
pub fn dealt_task_is_silent() -> Verdict {
    const BURN_INSNS: u64 = 100_000_000;
    let config = config(&[Threshold::T2Task]);
    for (length_insns, t2_task_insns) in [(1_000_000, None), (60_000_000, Some(90_000_000))] {
        let plan = |id, length_insns| {
            Plan::new(id).config(config).idle(5_000_000).slot(1, 0, length_insns)
        };
        let mut scene = Scene::new()?;
        scene.tasks(1, &[BURN_INSNS])?;
        let mut scene = scene.start(&plan(1, 1_000_000))?;
        scene.node.read_until(EventKind::Late, 1)?;
        let seq = scene.node.signals()[0].seq;
        scene.node.load(&plan(2, length_insns).dealt(seq + 1))?;
        let node = scene.finish()?;
        swapped_before_end(&node, 1, 0)?;
        let mut expected = vec![(EventKind::Late, Cause::Task, 1, 0, 100)];
        if let Some(t2_task_insns) = t2_task_insns {
            expected.push(expected[0]);
            check_said(&node, &expected)?;
            let again = node.signals()[1];
            check_eq!(again.plan_id, 2, "plan of the second signal");
            check_eq!(again.value, t2_task_insns as u64, "t2_task under it");
            check_just_beyond("the task", again.retired_insns as i64, t2_task_insns)?;
        }
        check_said(&node, &expected)?;
        let ended = node.task_ended(1, 0)?;
        check!(
            Counting::here().agrees(ended.retired_insns, BURN_INSNS),
            "the task lost counts: {}\n{}",
            ended.retired_insns,
            node.log()
        );
    }
    Ok(())
}

/// Instructions that the process of [`process_scene`] burns. It is late by a million in task 0, as
/// planned in task 1, in which the second plan arrives, and late by 300,000 in task 2.
const BURNS: [u64; 4] = [2_000_000, 59_990_000, 1_300_000, 900_000];
const LENGTHS: [u64; 4] = [1_000_000, 60_000_000, 1_000_000, 1_000_000];

/// Runs that, with a second plan that deals with what `dealt_seq` makes of the
/// signals about the process and the node.
pub fn process_scene(dealt_seq: impl FnOnce(u64, u64) -> u64) -> Result<Node, String> {
    needs_counter("a process may be late by less than a hundredth of its longest task");
    // Nothing but T2_MIN_PROCESS: 500,000 for each of them.
    let config = Config {
        capacity_buffer_permille: 1000,
        t2_node_lateness_cap_permille: 1000,
        ..config(&[Threshold::T2Process, Threshold::T2Node])
    };
    let mut plan = Plan::new(1).config(config).lead_in();
    let mut second = Plan::new(2).config(config);
    for (task, length_insns) in (0..).zip(LENGTHS) {
        plan = plan.slot(1, task, length_insns);
        if task > 0 {
            second = second.slot(1, task, length_insns);
        }
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &BURNS)?;
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::Late, 2)?;
    let signals = scene.node.signals();
    let dealt_seq = dealt_seq(signals[0].seq, signals[1].seq);
    scene.node.load(&second.dealt(dealt_seq))?;
    let node = scene.finish()?;
    swapped_before_end(&node, 1, 1)?;
    check_eq!(node.task_ended(1, 1)?.plan_id, 2, "plan of task 1\n{}", node.log());
    Ok(node)
}

/// The signals of its first plan.
pub const BEFORE: [super::SignalFields; 2] =
    [(EventKind::Late, Cause::Process, 1, 0, 100), (EventKind::Late, Cause::Node, 1, 0, 100)];

/// A process, and the node, begin a new account of lateness under a plan that
/// deals with what was told of them.
pub fn dealt_process_is_silent() -> Verdict {
    let node = process_scene(|_, node_seq| node_seq + 1)?;
    check_said(&node, &BEFORE)?;
    let lateness_insns = node.task_ended(1, 2)?.lateness_insns;
    check!(
        (280_000..300_000).contains(&lateness_insns),
        "lateness under the second plan: {lateness_insns}\n{}",
        node.log()
    );
    Ok(())
}

/// The preemptions of a task count from 0 again.
pub fn dealt_preemptions_restart() -> Verdict {
    let mut plan =
        Plan::new(1).config(config(&[Threshold::T1, Threshold::T2Preemptions])).lead_in();
    let mut second = Plan::new(2).config(config(&[Threshold::T1, Threshold::T2Preemptions]));
    for task in 0..60 {
        plan = plan.slot(1, task, 1_000_000).slot(2, task, 1_000_000);
        second = second.slot(1, task, 1_000_000).slot(2, task, 1_000_000);
    }
    let mut scene = Scene::new()?;
    scene.process(1, |_| burn(40_000_000))?;
    scene.tasks(2, &[900_000; 60])?;
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::Late, 1)?;
    let seq = scene.node.signals()[0].seq;
    scene.node.load(&second.dealt(seq + 1))?;
    let node = scene.finish()?;
    swapped_before_end(&node, 1, 0)?;
    check_said(&node, &[(EventKind::Late, Cause::Preemptions, 1, 0, 100); 2])?;
    let again = node.signals()[1];
    check_eq!((again.plan_id, again.preemptions), (2, 3), "the second signal");
    let swap_seq = node.of(EventKind::PlanInstalled)[1].seq;
    let preempted = node.of(EventKind::Preempted);
    let since_swap = preempted
        .iter()
        .filter(|event| event.process == 1 && (swap_seq..again.seq).contains(&event.seq));
    check_eq!(
        since_swap.count(),
        3,
        "preemptions between the second plan and the second signal\n{}",
        node.log()
    );
    Ok(())
}

/// A plan can deal with all that has happened, and with nothing else.
pub fn dealt_with_the_future() -> Verdict {
    let node = Node::open()?;
    let next_seq = || Ok::<u64, String>(node.device.info().context("info")?.next_seq);
    let plan = |id| Plan::new(id).slot(1, 0, 1_000_000);
    // Something has happened.
    node.load(&plan(1))?;
    let next = next_seq()?;
    check!(next > 0, "a plan came, and no event");
    let wrong = plan(2).dealt(next + 1).bytes();
    let reason = refused("the future", node.device.write_plan(&wrong), libc::EINVAL)?;
    for words in [format!("is {}", next + 1), format!("number {next};")] {
        check!(reason.contains(&words), "{words} is not in: {reason}");
    }
    check_eq!(last_refusal(&node.device)?.offset_bytes, 40, "where it is wrong");
    check_eq!(next_seq()?, next, "events after a refusal");
    node.load(&plan(3).dealt(next))
}
