// SPDX-License-Identifier: GPL-2.0
//! Times that result from a mapping.
//!
//! Rounds carry no time.  Time follows from the queues: each thread and each accelerator works its
//! queue off first in, first out, and tasks enter the queues in the order of their rounds.

use crate::check::{fits, Fault};
use crate::mapping::{Hold, Mapping, Timeline};
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::problem::Problem;
use crate::queues::{Queues, Slot, Where};

/// Returns the times and places of all tasks under a mapping.
///
/// A task with n threads takes the n threads whose queues are worked off first.  A task of an
/// accelerator takes the one of its type on which it starts first.  It starts when all of them are
/// free, its process has arrived, and the data of all its predecessors are available.  Until then
/// no other task passes it in its queues.  A task that is held back passes over threads that are
/// free earlier, and waits for the end of another task.
///
/// # Errors
/// The mapping names a task, a variant or a device that does not exist, or queues a task before one
/// of its predecessors.
pub fn timing(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    mapping: &Mapping,
) -> Result<Timeline, Fault> {
    let problem = Problem::new(workload, platform, queues);
    let mut number = vec![None; workload.tasks.len()];
    for (job, of) in problem.jobs.iter().enumerate() {
        number[of.task] = Some(job);
    }
    let mut state = problem.start();
    let mut waits = vec![None; workload.tasks.len()];
    let mut transfers = Vec::new();
    let mut slots: Vec<Option<Slot>> =
        (0..workload.tasks.len()).map(|task| queues.slot(task).cloned()).collect();
    for task in mapping.order() {
        let Some(&Some(job)) = number.get(task) else {
            return Err(Fault::NotWaiting { task });
        };
        let of = &problem.jobs[job];
        let variant = mapping.choices[task].map_or(0, |choice| choice.variant);
        match workload.tasks[task].variants.get(variant) {
            None => return Err(Fault::NoSuchVariant { task, variant }),
            Some(of) if !fits(platform, of.place) => return Err(Fault::TooLarge { task, variant }),
            Some(_) => {}
        }
        for &(before, _) in &of.after {
            let predecessor = problem.jobs[before].task;
            if slots[predecessor].is_none() {
                return Err(Fault::BeforeItsPredecessor { task, predecessor });
            }
        }
        let hold = mapping.choices[task].map_or_else(Hold::default, |choice| choice.hold);
        if let Some(predecessor) = hold.wait {
            if slots.get(predecessor).is_none_or(Option::is_none) {
                return Err(Fault::BeforeItsPredecessor { task, predecessor });
            }
        }
        for way in of.ways.iter().filter(|way| way.variant == variant) {
            let placed = state.place(of, job, way, problem.held(&state, hold));
            let place = match (way.place, placed.memory) {
                (ExecutionTarget::Device(_), Some((device, instance))) => {
                    Where::Device { device, instance }
                }
                _ => Where::Threads(state.taken.clone()),
            };
            waits[task] = hold.wait.filter(|_| placed.memory.is_none());
            transfers.extend_from_slice(&state.carried);
            slots[task] = Some(Slot { start_ns: placed.start_ns, end_ns: placed.end_ns, place });
        }
    }
    Ok(Timeline { slots, waits, transfers })
}
