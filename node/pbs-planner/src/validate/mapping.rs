// SPDX-License-Identifier: GPL-2.0
//! Level 3: the process check, a test mapping of whole processes to cores
//! (Glaß 2024, listings 3 and 4).
//!
//! A process needs a core for its runtime, and its memory from when it begins
//! to when it ends. It may be interrupted: what others have reserved of the
//! core in between makes it longer (*full overlap*), as long as its memory is
//! free beside theirs.
//!
//! Three things are better than in the prototype:
//!
//! - All that holds memory at the same time counts, and only that (7.1, items 2
//!   and 4), since a memory has a profile.
//! - Which idle time of planned processes is used already is known (item 3):
//!   their tasks are in the profile of the core, so that just the time between
//!   them is free. PROCESS_IDLE_PERCENTAGE is left for processes of the test
//!   mapping, whose tasks have no place yet. What one of them uses of another's
//!   idle time is used up.
//! - A child begins after its parent's start by FORK_TIME and INIT_TIME. In
//!   listing 3 it begins after its sibling's, which the text does not say.
//!
//! Most jobs fit without being interrupted. That is tried first, since it is
//! quick to find; a job that keeps its deadline in either way passes.

use std::cmp::Reverse;

use super::{Level, Question, Rejection, Shortage};
use crate::store::{Booking, Store};

mod core_time;

use core_time::{CoreTime, Frame};

pub(super) fn check(question: &Question<'_>, booking: &mut Booking<'_>) -> Result<(), Rejection> {
    let deadline_ns = question.request.deadline_ns;
    match map(question, booking, deadline_ns, find_in_one_piece) {
        Ok(_) => return Ok(()),
        Err(rejection) if matches!(rejection.shortage, Shortage::Memory { .. }) => {
            return Err(rejection)
        }
        Err(_) => {}
    }
    map(question, booking, deadline_ns, find_in_pieces).map(drop)
}

/// The earliest deadline that this level accepts.
pub(super) fn earliest_end_ns(
    question: &Question<'_>,
    booking: &mut Booking<'_>,
) -> Result<u64, Rejection> {
    let one_piece = map(question, booking, u64::MAX, find_in_one_piece)?;
    let pieces = map(question, booking, u64::MAX, find_in_pieces)?;
    Ok(one_piece.min(pieces))
}

/// A process that is to be mapped.
struct Want {
    process: usize,
    from_ns: u64,
    memory_bytes: u64,
}

/// Function that finds the time frame that ends first.
type Find = fn(&Question<'_>, &Booking<'_>, &CoreTime, &Want) -> Option<Frame>;

/// Maps all processes, parents before their children, and takes it back.
/// Returns when the last of them ends.
fn map(
    question: &Question<'_>,
    booking: &mut Booking<'_>,
    deadline_ns: u64,
    find: Find,
) -> Result<u64, Rejection> {
    let mark = booking.mark();
    let result = map_all(question, booking, deadline_ns, find);
    booking.rollback(mark);
    result
}

fn map_all(
    question: &Question<'_>,
    booking: &mut Booking<'_>,
    deadline_ns: u64,
    find: Find,
) -> Result<u64, Rejection> {
    let job = question.request.job;
    let validation = question.validation;
    let reject =
        |process, shortage| Rejection { level: Level::Process, process: Some(process), shortage };
    let late = |process, end_ns| {
        let shortage = Shortage::Time { end_ns, deadline_ns };
        reject(process, shortage)
    };
    let capacities = capacities(question, booking.store());
    let mut time = CoreTime::new(validation.process_idle_permille);
    let mut latest_ns = question.request.start_ns;
    let mut open: Vec<_> = job.initial_process().into_iter().collect();
    let mut starts_ns = vec![question.request.start_ns; job.processes.len()];
    while let Some(process) = open.pop() {
        let want = Want {
            process,
            from_ns: starts_ns[process],
            memory_bytes: job.processes[process].memory_bytes,
        };
        if want.memory_bytes > capacities {
            let shortage =
                Shortage::Memory { needed_bytes: want.memory_bytes, available_bytes: capacities };
            return Err(reject(process, shortage));
        }
        let frame = if question.takes_no_time(booking.store(), process) {
            Some(Frame::in_one_piece(0, want.from_ns, want.from_ns))
        } else {
            find(question, booking, &time, &want)
        };
        let Some(frame) = frame.filter(|frame| frame.end_ns < u64::MAX) else {
            return Err(late(process, u64::MAX));
        };
        if frame.end_ns > deadline_ns {
            return Err(late(process, frame.end_ns));
        }
        let taken = time.take(booking, &frame, want.memory_bytes);
        taken.map_err(|_| late(process, u64::MAX))?;
        latest_ns = latest_ns.max(frame.end_ns);
        let first_ns = frame.start_ns.saturating_add(validation.init_time_ns);
        let first_child = open.len();
        for (number, child) in (0..).zip(job.children(process)) {
            let later_ns = validation.fork_time_ns.saturating_mul(number);
            starts_ns[child] = first_ns.saturating_add(later_ns);
            open.push(child);
        }
        // The first child is next, with all of its own.
        open[first_child..].reverse();
    }
    Ok(latest_ns)
}

/// The most memory that one process can have.
fn capacities(question: &Question<'_>, store: &Store) -> u64 {
    let nodes = question.net.nodes(store);
    let capacities = nodes.map(|node| store.balancing().memory_bytes(node));
    capacities.max().unwrap_or(0)
}

/// The frame that ends first of those in which a core is free all the time.
fn find_in_one_piece(
    question: &Question<'_>,
    booking: &Booking<'_>,
    _: &CoreTime,
    want: &Want,
) -> Option<Frame> {
    let store = booking.store();
    let mut best: Option<Frame> = None;
    for group in store.groups_by_rate() {
        let runtime_ns = question.runtime_ns(store, want.process, group.rate_insns_per_s);
        // Slower ones can't be better.
        let least_ns = want.from_ns.saturating_add(runtime_ns);
        if best.as_ref().is_some_and(|best| best.end_ns <= least_ns) {
            break;
        }
        let memory = &store.memories()[group.memory];
        let mut from_ns = want.from_ns;
        let latest_ns =
            best.as_ref().map_or(u64::MAX, |best| best.end_ns.saturating_sub(runtime_ns));
        let until_ns = latest_ns.saturating_add(runtime_ns);
        let found = loop {
            let starts_ns = from_ns..=latest_ns;
            let Some((start_ns, core)) =
                group.gaps.earliest(&question.work, &starts_ns, runtime_ns, |core| {
                    question.allows(want.process, core as usize)
                })
            else {
                break None;
            };
            match memory.find_first_hole(want.memory_bytes, runtime_ns, start_ns..until_ns) {
                Some(free_ns) if free_ns == start_ns => {
                    break Some((start_ns, start_ns.saturating_add(runtime_ns), core as usize))
                }
                Some(free_ns) => from_ns = free_ns,
                None => break None,
            }
        };
        let Some((start_ns, end_ns, core)) = found else {
            continue;
        };
        if best.as_ref().is_none_or(|best| end_ns < best.end_ns) {
            best = Some(Frame::in_one_piece(core, start_ns, end_ns));
        }
    }
    best
}

/// The frame that ends first of those in which the process is interrupted.
fn find_in_pieces(
    question: &Question<'_>,
    booking: &Booking<'_>,
    time: &CoreTime,
    want: &Want,
) -> Option<Frame> {
    let store = booking.store();
    let cores = (0..store.sites().len()).filter(|&core| question.allows(want.process, core));
    let mut by_rate: Vec<_> = cores.collect();
    by_rate.sort_by_key(|&core| Reverse(store.sites()[core].rate_insns_per_s));
    let mut best: Option<Frame> = None;
    for core in by_rate {
        let rate_insns_per_s = store.sites()[core].rate_insns_per_s;
        let runtime_ns = question.runtime_ns(store, want.process, rate_insns_per_s);
        let least_ns = want.from_ns.saturating_add(runtime_ns);
        if best.as_ref().is_some_and(|best| best.end_ns <= least_ns) {
            break;
        }
        let memory = store.memory(core);
        let mut from_ns = want.from_ns;
        let found = loop {
            let until = from_ns..u64::MAX;
            let Some(free_ns) = memory.first_at_least(want.memory_bytes, until) else {
                break None;
            };
            let Some(frame) = time.frame(store, core, free_ns, runtime_ns) else {
                break None;
            };
            let held = frame.start_ns..frame.end_ns;
            match memory.first_below(want.memory_bytes, held) {
                None => break Some(frame),
                Some(taken_ns) => from_ns = taken_ns,
            }
        };
        let Some(frame) = found else {
            continue;
        };
        if best.as_ref().is_none_or(|best| frame.end_ns < best.end_ns) {
            best = Some(frame);
        }
    }
    best
}
