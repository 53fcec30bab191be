// SPDX-License-Identifier: GPL-2.0
//! What is wrong with a workload or a mapping.

use crate::model::{Place, Platform, Workload};

/// What is wrong.  Tasks, variants and processes are indices into the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Tasks that wait for each other, in this order; the last waits for the first.
    Cycle(Vec<usize>),
    /// A task waits for one that is not in the list.
    NoSuchPredecessor { task: usize, predecessor: usize },
    /// A task's process is not in the list.
    NoSuchProcess { task: usize },
    /// A task has no variant.
    NoVariant { task: usize },
    /// None of a task's variants fits the platform.
    NothingFits { task: usize },
    /// A mapping names a task that is not there.
    NoSuchTask { task: usize },
    /// A mapping names a variant that is not there.
    NoSuchVariant { task: usize, variant: usize },
    /// A mapping names a variant for which the platform has too few threads or no device.
    TooLarge { task: usize, variant: usize },
    /// A mapping queues a task before one that it waits for.
    BeforeItsPredecessor { task: usize, predecessor: usize },
}

/// Whether the platform has what a variant needs.
pub(crate) fn fits(platform: &Platform, place: Place) -> bool {
    match place {
        Place::Threads(threads) => (1..=platform.threads).contains(&threads),
        Place::Device(device) => platform.devices.get(device).is_some_and(|of| of.count > 0),
    }
}

/// Everything that is wrong with a workload, at once.
///
/// # Errors
/// All faults; cycles by their tasks.
pub fn check(workload: &Workload, platform: &Platform) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (task, of) in workload.tasks.iter().enumerate() {
        if of.process >= workload.processes.len() {
            faults.push(Fault::NoSuchProcess { task });
        }
        for edge in &of.after {
            if edge.task >= workload.tasks.len() {
                faults.push(Fault::NoSuchPredecessor {
                    task,
                    predecessor: edge.task,
                });
            }
        }
        if of.variants.is_empty() {
            faults.push(Fault::NoVariant { task });
        } else if !of
            .variants
            .iter()
            .any(|variant| fits(platform, variant.place))
        {
            faults.push(Fault::NothingFits { task });
        }
    }
    faults.extend(cycles(workload).into_iter().map(Fault::Cycle));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Cycles among the tasks that no order can take: each such task is in at most one of them.
fn cycles(workload: &Workload) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnPath,
        Done,
    }
    let tasks = workload.tasks.len();
    let mut seen = vec![Seen::No; tasks];
    let mut found = Vec::new();
    for root in 0..tasks {
        if seen[root] != Seen::No {
            continue;
        }
        // Task and the next of its edges.
        let mut path = vec![(root, 0)];
        seen[root] = Seen::OnPath;
        while let Some((task, edge)) = path.pop() {
            let Some(of) = workload.tasks[task].after.get(edge) else {
                seen[task] = Seen::Done;
                continue;
            };
            path.push((task, edge + 1));
            match seen.get(of.task) {
                Some(Seen::No) => {
                    seen[of.task] = Seen::OnPath;
                    path.push((of.task, 0));
                }
                Some(Seen::OnPath) => {
                    let start = path.iter().position(|&(on, _)| on == of.task).unwrap_or(0);
                    found.push(path[start..].iter().map(|&(on, _)| on).collect());
                }
                _ => {}
            }
        }
    }
    found
}
