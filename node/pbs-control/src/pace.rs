// SPDX-License-Identifier: GPL-2.0
//! Minimum time between a plan and the next one.

/// The time that must lie between plans.
///
/// The node damps what it signals by stress (Leppert 2021, 3.3.6), but several
/// processes may fail at once, and a planner that is always busy planning would
/// keep the node from following any plan. Plans that follow each other at the
/// least distance double it; a time without one brings it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    least_ns: u64,
    most_ns: u64,
    distance_ns: u64,
    last_ns: Option<u64>,
}

impl Pace {
    /// Plans are at least so long apart; when they follow each other for long,
    /// up to `most_ns`.
    pub fn new(least_ns: u64, most_ns: u64) -> Self {
        Self { least_ns, most_ns: most_ns.max(least_ns), distance_ns: least_ns, last_ns: None }
    }

    /// Returns the earliest time at which the next plan may be made.
    pub fn next_ns(&self) -> u64 {
        let next = self.last_ns.map(|last_ns| last_ns.saturating_add(self.distance_ns));
        next.unwrap_or(0)
    }

    /// A plan was made.
    pub fn made(&mut self, now_ns: u64) {
        let quiet = self.last_ns.is_none_or(|last_ns| {
            now_ns.saturating_sub(last_ns) >= self.distance_ns.saturating_mul(2)
        });
        self.distance_ns = if quiet {
            self.least_ns
        } else {
            self.distance_ns.saturating_mul(2).min(self.most_ns)
        };
        self.last_ns = Some(now_ns);
    }
}

impl Default for Pace {
    /// A window of the default configuration apart, at the most one second.
    fn default() -> Self {
        Self::new(100_000_000, 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn plans_in_a_row_come_ever_more_slowly() {
        let mut pace = Pace::new(10, 35);
        assert_eq!(pace.next_ns(), 0);
        pace.made(100);
        assert_eq!(pace.next_ns(), 110);
        pace.made(110);
        assert_eq!(pace.next_ns(), 130);
        pace.made(130);
        assert_eq!(pace.next_ns(), 165);
        pace.made(165);
        assert_eq!(pace.next_ns(), 200);
        // And after a while without one as at first.
        pace.made(300);
        assert_eq!(pace.next_ns(), 310);
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let mut pace = Pace::new(u64::MAX, 1);
        pace.made(7);
        assert_eq!(pace.next_ns(), u64::MAX);
        pace.made(u64::MAX);
        assert_eq!(pace.next_ns(), u64::MAX);
    }
}
