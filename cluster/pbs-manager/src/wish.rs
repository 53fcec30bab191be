// SPDX-License-Identifier: GPL-2.0
//! What is asked, and by whom.

use std::ops::RangeInclusive;

use crate::ledger::After;
use pbs_cluster_planner::{RequestId, When};
use pbs_resources::Rset;

/// Who asks. Who it is comes from the socket or from who may write the file, never from
/// the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user's name.
    pub user: String,
    /// Whether it may do what operators do.
    pub is_operator: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Resources and place.
    pub rset: Rset,
    /// How long at most; 0: what the site takes for it.
    pub duration_s: u64,
    /// When.
    pub when: When,
    /// Whose it is to be.
    pub user: String,
    /// On whose account.
    pub group: String,
    /// What it is called.
    pub name: String,
    /// What is started, with its arguments.
    pub command: Vec<String>,
    /// How long it really runs, where that is simulated; as long as it may otherwise.
    pub run_s: Option<u64>,
    /// So long before its end at the latest its user is told (Keller, 5.4).
    pub notify_s: Option<u64>,
    /// Whether it may be started again where its node fails (Keller, 5).
    pub is_restartable: bool,
    /// One request for each number.
    pub array: Option<RangeInclusive<u64>>,
    /// In that reservation.
    pub within: Option<RequestId>,
    /// What has to be over before it starts, and how.
    pub after: Vec<After>,
}

impl Wish {
    /// Best effort of a user, for as long as the site takes for it.
    pub fn new(rset: Rset, user: &str, group: &str) -> Self {
        Self {
            rset,
            duration_s: 0,
            when: When::BestEffort,
            user: user.into(),
            group: group.into(),
            name: String::new(),
            command: Vec::new(),
            run_s: None,
            notify_s: None,
            is_restartable: false,
            array: None,
            within: None,
            after: Vec::new(),
        }
    }
}

/// What is to be different; `None`: as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Resources and place.
    pub rset: Option<Rset>,
    /// How long at most.
    pub duration_s: Option<u64>,
    /// When.
    pub when: Option<When>,
}
