// SPDX-License-Identifier: GPL-2.0
//! Dependencies between tasks on one CPU and tasks on others.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use pbs_core::Ended;
use pbs_plan::{Plan, Task};

/// Progress of the processes that other CPUs wait for, by their numbers.
pub(crate) type Board = Rc<RefCell<HashMap<u32, Ended>>>;

/// The numbers of the processes of each CPU.
fn by_cpu(plan: &Plan) -> Vec<(u32, HashSet<u32>)> {
    let numbers = plan.cpus.iter().map(|cpu| {
        let here = plan.processes_on(cpu).into_iter();
        let here = here.filter_map(|index| plan.processes.get(index));
        (cpu.cpu, here.map(|process| process.id).collect())
    });
    numbers.collect()
}

/// The processes of a CPU that tasks on others wait for.
pub(crate) fn awaited(plan: &Plan, cpu: u32) -> HashSet<u32> {
    let places = by_cpu(plan);
    let here = places.iter().find(|place| place.0 == cpu);
    let here = here.map(|place| &place.1);
    let others = plan.processes.iter();
    let others = others.filter(|process| here.is_some_and(|here| !here.contains(&process.id)));
    let after = others.flat_map(|process| &process.tasks).flat_map(|task| &task.after);
    let after = after.map(|after| after.process);
    after.filter(|id| here.is_some_and(|here| here.contains(id))).collect()
}

/// Whether a task on one CPU waits for a task on another, or the processes of several CPUs share
/// memory.
pub(crate) fn is_coupled(plan: &Plan) -> bool {
    let mut processes = plan.processes.iter();
    let shares_memory =
        processes.any(|process| process.real_memory_bytes.unwrap_or(process.memory_bytes) != 0);
    let mut cpus = plan.cpus.iter();
    plan.cpus.len() > 1 && (shares_memory || cpus.any(|cpu| !awaited(plan, cpu.cpu).is_empty()))
}

/// The plan of one CPU, and beside it those of the CPUs that its tasks wait for, which wait for
/// nobody here. What a task waits for that is neither there nor here has ended.
pub(crate) fn with_others(truth: &Plan, here: &Plan) -> Plan {
    let mut whole = here.clone();
    let ids: HashSet<u32> = here.processes.iter().map(|process| process.id).collect();
    let cpus: HashSet<u32> = here.cpus.iter().map(|cpu| cpu.cpu).collect();
    let mut elsewhere = HashSet::new();
    for (cpu, processes) in by_cpu(truth) {
        if !cpus.contains(&cpu) {
            elsewhere.extend(processes);
        }
    }
    let mut coupled = false;
    for task in whole.processes.iter_mut().flat_map(|process| &mut process.tasks) {
        task.after
            .retain(|after| ids.contains(&after.process) || elsewhere.contains(&after.process));
        coupled |= task.after.iter().any(|after| !ids.contains(&after.process));
    }
    if !coupled {
        return whole;
    }
    for cpu in truth.cpus.iter().filter(|cpu| !cpus.contains(&cpu.cpu)) {
        let mut other = crate::scheduler::remaining::part(truth, cpu);
        let forget = |task: &mut Task| task.after.clear();
        let processes = other.processes.iter_mut();
        processes.flat_map(|process| &mut process.tasks).for_each(forget);
        let first = whole.processes.len();
        for cpu in &mut other.cpus {
            for slot in &mut cpu.slots {
                if let pbs_plan::Slot::Process { process } = slot {
                    *process += first;
                }
            }
        }
        whole.processes.extend(other.processes);
        whole.cpus.extend(other.cpus);
    }
    whole
}
