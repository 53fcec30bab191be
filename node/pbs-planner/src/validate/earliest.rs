// SPDX-License-Identifier: GPL-2.0
//! The earliest deadline with which a declined job would be accepted.

use super::{general, mapping, memory_time, refuse, Question, Validation};
use crate::budget::Budget;
use crate::reserve::Request;
use crate::store::{Booking, Store};
use crate::strategies::{reserve_within, Aim, Options};

/// Maximum number of deadlines that are tried.
pub const MOST_TRIES: usize = 24;

/// The earliest deadline with which a job would be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarliestDeadline {
    /// The deadline; `None`: none was found.
    pub deadline_ns: Option<u64>,
    /// Whether the search ended before it was through ([`Options::max_work`]): there may be an
    /// earlier one, or one at all.
    pub is_cut: bool,
}

/// The earliest deadline with which [`admit`](super::admit) would accept the
/// job; none if it would not with any.
///
/// With the deadline that is returned the job was validated and planned, so it
/// is accepted as long as the store is as it is. It is not later than the end of
/// the best plan that is found without one. That no earlier one would do
/// is certain only where validation forbids all earlier ones. Otherwise the
/// search halves the time between a deadline that was declined and one that was
/// accepted, [`MOST_TRIES`] times at most; as plans are found by rules of thumb,
/// an earlier deadline could be accepted by chance. No try begins once all together have done the
/// work of one question, but a try may do as much as an admission: so the job is admitted with the
/// deadline.
pub fn earliest_deadline(
    store: &mut Store,
    request: &Request<'_>,
    validation: &Validation,
    options: &Options,
) -> EarliestDeadline {
    let work = Budget::new(options.max_work);
    let deadline_ns = find(store, request, validation, options, options.max_work, &work);
    EarliestDeadline { deadline_ns, is_cut: work.is_cut() }
}

/// The earliest deadline with which [`admit_within`](super::admit_within) would accept the job with
/// so much work, `each`.
pub(crate) fn find(
    store: &mut Store,
    request: &Request<'_>,
    validation: &Validation,
    options: &Options,
    each: u64,
    work: &Budget,
) -> Option<u64> {
    let tick_ns = store.machine().tick_ns.max(1);
    let mut search = Search {
        booking: store.book(),
        request: *request,
        validation,
        // Whether there is a plan is all that matters.
        options: Options { aim: Aim::Deadline, ..options.clone() },
        each,
        work,
    };
    search.booking.remove(request.run);
    let mut declined_ns = search.earliest_valid_ns()?;
    let mut accepted_ns = search.earliest_accepted_ns(declined_ns)?;
    if accepted_ns == declined_ns || !search.is_spent() && search.accepts(declined_ns) {
        return Some(declined_ns);
    }
    for _ in 0..MOST_TRIES {
        // Plans end at ticks.
        let middle_ns = declined_ns + (accepted_ns - declined_ns) / 2;
        let middle_ns = middle_ns / tick_ns * tick_ns;
        if middle_ns <= declined_ns || search.is_spent() {
            break;
        }
        if search.accepts(middle_ns) {
            accepted_ns = middle_ns;
        } else {
            declined_ns = middle_ns;
        }
    }
    Some(accepted_ns)
}

/// Deadlines after the end of a plan that are tried at least, whatever work that takes: mostly the
/// first is accepted.
const LEAST_TRIES: usize = 2;

struct Search<'a, 's> {
    booking: Booking<'s>,
    request: Request<'a>,
    validation: &'a Validation,
    options: Options,
    /// Steps of work of one admission.
    each: u64,
    work: &'a Budget,
}

impl Search<'_, '_> {
    /// The earliest deadline that validation accepts: what each level asks for
    /// grows weaker with the deadline.
    fn earliest_valid_ns(&mut self) -> Option<u64> {
        let unlimited = self.request.without_deadline();
        let store = self.booking.store();
        let question = Question::new(&unlimited, store, self.validation);
        // A request that this level refuses has no valid deadline.
        general::check(&question, store).ok()?;
        let general_ns = general::earliest_end_ns(&question, store);
        if !self.validation.estimates_refuse {
            return Some(general_ns);
        }
        let memory_ns = self.earliest_memory_ns(&question, general_ns)?;
        // A request that this level refuses has no valid deadline.
        let mapping_ns = mapping::earliest_end_ns(&question, &mut self.booking).ok()?;
        Some(memory_ns.max(mapping_ns))
    }

    /// The earliest deadline from `least_ns` on that leaves memory enough for
    /// as long as the job wants it.
    fn earliest_memory_ns(&self, question: &Question<'_>, least_ns: u64) -> Option<u64> {
        let is_enough =
            |deadline_ns| memory_time::is_enough(question, self.booking.store(), deadline_ns);
        let (mut too_early_ns, mut enough_ns) = (least_ns, least_ns);
        let mut step_ns = 1u64;
        while !is_enough(enough_ns) {
            too_early_ns = enough_ns;
            enough_ns = enough_ns.checked_add(step_ns)?;
            step_ns = step_ns.saturating_mul(2);
        }
        while enough_ns - too_early_ns > 1 {
            let middle_ns = too_early_ns + (enough_ns - too_early_ns) / 2;
            if is_enough(middle_ns) {
                enough_ns = middle_ns;
            } else {
                too_early_ns = middle_ns;
            }
        }
        Some(enough_ns)
    }

    /// A deadline that is accepted and is not before `least_ns`: the end of a
    /// plan that needs to keep none, or a later one.
    fn earliest_accepted_ns(&mut self, least_ns: u64) -> Option<u64> {
        let mark = self.booking.mark();
        let unlimited = self.request.without_deadline();
        let best = Options { aim: Aim::Best, ..self.options.clone() };
        let work = Budget::new(self.each);
        let planned = reserve_within(&mut self.booking, &unlimited, &best, &work);
        self.note(&work);
        self.booking.rollback(mark);
        let planned = planned.ok()?;
        let mut deadline_ns = planned.end_ns.max(least_ns);
        for tried in 0..MOST_TRIES {
            if tried >= LEAST_TRIES && self.is_spent() {
                break;
            }
            if self.accepts(deadline_ns) {
                return Some(deadline_ns);
            }
            // A process whose end is not known holds memory until the deadline.
            let length_ns = deadline_ns.saturating_sub(planned.start_ns).max(1);
            deadline_ns = deadline_ns.checked_add(length_ns)?;
        }
        None
    }

    fn accepts(&mut self, deadline_ns: u64) -> bool {
        let request = Request { deadline_ns, ..self.request };
        let mark = self.booking.mark();
        // As much as for an admission: with less, another plan may be found.
        let work = Budget::new(self.each);
        let accepted = refuse(&mut self.booking, &request, self.validation).is_ok()
            && reserve_within(&mut self.booking, &request, &self.options, &work).is_ok();
        self.note(&work);
        self.booking.rollback(mark);
        accepted
    }

    /// Adds the work of a try.
    fn note(&self, of_try: &Budget) {
        self.work.add(of_try.done());
        if of_try.is_cut() {
            self.work.cut();
        }
    }

    /// Whether no further deadline is tried; this is noted then.
    fn is_spent(&self) -> bool {
        if self.work.is_spent() {
            self.work.cut();
        }
        self.work.is_spent()
    }
}
