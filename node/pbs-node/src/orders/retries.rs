// SPDX-License-Identifier: GPL-2.0
//! Runs whose programs did not come to the gate in time, and are started again later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pbs_history::RunId;

/// Number of attempts to start a run whose programs are not ready in time.
const MOST_ATTEMPTS: u32 = 6;
/// Time from the first attempt to the second; each later one waits twice as long.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Failed attempts to start runs, and the time of the next one.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    runs: BTreeMap<RunId, (u32, Instant)>,
}

impl Retries {
    /// Notes that an attempt has failed. Whether another one follows.
    pub(crate) fn failed(&mut self, id: RunId, now: Instant) -> bool {
        let (attempts, next) = self.runs.entry(id).or_insert((0, now));
        *attempts += 1;
        *next = now + FIRST_DELAY * (1 << (*attempts - 1));
        let follows = *attempts < MOST_ATTEMPTS;
        if !follows {
            self.forget(id);
        }
        follows
    }

    /// Notes that a run is not started before a second has passed, which is no attempt.
    pub(crate) fn later(&mut self, id: RunId, now: Instant) {
        let (_, next) = self.runs.entry(id).or_insert((0, now));
        *next = now + FIRST_DELAY;
    }

    /// Forgets a run that has started, or is over.
    pub(crate) fn forget(&mut self, id: RunId) {
        self.runs.remove(&id);
    }

    /// Time of the next attempt to start a run, if that is still to come.
    pub(crate) fn next(&self, id: RunId, now: Instant) -> Option<Instant> {
        self.runs.get(&id).map(|&(_, next)| next).filter(|&next| next > now)
    }
}

#[cfg(test)]
impl Retries {
    /// Makes the next attempt due in so many seconds.
    pub(crate) fn put_off(&mut self, id: RunId, seconds: u64) {
        if let Some((_, next)) = self.runs.get_mut(&id) {
            *next = Instant::now() + Duration::from_secs(seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run has six attempts in 31 seconds.
    #[test]
    fn attempts_are_further_and_further_apart() {
        let (mut retries, begin) = (Retries::default(), Instant::now());
        let mut now = begin;
        for seconds in [1, 2, 4, 8, 16] {
            assert!(retries.failed(RunId(7), now));
            let next = retries.next(RunId(7), now).unwrap();
            assert_eq!(next - now, Duration::from_secs(seconds));
            assert_eq!(retries.next(RunId(7), next), None);
            assert_eq!(retries.next(RunId(8), now), None);
            now = next;
        }
        assert_eq!(now - begin, Duration::from_secs(31));
        assert!(!retries.failed(RunId(7), now));
        assert!(retries.runs.is_empty());
    }
}
