// SPDX-License-Identifier: GPL-2.0
//! Reservation: where and when the processes and tasks of a job run (Glaß 2024,
//! 5.1.4).
//!
//! The six requirements of the thesis, and where they are seen to:
//!
//! 1. Nothing ends after the deadline: every place is looked for before it.
//! 2. A child starts after the fork task, and
//! 3. a join task after the child's last: a task can be planned when all that
//!    it waits for is.
//! 4. A core runs one task at a time: it is free or not, by its profile.
//! 5. What has begun and whose end is not known holds its memory: see
//!    [`attempt`].
//! 6. All tasks of a process run on one core: only the first looks for one.
//!
//! The memory that counts is that which is held at the same time (7.1, item 4),
//! since a memory has a profile as a core does.

pub(crate) mod attempt;
pub(crate) mod choose;
mod confined;
pub(crate) mod net;
pub(crate) mod ready;
mod request;

pub use request::{Lack, Progress, Refusal, Request};

use crate::budget::Budget;
use crate::store::{Booking, Run};
use attempt::{Outcome, PlanningWay};
use net::Net;

/// Tries of one strategy: each knows better than the one before for how long
/// processes need their memory, and the last assumes the worst.
const TRIES: usize = 8;

/// Tries to reserve in one way all that a job needs: the run that says what that
/// would be. Nothing remains reserved. Ends when no `work` is left.
pub(crate) fn reserve(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    net: &Net,
    way: &PlanningWay,
    work: &Budget,
) -> Result<Run, Refusal> {
    let mark = booking.mark();
    let mut spans_ns = net.span_ns.clone();
    let mut tries = TRIES;
    loop {
        let outcome = attempt::attempt(booking, request, net, way, &spans_ns, work);
        booking.rollback(mark);
        match outcome {
            Outcome::Planned(run) => return Ok(run),
            Outcome::Longer { refusal, span_ns } if tries > 0 => {
                spans_ns[refusal.process] = spans_ns[refusal.process].max(span_ns);
            }
            Outcome::Longer { refusal, .. } | Outcome::Refused(refusal) => return Err(refusal),
        }
        tries -= 1;
        if tries == 0 {
            spans_ns.fill(u64::MAX);
        }
    }
}
