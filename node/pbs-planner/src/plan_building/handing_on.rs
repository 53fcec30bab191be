// SPDX-License-Identifier: GPL-2.0
//! The order in which processes have memory and resources one after the other.
//!
//! A process is planned to begin when there is memory for it, and often that is what
//! another one gives back. Reservations are of times, and what really happens comes
//! earlier and later: so who has the memory next may begin before who had it is gone.
//! An order of their tasks holds whatever the time. The amounts of a resource are handed
//! on as memory is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pbs_plan::{After, Plan};

use super::{Entry, NodePlan};
use crate::{ProcessReservation, Progress, Run, Store};

/// A process of a plan, which has its slots while something is held for it.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    /// Index of the node on the machine.
    pub(super) node: usize,
    /// Index of the process in the plan of its node.
    pub(super) process: usize,
    /// For how long tasks of the process have a core.
    pub(super) length_ns: u64,
}

/// Source of what is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    /// Number of the memory in the store.
    Memory(usize),
    /// Index of the resource on the machine.
    Resource(usize),
}

/// Memory and resources that are held for some time.
pub(super) struct Hold {
    start_ns: u64,
    end_ns: u64,
    amounts: Vec<(Pool, u64)>,
    /// The processes for which they are held, never empty: one, or all of a job that have slots
    /// while a process of it holds them that has none.
    holders: Vec<Holder>,
    /// Whether they are held already.
    has_begun: bool,
}

impl Pool {
    /// All that there is, on the node of the holder.
    fn all(self, store: &Store, node: usize) -> u64 {
        let machine = store.machine();
        match self {
            Self::Memory(_) => store.balancing().memory_bytes(&machine.nodes[node]),
            Self::Resource(resource) => machine.resources[resource].count,
        }
    }
}

/// Returns what the processes of a run hold by their reservations. `holders`: the processes of the
/// job that have slots.
pub(super) fn holds(
    entry: &Entry<'_>,
    store: &Store,
    run: &Run,
    holders: &[Option<Holder>],
) -> Vec<Hold> {
    let progress = |process: usize| entry.progress.get(process);
    let has_executed =
        |process: usize| progress(process).is_some_and(|it| it.has_executed(entry.job, process));
    let is_under_way = (0..entry.job.processes.len()).any(has_executed);
    let mut holds = Vec::new();
    for reserved in &run.processes {
        let own = holders[reserved.process];
        let of_all = is_of_all(entry, reserved, own.is_some());
        let resources = reserved.resources.iter();
        let resources = resources.map(|held| (Pool::Resource(held.resource), held.count));
        let (start_ns, end_ns) = (reserved.start_ns, reserved.end_ns);
        let ended = matches!(progress(reserved.process), Some(Progress::Ended));
        if let Some(holder) = own.filter(|_| !ended) {
            let memory = Pool::Memory(store.sites()[reserved.core].memory);
            let mut amounts = vec![(memory, reserved.memory_bytes)];
            amounts.extend(resources.clone().filter(|_| !of_all));
            // A program that waits for its first slot holds no resources yet.
            let has_begun = matches!(progress(reserved.process), Some(Progress::Running { .. }))
                && (reserved.resources.is_empty() || has_executed(reserved.process));
            holds.push(Hold { start_ns, end_ns, amounts, holders: vec![holder], has_begun });
        }
        if of_all {
            let within = |it: &&ProcessReservation| {
                reserved.start_ns <= it.start_ns && it.end_ns <= reserved.end_ns
            };
            let members = run.processes.iter().filter(within);
            let members: Vec<_> = members.filter_map(|it| holders[it.process]).collect();
            let amounts = resources.collect();
            if !members.is_empty() {
                let has_begun = is_under_way;
                holds.push(Hold { start_ns, end_ns, amounts, holders: members, has_begun });
            }
        }
    }
    holds
}

/// Whether the resources of a process are held for all processes that have slots meanwhile: it has
/// none itself, or they are those of the whole job.
fn is_of_all(entry: &Entry<'_>, reserved: &ProcessReservation, has_slots: bool) -> bool {
    let is_initial = entry.job.processes[reserved.process].forked_by.is_none();
    let of_job = is_initial && !entry.job.resources.is_empty();
    !reserved.resources.is_empty() && (of_job || !has_slots)
}

/// Makes the first task of each process wait for the last ones of those whose memory or resources
/// it gets. Processes of different nodes do not wait for each other: only planned times keep them
/// apart.
/// `with_memory`: memory is handed on so, and not only resources.
pub(super) fn order(
    store: &Store,
    mut holds: Vec<Hold>,
    plans: &mut [NodePlan],
    with_memory: bool,
) {
    let is_handed_on = |pool: &Pool| with_memory || matches!(pool, Pool::Resource(_));
    holds.iter_mut().for_each(|hold| hold.amounts.retain(|(pool, _)| is_handed_on(pool)));
    holds.retain(|hold| !hold.amounts.is_empty());
    let place = |hold: &Hold| (hold.holders[0].node, hold.holders[0].process);
    // Who has begun comes first, whatever the time.
    holds.sort_by_key(|it| (!it.has_begun, it.start_ns, place(it)));
    let firsts: Vec<Vec<Holder>> = holds.iter().map(|hold| firsts(hold, plans)).collect();
    // By pool: what nobody has had yet, and what was given back, by the time, with the hold that
    // had it.
    let mut fresh: BTreeMap<Pool, u64> = BTreeMap::new();
    let mut returned: BTreeMap<(Pool, u64, (usize, usize), usize), u64> = BTreeMap::new();
    let mut waits = Vec::new();
    for (index, next) in holds.iter().enumerate() {
        let mut before = Vec::new();
        for &(pool, amount) in &next.amounts {
            let all = || pool.all(store, next.holders[0].node);
            let left = fresh.entry(pool).or_insert_with(all);
            let first = amount.min(*left);
            *left -= first;
            let mut needed = amount - first;
            let last = (pool, next.start_ns, (usize::MAX, usize::MAX), usize::MAX);
            let earlier = (pool, 0, (0, 0), 0)..=last;
            let mut emptied = Vec::new();
            for (&key, amount) in returned.range_mut(earlier) {
                if needed == 0 {
                    break;
                }
                let gets = needed.min(*amount);
                *amount -= gets;
                needed -= gets;
                if gets != 0 {
                    before.push(key.3);
                }
                if *amount == 0 {
                    emptied.push(key);
                }
            }
            // No later hold walks over what is used up.
            for key in emptied {
                returned.remove(&key);
            }
            returned.insert((pool, next.end_ns, place(next), index), amount);
        }
        if !next.has_begun {
            let pairs = before.iter().flat_map(|&before| {
                let lasts = &holds[before].holders;
                firsts[index]
                    .iter()
                    .flat_map(move |&first| lasts.iter().map(move |it| (first, *it)))
            });
            for (first, last) in pairs.filter(|(first, last)| first.node == last.node) {
                wait_for(&mut plans[first.node].plan, first.process, last.process);
                waits.push((next.start_ns, first, last));
            }
        }
    }
    waits.sort_by_key(|&(start_ns, ..)| Reverse(start_ns));
    for (_, first, last) in waits {
        end_in_time(&mut plans[first.node].plan, &first, last.process);
    }
}

/// Returns the holders that begin first: the others wait for one of them.
fn firsts(hold: &Hold, plans: &[NodePlan]) -> Vec<Holder> {
    let waits_for_none = |holder: &&Holder| {
        let first = plans[holder.node].plan.processes[holder.process].tasks.first();
        first.is_some_and(|task| task.after.is_empty())
    };
    match &hold.holders[..] {
        [only] => vec![*only],
        all => all.iter().filter(waits_for_none).copied().collect(),
    }
}

/// A process whose memory or resource another one gets has to end early enough for that one.
fn end_in_time(plan: &mut Plan, next: &Holder, before: usize) {
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
        Some(after) if last > after.task => {
            // It waits for more than a message.
            (after.task, after.arrival_ns) = (last, None);
        }
        Some(_) => {}
        None => first.after.push(After { process: id, task: last, ..After::default() }),
    }
}
