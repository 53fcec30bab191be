// SPDX-License-Identifier: GPL-2.0
//! Checks of workloads and mappings.

use std::collections::HashMap;

use crate::model::{ExecutionTarget, Platform, Task, Workload};

/// Fault of a workload or a mapping.  Tasks, variants and processes are indices into the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Each of these tasks waits for the next, and the last for the first.
    Cycle(Vec<usize>),
    /// A task waits for one that is not in the list.
    NoSuchPredecessor { task: usize, predecessor: usize },
    /// A task's process is not in the list.
    NoSuchProcess { task: usize },
    /// A task has no variant.
    NoVariant { task: usize },
    /// None of a task's variants fits the platform.
    NothingFits { task: usize },
    /// Two tasks of a process have the same name.
    SameName { task: usize, other: usize },
    /// A mapping names a task that does not wait.
    NotWaiting { task: usize },
    /// A mapping names a variant that is not there.
    NoSuchVariant { task: usize, variant: usize },
    /// A mapping names a variant for which the platform has too few threads or no device.
    TooLarge { task: usize, variant: usize },
    /// A mapping queues a task before one that it waits for.
    BeforeItsPredecessor { task: usize, predecessor: usize },
    /// All tasks one after the other take longer than times can say.
    TooLong,
}

impl Fault {
    /// Describes the fault and its remedy, with the names of tasks.
    pub fn tell(&self, workload: &Workload) -> String {
        let name = |task: &usize| match workload.tasks.get(*task) {
            None => format!("number {task}"),
            Some(of) => match workload.processes.get(of.process) {
                None => format!("{:?}", of.name),
                Some(process) => format!("{:?} of process {:?}", of.name, process.name),
            },
        };
        let model = |task: &usize, variant: &usize| {
            let of = workload.tasks.get(*task).and_then(|of| of.variants.get(*variant));
            of.map_or_else(|| format!("number {variant}"), |of| format!("{:?}", of.model))
        };
        match self {
            Self::Cycle(tasks) => {
                let names: Vec<String> = tasks.iter().map(name).collect();
                let first = names.first().map_or("", String::as_str);
                format!(
                    "tasks wait in a circle, {} for {first}: take one of these dependencies away",
                    names.join(" for "),
                )
            }
            Self::NoSuchPredecessor { task, predecessor } => format!(
                "task {} waits for task number {predecessor}, which is not there: leave out \
                 dependencies that are satisfied",
                name(task),
            ),
            Self::NoSuchProcess { task } => {
                format!("task {} belongs to no process of the workload", name(task))
            }
            Self::SameName { task, .. } => {
                format!("two tasks are called {}: give each its own name", name(task))
            }
            Self::NoVariant { task } => {
                format!("task {} has no variant: give it one with a runtime", name(task))
            }
            Self::NothingFits { task } => format!(
                "no variant of task {} fits the machine: it has too few threads or no such device",
                name(task),
            ),
            Self::TooLong => "all tasks one after the other take longer than 292 years: check the \
                              units of their times"
                .into(),
            Self::NotWaiting { task } => {
                format!("the mapping has task {}, which does not wait", name(task))
            }
            Self::NoSuchVariant { task, variant } => format!(
                "the mapping gives task {} variant number {variant}, which it has not",
                name(task),
            ),
            Self::TooLarge { task, variant } => format!(
                "the mapping gives task {} variant {}, for which the machine has too few threads \
                 or no device",
                name(task),
                model(task, variant),
            ),
            Self::BeforeItsPredecessor { task, predecessor } => format!(
                "the mapping queues task {} before {}, for which it waits",
                name(task),
                name(predecessor),
            ),
        }
    }
}

/// Whether the platform has what a variant needs.
pub(crate) fn fits(platform: &Platform, place: ExecutionTarget) -> bool {
    match place {
        ExecutionTarget::Threads(threads) => (1..=platform.threads).contains(&threads),
        ExecutionTarget::Device(device) => {
            platform.devices.get(device).is_some_and(|of| of.count > 0)
        }
    }
}

/// Everything that is wrong with a workload, at once.
///
/// # Errors
/// All faults; cycles by their tasks.
pub fn check(workload: &Workload, platform: &Platform) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    let mut names = HashMap::new();
    for (task, of) in workload.tasks.iter().enumerate() {
        if of.process >= workload.processes.len() {
            faults.push(Fault::NoSuchProcess { task });
        }
        if let Some(other) = names.insert((of.process, of.name.as_str()), task) {
            faults.push(Fault::SameName { task, other });
        }
        for edge in &of.after {
            if edge.task >= workload.tasks.len() {
                faults.push(Fault::NoSuchPredecessor { task, predecessor: edge.task });
            }
        }
        if of.variants.is_empty() {
            faults.push(Fault::NoVariant { task });
        } else if !of.variants.iter().any(|variant| fits(platform, variant.place)) {
            faults.push(Fault::NothingFits { task });
        }
    }
    faults.extend(cycles(workload).into_iter().map(Fault::Cycle));
    let longest_ns = |of: &Task| {
        let runtimes_ns = of.variants.iter().map(|variant| variant.runtime_ns);
        let transfers_ns = of.after.iter().map(|edge| u128::from(edge.transfer_ns));
        u128::from(runtimes_ns.max().unwrap_or(0)) + transfers_ns.sum::<u128>()
    };
    let arrivals_ns = workload.processes.iter().map(|of| of.arrival_ns);
    let all_ns: u128 = workload.tasks.iter().map(longest_ns).sum();
    if all_ns + u128::from(arrivals_ns.max().unwrap_or(0)) > u128::from(u64::MAX / 2) {
        faults.push(Fault::TooLong);
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Cycles: one for each edge on which a walk through all tasks, depth first, comes back to where
/// it is under way.
fn cycles(workload: &Workload) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        No,
        OnPath,
        Done,
    }
    let tasks = workload.tasks.len();
    let mut seen = vec![Visit::No; tasks];
    let mut found = Vec::new();
    for root in 0..tasks {
        if seen[root] != Visit::No {
            continue;
        }
        // Task and the next of its edges.
        let mut path = vec![(root, 0)];
        seen[root] = Visit::OnPath;
        while let Some((task, edge)) = path.pop() {
            let Some(of) = workload.tasks[task].after.get(edge) else {
                seen[task] = Visit::Done;
                continue;
            };
            path.push((task, edge + 1));
            match seen.get(of.task) {
                Some(Visit::No) => {
                    seen[of.task] = Visit::OnPath;
                    path.push((of.task, 0));
                }
                Some(Visit::OnPath) => {
                    let start = path.iter().position(|&(on, _)| on == of.task).unwrap_or(0);
                    found.push(path[start..].iter().map(|&(on, _)| on).collect());
                }
                _ => {}
            }
        }
    }
    found
}
