// SPDX-License-Identifier: GPL-2.0
//! Display of reservations.

use std::collections::{BTreeMap, BTreeSet};

use pbs_node::{Answered, Planning};
use pbs_planner::{critical_path, plan_building, RunId};
use pbs_report::{
    held, Schedule, ScheduleAfter, ScheduleCore, ScheduleNode, ScheduleResource, ScheduleTask,
};

/// The plan of the jobs that were admitted.
pub(super) fn schedule(planning: &Planning, planned: &[Answered]) -> Schedule {
    let machine = planning.store.machine();
    let mut processes = Processes::default();
    let mut cores: Vec<Vec<ScheduleTask>> = vec![Vec::new(); planning.store.sites().len()];
    let mut memory: Vec<Vec<(u64, u64, u64)>> = vec![Vec::new(); machine.nodes.len()];
    for answered in planned {
        let Some(run) = planning.run(answered) else {
            continue;
        };
        let job = &answered.job;
        let mut awaited: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        // With more than a plan may have, there is no plan to show.
        for (task, before) in plan_building::awaited(job, run).unwrap_or_default() {
            awaited.entry(task).or_default().push(before);
        }
        let critical = critical_path(job, run).into_iter();
        let critical: BTreeSet<_> = critical.map(|critical| critical.task).collect();
        for task in run.tasks.iter().filter(|task| task.start_ns < task.end_ns) {
            let label = |process: usize| {
                let process = &job.processes[process];
                let number = || format!("process-{}", process.id);
                let label = process.name.clone().unwrap_or_else(number);
                match planned.len() {
                    1 => label,
                    // As it is called in the plan that is written.
                    _ => format!("{label}.{}", answered.run),
                }
            };
            let asked = &job.tasks[task.task];
            let name = |task: usize| {
                let task = &job.tasks[task];
                match &task.name {
                    Some(name) => format!("{} {name}", task.id),
                    None => task.id.to_string(),
                }
            };
            let after = awaited.get(&task.task).into_iter().flatten();
            let after = after.map(|&before| {
                let process = job.tasks[before].process;
                ScheduleAfter {
                    process: processes.index((answered.run, process), || label(process)),
                    task: name(before),
                }
            });
            let after: Vec<_> = after.collect();
            let process = processes.index((answered.run, task.process), || label(task.process));
            // One bar for each stretch of a task that is interrupted.
            cores[task.core].extend(run.stretches(task).map(|over| ScheduleTask {
                process,
                task: name(task.task),
                after: after.clone(),
                is_critical: critical.contains(&task.task),
                start_ns: over.start,
                end_ns: over.end,
                insns: asked.insns,
                memory_bytes: task.memory_bytes,
            }));
        }
        for process in &run.processes {
            let interval = (process.start_ns, process.end_ns, process.memory_bytes);
            memory[process.node].push(interval);
        }
    }
    let held_resources = machine.resources.iter().enumerate().map(|(index, resource)| {
        let runs = planned.iter().filter_map(|answered| planning.run(answered));
        let held = held(runs.flat_map(|run| run.held(index)));
        ScheduleResource { name: resource.name.clone(), count: resource.count, held }
    });
    let resources = held_resources.filter(|resource| !resource.held.is_empty()).collect();
    let mut of_node: Vec<Vec<ScheduleCore>> = vec![Vec::new(); machine.nodes.len()];
    for ((node, core), mut tasks) in machine.cores().zip(cores) {
        if !tasks.is_empty() {
            tasks.sort_by_key(|task| task.start_ns);
            let name = core.name.clone();
            of_node[node].push(ScheduleCore { name, tasks });
        }
    }
    let nodes = machine.nodes.iter().zip(of_node).zip(memory);
    let nodes = nodes.filter(|((_, cores), _)| !cores.is_empty());
    let names: Vec<_> = planned.iter().map(|job| job.job.name.as_str()).collect();
    Schedule {
        title: match &machine.name {
            Some(machine) => format!("{} on {machine}", names.join(", ")),
            None => names.join(", "),
        },
        processes: processes.labels,
        deadlines: planned
            .iter()
            .map(|answered| (answered.job.deadline_ns, answered.job.name.clone()))
            .collect(),
        nodes: nodes
            .map(|((node, cores), memory)| ScheduleNode {
                name: node.name.clone(),
                memory_bytes: node.memory_bytes,
                reserved_bytes: held(memory),
                cores,
            })
            .collect(),
        resources,
    }
}

/// The processes that have a task with instructions, of all jobs.
#[derive(Default)]
struct Processes {
    indices: BTreeMap<(RunId, usize), usize>,
    labels: Vec<String>,
}

impl Processes {
    fn index(&mut self, key: (RunId, usize), label: impl FnOnce() -> String) -> usize {
        *self.indices.entry(key).or_insert_with(|| {
            self.labels.push(label());
            self.labels.len() - 1
        })
    }
}
