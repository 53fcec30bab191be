// SPDX-License-Identifier: GPL-2.0
//! The plan of a job as the thesis writes it (Glaß 2024, listing 8).

use pbs_job::Job;
use pbs_text::append_line;

use crate::{RunId, Store};

/// One line for each task of the run, node by node and core by core in the
/// order of time; times in ticks of the machine, memory in bytes. `None` if
/// there is no such run.
pub fn csv(store: &Store, run: RunId, job: &Job) -> Option<String> {
    let run = store.run(run)?;
    let machine = store.machine();
    let cores: Vec<_> = machine.cores().collect();
    let tick_ns = machine.tick_ns.max(1);
    let mut tasks: Vec<_> = run.tasks.iter().collect();
    tasks.sort_by_key(|task| (task.core, task.start_ns, task.end_ns));
    let mut text = String::from("node_id;core_id;task_id;start;end;mem_consumption\n");
    for task in tasks {
        let (node, core) = cores[task.core];
        // Writing to a string can't fail.
        append_line!(
            text,
            "{};{};{};{};{};{}",
            machine.nodes[node].name,
            core.name,
            job.tasks[task.task].id,
            task.start_ns / tick_ns,
            task.end_ns / tick_ns,
            task.memory_bytes
        );
    }
    Some(text)
}
