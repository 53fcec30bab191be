// SPDX-License-Identifier: GPL-2.0
//! Level 1: the general check.
//!
//! The thesis holds the user's totals against the deadline and the machine.
//! Beside them stands here what follows from the net alone, whatever the user
//! said: no job ends before its [lower bound](crate::lower_bound), and a
//! process needs its memory and resources beside those of all that it descends
//! from, since they wait for it.

use std::collections::BTreeMap;
use std::rc::Rc;

use pbs_job::{Amount, Job, Machine};

use super::{Level, Question, Rejection, Shortage};
use crate::bounds;
use crate::store::{Balancing, Store};

pub(super) fn check(question: &Question<'_>, store: &Store) -> Result<(), Rejection> {
    validate_machine(question.request.job, store.machine())?;
    memory(question, store)?;
    let end_ns = earliest_end_ns(question, store);
    let deadline_ns = question.request.deadline_ns;
    if end_ns > deadline_ns {
        return Err(Rejection {
            level: Level::General,
            process: None,
            shortage: Shortage::Time { end_ns, deadline_ns },
        });
    }
    Ok(())
}

/// Whether the machine has all CPUs that the job is confined to, which is the part of
/// level 1 that needs nothing else.
///
/// # Errors
///
/// Those that it does not have.
fn validate_cpus(job: &Job, machine: &Machine) -> Result<(), Rejection> {
    let missing = job.missing_cpus(machine);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Rejection {
        level: Level::General,
        process: None,
        shortage: Shortage::Cpus { missing, available: machine.cpus().collect() },
    })
}

/// Whether the machine has all CPUs that the job is confined to, and all resources that it needs at
/// once, which is the part of level 1 that needs nothing but the machine.
///
/// # Errors
///
/// The CPUs that it does not have, or the resource of which it has too little.
pub fn validate_machine(job: &Job, machine: &Machine) -> Result<(), Rejection> {
    validate_cpus(job, machine)?;
    if !job.holds_resources() {
        return Ok(());
    }
    // With the resources of all that it descends from.
    // Children share the amounts of their parent: a job may have a hundred thousand of them.
    let mut open: Vec<(usize, Rc<BTreeMap<String, u64>>)> =
        job.initial_process().map(|first| (first, Rc::default())).into_iter().collect();
    while let Some((process, mut needed_at_once)) = open.pop() {
        for Amount { resource, count } in job.amounts(process) {
            let refuse = |shortage| {
                Err(Rejection { level: Level::General, process: Some(process), shortage })
            };
            let amounts = Rc::make_mut(&mut needed_at_once);
            let needed = amounts.entry(resource.clone()).or_default();
            *needed = needed.saturating_add(count);
            let Some(found) = machine.resource(&resource) else {
                let names = machine.resources.iter().map(|it| it.name.clone());
                let available = names.collect();
                return refuse(Shortage::NoResource { name: resource, available });
            };
            let (needed, available) = (*needed, machine.resources[found].count);
            if needed > available {
                return refuse(Shortage::Resource { name: resource, needed, available });
            }
        }
        open.extend(job.children(process).map(|child| (child, Rc::clone(&needed_at_once))));
    }
    Ok(())
}

/// Returns the end of the job on an empty machine: the thesis's `total_runtime`, or the job's lower
/// bound if that is later.
pub(super) fn earliest_end_ns(question: &Question<'_>, store: &Store) -> u64 {
    let Question { request, net, .. } = question;
    let runtime_ns = request.job.runtime_ns.unwrap_or(0);
    let bound = bounds::lower(request, net, store);
    bound.end_ns.max(request.start_ns.saturating_add(runtime_ns))
}

fn memory(question: &Question<'_>, store: &Store) -> Result<(), Rejection> {
    if store.balancing() == Balancing::Blind {
        return Ok(());
    }
    let job = question.request.job;
    let bytes = question.net.nodes(store).map(|node| node.memory_bytes);
    let available_bytes = bytes.fold(0, u64::saturating_add);
    let refuse = |process, needed_bytes| {
        Err(Rejection {
            level: Level::General,
            process,
            shortage: Shortage::Memory { needed_bytes, available_bytes },
        })
    };
    if let Some(needed_bytes) = job.memory_bytes.filter(|&bytes| bytes > available_bytes) {
        return refuse(None, needed_bytes);
    }
    // With the memory of all that it descends from.
    let mut open: Vec<(usize, u64)> =
        job.initial_process().map(|first| (first, 0)).into_iter().collect();
    while let Some((process, held_bytes)) = open.pop() {
        let needed_bytes = job.processes[process].memory_bytes.saturating_add(held_bytes);
        if needed_bytes > available_bytes {
            return refuse(Some(process), needed_bytes);
        }
        open.extend(job.children(process).map(|child| (child, needed_bytes)));
    }
    Ok(())
}
