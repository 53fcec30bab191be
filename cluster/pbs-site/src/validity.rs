// SPDX-License-Identifier: GPL-2.0
//! Validity of rules and resources.

use std::ops::Range;

use crate::cron::{Cron, CronWindows};

/// Validity of a resource, a consumer, a limit or a pool (Keller, 3). Times are Unix seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// At all times.
    #[default]
    Always,
    /// Valid before that time.
    Until(u64),
    /// From the one time on and before the other; [`u64::MAX`]: without an end.
    Between(Range<u64>),
    /// Again and again.
    Cron(Cron),
}

impl Validity {
    /// The stretches within `over` in which it holds: in the order of time, as long as can
    /// be and so apart from each other, found one by one when they are asked for. Those
    /// that repeat end with the year 9999.
    pub fn windows(&self, over: Range<u64>) -> Windows<'_> {
        let once = |of: Range<u64>| {
            let both = of.start.max(over.start)..of.end.min(over.end);
            Windows(Inner::Once(Some(both).filter(|both| !both.is_empty())))
        };
        match self {
            Self::Always => once(0..u64::MAX),
            Self::Until(end) => once(0..*end),
            Self::Between(of) => once(of.clone()),
            Self::Cron(cron) => Windows(Inner::Cron(cron.windows(over))),
        }
    }

    /// Whether it holds at that time.
    pub fn holds_at(&self, time_s: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Until(end) => time_s < *end,
            Self::Between(of) => of.contains(&time_s),
            Self::Cron(cron) => cron.holds_at(time_s),
        }
    }
}

/// See [`Validity::windows`].
pub struct Windows<'a>(Inner<'a>);

enum Inner<'a> {
    Once(Option<Range<u64>>),
    Cron(CronWindows<'a>),
}

impl Iterator for Windows<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        match &mut self.0 {
            Inner::Once(window) => window.take(),
            Inner::Cron(windows) => windows.next(),
        }
    }
}
