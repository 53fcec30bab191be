// SPDX-License-Identifier: GPL-2.0
//! Parser and display of cron strings.

use std::fmt;

use jiff::tz::TimeZone;
use pbs_resources::{format_duration, parse_duration_s, Error};

use super::{calendar, Cron, DAY_S};

/// A column of the five.
pub(super) struct Column {
    name: &'static str,
    least: u64,
    most: u64,
    /// Names for the numbers of the column, from the least on.
    names: &'static [&'static str],
}

const MINUTES: Column = Column { name: "minute", least: 0, most: 59, names: &[] };
const HOURS: Column = Column { name: "hour", least: 0, most: 23, names: &[] };
pub(super) const DAYS: Column = Column { name: "day", least: 1, most: 31, names: &[] };
const MONTHS: Column = Column {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Both 0 and 7 are Sunday.
const WEEKDAYS: Column = Column {
    name: "weekday",
    least: 0,
    most: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"],
};

/// Bits 1 to 5: all that a month has of a weekday.
const ALL_WEEKS: u64 = 0b11_1110;
pub(super) const ALL_WEEKDAYS: [u64; 7] = [ALL_WEEKS; 7];

/// A longer stretch is not one that repeats.
const MOST_DAYS: i64 = 366;

const EXAMPLE: &str = "write cron MINUTE HOUR DAY MONTH WEEKDAY +LENGTH: cron 0 7 * * 1,5 +4h";

impl Column {
    /// The set of all its numbers.
    pub(super) fn all(&self) -> u64 {
        (self.least..=self.most).fold(0, |set, number| set | (1 << number))
    }

    fn number(&self, text: &str) -> Option<u64> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        if let Some(place) = named {
            return Some(self.least + place as u64);
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten()?;
        (self.least..=self.most).contains(&number).then_some(number)
    }

    /// The numbers of `*`, `3`, `1-5`, `*/2` or `1-9/4`.
    fn range(&self, text: &str) -> Result<Vec<u64>, String> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (text, None),
        };
        let wrong = || {
            let Self { name, least, most, .. } = self;
            format!("{text:?} is no {name}; write numbers from {least} to {most}, *, 1-5 or */2")
        };
        let (first, last) = match (range, range.split_once('-')) {
            ("*", _) => (Some(self.least), Some(self.most)),
            (_, Some((first, last))) => (self.number(first), self.number(last)),
            // 3/2 is from 3 on.
            _ if step.is_some() => (self.number(range), Some(self.most)),
            _ => (self.number(range), self.number(range)),
        };
        let (first, last) = first.zip(last).ok_or_else(wrong)?;
        let step = step.map_or(Some(1), |step| step.parse::<usize>().ok());
        let step = step.filter(|&step| step > 0).ok_or_else(wrong)?;
        if first > last {
            return Err(format!(
                "{text:?} goes back; write the lesser {} first, or two ranges",
                self.name
            ));
        }
        Ok((first..=last).step_by(step).collect())
    }

    fn set(&self, text: &str) -> Result<u64, String> {
        let mut set = 0;
        for part in text.split(',') {
            for number in self.range(part)? {
                set |= 1 << number;
            }
        }
        Ok(set)
    }
}

/// Weekdays, of which one may be that of a certain week: `mon`, `1-5`, `1#2`.
fn weekdays(text: &str) -> Result<[u64; 7], String> {
    let mut weekdays = [0; 7];
    for part in text.split(',') {
        let (range, week) = match part.split_once('#') {
            Some((range, week)) => (range, Some(week)),
            None => (part, None),
        };
        let weeks = match week.map(str::parse::<u64>) {
            None => ALL_WEEKS,
            Some(Ok(week @ 1..=5)) => 1 << week,
            Some(_) => {
                return Err(format!(
                    "{part:?} is of no week; write 1#1 to 1#5 for the first to fifth Monday of \
                     a month"
                ))
            }
        };
        for number in WEEKDAYS.range(range)? {
            weekdays[number as usize % 7] |= weeks;
        }
    }
    Ok(weekdays)
}

impl Cron {
    /// Reads `cron 0 7 * * 1,5 +4h`; the clock is that of `zone`.
    ///
    /// # Errors
    ///
    /// A column is something else, the length is none or longer than 366 days, or there is
    /// no such day in any year.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, Error> {
        let mut words = Vec::new();
        let mut begin = None;
        let ends = text.char_indices().chain([(text.len(), ' ')]);
        for (column, (at, letter)) in (1..).zip(ends) {
            match (begin, letter.is_whitespace()) {
                (None, false) => begin = Some((column, at)),
                (Some((column, start)), true) => {
                    words.push((column, &text[start..at]));
                    begin = None;
                }
                _ => {}
            }
        }
        let error = |column: usize, message: String| Error { column, message };
        let &[(first, name), minute, hour, day, month, weekday, length] = &words[..] else {
            let message = format!("a cron string has seven words, not {}; {EXAMPLE}", words.len());
            return Err(error(1, message));
        };
        if name != "cron" {
            return Err(error(first, format!("{name:?} is not cron; {EXAMPLE}")));
        }
        let set = |column: Column, (at, word)| column.set(word).map_err(|words| error(at, words));
        let mut cron = Self {
            minutes: set(MINUTES, minute)?,
            hours: set(HOURS, hour)?,
            days: set(DAYS, day)?,
            months: set(MONTHS, month)?,
            weekdays: weekdays(weekday.1).map_err(|words| error(weekday.0, words))?,
            length_s: 0,
            zone: zone.clone(),
            of_day: Vec::new(),
        };
        let (at, word) = length;
        let Some(span) = word.strip_prefix('+') else {
            return Err(error(at, format!("{word:?} is no length; {EXAMPLE}")));
        };
        let length_s =
            parse_duration_s(span).map_err(|cause| error(at + cause.column, cause.message))?;
        let length_s = i64::try_from(length_s).ok();
        let fits = |length_s: &i64| (1..=MOST_DAYS * DAY_S).contains(length_s);
        cron.length_s = length_s.filter(fits).ok_or_else(|| {
            let message = format!("a stretch lasts from 1s to {MOST_DAYS}d; write another length");
            error(at, message)
        })?;
        cron.of_day = cron.stretches();
        if !(0..calendar::CYCLE_DAYS).any(|day| cron.has_day(day)) {
            let message = "there is no such day in any year; write another day or month";
            return Err(error(day.0, message.into()));
        }
        Ok(cron)
    }

    /// Stretches of so many hours that begin at whole hours of those months and weekdays
    /// (from 0, Sunday); no months are all, week 0 is every one.
    pub(crate) fn every(
        hours: &[u32],
        months: &[u32],
        weekdays: &[usize],
        week: u32,
        length_h: u32,
        zone: &TimeZone,
    ) -> Self {
        let set = |numbers: &[u32]| numbers.iter().fold(0, |set, number| set | (1 << number));
        let weeks = match week {
            0 => ALL_WEEKS,
            week => 1 << week,
        };
        let mut cron = Self {
            minutes: 1,
            hours: set(hours),
            days: DAYS.all(),
            months: match months {
                [] => MONTHS.all(),
                months => set(months),
            },
            weekdays: [0; 7],
            length_s: i64::from(length_h) * 3600,
            zone: zone.clone(),
            of_day: Vec::new(),
        };
        for &weekday in weekdays {
            cron.weekdays[weekday] = weeks;
        }
        cron.of_day = cron.stretches();
        cron
    }

    /// Returns the intervals that begin on a day.
    fn stretches(&self) -> Vec<std::ops::Range<i64>> {
        let mut of_day: Vec<std::ops::Range<i64>> = Vec::new();
        for hour in numbers(self.hours) {
            for minute in numbers(self.minutes) {
                let start = i64::from(hour) * 3600 + i64::from(minute) * 60;
                let end = start + self.length_s;
                match of_day.last_mut() {
                    Some(last) if start <= last.end => last.end = end,
                    _ => of_day.push(start..end),
                }
            }
        }
        of_day
    }
}

/// The numbers of a set, from the least on.
fn numbers(set: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |bit| set & (1 << bit) != 0)
}

/// A set as it is read: `*`, or a list of numbers and ranges.
fn written(set: u64, column: &Column) -> String {
    if set == column.all() {
        return "*".into();
    }
    let mut parts = Vec::new();
    let mut numbers = numbers(set).peekable();
    while let Some(first) = numbers.next() {
        let mut last = first;
        while let Some(next) = numbers.next_if(|&next| next == last + 1) {
            last = next;
        }
        match last - first {
            0 => parts.push(first.to_string()),
            1 => parts.extend([first.to_string(), last.to_string()]),
            _ => parts.push(format!("{first}-{last}")),
        }
    }
    parts.join(",")
}

fn written_weekdays(weekdays: &[u64; 7]) -> String {
    if *weekdays == ALL_WEEKDAYS {
        return "*".into();
    }
    let whole = (0..7).filter(|&day| weekdays[day] == ALL_WEEKS);
    let whole = whole.fold(0, |set, day| set | (1 << day));
    let mut parts = Vec::new();
    if whole != 0 {
        parts.push(written(whole, &WEEKDAYS));
    }
    for (day, &weeks) in weekdays.iter().enumerate() {
        if weeks != ALL_WEEKS {
            parts.extend(numbers(weeks).map(|week| format!("{day}#{week}")));
        }
    }
    parts.join(",")
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cron {} {} {} {} {} +{}",
            written(self.minutes, &MINUTES),
            written(self.hours, &HOURS),
            written(self.days, &DAYS),
            written(self.months, &MONTHS),
            written_weekdays(&self.weekdays),
            format_duration(self.length_s())
        )
    }
}
