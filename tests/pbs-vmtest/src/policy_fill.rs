// SPDX-License-Identifier: GPL-2.0
//! Slots whose process cannot run, and idle slots: who has the CPU then.

use pbs_core::{Config, IdlePolicy};
use pbs_uapi::{EventKind, Grant, IDLE};

use crate::harness::{burn, sleep_ms, Counting, Plan, Scene, Verdict, CONFIG};
use crate::{check, check_eq};

/// A process that blocks in its slot gives the CPU to one that is behind, and
/// has its slot back when it wakes.
pub fn blocked_slot_is_filled() -> Verdict {
    let plan =
        Plan::new(1).lead_in().slot(2, 0, 1_000_000).slot(1, 0, 10_000_000).slot(2, 1, 1_000_000);
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        burn(500_000);
        sleep_ms(30);
        burn(500_000);
    })?;
    // What is left of its first task takes 8 ms: less than the sleep.
    scene.tasks(2, &[3_000_000, 900_000])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    check_eq!(node.grants(Grant::BlockedSlot), [(2, 2)], "fillers\n{log}");
    // The slot is the blocked one's before the filler and after it.
    check_eq!(node.grants(Grant::Slot), [(2, 1), (1, 2), (1, 2), (2, 3)], "granted slots\n{log}");
    check_eq!(node.task_ended(2, 0)?.slot, 2, "slot in which the filler ended");
    // When the filler was through, nobody was left.
    check!(
        node.grants(Grant::None).contains(&(IDLE, 2)),
        "lower classes never had the slot\n{log}"
    );
    check_eq!(node.of(EventKind::Ceiling).len(), 0, "ceilings\n{log}");
    let ended = node.task_ended(1, 0)?;
    check_eq!(ended.slot, 2, "slot in which the blocked task ended");
    check_eq!(ended.preemptions, 0, "preemptions of the blocked task");
    check!(
        Counting::here().agrees_within(3_000, ended.retired_insns, 1_000_000),
        "a filler's instructions were charged to the slot's process:\n{log}"
    );
    Ok(())
}

/// A process that does not wake loses its slot at the ceiling, and goes on in
/// its next one.
pub fn blocked_slot_ends_at_ceiling() -> Verdict {
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        .idle(50_000_000)
        .slot(1, 1, 2_000_000);
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        burn(500_000);
        // Awake again in the idle slot.
        sleep_ms(100);
        burn(400_000);
        device.task_end(None).expect("task end");
        burn(1_000_000);
    })?;
    scene.tasks(2, &[900_000])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    let ceiling = node.first(EventKind::Ceiling, 1)?;
    check_eq!(ceiling.slot, 1, "slot that reached the ceiling\n{log}");
    check_eq!(node.of(EventKind::Ceiling).len(), 1, "ceilings\n{log}");
    // Twice 1,000,000 instructions, and 10 ms.
    let rate = node.device.info().map_err(|error| error.to_string())?.rate_insns_per_ms;
    let expected_ns = 2 * 1_000_000 * 1_000_000 / rate + 10_000_000;
    check!(
        ceiling.value.abs_diff(expected_ns) <= 1_000,
        "ceiling of {} ns, expected {expected_ns}",
        ceiling.value
    );
    let grants = node.grants(Grant::Slot);
    check!(grants.contains(&(2, 2)), "the next slot was not granted\n{log}");
    // It was behind when it woke, so the idle slot was its own.
    check_eq!(node.grants(Grant::IdleSlot), [(1, 3)], "idle slot\n{log}");
    check_eq!(node.task_ended(1, 0)?.slot, 3, "slot in which the task ended\n{log}");
    check_eq!(node.task_ended(1, 1)?.slot, 4, "slot of the next task\n{log}");
    Ok(())
}

/// The slot of a process without a thread is reported, and the next slot comes
/// in time; a thread that attaches late still does its tasks.
pub fn absent_process_comes_late() -> Verdict {
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        .idle(50_000_000)
        .slot(1, 1, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(2, &[900_000])?;
    let mut late = Scene::new()?;
    late.tasks(1, &[900_000, 900_000])?;
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::TaskEnded, 1)?;
    let late = late.attach_and_open()?;
    let node = scene.finish()?;
    late.finish()?;
    let log = node.log();
    let absent = node.of(EventKind::Absent);
    check_eq!(absent.len(), 1, "reports\n{log}");
    check_eq!((absent[0].process, absent[0].slot), (1, 1), "who is absent\n{log}");
    check_eq!(node.first(EventKind::Ceiling, 1)?.slot, 1, "its slot's end\n{log}");
    check_eq!(node.task_ended(2, 0)?.slot, 2, "the next slot\n{log}");
    let attached = node.first(EventKind::Attached, 1)?;
    check!(attached.seq > absent[0].seq, "attached before its slot\n{log}");
    check_eq!(node.grants(Grant::IdleSlot), [(1, 3)], "idle slot\n{log}");
    check_eq!(node.task_ended(1, 0)?.slot, 3, "its first task\n{log}");
    check_eq!(node.task_ended(1, 1)?.slot, 4, "its second task\n{log}");
    Ok(())
}

/// An idle slot goes to the process with the greatest lateness, then to the
/// next, and to lower classes when nobody is behind.
pub fn idle_slot_goes_to_latest() -> Verdict {
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 4_000_000)
        .slot(3, 0, 2_000_000)
        .idle(10_000_000)
        .slot(4, 0, 1_000_000);
    let mut scene = Scene::new()?;
    // They are preempted 5 % of their slots beyond their plans.
    scene.tasks(1, &[1_500_000])?;
    scene.tasks(2, &[4_700_000])?;
    scene.tasks(3, &[2_600_000])?;
    scene.tasks(4, &[900_000])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    check_eq!(
        node.grants(Grant::IdleSlot),
        [(2, 4), (3, 4), (1, 4)],
        "who had the idle slot\n{log}"
    );
    for process in 1..4 {
        let event = node.task_ended(process, 0)?;
        check_eq!((event.slot, event.preemptions), (4, 1), "end of process {process}\n{log}");
    }
    check!(
        node.grants(Grant::None).contains(&(IDLE, 4)),
        "lower classes did not get the rest\n{log}"
    );
    check_eq!(node.task_ended(4, 0)?.slot, 5, "slot after the idle one\n{log}");
    Ok(())
}

/// With the other idle policy it goes to the process whose plan buffer leaves
/// the least slack, which need not be the latest.
pub fn idle_slot_goes_to_least_slack() -> Verdict {
    let config = Config { idle_policy: IdlePolicy::LeastSlack as u64, ..CONFIG };
    let plan = Plan::new(1)
        .config(config)
        .buffer(2, 1_000_000)
        .buffer(3, 500_000)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 4_000_000)
        .slot(3, 0, 2_000_000)
        .idle(10_000_000)
        .slot(4, 0, 1_000_000);
    let mut scene = Scene::new()?;
    // They are preempted 50,000, 200,000 and 100,000 beyond their plans.
    scene.tasks(1, &[1_500_000])?;
    scene.tasks(2, &[4_700_000])?;
    scene.tasks(3, &[2_600_000])?;
    scene.tasks(4, &[900_000])?;
    let node = scene.run(&plan)?;
    check_eq!(
        node.grants(Grant::IdleSlot),
        [(1, 4), (3, 4), (2, 4)],
        "who had the idle slot\n{}",
        node.log()
    );
    Ok(())
}

/// Processes that are behind after the last slot run after the plan, latest first.
pub fn behind_runs_after_plan() -> Verdict {
    let plan =
        Plan::new(1).lead_in().slot(1, 0, 1_000_000).slot(2, 0, 4_000_000).slot(3, 0, 2_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[1_500_000])?;
    scene.tasks(2, &[4_700_000])?;
    scene.tasks(3, &[2_600_000])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    let grants: Vec<_> = node.grants(Grant::AfterPlan).iter().map(|grant| grant.0).collect();
    check_eq!(grants, [2, 3, 1], "order after the plan\n{log}");
    let ended: Vec<_> = node.of(EventKind::TaskEnded).iter().map(|event| event.process).collect();
    check_eq!(ended, [2, 3, 1], "order of the ends\n{log}");
    Ok(())
}
