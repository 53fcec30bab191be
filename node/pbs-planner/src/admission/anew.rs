// SPDX-License-Identifier: GPL-2.0
//! Planning anew what is left of runs, with all that is independent placed by its
//! deadline.

use std::collections::BTreeSet;

use super::demand::DemandTest;
use super::place::{place_all, place_with, unplaced, Placing};
use crate::budget::Budget;
use crate::reserve::Request;
use crate::store::Booking;

/// Plans those runs anew: nets by `plan`, one after the other, and then all others by
/// their deadlines. `None`: one of them would be late, or has no place; the booking is to
/// be rolled back then.
pub(crate) fn place_anew<'a, P>(
    booking: &mut Booking<'_>,
    requests: &[Request<'a>],
    test: &DemandTest,
    work: &Budget,
    plan: impl Fn(&mut Booking<'_>, &Request<'a>) -> Option<P>,
) -> Option<Vec<(Request<'a>, Option<P>)>> {
    let mut placings: Vec<Placing<'a>> = Vec::new();
    let mut nets = Vec::new();
    for request in requests {
        if work.is_spent() {
            work.cut();
            return None;
        }
        match unplaced(booking.store(), request, work) {
            Some(placing) => placings.push(placing),
            None => nets.push(*request),
        }
    }
    for request in requests {
        booking.remove_within(request.run, work);
    }
    let held: Vec<_> = placings.iter().map(|placing| placing.hold_needs(booking)).collect();
    let mut planned = Vec::with_capacity(requests.len());
    for net in nets {
        planned.push((net, Some(plan(booking, &net)?)));
    }
    for (core, over, needs) in held.into_iter().flatten() {
        booking.give_needs(core, over, &needs).ok()?;
    }
    let of_all = placings.iter().flat_map(|placing| {
        let working = placing.working();
        working.filter_map(|process| placing.core(process))
    });
    for core in of_all.collect::<BTreeSet<usize>>() {
        let here = placings.iter_mut().filter(|placing| placing.is_on(core));
        place_all(booking, &mut here.collect::<Vec<_>>(), core, test, work).ok()?;
    }
    // Those that have no core yet come to the others.
    for index in 0..placings.len() {
        let mut asked = placings.remove(index);
        for process in asked.working().collect::<Vec<_>>() {
            if asked.core(process).is_none() {
                let mut cores = asked.candidates(process, booking.store()).into_iter();
                cores.find(|&core| {
                    asked.put(process, Some(core));
                    let others = &mut placings[..];
                    let found = place_with(booking, &mut asked, others, core, test, work).is_ok();
                    if !found {
                        asked.put(process, None);
                    }
                    found
                })?;
            }
        }
        placings.insert(index, asked);
    }
    let in_time = |placing: &Placing<'_>| {
        let run = booking.store().run(placing.request.run);
        run.is_none_or(|run| run.end_ns() <= placing.request.deadline_ns)
    };
    if !placings.iter().all(in_time) {
        return None;
    }
    planned.extend(placings.iter().map(|placing| (placing.request, None)));
    Some(planned)
}
