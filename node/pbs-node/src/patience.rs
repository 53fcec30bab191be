// SPDX-License-Identifier: GPL-2.0
//! Time for which the node waits until the programs of a user stand at the gate.
//!
//! A child opens files of its owner on its way to the gate, and its owner can make that last
//! for ever. The thread that waits for it has the whole node, and therefore waits for a short time
//! only: a run whose programs are not ready by then is started again later ([`Retries`]). Time that
//! was spent on a user is missing from the time that the user's next programs get, and returns
//! slowly: the time for each program, too. Other users are not concerned.
//!
//! [`Retries`]: crate::orders::Retries

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time for a user for whom nobody has waited lately.
const FULL: Duration = Duration::from_millis(500);
/// Time for any user, however long others have waited.
const LEAST: Duration = Duration::from_millis(100);
/// Time that each program adds: they are started one after the other.
const OF_PROGRAM: Duration = Duration::from_millis(5);
/// Part of that for which nobody can do anything: it is not counted, and always remains.
const OF_START: Duration = Duration::from_micros(500);
/// Time that can be missing at most.
const MOST_SPENT: Duration = Duration::from_secs(2);
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
        let full = FULL.saturating_add(of_each(OF_PROGRAM, programs));
        let least = LEAST.saturating_add(of_each(OF_START, programs));
        full.saturating_sub(self.spent(uid, now)).max(least)
    }

    /// The node has waited for so long for so many programs of a user.
    pub(crate) fn spend(&mut self, uid: u32, programs: usize, waited: Duration, now: Instant) {
        let waited = waited.saturating_sub(of_each(OF_START, programs));
        let spent = self.spent(uid, now).saturating_add(waited).min(MOST_SPENT);
        self.spent.retain(|_, known| !left(known, now).is_zero());
        self.spent.insert(uid, (spent, now));
    }

    fn spent(&self, uid: u32, now: Instant) -> Duration {
        self.spent.get(&uid).map_or(Duration::ZERO, |known| left(known, now))
    }
}

fn of_each(time: Duration, programs: usize) -> Duration {
    time.saturating_mul(u32::try_from(programs).unwrap_or(u32::MAX))
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
        patience.spend(1000, 0, FULL, begin);
        assert_eq!(patience.of(1000, 0, begin), LEAST);
        assert_eq!(patience.of(1001, 0, begin), FULL);
        // What lasts longer than it may is not missing for longer.
        for _ in 0..100 {
            patience.spend(1000, 0, FULL, begin);
        }
        let later = begin + Duration::from_secs(35);
        assert_eq!(patience.of(1000, 0, later), Duration::from_millis(250));
        let long_after = begin + Duration::from_secs(40);
        assert_eq!(patience.of(1000, 0, long_after), FULL);
        patience.spend(1001, 0, LEAST, long_after);
        assert_eq!(patience.spent.len(), 1);
    }

    /// Many programs have more time, which is spent as well if they are not ready in it. Programs
    /// that are ready at once spend nothing.
    #[test]
    fn the_time_of_many_programs_is_spent_too() {
        let mut patience = Patience::default();
        let begin = Instant::now();
        let first = patience.of(1000, 256, begin);
        assert_eq!(first, FULL + 256 * OF_PROGRAM);
        patience.spend(1000, 256, first, begin);
        assert_eq!(patience.of(1000, 256, begin), LEAST + 256 * OF_START);
        patience.spend(1001, 256, 256 * OF_START, begin);
        assert_eq!(patience.of(1001, 256, begin), first);
    }
}
