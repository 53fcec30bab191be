// SPDX-License-Identifier: GPL-2.0
//! Admission of a job beside others, which may move.

use super::demand::{CoreOverload, DemandTest};
use super::independent::is_independent;
use super::place::{movable, place_with, NotPlaced, Placing};
use crate::budget::Budget;
use crate::reserve::Request;
use crate::store::{Booking, Run, Store};
use crate::strategies::{Attempt, CutShort, Options, Planned, Strategy};
use crate::validate::{
    admit_within, find_earliest, Declined, EarliestDeadline, Rejection, Shortage, Validation,
};

/// Admits a job as [`admit`] does, or, if its processes are independent, by the demand
/// test: what is left of `others`, as far as they are independent, may move then.
/// Each of `others` keeps its deadline. Without a test the search alone decides.
///
/// # Errors
///
/// Why the job was declined; the store is as it was then.
pub fn admit_beside(
    store: &mut Store,
    request: &Request<'_>,
    others: &[Request<'_>],
    validation: &Validation,
    options: &Options,
    test: Option<&DemandTest>,
) -> Result<Planned, Declined> {
    let work = Budget::new(options.max_work);
    admit_beside_within(store, request, others, validation, options, test, &work)
}

/// Admits a job like [`admit_beside`], as a part of a question: with what is left of its work.
///
/// # Errors
///
/// Why the job was declined; the store is as it was then.
pub fn admit_beside_within(
    store: &mut Store,
    request: &Request<'_>,
    others: &[Request<'_>],
    validation: &Validation,
    options: &Options,
    test: Option<&DemandTest>,
    work: &Budget,
) -> Result<Planned, Declined> {
    // The test needs some of it as well.
    let searched = work
        .part(work.left() / 4 * 3, |work| admit_within(store, request, validation, options, work));
    let mut declined = match searched {
        Ok(planned) => return Ok(planned),
        Err(declined) => declined,
    };
    let is_open = !is_forbidden(&declined) && has_runtime(request, request.deadline_ns);
    let test = test.filter(|_| is_open && is_independent(request.job));
    let Some(test) = test else {
        return Err(declined);
    };
    let places = movable_of(store, others, work);
    let mut booking = store.book();
    let placed = match places {
        Some(mut places) => place_beside(&mut booking, request, &mut places, test, work),
        None => Err(None),
    };
    match placed {
        Ok(end_ns) => {
            booking.commit();
            let mut attempts = match declined {
                Declined::Reservation(refused) => refused.attempts,
                Declined::Validation(_) => Vec::new(),
            };
            let strategy = Strategy::EarliestDeadline;
            attempts.push(Attempt { strategy, end_ns: Ok(end_ns) });
            Ok(Planned { strategy, start_ns: request.start_ns, end_ns, attempts, cut_short: None })
        }
        Err(overload) => {
            if let Declined::Reservation(refused) = &mut declined {
                refused.demand = overload;
                if work.is_cut() {
                    let (strategy, max_work) = (Strategy::EarliestDeadline, options.max_work);
                    refused.cut_short.get_or_insert(CutShort { strategy, max_work });
                }
            }
            Err(declined)
        }
    }
}

/// The earliest deadline with which [`admit_beside`] would admit the job. See
/// [`earliest_deadline`](crate::earliest_deadline) for what is certain about it if the search
/// decides; for the demand test no earlier one would do on one core.
pub fn earliest_deadline_beside(
    store: &mut Store,
    request: &Request<'_>,
    others: &[Request<'_>],
    validation: &Validation,
    options: &Options,
    test: Option<&DemandTest>,
) -> EarliestDeadline {
    let work = Budget::new(options.max_work);
    earliest_deadline_beside_within(store, request, others, validation, options, test, &work)
}

/// The earliest deadline like [`earliest_deadline_beside`], and counts its steps in `work`. A try
/// may take as many as `options` say, however many are left.
pub fn earliest_deadline_beside_within(
    store: &mut Store,
    request: &Request<'_>,
    others: &[Request<'_>],
    validation: &Validation,
    options: &Options,
    test: Option<&DemandTest>,
    work: &Budget,
) -> EarliestDeadline {
    let test = test.filter(|_| is_independent(request.job));
    // The demand test has the rest for itself.
    let each = of_search(request, options, test);
    let by_search = Budget::new(each);
    let by_search_ns = find_earliest(store, request, validation, options, each, &by_search);
    if by_search.is_cut() {
        work.cut();
    }
    work.add(by_search.done().min(options.max_work / 4 * 3));
    let deadline_ns = match (test, by_search_ns) {
        (Some(test), Some(by_search_ns)) => {
            Some(earliest_by_test(store, request, others, test, by_search_ns, work))
        }
        _ => by_search_ns,
    };
    EarliestDeadline { deadline_ns, is_cut: work.is_cut() }
}

/// Returns the steps of work for the search: the demand test needs some as well, if it is asked.
fn of_search(request: &Request<'_>, options: &Options, test: Option<&DemandTest>) -> u64 {
    if test.is_some() && is_independent(request.job) {
        options.max_work / 4 * 3
    } else {
        options.max_work
    }
}

/// The earliest deadline that the demand test admits, no later than that of the search.
fn earliest_by_test(
    store: &mut Store,
    request: &Request<'_>,
    others: &[Request<'_>],
    test: &DemandTest,
    by_search_ns: u64,
    work: &Budget,
) -> u64 {
    let Some(mut places) = movable_of(store, others, work) else {
        return by_search_ns;
    };
    let mut booking = store.book();
    let mut accepts = |deadline_ns: u64| {
        let request = Request { deadline_ns, ..*request };
        let mark = booking.mark();
        let found = has_runtime(&request, deadline_ns)
            && place_beside(&mut booking, &request, &mut places, test, work).is_ok();
        booking.rollback(mark);
        places.iter_mut().for_each(|placing| placing.move_back(0));
        found
    };
    let (mut declined_ns, mut accepted_ns) = (request.start_ns, by_search_ns);
    while accepted_ns.saturating_sub(declined_ns) > 1 && !work.is_spent() {
        let middle_ns = declined_ns + (accepted_ns - declined_ns) / 2;
        if accepts(middle_ns) {
            accepted_ns = middle_ns;
        } else {
            declined_ns = middle_ns;
        }
    }
    if accepted_ns.saturating_sub(declined_ns) > 1 {
        work.cut();
    }
    accepted_ns
}

/// Whether the time until the deadline is as long as the user says that the job takes.
fn has_runtime(request: &Request<'_>, deadline_ns: u64) -> bool {
    let runtime_ns = request.job.runtime_ns.unwrap_or(0);
    request.start_ns.saturating_add(runtime_ns) <= deadline_ns
}

/// Whether the machine itself forbids the job: the time that validation reckons with is
/// that of the search, which has less of a core.
fn is_forbidden(declined: &Declined) -> bool {
    let Declined::Validation(Rejection { shortage, .. }) = declined else {
        return false;
    };
    !matches!(shortage, Shortage::Time { .. } | Shortage::MemoryTime { .. })
}

/// Returns what is left of those runs that can move. `None`: there is too little work to find out.
fn movable_of<'a>(
    store: &Store,
    others: &[Request<'a>],
    work: &Budget,
) -> Option<Vec<Placing<'a>>> {
    let mut placings = Vec::new();
    for other in others {
        if work.is_spent() {
            work.cut();
            return None;
        }
        placings.extend(movable(store, other, work));
    }
    Some(placings)
}

/// Places the processes of a job one after the other, each on the first core that has room
/// for it and for all that is there. Returns when the last of them ends. If it fails, the booking
/// is to be rolled back, and what has moved is to be moved back.
///
/// # Errors
///
/// The overload that is exceeded least; `None`: time is not what there is too little of.
fn place_beside<'a>(
    booking: &mut Booking<'_>,
    request: &Request<'a>,
    others: &mut [Placing<'a>],
    test: &DemandTest,
    work: &Budget,
) -> Result<u64, Option<CoreOverload>> {
    booking.remove(request.run);
    let mut asked = Placing::new(*request, booking.store(), None, work);
    if asked.working().next().is_none() {
        return Err(None);
    }
    for process in asked.working().collect::<Vec<_>>() {
        let mut least: Option<CoreOverload> = None;
        let mut found = false;
        for core in asked.candidates(process, booking.store()) {
            asked.put(process, Some(core));
            match place_with(booking, &mut asked, others, core, test, work) {
                Ok(()) => found = true,
                Err(why) => {
                    asked.put(process, None);
                    if let NotPlaced::Overload { core, overload } = why {
                        let share_permille = test.share_permille;
                        let next = CoreOverload { core, share_permille, overload };
                        let excess = |it: &CoreOverload| it.overload.excess_ns();
                        least = least.into_iter().chain([next]).min_by_key(excess);
                    }
                }
            }
            if found {
                break;
            }
        }
        if !found {
            return Err(least);
        }
    }
    let run = booking.store().run(request.run);
    Ok(run.map_or(request.start_ns, Run::end_ns))
}

#[cfg(test)]
mod tests;
