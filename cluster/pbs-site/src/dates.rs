// SPDX-License-Identifier: GPL-2.0
//! Parser and display of validities and times.
//!
//! ```text
//! validity = "always" | until time | time "/" time | time "/" | cron
//! until    = ["until"]
//! time     = day ["T" hour [offset]] | "@" seconds
//! ```
//!
//! A day is `2017-08-31`, an hour `18:00` or `18:00:30`. Both are local unless an offset from UTC
//! follows, `+02:00` or `Z`. A blank may replace the `T`. The older form of a day, `31.08.17` or
//! `31.08.2017`, is read too; `-` then separates the two ends of an interval.
//!
//! A validity that ends with a day includes that day. A validity that ends at an hour excludes
//! that time.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};
use pbs_resources::Error;

use crate::{Cron, Validity};

/// Remedy for a validity that can't be read.
const VALIDITIES: &str =
    "write always, until 2017-08-31, 2017-08-01/2017-08-31 or cron 0 7 * * 1,5 +4h; a time of day \
     may follow a date: 2017-08-31T18:00";

/// Remedy for a time that can't be read.
const TIMES: &str = "write 2017-08-31, 2017-08-31T18:00, 2017-08-31T18:00+02:00 or @1504224000";

/// End of an interval that a time denotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

impl Validity {
    /// Reads `always`, `until 2017-08-31`, `2017-08-01/2017-08-31`, `2017-08-01/` or a cron
    /// string ([`Cron`]), with the clock and calendar of `zone`. The last day is part of the
    /// validity. A time of day may follow a date, and `@` with Unix seconds may stand for both.
    /// Dates may have the older form `31.08.17`.
    ///
    /// # Errors
    ///
    /// The text is something else, has no such day, ends before it begins, or is before
    /// 1970.
    ///
    /// ```
    /// use pbs_site::Validity;
    ///
    /// let utc = jiff::tz::TimeZone::UTC;
    /// let august = Validity::parse("2017-08-01/2017-08-31", &utc)?;
    /// assert_eq!(august, Validity::Between(1_501_545_600..1_504_224_000));
    /// assert_eq!(august.to_text(&utc), "2017-08-01/2017-08-31");
    /// # Ok::<(), pbs_resources::Error>(())
    /// ```
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, Error> {
        let trimmed = text.trim();
        let before = text.chars().count() - text.trim_start().chars().count();
        if trimmed == "always" {
            return Ok(Self::Always);
        }
        if trimmed.starts_with("cron") {
            return Cron::parse(text, zone).map(Self::Cron);
        }
        let time_s =
            |text: &str, end: End, column: usize| time_s(text, end, zone, column, VALIDITIES);
        if let Some(end) = trimmed.strip_prefix("until ") {
            return time_s(end, End::Last, before + 7).map(Self::Until);
        }
        let Some((first, last)) = ends(trimmed) else {
            return time_s(trimmed, End::Last, before + 1).map(Self::Until);
        };
        let behind = before + first.chars().count() + 2;
        if first.trim().is_empty() {
            return time_s(last, End::Last, behind).map(Self::Until);
        }
        let start_s = time_s(first, End::First, before + 1)?;
        let end_s = match last.trim() {
            "" => u64::MAX,
            _ => time_s(last, End::Last, behind)?,
        };
        if start_s < end_s {
            return Ok(Self::Between(start_s..end_s));
        }
        let message = "it ends before it begins; exchange the two dates".into();
        Err(Error { column: before + 1, message })
    }

    /// The validity as [`Validity::parse`] reads it in the same zone.
    pub fn to_text(&self, zone: &TimeZone) -> String {
        match self {
            Self::Always => "always".into(),
            Self::Until(end) => format!("until {}", written(*end, End::Last, zone)),
            Self::Between(of) => {
                let start = written(of.start, End::First, zone);
                let end = match of.end {
                    u64::MAX => String::new(),
                    end => written(end, End::Last, zone),
                };
                format!("{start}/{end}")
            }
            Self::Cron(cron) => cron.to_string(),
        }
    }
}

/// The two ends of an interval. `/` separates dates of ISO 8601, which have hyphens themselves.
fn ends(text: &str) -> Option<(&str, &str)> {
    let of_days = || text.split_once('-').filter(|_| !is_iso(text));
    text.split_once('/').or_else(of_days)
}

/// Whether a text begins with the year of ISO 8601: `2017-`.
fn is_iso(text: &str) -> bool {
    text.split_once('-').is_some_and(|(year, _)| year.len() == 4 && number(year, 4).is_some())
}

/// Reads `2017-08-31`, `2017-08-31T18:00`, `2017-08-31T18:00+02:00` or `@1504224000`, by the clock
/// of `zone` unless there is an offset; a day is its begin. The older form `31.08.17 18:00` is
/// read too.
///
/// # Errors
///
/// The text has none of these forms.
pub fn parse_time_s(text: &str, zone: &TimeZone) -> Result<u64, Error> {
    time_s(text, End::First, zone, 1, TIMES)
}

/// Returns the next time, from `now_s` on, at which the clock of `zone` shows a time of day such as
/// `16:00` or `16:00:30`; `None` if the text is no time of day.
///
/// ```
/// let utc = jiff::tz::TimeZone::UTC;
/// assert_eq!(pbs_site::next_time_s("16:00", 15 * 3_600, &utc), Some(16 * 3_600));
/// assert_eq!(pbs_site::next_time_s("16:00", 17 * 3_600, &utc), Some(40 * 3_600));
/// ```
pub fn next_time_s(text: &str, now_s: u64, zone: &TimeZone) -> Option<u64> {
    let time = time(text.trim())?;
    let today = zone.to_datetime(timestamp(now_s)?).date();
    [today, today.tomorrow().ok()?].into_iter().find_map(|date| {
        let local = DateTime::from_parts(date, time);
        let timestamp = zone.to_ambiguous_timestamp(local).compatible().ok()?;
        u64::try_from(timestamp.as_second()).ok().filter(|&time_s| time_s >= now_s)
    })
}

/// Formats a time as ISO 8601, with the offset from UTC: `2017-08-31T18:00:00+02:00`.
pub fn format_time(time_s: u64, zone: &TimeZone) -> String {
    let Some(timestamp) = timestamp(time_s) else {
        return format!("@{time_s}");
    };
    timestamp.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Formats a time in the shortest form that [`parse_time_s`] reads in the same zone: the day alone
/// at midnight, without seconds at a full minute, without the offset if it is clear.
pub fn format_short_time(time_s: u64, zone: &TimeZone) -> String {
    written(time_s, End::First, zone)
}

/// Reads a time whose text begins at a column; `remedy` says what to write instead.
fn time_s(
    text: &str,
    end: End,
    zone: &TimeZone,
    column: usize,
    remedy: &str,
) -> Result<u64, Error> {
    let column = column + text.chars().take_while(|c| c.is_whitespace()).count();
    let text = text.trim();
    let wrong = |message: String| Error { column, message };
    if let Some(seconds) = text.strip_prefix('@') {
        let seconds = number(seconds, 20)
            .ok_or_else(|| wrong(format!("{text} is no number of seconds; write @1501545600")))?;
        return Ok(seconds);
    }
    let is_iso = is_iso(text);
    let (day, hour) = match text.split_once(|c: char| c.is_whitespace() || (is_iso && c == 'T')) {
        Some((day, hour)) => (day, Some(hour.trim_start())),
        None => (text, None),
    };
    let date = if is_iso { iso_date(day) } else { date(day) };
    let date = date.ok_or_else(|| wrong(format!("{day:?} is no date; {remedy}")))?;
    let local = match hour {
        Some(hour) => {
            time_and_offset(hour).map(|(time, of)| (DateTime::from_parts(date, time), of))
        }
        // The calendar ends there; the caller refuses the date.
        None if end == End::Last => date.tomorrow().ok().map(|date| (date.into(), None)),
        None => Some((date.into(), None)),
    };
    let (local, offset) = local.ok_or_else(|| {
        let hour = hour.unwrap_or(day);
        wrong(format!("{hour:?} is no time of day; write 18:00 or 18:00:30"))
    })?;
    let zone = offset.map_or_else(|| zone.clone(), TimeZone::fixed);
    // A time that is left out counts as the one after the change, one that comes twice as
    // the first.
    let timestamp = zone.to_ambiguous_timestamp(local).compatible().ok();
    let seconds = timestamp.and_then(|timestamp| u64::try_from(timestamp.as_second()).ok());
    seconds.ok_or_else(|| wrong(format!("{text} is before 1970; write a later date")))
}

/// A number of at most so many digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn small(text: &str) -> Option<i8> {
    i8::try_from(number(text, 2)?).ok()
}

/// `31.08.17` or `31.08.2017`.
fn date(text: &str) -> Option<Date> {
    let mut parts = text.split('.');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let century = match year.len() {
        2 => 2000,
        4 => 0,
        _ => return None,
    };
    let year = i16::try_from(century + number(year, 4)?).ok()?;
    // A date that does not exist is no date.
    Date::new(year, small(month)?, small(day)?).ok()
}

/// `2017-08-31`.
fn iso_date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let year = i16::try_from(number(year, 4)?).ok()?;
    // A date that does not exist is no date.
    Date::new(year, small(month)?, small(day)?).ok()
}

/// A time of day, and the offset from UTC that may follow it: `18:00`, `18:00Z`, `18:00+02:00`.
fn time_and_offset(text: &str) -> Option<(Time, Option<Offset>)> {
    if let Some(utc) = text.strip_suffix('Z') {
        return Some((time(utc)?, Some(Offset::UTC)));
    }
    let Some(place) = text.rfind(['+', '-']) else {
        return Some((time(text)?, None));
    };
    let (hour, offset) = text.split_at(place);
    let (sign, offset) = offset.split_at(1);
    let offset = time(offset)?;
    let seconds = i32::from(offset.hour()) * 3600
        + i32::from(offset.minute()) * 60
        + i32::from(offset.second());
    let seconds = if sign == "-" { -seconds } else { seconds };
    // An offset that does not exist makes this no time of day.
    Some((time(hour.trim_end())?, Some(Offset::from_seconds(seconds).ok()?)))
}

/// `18:00` or `18:00:30`.
fn time(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    // A time that does not exist is no time of day.
    Time::new(small(hour)?, small(minute)?, small(second)?, 0).ok()
}

fn timestamp(time_s: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(time_s).ok()?).ok()
}

/// The shortest text that is read as that time.
fn written(time_s: u64, end: End, zone: &TimeZone) -> String {
    let seconds = format!("@{time_s}");
    let Some(timestamp) = timestamp(time_s) else {
        return seconds;
    };
    let local = zone.to_datetime(timestamp);
    let date = local.date();
    let last_day = match end {
        End::First => Some(date),
        // The calendar begins there; then no day is written.
        End::Last => date.checked_sub(1.day()).ok(),
    };
    let day = last_day.map(|day| day.to_string());
    let hour = format!("{date}T{:02}:{:02}", local.hour(), local.minute());
    let second = format!("{hour}:{:02}", local.second());
    let texts = day.into_iter().chain([hour, second, format_time(time_s, zone)]);
    // Reading a text shows whether it has all parts of the time, and whether the clock shows the
    // time once.
    let is_it = |text: &String| time_s_of(text, end, zone) == Some(time_s);
    let mut right = texts.filter(is_it);
    right.next().unwrap_or(seconds)
}

fn time_s_of(text: &str, end: End, zone: &TimeZone) -> Option<u64> {
    // A text that is refused does not mean that second.
    time_s(text, end, zone, 1, TIMES).ok()
}
