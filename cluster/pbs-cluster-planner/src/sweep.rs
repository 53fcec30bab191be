// SPDX-License-Identifier: GPL-2.0
//! Progress of backfilling through the planned requests.

use crate::types::Turn;

/// How far one has come in going through all that is planned. What becomes free meanwhile
/// is seen by those whose turn is still to come; for the others one goes through once more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sweep {
    /// Those that start from then on are looked at; `None`: nobody is.
    pub(crate) from_s: Option<u64>,
    /// The last that was looked at.
    pub(crate) last: Option<Turn>,
    /// The same for the next time.
    pub(crate) again_s: Option<u64>,
    /// How many times a better place was sought: Keller's backfills (6).
    pub(crate) decisions: u64,
}

impl Sweep {
    /// Something became free from a time on.
    pub(crate) fn add(&mut self, from_s: u64) {
        let least = |of: Option<u64>| Some(of.map_or(from_s, |of| of.min(from_s)));
        if self.from_s.is_some() && self.last.is_some() {
            self.again_s = least(self.again_s);
        }
        self.from_s = least(self.from_s);
    }
}
