// SPDX-License-Identifier: GPL-2.0
//! Admission: a job is validated and then reserved, or declined.

use super::{refuse, Rejection, Validation};
use crate::budget::Budget;
use crate::reserve::Request;
use crate::store::Store;
use crate::strategies::{reserve_within, Options, Planned, Refused};

/// Reason for which a job was declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declined {
    /// Planning the job was not worthwhile.
    Validation(Rejection),
    /// No plan was found.
    Reservation(Box<Refused>),
}

/// Validates a job that has not begun and reserves all that it needs.
///
/// # Errors
///
/// Why the job was declined; the store is as it was then.
pub fn admit(
    store: &mut Store,
    request: &Request<'_>,
    validation: &Validation,
    options: &Options,
) -> Result<Planned, Declined> {
    admit_within(store, request, validation, options, &Budget::new(options.max_work))
}

/// Like [`admit`], as a part of a question: with what is left of its work.
pub(crate) fn admit_within(
    store: &mut Store,
    request: &Request<'_>,
    validation: &Validation,
    options: &Options,
    work: &Budget,
) -> Result<Planned, Declined> {
    let mut booking = store.book();
    refuse(&mut booking, request, validation).map_err(Declined::Validation)?;
    let planned = reserve_within(&mut booking, request, options, work);
    let planned = planned.map_err(Declined::Reservation)?;
    booking.commit();
    Ok(planned)
}
