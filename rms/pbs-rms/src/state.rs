// SPDX-License-Identifier: GPL-2.0
//! State that must be stored for recovery after a crash.

use std::collections::BTreeSet;
use std::fmt;

use pbs_profile::view::Steps;
use serde::{Deserialize, Serialize};

use crate::overstay::Overstay;
use crate::rms::rebook;
use crate::session::{Booked, LastView};
use crate::{AppId, Kind, Policy, Rms, Session};

/// State that does not follow from sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of nodes of each cluster.
    pub sizes: Vec<u32>,
    /// The number of the next session.
    pub next_app: u64,
    /// The number of the next request.
    pub next_request: u64,
}

/// Reason for which stored sessions can't be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The clusters are others.
    Sizes {
        /// Former sizes of the clusters.
        were: Vec<u32>,
    },
    /// Two requests have the same node, or more is booked than there is.
    Contradiction(AppId),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sizes { were } => write!(
                f,
                "the stored sessions belong to clusters of {were:?} nodes; start with these, or \
                 without the file of --keep"
            ),
            Self::Contradiction(AppId(app)) => write!(
                f,
                "session {app} of the file has nodes of others, or nodes that do not exist; start \
                 without the file of --keep"
            ),
        }
    }
}

impl std::error::Error for Unusable {}

impl Rms {
    /// Returns the state that does not follow from sessions.
    pub fn counters(&self) -> Counters {
        Counters {
            sizes: self.sizes.clone(),
            next_app: self.next_app,
            next_request: self.next_request,
        }
    }

    /// The sessions that have changed, come or gone since this was called last.
    pub fn take_changed(&mut self) -> BTreeSet<AppId> {
        std::mem::take(&mut self.changed)
    }

    /// Continues with stored sessions. The next pass sends all applications everything anew.
    pub fn restore(
        policy: Policy,
        counters: Counters,
        sessions: impl IntoIterator<Item = (AppId, Session)>,
        now_ns: u64,
    ) -> Result<Self, Unusable> {
        let clusters = counters.sizes.len();
        let mut rms = Self::new(policy, &counters.sizes, now_ns);
        rms.next_app = counters.next_app;
        rms.next_request = counters.next_request;
        for (app, mut session) in sessions {
            let wrong = || Unusable::Contradiction(app);
            for request in &session.requests {
                let pool = rms.pools.get_mut(request.ask.cluster).ok_or_else(wrong)?;
                if request.ask.kind == Kind::PreAllocation && !request.nodes.is_empty() {
                    return Err(wrong());
                }
                for &node in &request.nodes {
                    if !pool.take_one(node) {
                        return Err(wrong());
                    }
                }
            }
            // Nobody could give back anything while there was no manager.
            session.overstays = vec![Overstay::default(); clusters];
            session.planned = vec![Steps::default(); clusters];
            session.told = vec![LastView::default(); clusters];
            session.booked = session.book(clusters);
            let none = vec![Booked::default(); clusters];
            rebook(&mut rms.profiles, &none, &session.booked, now_ns).map_err(|_| wrong())?;
            rms.next_app = rms.next_app.max(app.0 + 1);
            let last = session.requests.last().map_or(0, |request| request.id.0);
            rms.next_request = rms.next_request.max(last + 1);
            if !rms.sessions.insert(app, session) {
                return Err(wrong());
            }
        }
        rms.is_due = true;
        Ok(rms)
    }
}
