// SPDX-License-Identifier: GPL-2.0
//! Points in time in the files of jobs: `deadline_ns = "2026-11-27T08:00"`.
//!
//! All times of a job count from its submission. A date with a time of day therefore becomes a
//! number of nanoseconds when the file is read, and stays that number wherever the job is stored.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::Timestamp;
use pbs_text::reader::read;
use pbs_text::{span, Problem};
use toml::de::DeValue;

use crate::with_values;

/// Keys in front of the first table that can hold a point in time.
const KEYS: [&str; 2] = ["start_ns", "deadline_ns"];

/// Whether a text is meant as a point in time: it begins with a year.
pub fn is_moment(text: &str) -> bool {
    let (year, rest) = text.split_at_checked(4).unwrap_or_default();
    !year.is_empty() && year.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')
}

/// The nanoseconds since 1970 of a date and a time of day (ISO 8601). Without an offset from UTC,
/// they are those of the local zone.
///
/// # Errors
///
/// A description of what to write instead.
pub fn moment_unix_ns(text: &str) -> Result<u64, String> {
    let local = || {
        // A date alone could mean its begin or its end.
        let civil: DateTime = text.parse().ok().filter(|_| text.contains(':'))?;
        // A time that the zone leaves out is refused below.
        civil.to_zoned_datetime(TimeZone::system()).ok().map(|zoned| zoned.timestamp())
    };
    let moment = text.parse::<Timestamp>().ok().or_else(local);
    let unix_ns = moment.and_then(|moment| u64::try_from(moment.as_nanosecond()).ok());
    unix_ns.ok_or_else(|| {
        format!(
            "\"{text}\" is no date and time; write one as 2026-11-27T08:00 in the local zone, or \
             with an offset, as 2026-11-27T08:00:00+01:00"
        )
    })
}

/// The present time in nanoseconds since 1970.
pub fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The file of a job whose points in time are spans from `now_unix_ns`, the time of its
/// submission.
///
/// # Errors
///
/// A point in time that cannot be read, or a deadline that has passed.
pub fn with_spans(text: &str, now_unix_ns: u64) -> Result<Cow<'_, str>, Vec<Problem>> {
    // What is no TOML is reported by the check of the job.
    if toml::de::DeTable::parse(text).is_err() {
        return Ok(text.into());
    }
    let values = read(text, |reader, document| {
        let mut values = Vec::new();
        for key in KEYS {
            let Some((_, value)) = document.get_key_value(key) else {
                continue;
            };
            let moment = match value.get_ref() {
                DeValue::String(text) if is_moment(text) => text.to_string(),
                DeValue::Datetime(moment) => moment.to_string(),
                _ => continue,
            };
            let line = reader.line_of(value);
            match moment_unix_ns(&moment) {
                Err(words) => reader.problem(line, format!("{key}: {words}")),
                Ok(unix_ns) if key == "deadline_ns" && unix_ns <= now_unix_ns => {
                    let ago = span(now_unix_ns - unix_ns);
                    reader.problem(
                        line,
                        format!("{key} {moment} has passed, {ago} ago; write a later time"),
                    );
                }
                Ok(unix_ns) => {
                    values.push((key, unix_ns.saturating_sub(now_unix_ns).to_string()));
                }
            }
        }
        values
    })?;
    if values.is_empty() {
        return Ok(text.into());
    }
    Ok(with_values(text, &values).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-27T08:00:00+01:00.
    const MOMENT_NS: u64 = 1_795_762_800_000_000_000;

    fn spans(deadline: &str) -> Result<String, String> {
        let text = format!("# a\ndeadline_ns = {deadline}\nstart_ns = \"1s\"\n[[process]]\n");
        match with_spans(&text, MOMENT_NS) {
            Ok(text) => Ok(text.into()),
            Err(problems) => {
                assert_eq!(problems[0].line.map(|line| line.get()), Some(2));
                Err(problems[0].message.clone())
            }
        }
    }

    #[test]
    fn a_date_with_a_time_becomes_a_span() {
        let of = |ns: &str| format!("# a\ndeadline_ns = {ns}\nstart_ns = \"1s\"\n[[process]]\n");
        for deadline in [
            "\"2026-11-27T08:00:05+01:00\"",
            "\"2026-11-27 07:00:05Z\"",
            "2026-11-27T07:00:05Z",
            "2026-11-27T09:00:05+02:00",
        ] {
            assert_eq!(spans(deadline), Ok(of("5000000000")), "{deadline}");
        }
        // All else is as it was.
        for deadline in ["\"2s\"", "20", "\"no\"", "[", "true"] {
            assert_eq!(spans(deadline), Ok(of(deadline)));
        }
        // A start that has passed is at once.
        let start = with_spans("start_ns = 2020-01-01T00:00:00Z", MOMENT_NS).unwrap();
        assert_eq!(start, "start_ns = 0");
    }

    #[test]
    fn local_times_are_of_the_zone_of_this_process() {
        let zone = TimeZone::system();
        let local = Timestamp::from_second(MOMENT_NS as i64 / 1_000_000_000).unwrap();
        let local = local.to_zoned_datetime(zone).datetime();
        assert_eq!(moment_unix_ns(&local.to_string()), Ok(MOMENT_NS));
    }

    #[test]
    fn passed_and_wrong_times_are_refused_with_what_to_write() {
        let passed = spans("\"2026-11-27T07:59:58+01:00\"").unwrap_err();
        assert!(passed.contains("has passed, 2 s ago; write a later time"), "{passed}");
        for wrong in
            ["\"2026-11-27\"", "\"2026-13-01T00:00\"", "\"2026-11-27T25:00\"", "2026-11-27"]
        {
            let words = spans(wrong).unwrap_err();
            assert!(words.contains("write one as 2026-11-27T08:00"), "{wrong}: {words}");
        }
    }
}
