// SPDX-License-Identifier: GPL-2.0
//! Repeating intervals, in local time.
//!
//! Keller makes a template of one period (an hour, a day or a week) and shifts it along
//! (cronToRUSV, 5.4). His own example of every other month (3) has no such period. Neither has
//! local time in a zone with daylight saving time. Therefore the intervals are derived day by day
//! from the calendar here, when they are needed.
//!
//! An interval refers to the wall clock: `cron 0 2 * * * +1h` holds whenever it is between 2 and 3.
//! On the day on which this hour is left out it never holds; on the day that has it twice it holds
//! for two hours.

mod calendar;
mod text;
mod windows;

use std::ops::Range;

use jiff::tz::TimeZone;
use jiff::Timestamp;

pub(crate) use windows::CronWindows;

pub(crate) const DAY_S: i64 = 86_400;

/// Stretches of one length that begin at times of the clock and the calendar, in a time
/// zone. See the module's text on days whose clock is changed.
///
/// It is written `cron MINUTE HOUR DAY MONTH WEEKDAY +LENGTH`: the first five as in
/// crontab(5), with lists, ranges, steps and names; `1#2` is the second Monday of a month.
/// Where both the day and the weekday are told, one of them is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    /// Bits 0 to 59.
    minutes: u64,
    /// Bits 0 to 23.
    hours: u64,
    /// Bits 1 to 31.
    days: u64,
    /// Bits 1 to 12.
    months: u64,
    /// Permitted weeks of a month for each weekday, from Sunday on: bits 1 to 5.
    weekdays: [u64; 7],
    /// Seconds of each stretch.
    length_s: i64,
    /// Time zone of the clock.
    zone: TimeZone,
    /// The stretches that begin on one day, in seconds since its midnight: in order, and
    /// apart from each other. They may end on a later day.
    of_day: Vec<Range<i64>>,
}

impl Cron {
    /// Whether it holds at that Unix second.
    pub fn holds_at(&self, time_s: u64) -> bool {
        let Some(timestamp) = timestamp(time_s) else {
            return false;
        };
        let local_s = timestamp.as_second() + offset_s(&self.zone, timestamp);
        let last = local_s.div_euclid(DAY_S);
        (self.first_day(local_s)..=last).any(|day| {
            let second = local_s - day * DAY_S;
            self.has_day(day) && self.of_day.iter().any(|of| of.contains(&second))
        })
    }

    /// Returns the length of each interval, in seconds.
    pub fn length_s(&self) -> u64 {
        self.length_s.unsigned_abs()
    }

    /// Keller's period (5.4), an hour, a day or a week, in seconds; `None` if it depends
    /// on the month. In local time it repeats so between two changes of the clock.
    pub fn period_s(&self) -> Option<u64> {
        let is_all = |set: u64, of: Range<u64>| of.into_iter().all(|bit| set & (1 << bit) != 0);
        let weeks = self.weekdays.iter();
        let whole_weeks = weeks.clone().all(|&weeks| weeks == 0 || is_all(weeks, 1..6));
        if !is_all(self.months, 1..13) || !whole_weeks {
            return None;
        }
        let any_day = is_all(self.days, 1..32);
        let any_weekday = weeks.clone().all(|&weeks| weeks != 0);
        match (any_day, any_weekday) {
            (true, true) if is_all(self.hours, 0..24) => Some(3600),
            (true, true) => Some(DAY_S.unsigned_abs()),
            (true, false) => Some(7 * DAY_S.unsigned_abs()),
            (false, _) => None,
        }
    }

    /// The first day on which a stretch can begin that has not ended by then.
    fn first_day(&self, local_s: i64) -> i64 {
        let longest = self.of_day.last().map_or(0, |of| of.end);
        (local_s - longest).div_euclid(DAY_S)
    }

    /// Whether stretches begin on a day, counted from 1970-01-01.
    fn has_day(&self, day: i64) -> bool {
        let (month, of_month) = calendar::month_and_day(day);
        let of_week = calendar::weekday(day);
        let week = (of_month - 1) / 7 + 1;
        let is_day = self.days & (1 << of_month) != 0;
        let is_weekday = self.weekdays[of_week] & (1 << week) != 0;
        let all_days = self.days == text::DAYS.all();
        let all_weekdays = self.weekdays == text::ALL_WEEKDAYS;
        let is_either = match (all_days, all_weekdays) {
            (true, _) => is_weekday,
            (_, true) => is_day,
            _ => is_day || is_weekday,
        };
        self.months & (1 << month) != 0 && is_either
    }
}

/// The last second that is reckoned with: some day in the year 9999.
fn last_s() -> i64 {
    Timestamp::MAX.as_second() - 2 * DAY_S
}

fn timestamp(time_s: u64) -> Option<Timestamp> {
    let time_s = i64::try_from(time_s).ok()?;
    let time_s = Some(time_s).filter(|&time_s| time_s <= last_s())?;
    Timestamp::from_second(time_s).ok()
}

/// Returns the offset of local time from UTC.
fn offset_s(zone: &TimeZone, timestamp: Timestamp) -> i64 {
    zone.to_offset(timestamp).seconds().into()
}
