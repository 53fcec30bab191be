// SPDX-License-Identifier: GPL-2.0
//! A new plan takes the place of one that is being executed.

use pbs_uapi::{Eject, EventKind};

use crate::harness::{
    burn, sleep_ms, sysfs_number, Context, Counting, Plan, Scene, Verdict, LEAD_IN_INSNS,
};
use crate::policy_cpus::uncounted;
use crate::{check, check_eq};

/// Number of tasks that outlast the swaps on the watched kernel, too, which is slow to load a plan.
const TASKS: u32 = 240;
const SLOT_INSNS: u64 = 2_000_000;
const BURN_INSNS: u64 = 1_900_000;

/// The first plan and all that follow it: processes 1 and 2, and 3 if asked.
fn plan(id: u64, with_third: bool, lead_in: bool) -> Plan {
    let mut plan = Plan::new(id);
    if lead_in {
        plan = plan.idle(LEAD_IN_INSNS);
    }
    for task in 0..TASKS {
        plan = plan.slot(1, task, SLOT_INSNS).slot(2, task, SLOT_INSNS);
        if with_third {
            plan = plan.slot(3, task, SLOT_INSNS);
        }
    }
    plan
}

/// Plans replace each other while their tasks run. Processes in both keep
/// their counts; the one that the second plan lacks is ejected, with the reason.
pub fn swap_under_load() -> Verdict {
    const SWAPS: u64 = 12;
    let counting = Counting::here();
    let before = counts()?;
    let mut scene = Scene::new()?;
    for process in 1..3 {
        scene.tasks(process, &[BURN_INSNS; TASKS as usize])?;
    }
    scene.process(3, |device| {
        // It loses its process on the way, and goes on as a normal one.
        let mut refusals = Vec::new();
        for _ in 0..10 {
            burn(BURN_INSNS);
            refusals.extend(device.task_end(None).err().map(|of| of.error.raw_os_error()));
        }
        // This is how programs know it: see pbs_uapi::task.
        assert!(!refusals.is_empty() && refusals.iter().all(|of| *of == Some(libc::ESRCH)));
        // SAFETY: no memory is involved.
        let policy = unsafe { libc::sched_getscheduler(0) };
        assert_eq!(policy, libc::SCHED_OTHER);
    })?;
    let scene = scene.start(&plan(1, true, true))?;
    // Not a divisor of the slots' 8 ms: each swap meets another point of a task.
    for swap in 0..SWAPS {
        sleep_ms(37);
        scene.node.load(&plan(2 + swap, false, false))?;
    }
    let node = scene.finish()?;
    let log = node.log();

    let installed = node.of(EventKind::PlanInstalled);
    check_eq!(installed.len() as u64, 1 + SWAPS, "plans in force\n{log}");
    let met_running = installed[1..]
        .iter()
        .filter(|event| event.seq < node.task_ended(1, TASKS - 1).map_or(0, |end| end.seq))
        .count();
    println!("{met_running} of {SWAPS} plans came while tasks ran");
    check!(met_running >= 6, "too few swaps met a running plan\n{log}");

    for process in 1..3 {
        node.ended_as_burned(counting, process, TASKS, BURN_INSNS)?;
        let ends = node.of(EventKind::TaskEnded);
        let of_process: Vec<_> = ends.iter().filter(|e| e.process == process).collect();
        check_eq!(of_process.len(), TASKS as usize, "ends of process {process}\n{log}");
        // What it was early by in the first plan is in the last one's sum.
        let last = of_process[of_process.len() - 1];
        let early_insns = i64::from(TASKS) * (SLOT_INSNS - BURN_INSNS) as i64;
        check!(
            (last.lateness_insns + early_insns).unsigned_abs()
                < u64::from(TASKS) * counting.over_insns(BURN_INSNS),
            "lateness {} in the end, expected about -{early_insns}\n{log}",
            last.lateness_insns
        );
    }
    let ejected = node.of(EventKind::Ejected);
    check_eq!(ejected.len(), 1, "ejections\n{log}");
    check_eq!(
        (ejected[0].process, ejected[0].reason),
        (3, Eject::Plan as u16),
        "who was ejected, and why\n{log}"
    );
    add_up(&before, &node.events)
}

/// A process that the new plan has, but with no task after those that it ended,
/// is ejected too: it must not wait for a slot that never comes.
pub fn process_without_tasks_is_ejected() -> Verdict {
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        burn(100_000);
        device.task_end(None).expect("task end");
        // Under the second plan it goes on as a normal process.
        burn(30_000_000);
    })?;
    let first = Plan::new(1).lead_in().slot(1, 0, 1_000_000).slot(1, 5, 50_000_000);
    let mut scene = scene.start(&first)?;
    // In unallocated time, when the process is in task 5.
    scene.node.read_until(EventKind::TaskEnded, 1)?;
    let second = Plan::new(2).slot(1, 3, 1_000_000).slot(2, 0, 1_000_000);
    scene.node.load(&second)?;
    let node = scene.finish()?;
    let log = node.log();
    let ended = node.task_ended(1, 0)?;
    check_eq!(ended.plan_id, 1, "plan of the first task\n{log}");
    let ejected = node.first(EventKind::Ejected, 1)?;
    check_eq!(ejected.reason, Eject::Plan as u16, "why it was ejected\n{log}");
    check_eq!(sysfs_number("cpu0/threads")?, 0, "threads left\n{log}");
    Ok(())
}

/// A plan that does not name a CPU leaves its plan alone, and the process that
/// runs there.
pub fn other_cpus_plan_stays() -> Verdict {
    let mut scene = Scene::new()?;
    scene.tasks(1, &[40_000_000, 1_000_000])?;
    let first = Plan::new(1)
        .config(uncounted())
        .cpu(0)
        .idle(LEAD_IN_INSNS)
        .slot(1, 0, 50_000_000)
        .slot(1, 1, 50_000_000);
    let mut scene = scene.start(&first)?;
    let before = scene.node.device.get_plan(0).context("get plan")?;
    let mut other = Scene::new()?;
    other.tasks(2, &[1_000_000])?;
    let second = Plan::new(2).config(uncounted()).cpu(1).idle(LEAD_IN_INSNS).slot(2, 0, 2_000_000);
    let other = other.start(&second)?;
    check_eq!(scene.node.device.get_plan(0).context("get plan")?, before, "plan of CPU 0");
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    let node = scene.finish()?;
    other.finish()?;
    let log = node.log();
    let met = node.first(EventKind::PlanInstalled, pbs_uapi::IDLE)?;
    check_eq!(met.plan_id, 1, "first plan\n{log}");
    let second = node.of(EventKind::PlanInstalled)[1];
    check_eq!((second.plan_id, second.cpu), (2, 1), "second plan\n{log}");
    check!(
        second.seq < node.task_ended(1, 0)?.seq,
        "the second plan came too late to prove anything\n{log}"
    );
    for (process, cpu, plan_id) in [(1, 0, 1), (2, 1, 2)] {
        let event = node.task_ended(process, 0)?;
        check_eq!((event.cpu, event.plan_id), (cpu, plan_id), "end of process {process}\n{log}");
    }
    check_eq!(node.of(EventKind::Ejected).len(), 0, "ejections\n{log}");
    Ok(())
}

/// A plan that names a CPU without slots takes away what runs there, in the same
/// step in which it goes on elsewhere.
pub fn cpu_without_slots_is_cleared() -> Verdict {
    let mut scene = Scene::new()?;
    scene.tasks(1, &[40_000_000, 1_000_000])?;
    scene.process(2, |_| {
        burn(60_000_000);
        // SAFETY: no memory is involved.
        let policy = unsafe { libc::sched_getscheduler(0) };
        assert_eq!(policy, libc::SCHED_OTHER);
    })?;
    let both = |id: u64| {
        let plan = Plan::new(id).config(uncounted()).cpu(0);
        plan.lead_in().slot(1, 0, 50_000_000).slot(1, 1, 2_000_000)
    };
    let first = both(1).cpu(1).lead_in().slot(2, 0, 900_000_000);
    let mut scene = scene.start(&first)?;
    scene.node.read_until(EventKind::Grant, 2)?;
    scene.node.load(&both(2).cpu(1))?;
    let read_back = scene.node.device.get_plan(1).context("get plan")?;
    let read_back = pbs_plan::wire::decode(&read_back).map_err(|why| format!("{why:?}"))?;
    check_eq!(read_back.plan_id, 2, "plan of CPU 1");
    check!(
        read_back.processes.is_empty() && read_back.cpus[0].slots.is_empty(),
        "CPU 1 has {read_back:?}"
    );
    // Of CPU 1 at once, of CPU 0 when its process has ended.
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    let node = scene.finish()?;
    let log = node.log();
    let of_cpu_1 = |kind: EventKind| {
        let mut events = node.of(kind).into_iter();
        events.rfind(|e| e.cpu == 1 && e.plan_id == 2)
    };
    let installed = of_cpu_1(EventKind::PlanInstalled);
    let installed = installed.ok_or_else(|| format!("not installed\n{log}"))?;
    check_eq!(installed.value, 0, "slots\n{log}");
    let ended = of_cpu_1(EventKind::PlanEnded);
    let ended = ended.ok_or_else(|| format!("not ended\n{log}"))?;
    let [ejected] = node.of(EventKind::Ejected)[..] else {
        return Err(format!("one was to be ejected\n{log}"));
    };
    check_eq!((ejected.process, ejected.reason), (2, Eject::Plan as u16), "who was ejected\n{log}");
    check!(
        ended.seq < node.task_ended(1, 1)?.seq,
        "the plan ended on CPU 1 after its process on CPU 0\n{log}"
    );
    check_eq!(sysfs_number("cpu1/threads")?, 0, "threads left\n{log}");
    Ok(())
}

/// Every count of CPU 0, in the order of the kinds.
fn counts() -> Result<Vec<i64>, String> {
    kinds().map(|kind| sysfs_number(&format!("cpu0/counts/{}", kind.name()))).collect()
}

/// Kinds of events that happen on a CPU.
fn kinds() -> impl Iterator<Item = EventKind> {
    let all = EventKind::ALL.iter().copied();
    all.filter(|&kind| kind != EventKind::Overrun)
}

/// The counts in sysfs rose by what the events say.
fn add_up(before: &[i64], events: &[pbs_uapi::Event]) -> Verdict {
    for ((kind, before), after) in kinds().zip(before).zip(counts()?) {
        let seen = events.iter().filter(|event| event.kind == kind as u16).count();
        println!("{}: {seen}", kind.name());
        check_eq!(after - before, seen as i64, "count of {}", kind.name());
    }
    Ok(())
}
