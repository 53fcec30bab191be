// SPDX-License-Identifier: GPL-2.0
//! The plan is executed as it was written, and counted as it was executed.

use pbs_core::Config;
use pbs_uapi::{EventKind, Grant, IDLE};

use crate::harness::{
    burn, line, ns, overshoot_limit_insns, set_sysfs, Counting, Plan, Random, Scene, Verdict,
    CONFIG,
};
use crate::{check, check_eq};

/// Twenty random plans: slots are granted and tasks end in the plan's order,
/// each task in its own slot with what it burned.
pub fn order_equals_plan() -> Verdict {
    for seed in 1..=20 {
        one_random_plan(seed)?;
    }
    Ok(())
}

fn one_random_plan(seed: u64) -> Verdict {
    let counting = Counting::here();
    let mut random = Random::new(seed);
    let processes = random.between(2, 6);
    let mut burns = vec![Vec::new(); processes as usize];
    let mut plan = Plan::new(seed).lead_in();
    let mut expected = Vec::new();
    for slot in 1..=random.between(10, 40) {
        let length_insns = random.between(100_000, 1_000_000) * counting.scale();
        let process = random.between(0, processes);
        let Some(of_process) = burns.get_mut(process as usize) else {
            plan = plan.idle(length_insns);
            continue;
        };
        let task = of_process.len() as u32;
        plan = plan.slot(process as u32, task, length_insns);
        // Some end early, none beyond t1, which lies 5 % above the length.
        let burns_insns = length_insns * random.between(50, 102) / 100;
        expected.push((slot, process as u32, task, burns_insns));
        of_process.push(burns_insns);
    }
    let mut scene = Scene::new()?;
    for (process, burns) in (0..).zip(&burns) {
        if !burns.is_empty() {
            scene.tasks(process, burns)?;
        }
    }
    let node = scene.run(&plan)?;

    let ended = node.of(EventKind::TaskEnded);
    check_eq!(ended.len(), expected.len(), "plan {seed}: tasks that ended");
    for (event, &(slot, process, task, burns_insns)) in ended.iter().zip(&expected) {
        check_eq!(
            (event.slot, event.process, event.task),
            (slot, process, task),
            "plan {seed}: slot, process and task of an end"
        );
        check!(
            counting.agrees(event.retired_insns, burns_insns),
            "plan {seed}: burned {burns_insns}, but: {}",
            line(event)
        );
    }
    let slots: Vec<_> = expected.iter().map(|&(slot, p, ..)| (p, slot)).collect();
    check_eq!(node.grants(Grant::Slot), slots, "plan {seed}: granted slots");
    check_eq!(node.of(EventKind::Preempted).len(), 0, "plan {seed}: preempted");
    println!("plan {seed}: {} slots of {processes} processes", slots.len());
    Ok(())
}

/// A loop of 20,000,000 instructions is accounted to 0.01 %, by the clock to 1 %
/// and what it takes to begin: in one slot, and cut in pieces by t1, unallocated
/// time and the loop of another process.
pub fn loop_is_counted() -> Verdict {
    const LOOP_INSNS: u64 = 20_000_000;
    let mut plan = Plan::new(1).lead_in().slot(1, 0, LOOP_INSNS);
    for task in 0..12 {
        plan = plan.slot(2, task, 2_000_000).slot(3, task, 1_700_000);
    }
    let mut scene = Scene::new()?;
    scene.tasks(1, &[LOOP_INSNS])?;
    for process in 2..4 {
        scene.process(process, |_| burn(LOOP_INSNS))?;
    }
    let node = scene.run(&plan)?;
    for process in 1..4 {
        let event = node.task_ended(process, 0)?;
        let off_insns = event.retired_insns.abs_diff(LOOP_INSNS);
        println!(
            "process {process}: {} retired, {off_insns} off, {} preemptions",
            event.retired_insns, event.preemptions
        );
        let is_counted = match Counting::here() {
            Counting::Exact => off_insns <= LOOP_INSNS / 10_000,
            clock @ Counting::Clock => clock.agrees(event.retired_insns, LOOP_INSNS),
        };
        check!(is_counted, "off by {off_insns}");
        check_eq!(event.preemptions >= 9, process != 1, "process {process} cut in pieces");
    }
    Ok(())
}

/// A task that runs 30 % over its plan is preempted at t1 and ends in its
/// process's next slot; so does the task that this slot was planned for.
pub fn late_task_ends_in_next_slot() -> Verdict {
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 2_000_000)
        .slot(2, 0, 1_000_000)
        .slot(1, 1, 2_000_000)
        .slot(2, 1, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[2_600_000, 1_000_000])?;
    scene.tasks(2, &[900_000, 900_000])?;
    let node = scene.run(&plan)?;

    let preempted = node.of(EventKind::Preempted);
    check_eq!(preempted.len(), 1, "preemptions");
    let event = preempted[0];
    println!("{}", line(&event));
    check_eq!((event.process, event.task, event.slot), (1, 0, 1), "who");
    check_eq!(event.value, 2_100_000, "t1 of a slot of 2,000,000");
    let overshoot_insns = event.retired_insns.wrapping_sub(event.value);
    println!("preempted {overshoot_insns} instructions after t1");
    check!(overshoot_insns < overshoot_limit_insns(), "overshoot {overshoot_insns}");

    let late = node.task_ended(1, 0)?;
    check_eq!((late.slot, late.preemptions), (3, 1), "end of the late task");
    check!(
        Counting::here().agrees(late.retired_insns, 2_600_000),
        "all that it burned is its own: {}",
        line(&late)
    );
    check_eq!(node.task_ended(1, 1)?.slot, 3, "slot of the task behind it");
    check_eq!(node.grants(Grant::Slot), [(1, 1), (2, 2), (1, 3), (2, 4)], "granted slots");
    Ok(())
}

/// A task that ends early makes room at once for the next slot.
pub fn early_end_starts_next_slot() -> Verdict {
    let plan = Plan::new(1).lead_in().slot(1, 0, 10_000_000).slot(2, 0, 1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[1_000_000])?;
    scene.tasks(2, &[900_000])?;
    let node = scene.run(&plan)?;
    let early = node.task_ended(1, 0)?;
    let next = node
        .of(EventKind::Grant)
        .into_iter()
        .find(|event| event.seq > early.seq)
        .ok_or("no grant after the end")?;
    check_eq!((next.process, next.slot), (2, 2), "next grant");
    check_eq!(early.lateness_insns < -8_900_000, true, "earliness");
    // The rest of the slot would have been 36 ms of the guest's time.
    let gap_ns = next.time_ns - early.time_ns;
    println!("the next slot began {gap_ns} ns after the end");
    check!(gap_ns < 1_000_000, "gap {gap_ns} ns");
    let second = node.task_ended(2, 0)?;
    check!(
        second.time_ns - early.time_ns < 10_000_000,
        "the next task did not run: {}",
        node.log()
    );
    Ok(())
}

/// One-task threads of one process run in the order of attaching, one task
/// each, whoever was started first.
pub fn one_task_threads_in_order() -> Verdict {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..4 {
        plan = plan.slot(1, task, 1_000_000).slot(2, task, 500_000);
    }
    let mut scene = Scene::new()?;
    for _ in 0..4 {
        scene.thread(1, pbs_uapi::ATTACH_ONE_TASK, |_| burn(900_000))?;
    }
    scene.tasks(2, &[400_000; 4])?;
    // The one that was forked last is to be the first.
    scene.children[..4].reverse();
    let pids: Vec<_> = scene.children[..4].iter().map(|child| child.pid).collect();
    let node = scene.run(&plan)?;
    for (task, &pid) in (0..).zip(&pids) {
        let event = node.task_ended(1, task)?;
        check_eq!((event.pid, event.slot), (pid, 1 + 2 * u64::from(task)), "end of task {task}");
    }
    let ended = node.first(EventKind::ProcessEnded, 1)?;
    check_eq!(ended.value, 0, "tasks that were not ended");
    check!(ended.seq > node.task_ended(1, 3)?.seq, "the process ended before its last task");
    Ok(())
}

/// The end of the plan comes once, and normal tasks have the CPU then.
pub fn plan_ends_once() -> Verdict {
    let plan = Plan::new(1).lead_in().slot(1, 0, 1_000_000).slot(2, 0, 1_000_000).idle(1_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[1_500_000])?;
    scene.tasks(2, &[900_000])?;
    let mut node = scene.run(&plan)?;
    check_eq!(crate::harness::sysfs("cpu0/state")?, "ended", "state");

    let (start_ns, start_cpu_ns) = (crate::harness::now_ns(), crate::harness::cputime_ns());
    burn(50_000_000);
    let passed_ns = crate::harness::now_ns() - start_ns;
    let had_ns = crate::harness::cputime_ns() - start_cpu_ns;
    println!("of {passed_ns} ns after the plan a normal task had {had_ns}");
    check!(had_ns * 100 >= passed_ns * 95, "had {had_ns} of {passed_ns} ns");

    node.read()?;
    let ended = node.of(EventKind::PlanEnded);
    check_eq!(ended.len(), 1, "ends of the plan");
    check_eq!((ended[0].plan_id, ended[0].value), (1, 0), "what it says");
    let last = node.events.last().map(|event| event.kind);
    check_eq!(last, Some(EventKind::PlanEnded as u16), "last event");
    check_eq!(
        node.grants(Grant::None).last().copied(),
        Some((IDLE, pbs_uapi::NO_SLOT)),
        "last grant"
    );
    Ok(())
}

/// t1 is made of the numbers that the plan brings, or of the node's defaults:
/// the share of the slot, its upper limit, and its lower one.
pub fn t1_by_the_configuration() -> Verdict {
    const SLOT_INSNS: u64 = 1_000_000;
    let cases = [
        // σ, PREEMPTION_LIMIT, NO_PREEMPTION as instructions, and t1
        (1_300, 50_000_000, 10_000, 1_300_000),
        (2_000, 100_000, 10_000, 1_100_000),
        (1_001, 50_000_000, 200_000, 1_200_000),
    ];
    for (sigma_t1_permille, preemption_limit_insns, no_preemption_insns, t1_insns) in cases {
        let config = Config {
            sigma_t1_permille,
            preemption_limit_ns: ns(preemption_limit_insns),
            no_preemption_ns: ns(no_preemption_insns),
            // Must be above t1's.
            sigma_t2_permille: sigma_t1_permille + 1_000,
            ..CONFIG
        };
        preempted_at(Some(config), t1_insns)?;
    }
    // The node's own leeway is longer than the slot.
    set_sysfs("config/no_preemption_ns", &ns(10_000).to_string())?;
    preempted_at(None, SLOT_INSNS * 1_050 / 1_000)?;
    set_sysfs("config/sigma_t1_permille", "1400")?;
    preempted_at(None, SLOT_INSNS * 1_400 / 1_000)?;
    check!(set_sysfs("config/sigma_t1_permille", "1000").is_err(), "a share of 1 was taken");
    preempted_at(None, SLOT_INSNS * 1_400 / 1_000)
}

/// A task that burns twice its slot is preempted at `t1_insns`.
fn preempted_at(config: Option<Config>, t1_insns: u64) -> Verdict {
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        // The last one is spared by default.
        .slot(1, 1, 1_000_000);
    let plan = match config {
        Some(config) => plan.config(config),
        None => plan.without_config(),
    };
    let mut scene = Scene::new()?;
    scene.tasks(1, &[2_000_000, 900_000])?;
    scene.tasks(2, &[900_000])?;
    let node = scene.run(&plan)?;
    let event = node.first(EventKind::Preempted, 1)?;
    println!("{}", line(&event));
    check_eq!(event.value, t1_insns, "t1");
    let overshoot_insns = event.retired_insns.wrapping_sub(t1_insns);
    check!(overshoot_insns < overshoot_limit_insns(), "overshoot {overshoot_insns}");
    Ok(())
}
