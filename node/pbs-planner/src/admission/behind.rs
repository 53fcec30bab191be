// SPDX-License-Identifier: GPL-2.0
//! Places behind what is promised, for work without a promise.

use crate::budget::Budget;
use crate::reserve::Request;
use crate::store::{Booking, Run, RunId, Store};
use crate::strategies::{reserve_within, Options, Planned, Refused};

/// Reserves what a run needs without a deadline, on each core behind all that is reserved there for
/// the runs in `promised`. The run gets no time between those reservations. This way it is in
/// nobody's way if one of them is late.
///
/// # Errors
///
/// Fails if there will never be enough of something. The run's own reservations are given back in
/// this case, too.
pub fn reserve_behind(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    promised: impl IntoIterator<Item = RunId>,
    options: &Options,
) -> Result<Planned, Box<Refused>> {
    reserve_behind_within(booking, request, promised, options, &Budget::new(options.max_work))
}

/// Reserves like [`reserve_behind`], as a part of a question: with what is left of its work.
///
/// # Errors
///
/// Fails as [`reserve_behind`] does.
pub fn reserve_behind_within(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    promised: impl IntoIterator<Item = RunId>,
    options: &Options,
    work: &Budget,
) -> Result<Planned, Box<Refused>> {
    booking.remove(request.run);
    let ends_ns = promised_ends_ns(booking.store(), promised, work);
    let request = request.without_deadline();
    booking.covered(&ends_ns, work, |booking| reserve_within(booking, &request, options, work))
}

/// Reserves what several runs need like [`reserve_behind`], one after the other. A run for which
/// there is no room keeps only the memory and the resources that it holds. Each run may take the
/// work of one question, whatever the others take. Counts the work of all in `work`.
pub fn place_behind(
    store: &mut Store,
    requests: &[Request<'_>],
    promised: impl IntoIterator<Item = RunId>,
    options: &Options,
    work: &Budget,
) {
    let ends_ns = promised_ends_ns(store, promised, work);
    let mut booking = store.book();
    for request in requests {
        give_up_time(&mut booking, request.run);
    }
    booking.covered(&ends_ns, work, |booking| {
        for request in requests {
            let mark = booking.mark();
            let of_run = Budget::new(options.max_work);
            let request = request.without_deadline();
            if reserve_within(booking, &request, options, &of_run).is_err() {
                booking.rollback(mark);
            }
            work.add(of_run.done());
        }
    });
    booking.commit();
}

/// Returns for each core the end of all that is reserved there for those runs.
fn promised_ends_ns(
    store: &Store,
    promised: impl IntoIterator<Item = RunId>,
    work: &Budget,
) -> Vec<u64> {
    let mut ends_ns = vec![0; store.sites().len()];
    for run in promised.into_iter().filter_map(|run| store.run(run)) {
        work.add(run.tasks.len() as u64);
        for task in &run.tasks {
            ends_ns[task.core] = task.end_ns.max(ends_ns[task.core]);
        }
    }
    ends_ns
}

/// Gives back the time of cores and links that is reserved for a run. The run keeps what its
/// processes hold.
fn give_up_time(booking: &mut Booking<'_>, run: RunId) {
    let reserved = booking.store().run(run).filter(|reserved| !reserved.tasks.is_empty());
    let Some(processes) = reserved.map(|reserved| reserved.processes.clone()) else {
        return;
    };
    // It was reserved before.
    let _ = booking.reserve(run, Run { processes, ..Run::default() });
}

#[cfg(test)]
mod tests;
