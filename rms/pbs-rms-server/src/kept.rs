// SPDX-License-Identifier: GPL-2.0
//! Time for which the requests of a session keep the same nodes, one after the other.

use pbs_rms::{Relation, Request, RequestId, Session};

/// Time for which nodes are kept before a request has them and after it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) before_ns: u64,
    pub(crate) after_ns: u64,
}

impl Kept {
    pub(crate) fn sum_ns(self) -> u64 {
        self.before_ns.saturating_add(self.after_ns)
    }
}

/// Returns the time for which others keep the nodes of a request.
pub(crate) fn kept_around(session: &Session, of: RequestId) -> Kept {
    let Some(request) = session.requests.iter().find(|request| request.id == of) else {
        // A request that is not there is refused for that.
        return Kept::default();
    };
    Kept { before_ns: before_ns(session, request), after_ns: after_ns(session, of) }
}

/// Returns the time for which a new successor's nodes are kept before it.
pub(crate) fn kept_before_next(session: &Session, of: RequestId) -> u64 {
    let request = session.requests.iter().find(|request| request.id == of);
    request.map_or(0, |request| before_ns(session, request).saturating_add(request.ask.duration_ns))
}

fn before_ns(session: &Session, request: &Request) -> u64 {
    let mut at = request;
    let mut before_ns = 0_u64;
    // A request depends only on older ones, therefore this ends.
    while let Relation::Next(before) = at.ask.relation {
        let older = session.requests.iter().find(|request| request.id == before);
        // Of those that have ended, the time is in the request itself.
        let Some(older) = older.filter(|_| at.started_ns.is_none()) else {
            break;
        };
        before_ns = before_ns.saturating_add(older.ask.duration_ns);
        at = older;
    }
    before_ns.saturating_add(at.kept_ns)
}

fn after_ns(session: &Session, of: RequestId) -> u64 {
    let (mut last, mut after_ns) = (of, 0_u64);
    // Successors are younger, and a request has at most one.
    for request in &session.requests {
        if request.ask.relation == Relation::Next(last) && request.started_ns.is_none() {
            last = request.id;
            after_ns = after_ns.saturating_add(request.ask.duration_ns);
        }
    }
    after_ns
}
