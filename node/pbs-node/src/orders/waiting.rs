// SPDX-License-Identifier: GPL-2.0
//! An order that waits.

use pbs_history::{Kind, RunId};

use crate::admitting::Decision;
use crate::candidate::Candidate;
use crate::clock::unix_ns;
use crate::orders::{Ending, Noted, Order};

/// An order that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: RunId,
    pub(crate) order: Order,
    pub(crate) submitted_ns: u64,
    pub(crate) submitted_unix_ns: u64,
    /// Reason for which the last attempt to start it failed.
    pub(crate) not_started: Option<String>,
    /// Decision of a command that admits jobs; `None`: there is none yet.
    pub(crate) decision: Option<Decision>,
}

impl Waiting {
    pub(crate) fn candidate(&self, now_ns: u64) -> Candidate {
        // What was submitted before the boot has had some of its time before.
        let ago_ns = unix_ns().saturating_sub(self.submitted_unix_ns);
        let before_ns = match self.submitted_ns {
            0 => ago_ns.saturating_sub(now_ns),
            _ => 0,
        };
        Candidate {
            submission: self.order.submission.clone().waited(before_ns),
            id: Some(self.id),
            submitted_ns: self.submitted_ns,
            terms: Some(self.order.terms.clone()),
            kind: Kind::Plan,
        }
    }

    /// Reason for which a command has declined the job.
    pub(crate) fn declined(&self) -> Option<&str> {
        match &self.decision {
            Some(Decision::Declined(why)) => Some(why),
            _ => None,
        }
    }

    pub(crate) fn noted(&self) -> Noted {
        Noted { terms: self.order.terms.clone(), ending: Ending::default() }
    }

    /// Returns the deadline, since 1970.
    pub(crate) fn deadline_unix_ns(&self) -> u64 {
        let deadline_ns = self.order.submission.job.deadline_ns;
        self.submitted_unix_ns.saturating_add(deadline_ns)
    }
}
