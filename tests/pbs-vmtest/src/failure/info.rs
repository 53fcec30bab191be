// SPDX-License-Identifier: GPL-2.0
//! Information before a failure, thresholds that are switched off, and readers of signals.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, EventKind};

use super::{check_just_beyond, check_said, config, says};
use crate::harness::{Context, Node, Plan, Scene, Verdict};
use crate::{check, check_eq};

/// A task that is twice as long as planned, in its one slot.
fn one_late_task(config: Config) -> Result<Node, String> {
    let plan = Plan::new(1).config(config).lead_in().slot(1, 0, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[2_000_000])?;
    scene.run(&plan)
}

/// A quarter, half and three quarters of t2_process are told in order, each
/// when it is exceeded, then the failure.
pub fn info_before_t2_process() -> Verdict {
    let node = one_late_task(config(&[Threshold::T2Process, Threshold::Info]))?;
    in_four_steps(&node, Cause::Process)
}

/// The steps to t2_node are reported in order, then the failure.
pub fn info_before_t2_node() -> Verdict {
    let node = one_late_task(config(&[Threshold::T2Node, Threshold::Info]))?;
    in_four_steps(&node, Cause::Node)
}

fn in_four_steps(node: &Node, cause: Cause) -> Verdict {
    check_said(
        node,
        &[
            (EventKind::Info, cause, 1, 0, 25),
            (EventKind::Info, cause, 1, 0, 50),
            (EventKind::Info, cause, 1, 0, 75),
            (EventKind::Late, cause, 1, 0, 100),
        ],
    )?;
    for event in node.signals() {
        check_eq!(event.value, 500_000, "the threshold");
        let level = event.level_percent;
        for lateness_insns in [event.lateness_insns, event.node_lateness_insns] {
            let level_insns = i64::from(level) * 5_000;
            check_just_beyond(&format!("{level} %"), lateness_insns, level_insns)?;
        }
    }
    Ok(())
}

/// A plan that meets every threshold, with one after the other switched off:
/// its events are missing, and no others.
pub fn each_threshold_can_be_off() -> Verdict {
    use pbs_uapi::Cause::{Node, Preemptions, Process, Task};
    use pbs_uapi::EventKind::{Early, Info, Late};
    let all = [
        (Early, Task),
        (Early, Node),
        (Info, Process),
        (Late, Task),
        (Late, Process),
        (Info, Node),
        (Late, Node),
        (Late, Preemptions),
    ];
    let missing: [(Option<Threshold>, &[_]); 9] = [
        (None, &[]),
        // Without preemptions there are none to count.
        (Some(Threshold::T1), &[(Late, Preemptions)]),
        (Some(Threshold::T2Task), &[(Late, Task)]),
        // The information comes with the threshold that it is about.
        (Some(Threshold::T2Process), &[(Late, Process), (Info, Process)]),
        (Some(Threshold::T2Node), &[(Late, Node), (Info, Node)]),
        (Some(Threshold::T2Preemptions), &[(Late, Preemptions)]),
        (Some(Threshold::Tm2Task), &[(Early, Task)]),
        (Some(Threshold::Tm2Node), &[(Early, Node)]),
        (Some(Threshold::Info), &[(Info, Process), (Info, Node)]),
    ];
    for (off, missing) in missing {
        let name = off.map_or("nothing", Threshold::name);
        println!("without {name}:");
        let on: Vec<_> =
            Threshold::ALL.into_iter().filter(|&threshold| Some(threshold) != off).collect();
        let node = early_then_late(config(&on))?;
        let mut seen = Vec::new();
        for event in node.signals() {
            let (kind, cause, ..) = says(&event)?;
            seen.push((kind, cause));
        }
        for what in all {
            check_eq!(
                seen.contains(&what),
                !missing.contains(&what),
                "without {name}: {what:?}\n{}",
                node.log()
            );
        }
        check_eq!(
            node.of(EventKind::Preempted).is_empty(),
            off == Some(Threshold::T1),
            "without {name}: preemptions by t1\n{}",
            node.log()
        );
    }
    Ok(())
}

/// Process 1 is early twice, then process 2 is late by far.
fn early_then_late(config: Config) -> Result<Node, String> {
    let mut plan =
        Plan::new(1).config(config).lead_in().slot(1, 0, 1_000_000).slot(1, 1, 1_000_000);
    for task in 0..5 {
        plan = plan.slot(2, task, 1_000_000);
    }
    plan = plan.slot(1, 2, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[300_000, 300_000, 900_000])?;
    scene.tasks(2, &[8_000_000])?;
    scene.run(&plan)
}

/// Two readers that were there, and one that comes later and goes back, get
/// the same signals.
pub fn every_reader_gets_the_signals() -> Verdict {
    let mut other = Node::open()?;
    let node = early_then_late(config(&Threshold::ALL))?;
    let signals = node.signals();
    check!(signals.len() > 8, "only {} signals", signals.len());
    let mut late = Node::open()?;
    late.device.seek(signals[0].seq).context("seek")?;
    for reader in [&mut other, &mut late] {
        reader.read()?;
        check_eq!(reader.signals(), signals, "signals of another reader");
    }
    Ok(())
}
