// SPDX-License-Identifier: GPL-2.0
//! The order in which processes have memory one after the other.
//!
//! A process is planned to begin when there is memory for it, and often that is what
//! another one gives back. Reservations are of times, and what really happens comes
//! earlier and later: so who has the memory next may begin before who had it is gone.
//! An order of their tasks holds whatever the time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pbs_plan::{After, Plan};

use super::Entry;
use crate::{Progress, Store};

/// Memory that a process of the plan has for some time.
pub(super) struct HeldMemory {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// For how long tasks of the process have a core meanwhile.
    pub(super) length_ns: u64,
    pub(super) bytes: u64,
    /// The core's number on the machine.
    pub(super) core: usize,
    /// Index of the process in the plan of its node.
    pub(super) process: usize,
    /// Whether the process has begun, and therefore has the memory already.
    pub(super) has_begun: bool,
}

/// Returns the memory that the process holds by its reservation; `None` if it has none.
pub(super) fn held(
    entry: &Entry<'_>,
    store: &Store,
    of: usize,
    process: usize,
) -> Option<HeldMemory> {
    let run = store.run(entry.run)?;
    if matches!(entry.progress.get(of), Some(Progress::Ended)) {
        return None;
    }
    let reserved = run.processes.iter().find(|it| it.process == of)?;
    let tasks = run.tasks.iter().filter(|task| task.process == of);
    let lengths_ns = tasks.map(|task| task.end_ns - task.start_ns);
    Some(HeldMemory {
        start_ns: reserved.start_ns,
        end_ns: reserved.end_ns,
        length_ns: lengths_ns.sum(),
        bytes: reserved.memory_bytes,
        core: reserved.core,
        process,
        has_begun: matches!(entry.progress.get(of), Some(Progress::Running { .. })),
    })
}

/// Makes the first task of each process wait for the last ones of those whose memory
/// it gets, on the plan of one node.
pub(super) fn order(store: &Store, mut held: Vec<HeldMemory>, plan: &mut Plan) {
    // Who has begun comes first, whatever the time.
    held.sort_unstable_by_key(|it| (!it.has_begun, it.start_ns, it.process));
    // By memory: what nobody has had yet, and what was given back, by the time, with
    // the process that had it.
    let mut fresh: BTreeMap<usize, u64> = BTreeMap::new();
    let mut returned: BTreeMap<(usize, u64, usize), u64> = BTreeMap::new();
    let mut waits = Vec::new();
    for next in &held {
        let site = store.sites()[next.core];
        let node = &store.machine().nodes[site.node];
        let all = || store.balancing().memory_bytes(node);
        let left = fresh.entry(site.memory).or_insert_with(all);
        let first = next.bytes.min(*left);
        *left -= first;
        let mut needed = next.bytes - first;
        let mut before = Vec::new();
        let earlier = (site.memory, 0, 0)..=(site.memory, next.start_ns, usize::MAX);
        for (&(_, _, process), bytes) in returned.range_mut(earlier) {
            if needed == 0 {
                break;
            }
            let gets = needed.min(*bytes);
            *bytes -= gets;
            needed -= gets;
            if gets != 0 {
                before.push(process);
            }
        }
        returned.insert((site.memory, next.end_ns, next.process), next.bytes);
        if !next.has_begun {
            for process in before {
                wait_for(plan, next.process, process);
                waits.push((next, process));
            }
        }
    }
    waits.sort_by_key(|(next, _)| Reverse(next.start_ns));
    for (next, before) in waits {
        end_in_time(plan, next, before);
    }
}

/// A process whose memory another one gets has to end early enough for that one.
fn end_in_time(plan: &mut Plan, next: &HeldMemory, before: usize) {
    let Some(deadline_ns) = plan.processes[next.process].deadline_ns else {
        return;
    };
    let start_ns = deadline_ns.saturating_sub(next.length_ns);
    let before = &mut plan.processes[before].deadline_ns;
    *before = Some(before.map_or(start_ns, |before_ns| before_ns.min(start_ns)));
}

/// The first task of a process waits for the last of another.
fn wait_for(plan: &mut Plan, process: usize, before: usize) {
    let id = plan.processes[before].id;
    let Some(last) = plan.processes[before].tasks.last().map(|task| task.id) else {
        return;
    };
    let Some(first) = plan.processes[process].tasks.first_mut() else {
        return;
    };
    match first.after.iter_mut().find(|after| after.process == id) {
        Some(after) => after.task = after.task.max(last),
        None => first.after.push(After { process: id, task: last, line: None }),
    }
}
