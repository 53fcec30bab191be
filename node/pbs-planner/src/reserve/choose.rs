// SPDX-License-Identifier: GPL-2.0
//! Choice of the core for a process (Glaß 2024, 5.1.4.4).

use std::ops::{Range, RangeInclusive};

use pbs_profile::Profile;

use crate::budget::{tally, Budget};
use crate::store::{Needs, Store};

/// Steps that a question to a profile counts as at least: it goes through a tree.
pub(super) const PROFILE: u64 = 16;

/// Criterion for the best core of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The core on which the first task ends first, as in the thesis, or the first task that has
    /// instructions. Of several such cores, the one on which the process ends first.
    TaskEnd,
    /// The core on which the whole process would end first if it could continue without
    /// interruption.
    ProcessEnd,
}

/// Requirements of a process for its core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want<'a> {
    /// Earliest start of its first task.
    pub(crate) ready_ns: u64,
    /// Time by which all its tasks must have ended.
    pub(crate) deadline_ns: u64,
    /// The first task's, or where that has none those of the first that has.
    pub(crate) task_insns: u64,
    /// Instructions of all its tasks.
    pub(crate) process_insns: u64,
    /// Memory and resources that it holds.
    pub(crate) needs: &'a Needs,
    /// For how long it holds them at least.
    pub(crate) span_ns: u64,
    pub(crate) goal: Goal,
}

/// Core and time that are free for a first task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoreInterval {
    pub(crate) core: usize,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Reason for which no core has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nowhere {
    /// Earliest time at which the task could end.
    Time { end_ns: u64 },
    /// Too little memory or too little of a resource is free.
    Needs,
    /// Too little work is left to find out.
    Work,
}

/// Times of cores on which open processes of the same job have yet to run their
/// tasks.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    /// Per core.
    left_ns: Vec<u64>,
    /// Per group: how many of its cores have some.
    cores: Vec<usize>,
}

impl Claims {
    pub(crate) fn new(store: &Store) -> Self {
        Self { left_ns: vec![0; store.sites().len()], cores: vec![0; store.group_count()] }
    }

    pub(crate) fn add(&mut self, store: &Store, core: usize, time_ns: u64) {
        let left_ns = &mut self.left_ns[core];
        if *left_ns == 0 && time_ns > 0 {
            self.cores[store.group_of(core)] += 1;
        }
        *left_ns = left_ns.saturating_add(time_ns);
    }

    pub(crate) fn subtract(&mut self, store: &Store, core: usize, time_ns: u64) {
        let left_ns = &mut self.left_ns[core];
        let before_ns = *left_ns;
        *left_ns = left_ns.saturating_sub(time_ns);
        if before_ns > 0 && *left_ns == 0 {
            self.cores[store.group_of(core)] -= 1;
        }
    }

    fn of(&self, core: usize) -> u64 {
        self.left_ns[core]
    }

    fn has_group(&self, group: usize) -> bool {
        self.cores[group] > 0
    }
}

/// The best place on any core that is allowed.
///
/// Groups of cores of the same rate and memory are asked, the fastest first,
/// until none of the rest can be better; each knows its first gap.
pub(crate) fn best(
    store: &Store,
    want: &Want<'_>,
    claims: &Claims,
    work: &Budget,
    is_allowed: impl Fn(usize) -> bool,
) -> Result<CoreInterval, Nowhere> {
    let mut best: Option<((u64, u64), CoreInterval)> = None;
    let mut earliest_ns = u64::MAX;
    let (mut needs_lack, mut is_cut) = (false, false);
    let (mut rate, mut task_ns, mut process_ns) = (None, 0, 0);
    for group in store.groups_by_rate() {
        work.add(1);
        // Mostly the same as that of the group before.
        if rate != Some(group.rate_insns_per_s) {
            rate = Some(group.rate_insns_per_s);
            let duration_ns = |insns| (store.machine()).duration_ns(insns, group.rate_insns_per_s);
            task_ns = duration_ns(want.task_insns);
            process_ns = duration_ns(want.process_insns);
        }
        let key = |start_ns: u64, claimed_ns: u64| {
            let task_end_ns = start_ns.saturating_add(task_ns);
            let process_end_ns = start_ns.saturating_add(process_ns.saturating_add(claimed_ns));
            match want.goal {
                Goal::TaskEnd => (task_end_ns, process_end_ns),
                Goal::ProcessEnd => (process_end_ns, task_end_ns),
            }
        };
        if best.is_some_and(|(best, _)| best <= key(want.ready_ns, 0)) {
            break;
        }
        let memory = &store.memories()[group.memory];
        // What starts later is worse than the best so far.
        let least_ns = match want.goal {
            Goal::TaskEnd => task_ns,
            Goal::ProcessEnd => process_ns,
        };
        let latest_ns = best.map_or(u64::MAX, |(best, _)| best.0.saturating_sub(least_ns));
        // The first place of a core that is wanted, with time and memory.
        let first = |wanted: &dyn Fn(u32) -> bool| {
            let mut from_ns = want.ready_ns;
            loop {
                let starts_ns = from_ns..=latest_ns;
                let found = (group.gaps).earliest(work, &starts_ns, task_ns.max(1), wanted);
                let (start_ns, core) = found.ok_or(Nowhere::Time { end_ns: u64::MAX })?;
                let process_end_ns = start_ns.saturating_add(process_ns);
                if process_end_ns > want.deadline_ns || process_end_ns == u64::MAX {
                    let end_ns = start_ns.saturating_add(task_ns);
                    return Err(if from_ns == want.ready_ns {
                        Nowhere::Time { end_ns }
                    } else {
                        Nowhere::Needs
                    });
                }
                let span_ns = want.span_ns.max(process_ns);
                let starts_ns = start_ns..=latest_ns;
                match first_held(store, memory, want, span_ns, &starts_ns, work) {
                    Some(free_ns) if free_ns == start_ns => return Ok((start_ns, core as usize)),
                    _ if work.is_spent() => return Err(Nowhere::Work),
                    Some(free_ns) => from_ns = free_ns,
                    None => return Err(Nowhere::Needs),
                }
            }
        };
        let mut consider = |found: Result<(u64, usize), Nowhere>| match found {
            Ok((start_ns, core)) => {
                let key = key(start_ns, claims.of(core));
                if best.is_none_or(|(best, _)| key < best) {
                    let end_ns = start_ns + task_ns;
                    let place = CoreInterval { core, start_ns, end_ns };
                    best = Some((key, place));
                }
            }
            Err(Nowhere::Time { end_ns }) => earliest_ns = earliest_ns.min(end_ns),
            Err(Nowhere::Needs) => needs_lack = true,
            Err(Nowhere::Work) => is_cut = true,
        };
        // A core that others of the job still need delays them and is delayed
        // by them.
        let is_claimed = |core| claims.of(core as usize) > 0;
        let unclaimed = first(&|core| !is_claimed(core) && is_allowed(core as usize));
        let at_once = unclaimed.is_ok_and(|(start_ns, _)| start_ns == want.ready_ns);
        consider(unclaimed);
        if claims.has_group(group.index) && !at_once {
            consider(first(&|core| is_claimed(core) && is_allowed(core as usize)));
        }
    }
    match best {
        Some((_, place)) => Ok(place),
        None if is_cut => Err(Nowhere::Work),
        None if needs_lack => Err(Nowhere::Needs),
        None => Err(Nowhere::Time { end_ns: earliest_ns }),
    }
}

/// Returns the first of the times that are asked for, if all that the process needs is free from
/// then on for so long, or to the deadline where that comes first. Otherwise returns a later time,
/// before which something is lacking.
fn first_held(
    store: &Store,
    memory: &Profile,
    want: &Want<'_>,
    span_ns: u64,
    starts_ns: &RangeInclusive<u64>,
    work: &Budget,
) -> Option<u64> {
    for needed in want.needs.profiles(store, memory) {
        let free_ns = first_free(needed, want.deadline_ns, span_ns, starts_ns, work)?;
        if free_ns != *starts_ns.start() {
            return Some(free_ns);
        }
    }
    Some(*starts_ns.start())
}

/// Asks a profile for its first hole. The steps that it looks at are counted.
pub(super) fn first_hole(
    profile: &Profile,
    need: u64,
    duration_ns: u64,
    window: Range<u64>,
    work: &Budget,
) -> Option<u64> {
    let (found, looked_at) = profile.count_first_hole(need, duration_ns, window);
    tally::add(looked_at);
    work.add(looked_at.max(PROFILE));
    found
}

/// The first of the times that are asked for from which on the amount of the profile is free for so
/// long, or to the deadline where that comes first. `None`: never, or too little work is left.
fn first_free(
    (profile, amount): (&Profile, u64),
    deadline_ns: u64,
    span_ns: u64,
    starts_ns: &RangeInclusive<u64>,
    work: &Budget,
) -> Option<u64> {
    let (from_ns, latest_ns) = (*starts_ns.start(), *starts_ns.end());
    let end_ns = deadline_ns.min(latest_ns.saturating_add(span_ns));
    let whole = first_hole(profile, amount, span_ns, from_ns..end_ns, work);
    if whole.is_some() {
        return whole;
    }
    let mut start_ns = from_ns.max(deadline_ns.saturating_sub(span_ns));
    while start_ns <= latest_ns && !work.is_spent() {
        work.add(PROFILE);
        let Some(taken_ns) = profile.first_below(amount, start_ns..deadline_ns) else {
            return Some(start_ns);
        };
        start_ns = profile.first_at_least(amount, taken_ns..deadline_ns)?;
    }
    None
}

/// The first place on that core.
pub(crate) fn on_core(
    store: &Store,
    want: &Want<'_>,
    core: usize,
    work: &Budget,
) -> Result<CoreInterval, Nowhere> {
    let task_ns = store.duration_ns(core, want.task_insns);
    let process_ns = store.duration_ns(core, want.process_insns);
    let span_ns = want.span_ns.max(process_ns);
    let (time, memory) = (store.core(core), store.memory(core));
    let mut from_ns = want.ready_ns;
    loop {
        let found = first_hole(time, 1, task_ns.max(1), from_ns..u64::MAX, work);
        let start_ns = found.ok_or(Nowhere::Time { end_ns: u64::MAX })?;
        let end_ns = start_ns.saturating_add(task_ns);
        let process_end_ns = start_ns.saturating_add(process_ns);
        if process_end_ns > want.deadline_ns || process_end_ns == u64::MAX {
            return Err(if from_ns == want.ready_ns {
                Nowhere::Time { end_ns }
            } else {
                Nowhere::Needs
            });
        }
        match first_held(store, memory, want, span_ns, &(start_ns..=u64::MAX), work) {
            Some(free_ns) if free_ns == start_ns => {
                return Ok(CoreInterval { core, start_ns, end_ns })
            }
            _ if work.is_spent() => return Err(Nowhere::Work),
            Some(free_ns) => from_ns = free_ns,
            None => return Err(Nowhere::Needs),
        }
    }
}

#[cfg(test)]
mod tests;
