// SPDX-License-Identifier: GPL-2.0
//! Parser and display of validities.
//!
//! ```text
//! validity = "always" | until time | time "-" time | time "-" | cron
//! until    = ["until"]
//! time     = day [hour] | "@" seconds
//! ```
//!
//! A day is `31.08.17` or `31.08.2017`, an hour `18:00` or `18:00:30`, both local. A validity that
//! ends with a day includes that day. A validity that ends at an hour excludes that time.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use pbs_resources::Error;

use crate::{Cron, Validity};

const EXAMPLES: &str =
    "write always, until 31.08.17, 01.08.17-31.08.17 or cron 0 7 * * 1,5 +4h; a time of day \
     may follow a date: 31.08.17 18:00";

/// End of an interval that a time denotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

impl Validity {
    /// Reads `always`, `until 31.08.17`, `01.08.17-31.08.17`, `01.08.17-` or a cron string
    /// ([`Cron`]), with the clock and calendar of `zone`. The last day is part of it. A
    /// time of day may follow a date, and `@` with Unix seconds may stand for both.
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
    /// let august = Validity::parse("01.08.17-31.08.17", &utc)?;
    /// assert_eq!(august, Validity::Between(1_501_545_600..1_504_224_000));
    /// assert_eq!(august.to_text(&utc), "01.08.17-31.08.17");
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
        if let Some(end) = trimmed.strip_prefix("until ") {
            return time_s(end, End::Last, zone, before + 7).map(Self::Until);
        }
        let Some((first, last)) = trimmed.split_once('-') else {
            return time_s(trimmed, End::Last, zone, before + 1).map(Self::Until);
        };
        let behind = before + first.chars().count() + 2;
        if first.trim().is_empty() {
            return time_s(last, End::Last, zone, behind).map(Self::Until);
        }
        let start_s = time_s(first, End::First, zone, before + 1)?;
        let end_s = match last.trim() {
            "" => u64::MAX,
            _ => time_s(last, End::Last, zone, behind)?,
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
                format!("{start}-{end}")
            }
            Self::Cron(cron) => cron.to_string(),
        }
    }
}

/// The time that `31.08.17`, `31.08.17 18:00` or `@1504224000` stands for, by the clock of
/// `zone`; a day is its begin.
///
/// # Errors
///
/// It is none of these.
pub fn parse_time_s(text: &str, zone: &TimeZone) -> Result<u64, Error> {
    time_s(text, End::First, zone, 1)
}

/// A time as [`parse_time_s`] reads it.
pub fn format_time(time_s: u64, zone: &TimeZone) -> String {
    written(time_s, End::First, zone)
}

/// The time that a text stands for, which begins at a column.
fn time_s(text: &str, end: End, zone: &TimeZone, column: usize) -> Result<u64, Error> {
    let column = column + text.chars().take_while(|c| c.is_whitespace()).count();
    let text = text.trim();
    let wrong = |message: String| Error { column, message };
    if let Some(seconds) = text.strip_prefix('@') {
        let seconds = number(seconds, 20)
            .ok_or_else(|| wrong(format!("{text} is no number of seconds; write @1501545600")))?;
        return Ok(seconds);
    }
    let (day, hour) = match text.split_once(char::is_whitespace) {
        Some((day, hour)) => (day, Some(hour.trim_start())),
        None => (text, None),
    };
    let date = date(day).ok_or_else(|| wrong(format!("{day:?} is no date; {EXAMPLES}")))?;
    let local = match hour {
        Some(hour) => time(hour).map(|time| DateTime::from_parts(date, time)),
        None if end == End::Last => date.tomorrow().ok().map(DateTime::from),
        None => Some(DateTime::from(date)),
    };
    let local = local.ok_or_else(|| {
        let hour = hour.unwrap_or(day);
        wrong(format!("{hour:?} is no time of day; write 18:00 or 18:00:30"))
    })?;
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
    Date::new(year, small(month)?, small(day)?).ok()
}

/// `18:00` or `18:00:30`.
fn time(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    Time::new(small(hour)?, small(minute)?, small(second)?, 0).ok()
}

/// The shortest text that is read as that time.
fn written(time_s: u64, end: End, zone: &TimeZone) -> String {
    let seconds = format!("@{time_s}");
    let timestamp = i64::try_from(time_s).ok();
    let timestamp = timestamp.and_then(|time_s| Timestamp::from_second(time_s).ok());
    let Some(timestamp) = timestamp else {
        return seconds;
    };
    let local = zone.to_datetime(timestamp);
    let date = local.date();
    let last_day = match end {
        End::First => Some(date),
        End::Last => date.checked_sub(1.day()).ok(),
    };
    let day = last_day.map(written_date);
    let hour = format!("{} {:02}:{:02}", written_date(date), local.hour(), local.minute());
    let second = format!("{hour}:{:02}", local.second());
    let texts = day.into_iter().chain([hour, second]);
    // Which of them says all, and whether the clock shows this time once, is seen by
    // reading it.
    let mut right = texts.filter(|text| time_s_of(text, end, zone) == Some(time_s));
    right.next().unwrap_or(seconds)
}

fn time_s_of(text: &str, end: End, zone: &TimeZone) -> Option<u64> {
    time_s(text, end, zone, 1).ok()
}

fn written_date(date: Date) -> String {
    let (day, month, year) = (date.day(), date.month(), date.year());
    match year {
        2000..=2099 => format!("{day:02}.{month:02}.{:02}", year - 2000),
        _ => format!("{day:02}.{month:02}.{year:04}"),
    }
}
