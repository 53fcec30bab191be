// SPDX-License-Identifier: GPL-2.0
//! Counts while plans replace each other.

use pbs_uapi::EventKind;

use crate::harness::{line, sleep_ms, Counting, Plan, Random, Scene, Verdict, OVERHEAD_INSNS};
use crate::{check, check_eq};

/// Whatever plans come while processes compute, what is told of their tasks is
/// what they burned, in sum and one by one.
pub fn counts_of_random_swaps_add_up() -> Verdict {
    const PROCESSES: u32 = 4;
    // So much that it outlasts the swaps on the watched kernel, too.
    const TASKS: u32 = 150;
    const SWAPS: u64 = 20;
    let counting = Counting::here();
    let mut random = Random::new(11);
    let mut scene = Scene::new()?;
    let mut burns = Vec::new();
    for process in 1..=PROCESSES {
        let of_process: Vec<u64> = (0..TASKS).map(|_| random.between(600_000, 4_500_000)).collect();
        scene.tasks(process, &of_process)?;
        burns.push(of_process);
    }
    let mut scene = scene.start(&random_plan(Plan::new(1).lead_in(), &mut random, &burns))?;
    for swap in 0..SWAPS {
        sleep_ms(random.between(1, 30));
        let plan = random_plan(Plan::new(2 + swap), &mut random, &burns);
        scene.node.load(&plan)?;
        scene.node.read()?;
    }
    let node = scene.finish()?;
    let log = node.log();
    let installed = node.of(EventKind::PlanInstalled).len() as u64;
    check_eq!(installed, 1 + SWAPS, "plans in force\n{log}");
    let ended = node.of(EventKind::TaskEnded);
    check_eq!(ended.len() as u32, PROCESSES * TASKS, "tasks that ended\n{log}");
    let mut counted_insns = 0;
    for event in &ended {
        let burned_insns = burns[event.process as usize - 1][event.task as usize];
        check!(
            counting.agrees(event.retired_insns, burned_insns),
            "burned {burned_insns}, but: {}",
            line(event)
        );
        counted_insns += event.retired_insns;
    }
    let burned_insns: u64 = burns.iter().flatten().sum();
    println!("{burned_insns} burned, {counted_insns} counted");
    let over_insns = u64::from(PROCESSES * TASKS) * OVERHEAD_INSNS;
    check!(
        counting.agrees_within(over_insns, counted_insns, burned_insns),
        "burned {burned_insns}, {counted_insns} were counted\n{log}"
    );
    let met_running = node
        .of(EventKind::PlanInstalled)
        .iter()
        .filter(|plan| ended.iter().any(|end| end.seq > plan.seq))
        .count();
    println!("{met_running} plans came while tasks ran");
    check!(met_running as u64 > SWAPS / 2, "too few swaps met a running plan\n{log}");
    Ok(())
}

/// All tasks, those of different processes in any order, in slots that are too
/// short or too long.
fn random_plan(mut plan: Plan, random: &mut Random, burns: &[Vec<u64>]) -> Plan {
    let mut next = vec![0; burns.len()];
    loop {
        let open: Vec<usize> =
            (0..burns.len()).filter(|&process| next[process] < burns[process].len()).collect();
        if open.is_empty() {
            return plan;
        }
        let process = random.one_of(&open);
        let task = next[process];
        let length_insns = burns[process][task] * random.between(60, 150) / 100;
        plan = plan.slot(process as u32 + 1, task as u32, length_insns);
        next[process] += 1;
    }
}
