// SPDX-License-Identifier: GPL-2.0
//! Time for which the node waits until the programs of a user stand at the gate.
//!
//! A child opens files of its owner on its way to the gate, and its owner can make that last
//! for ever. The thread that waits for it has the whole node. Time that was spent on a user is
//! therefore missing from the time that the user's next programs get, and returns slowly.
//! Other users are not concerned.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time for a user for whom nobody has waited lately.
const FULL: Duration = Duration::from_secs(5);
/// Time for any user, however long others have waited.
const LEAST: Duration = Duration::from_millis(200);
/// Time that each program adds: they are started one after the other.
const OF_PROGRAM: Duration = Duration::from_millis(20);
/// Share of the time that passes, after which spent time is given back.
const RETURNS: u32 = 20;

/// Time that was spent on users, and the moment up to which it was counted.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    spent: BTreeMap<u32, (Duration, Instant)>,
}

impl Patience {
    /// Returns the time that so many programs of a user get.
    pub(crate) fn of(&self, uid: u32, programs: usize, now: Instant) -> Duration {
        let programs = u32::try_from(programs).unwrap_or(u32::MAX);
        let more = OF_PROGRAM.saturating_mul(programs);
        FULL.saturating_sub(self.spent(uid, now)).max(LEAST).saturating_add(more)
    }

    /// The node has waited for so long for programs of a user.
    pub(crate) fn spend(&mut self, uid: u32, waited: Duration, now: Instant) {
        let spent = self.spent(uid, now).saturating_add(waited).min(FULL);
        self.spent.retain(|_, known| !left(known, now).is_zero());
        self.spent.insert(uid, (spent, now));
    }

    fn spent(&self, uid: u32, now: Instant) -> Duration {
        self.spent.get(&uid).map_or(Duration::ZERO, |known| left(known, now))
    }
}

/// Returns the part of spent time that was not given back by now.
fn left((spent, at): &(Duration, Instant), now: Instant) -> Duration {
    spent.saturating_sub(now.saturating_duration_since(*at) / RETURNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user whose programs never become ready does not keep the node busy, and regains the
    /// time later. Others have all of it meanwhile.
    #[test]
    fn patience_is_spent_by_user_and_returns() {
        let mut patience = Patience::default();
        let begin = Instant::now();
        assert_eq!(patience.of(1000, 0, begin), FULL);
        assert_eq!(patience.of(1000, 3, begin), FULL + 3 * OF_PROGRAM);
        patience.spend(1000, FULL, begin);
        assert_eq!(patience.of(1000, 0, begin), LEAST);
        assert_eq!(patience.of(1001, 0, begin), FULL);
        // What lasts longer than it may is not missing for longer.
        for _ in 0..100 {
            patience.spend(1000, FULL, begin);
        }
        let later = begin + Duration::from_secs(50);
        assert_eq!(patience.of(1000, 0, later), Duration::from_millis(2500));
        let long_after = begin + Duration::from_secs(100);
        assert_eq!(patience.of(1000, 0, long_after), FULL);
        patience.spend(1001, LEAST, long_after);
        assert_eq!(patience.spent.len(), 1);
    }
}
