// SPDX-License-Identifier: GPL-2.0
//! Progress of backfilling through the planned requests.

use crate::types::Turn;

/// Progress of a pass over all planned requests. Room that becomes free during the pass is offered
/// to the requests whose turn is still to come. Another pass follows for the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sweep {
    /// Start time from which requests are considered; `None`: there is no pass.
    pub(crate) from_s: Option<u64>,
    /// Start and turn of the last that was looked at.
    pub(crate) last: Option<(u64, Turn)>,
    /// Start time from which the next pass considers requests.
    pub(crate) again_s: Option<u64>,
    /// Number of passes that have ended.
    pub(crate) passes: u64,
    /// Number of searches for a better place: Keller's backfills (6).
    pub(crate) decisions: u64,
}

impl Sweep {
    /// Records that something became free from a time on.
    pub(crate) fn add(&mut self, from_s: u64) {
        let least = |of: Option<u64>| Some(of.map_or(from_s, |of| of.min(from_s)));
        if self.from_s.is_some() && self.last.is_some() {
            self.again_s = least(self.again_s);
        }
        self.from_s = least(self.from_s);
    }

    /// Records that something became free from a time on. Two passes follow, since what moves in the
    /// first leaves room to requests whose turn was before.
    pub(crate) fn add_twice(&mut self, from_s: u64) {
        self.add(from_s);
        self.again_s = Some(self.again_s.map_or(from_s, |of| of.min(from_s)));
    }
}
