// SPDX-License-Identifier: GPL-2.0
//! Announcement of a graph: a file that co-scheduling and plans read.
//!
//! If the variable [`GRAPH_FILE`] is in the environment, a program writes the first graph that it
//! would run to that file, in the format of task graphs, and runs nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pbs_job::graph::{Graph as File, GraphEdge, GraphTask, Target, Variant};
use pbs_job::graph_to_json;

use crate::graph::Graph;
use crate::runtime::{Candidate, Runtime};
use crate::Error;

/// Variable of the environment with the name of the file.
pub const GRAPH_FILE: &str = "SCHED_PBS_GRAPH";

/// Whether a graph of this process was announced.
static IS_DONE: AtomicBool = AtomicBool::new(false);

/// Writes the graph to the file that the environment names, if it names one.
///
/// # Errors
///
/// [`Error::Announced`] if it was written; otherwise the reason for which it was not.
pub(crate) fn announce(
    runtime: &Runtime,
    graph: &Graph,
    candidates: &[Vec<Candidate>],
) -> Result<(), Error> {
    let Some(path) = std::env::var_os(GRAPH_FILE) else {
        return Ok(());
    };
    let name = path.to_string_lossy().into_owned();
    // A program that continues after the error must not replace its first graph.
    if IS_DONE.swap(true, Ordering::Relaxed) {
        return Err(Error::Announced(name));
    }
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = format!("{:#}\n", graph_to_json(&file(runtime, graph, candidates, words)));
    match std::fs::write(&path, text) {
        Ok(()) => Err(Error::Announced(name)),
        Err(error) => Err(Error::Graph(format!(
            "{name}: {error}; set {GRAPH_FILE} to a file that can be written"
        ))),
    }
}

/// Converts a graph to the one of a file.  Its variants are the candidates, in their order.
fn file(
    runtime: &Runtime,
    graph: &Graph,
    candidates: &[Vec<Candidate>],
    program: Vec<String>,
) -> File {
    let names = names(graph);
    let tasks = graph.tasks.iter().zip(candidates).zip(names);
    let tasks = tasks.map(|((task, own), name)| {
        let bytes = task.transfer_bytes();
        let after = task.after.iter();
        GraphTask {
            name,
            after: after
                .map(|before| GraphEdge { task: before.0, bytes, transfer_ns: None })
                .collect(),
            variants: own.iter().map(|of| variant(runtime, of)).collect(),
            ..GraphTask::default()
        }
    });
    let base = program.first().and_then(|path| path.rsplit('/').next());
    File {
        name: base.filter(|base| !base.is_empty()).unwrap_or("program").into(),
        deadline_ns: graph
            .deadline
            .map(|deadline| u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX)),
        tasks: tasks.collect(),
        program,
        ..File::default()
    }
}

fn variant(runtime: &Runtime, candidate: &Candidate) -> Variant {
    Variant {
        model: candidate.key.model.name().into(),
        target: match candidate.device {
            0 => Target::Threads(candidate.units),
            device => Target::Device(runtime.devices[device].shared.name.clone()),
        },
        runtime_ns: candidate.is_profiled.then_some(candidate.runtime_ns),
        ..Variant::default()
    }
}

/// Returns the names of the tasks, with a number where several have the same.
fn names(graph: &Graph) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for task in &graph.tasks {
        *count.entry(&task.name).or_default() += 1;
    }
    let mut number: HashMap<&str, usize> = HashMap::new();
    let names = graph.tasks.iter().map(|task| {
        if count[&*task.name] == 1 {
            return task.name.clone();
        }
        loop {
            let next = number.entry(&task.name).or_default();
            *next += 1;
            let name = format!("{}.{next}", task.name);
            if !count.contains_key(&*name) {
                return name;
            }
        }
    });
    names.collect()
}
