// SPDX-License-Identifier: GPL-2.0
//! The stretches of a cron string, one after the other.
//!
//! The clock on the wall goes as fast as time itself between two changes of the clock. So
//! time is cut at these changes, and in each piece the stretches of the clock are shifted
//! by how far it is ahead there.

use std::ops::Range;

use jiff::Timestamp;

use super::{last_s, offset_s, Cron, DAY_S};

/// See [`Validity::windows`](crate::Validity::windows).
pub(crate) struct CronWindows<'a> {
    cron: &'a Cron,
    /// Ends of time, in Unix seconds.
    over: Range<i64>,
    /// Offset of the clock in the current piece of time.
    offset_s: i64,
    /// The piece, in Unix seconds.
    piece: Range<i64>,
    /// Intervals of the piece, in clock time.
    of_clock: ClockWindows<'a>,
    /// Interval that the next one may still extend.
    open: Option<Range<u64>>,
}

impl Cron {
    /// Returns the intervals within `over`, each as long as possible.
    pub(crate) fn windows(&self, over: Range<u64>) -> CronWindows<'_> {
        let bound =
            |time_s| i64::try_from(time_s).map_or(last_s(), |time_s: i64| time_s.min(last_s()));
        let over = bound(over.start)..bound(over.end);
        let mut windows = CronWindows {
            cron: self,
            offset_s: 0,
            piece: over.start..over.start,
            of_clock: ClockWindows::new(self, 0..0),
            over,
            open: None,
        };
        windows.next_piece();
        windows
    }
}

impl CronWindows<'_> {
    /// Advances to the piece of time up to the next change of the clock.
    fn next_piece(&mut self) {
        let start = self.piece.end;
        let mut end = self.over.end;
        if let Ok(timestamp) = Timestamp::from_second(start) {
            self.offset_s = offset_s(&self.cron.zone, timestamp);
            if let Some(change) = self.cron.zone.following(timestamp).next() {
                // Never back, whatever the rules of the zone say.
                end = end.min(change.timestamp().as_second().max(start + 1));
            }
        }
        self.piece = start..end;
        let clock = start + self.offset_s..end + self.offset_s;
        self.of_clock = ClockWindows::new(self.cron, clock);
    }

    /// The next one, which may touch the one before.
    fn next_part(&mut self) -> Option<Range<u64>> {
        loop {
            if let Some(part) = self.of_clock.next() {
                let time = |clock_s: i64| u64::try_from(clock_s - self.offset_s).unwrap_or(0);
                return Some(time(part.start)..time(part.end));
            }
            if self.piece.end >= self.over.end {
                return None;
            }
            self.next_piece();
        }
    }
}

impl Iterator for CronWindows<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        while let Some(part) = self.next_part() {
            match &mut self.open {
                Some(open) if part.start <= open.end => open.end = open.end.max(part.end),
                open => {
                    if let Some(window) = open.replace(part) {
                        return Some(window);
                    }
                }
            }
        }
        self.open.take()
    }
}

/// Intervals of a clock that is never changed, in seconds since it showed 1970-01-01. They are in
/// the order of their start, and may overlap.
struct ClockWindows<'a> {
    cron: &'a Cron,
    over: Range<i64>,
    day: i64,
    /// Index of the next interval of the day.
    next: usize,
}

impl<'a> ClockWindows<'a> {
    fn new(cron: &'a Cron, over: Range<i64>) -> Self {
        Self { cron, day: cron.first_day(over.start), over, next: 0 }
    }
}

impl Iterator for ClockWindows<'_> {
    type Item = Range<i64>;

    fn next(&mut self) -> Option<Range<i64>> {
        while self.day * DAY_S < self.over.end {
            let has_day = self.next > 0 || self.cron.has_day(self.day);
            let of_day = self.cron.of_day.get(self.next).filter(|_| has_day);
            let Some(of_day) = of_day else {
                self.day += 1;
                self.next = 0;
                continue;
            };
            self.next += 1;
            let midnight = self.day * DAY_S;
            let start = (midnight + of_day.start).max(self.over.start);
            let end = (midnight + of_day.end).min(self.over.end);
            if start < end {
                return Some(start..end);
            }
        }
        None
    }
}
