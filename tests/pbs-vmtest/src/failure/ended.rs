// SPDX-License-Identifier: GPL-2.0
//! A plan that gives a process that has ended nothing more to do was made by
//! who has not heard of the end: it is refused, whole.

use pbs_uapi::EventKind;

use super::config;
use crate::harness::{Context, Counting, Plan, Scene, Verdict};
use crate::input::kit::refused;
use crate::policy_cpus::uncounted;
use crate::{check, check_eq};

/// On one CPU: process 1 has ended, process 2 runs on and is not touched.
pub fn plan_for_an_ended_process() -> Verdict {
    let mut scene = Scene::new()?;
    scene.tasks(1, &[900_000])?;
    scene.tasks(2, &[400_000_000])?;
    let first =
        Plan::new(1).config(config(&[])).lead_in().slot(1, 0, 1_000_000).slot(2, 0, 400_000_000);
    let mut scene = scene.start(&first)?;
    scene.node.read_until(EventKind::ProcessEnded, 1)?;
    let device = &scene.node.device;
    let wrong = Plan::new(2).config(config(&[])).slot(1, 0, 1_000_000).slot(2, 0, 400_000_000);
    let reason =
        refused("plan for an ended process", device.write_plan(&wrong.bytes()), libc::ESRCH)?;
    println!("{reason}");
    check!(reason.contains("process 1"), "the reason is: {reason}");
    check_eq!(device.get_plan(0).context("get plan")?, first.read_back(0), "the plan in force");
    // More tasks for it are another matter, and so is a plan without it.
    let more = Plan::new(3).config(config(&[])).slot(2, 0, 400_000_000).slot(1, 1, 1_000_000);
    scene.node.load(&more)?;
    let without = Plan::new(4).config(config(&[])).slot(2, 0, 400_000_000);
    scene.node.load(&without)?;
    let node = scene.finish()?;
    let installed = node.of(EventKind::PlanInstalled);
    let ids: Vec<_> = installed.iter().map(|event| event.plan_id).collect();
    check_eq!(ids, [1, 3, 4], "plans in force\n{}", node.log());
    let ended = node.task_ended(2, 0)?;
    check_eq!(ended.plan_id, 4, "plan of process 2\n{}", node.log());
    check!(
        Counting::here().agrees(ended.retired_insns, 400_000_000),
        "process 2 lost counts\n{}",
        node.log()
    );
    // The plan has ended: now it may come again.
    node.load(&first)
}

/// On two CPUs: process 11 of CPU 1 has ended, so CPU 0 keeps its plan as well.
pub fn ended_process_on_one_of_two_cpus() -> Verdict {
    let plan = |id| {
        Plan::new(id)
            .config(uncounted())
            .cpu(0)
            .idle(5_000_000)
            .slot(1, 0, 200_000_000)
            .cpu(1)
            .idle(5_000_000)
            .slot(11, 0, 1_000_000)
            .slot(12, 0, 200_000_000)
    };
    let mut scene = Scene::new()?;
    scene.tasks(1, &[100_000_000])?;
    scene.tasks(11, &[900_000])?;
    scene.tasks(12, &[100_000_000])?;
    let mut scene = scene.start(&plan(1))?;
    scene.node.read_until(EventKind::ProcessEnded, 1)?;
    let device = &scene.node.device;
    let reason =
        refused("plan for an ended process", device.write_plan(&plan(2).bytes()), libc::ESRCH)?;
    check!(reason.contains("process 11"), "the reason is: {reason}");
    for cpu in 0..2 {
        check_eq!(
            device.get_plan(cpu).context("get plan")?,
            plan(1).read_back(cpu),
            "plan of CPU {cpu}"
        );
    }
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    let node = scene.finish()?;
    let installed = node.of(EventKind::PlanInstalled);
    check_eq!(installed.len(), 2, "parts of plans in force\n{}", node.log());
    for process in [1, 12] {
        check_eq!(
            node.task_ended(process, 0)?.plan_id,
            1,
            "plan of process {process}\n{}",
            node.log()
        );
    }
    Ok(())
}

/// On one CPU: task 0 of process 2 has ended by the plan in force, and would wait for process 1 by
/// the new one.
pub fn plan_that_lets_a_begun_task_wait() -> Verdict {
    let mut scene = Scene::new()?;
    scene.tasks(1, &[900_000])?;
    scene.tasks(2, &[900_000, 200_000_000])?;
    let first = Plan::new(1)
        .config(config(&[]))
        .lead_in()
        .slot(2, 0, 1_000_000)
        .slot(2, 1, 200_000_000)
        .slot(1, 0, 1_000_000);
    let mut scene = scene.start(&first)?;
    scene.node.read_until(EventKind::TaskEnded, 1)?;
    let next = |id| {
        Plan::new(id).config(config(&[])).slot(1, 0, 1_000_000).slot(2, 0, 1_000_000).slot(
            2,
            1,
            200_000_000,
        )
    };
    let device = &scene.node.device;
    let wrong = next(2).edge(2, 0, 1, 0);
    let reason = refused("a begun task waits", device.write_plan(&wrong.bytes()), libc::ESRCH)?;
    println!("{reason}");
    check!(reason.contains("process 2") && reason.contains("process 1"), "the reason is: {reason}");
    check_eq!(device.get_plan(0).context("get plan")?, first.read_back(0), "the plan in force");
    // Without the order it is a plan like any other.
    scene.node.load(&next(3))?;
    let node = scene.finish()?;
    let installed = node.of(EventKind::PlanInstalled);
    let ids: Vec<_> = installed.iter().map(|event| event.plan_id).collect();
    check_eq!(ids, [1, 3], "plans in force\n{}", node.log());
    check_eq!(node.task_ended(2, 1)?.plan_id, 3, "plan of process 2\n{}", node.log());
    Ok(())
}

/// On two CPUs: process 11 of CPU 1 is executed, and would wait for process 1 of CPU 0.
pub fn begun_task_waits_for_another_cpu() -> Verdict {
    let plan = |id| {
        Plan::new(id)
            .config(uncounted())
            .cpu(0)
            .idle(400_000_000)
            .slot(1, 0, 10_000_000)
            .cpu(1)
            .slot(11, 0, 1_000_000)
            .slot(11, 1, 200_000_000)
    };
    let mut scene = Scene::new()?;
    scene.tasks(1, &[900_000])?;
    scene.tasks(11, &[900_000, 100_000_000])?;
    let mut scene = scene.start(&plan(1))?;
    scene.node.read_until(EventKind::TaskEnded, 1)?;
    let device = &scene.node.device;
    let wrong = plan(2).edge(11, 0, 1, 0);
    let reason = refused("a begun task waits", device.write_plan(&wrong.bytes()), libc::ESRCH)?;
    check!(
        reason.contains("process 11") && reason.contains("task 0 of process 1;"),
        "the reason is: {reason}"
    );
    let node = scene.finish()?;
    check_eq!(node.of(EventKind::PlanInstalled).len(), 2, "parts of plans\n{}", node.log());
    check_eq!(node.task_ended(11, 1)?.plan_id, 1, "plan of process 11\n{}", node.log());
    Ok(())
}
