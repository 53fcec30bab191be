// SPDX-License-Identifier: GPL-2.0
//! Places behind what is promised, for work without a promise.

use std::ops::Range;

use crate::reserve::Request;
use crate::store::{Booking, RunId};
use crate::strategies::{reserve_in, Options, Planned, Refused};

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
    booking.remove(request.run);
    let store = booking.store();
    let mut ends_ns = vec![0; store.sites().len()];
    let runs = promised.into_iter().filter_map(|run| store.run(run));
    for task in runs.flat_map(|run| &run.tasks) {
        ends_ns[task.core] = task.end_ns.max(ends_ns[task.core]);
    }
    let from_ns = request.start_ns.max(store.now_ns());
    let mut between: Vec<(usize, Range<u64>)> = Vec::new();
    for (core, end_ns) in ends_ns.into_iter().enumerate() {
        let free = store.free_slots(core, 1, from_ns..end_ns.max(from_ns));
        between.extend(free.map(|over| (core, over)));
    }
    for (core, over) in &between {
        // It is free.
        let _ = booking.take_core(*core, over.clone());
    }
    let planned = reserve_in(booking, &request.without_deadline(), options);
    for (core, over) in between {
        // The core was taken above.
        let _ = booking.give_core(core, over);
    }
    planned
}
