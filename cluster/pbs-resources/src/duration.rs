// SPDX-License-Identifier: GPL-2.0
//! Spans of time, in seconds.

use crate::Error;

const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

const EXAMPLES: &str = "write a duration as 4d3h, 1h30m, 90s or 00:10:00";

/// Seconds of a text like `4d3h`, `92h`, `1h30m`, `90s`, `90` or `00:10:00`.
///
/// Units are w, d, h, m and s, from the greatest to the least and each once. A number
/// without a unit is seconds. Colons are between hours, minutes and seconds, as PBS has
/// it; where there is one colon, it is between minutes and seconds.
///
/// # Errors
///
/// The text is something else, or longer than 64 bits hold.
///
/// ```
/// assert_eq!(pbs_resources::parse_duration_s("4d3h"), Ok(99 * 3600));
/// assert_eq!(pbs_resources::parse_duration_s("00:10:00"), Ok(600));
/// ```
pub fn parse_duration_s(text: &str) -> Result<u64, Error> {
    if text.contains(':') {
        return clock(text);
    }
    if let Ok(seconds) = text.parse() {
        // A sign would be read, too.
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(seconds);
        }
    }
    let mut units = UNITS.iter();
    let mut sum = 0u64;
    let mut rest = text;
    let at = |rest: &str| text.chars().count() - rest.chars().count() + 1;
    while !rest.is_empty() || text.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (digits, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let unit = behind.chars().next();
        let Some(letter) = unit.filter(|_| !digits.is_empty()) else {
            let message = match digits {
                "" => format!("there is no number; {EXAMPLES}"),
                _ if text == digits => too_long(text),
                _ => format!("{digits} has no unit; {EXAMPLES}"),
            };
            return Err(Error::new(at(rest), message));
        };
        // Those before are gone from the iterator, so the order is checked as well.
        let Some(&(_, seconds)) = units.find(|(unit, _)| *unit == letter) else {
            let message = if UNITS.iter().any(|(unit, _)| *unit == letter) {
                "units go from the greatest to the least, each once: 4d3h".into()
            } else {
                format!("there is no unit {letter:?}; use w, d, h, m and s: 4d3h")
            };
            return Err(Error::new(at(behind), message));
        };
        let part = digits.parse::<u64>().ok();
        let part = part.and_then(|number| number.checked_mul(seconds));
        sum = part
            .and_then(|part| part.checked_add(sum))
            .ok_or_else(|| Error::new(at(rest), too_long(text)))?;
        rest = &behind[letter.len_utf8()..];
    }
    Ok(sum)
}

fn too_long(text: &str) -> String {
    format!("{text} is too long; the most is {}", format_duration(u64::MAX))
}

/// `HH:MM:SS` or `MM:SS`.
fn clock(text: &str) -> Result<u64, Error> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        let message = format!("there are too many colons; {EXAMPLES}");
        return Err(Error::new(1, message));
    }
    let mut sum = 0u64;
    let mut column = 1;
    for (index, part) in parts.iter().enumerate() {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            let message = format!("{part:?} is no number; {EXAMPLES}");
            return Err(Error::new(column, message));
        }
        let number = part.parse::<u64>().ok();
        // Only the first may be more than its unit allows: 36:00:00.
        if index > 0 && number.is_none_or(|number| number > 59) {
            let message = format!("{part} is no number up to 59; {EXAMPLES}");
            return Err(Error::new(column, message));
        }
        sum = number
            .and_then(|number| sum.checked_mul(60)?.checked_add(number))
            .ok_or_else(|| Error::new(column, too_long(text)))?;
        column += part.chars().count() + 1;
    }
    Ok(sum)
}

/// The time span as [`parse_duration_s`] reads it, in days and shorter units.
///
/// ```
/// assert_eq!(pbs_resources::format_duration(99 * 3600), "4d3h");
/// assert_eq!(pbs_resources::format_duration(0), "0s");
/// ```
pub fn format_duration(seconds: u64) -> String {
    let mut text = String::new();
    let mut left = seconds;
    // Weeks are read, but said by nobody.
    for &(unit, length) in &UNITS[1..] {
        if left >= length {
            text += &format!("{}{unit}", left / length);
            left %= length;
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read() {
        for (text, seconds) in [
            ("4d3h", 356_400),
            ("92h", 331_200),
            ("1h30m", 5_400),
            ("1d50m", 89_400),
            ("7d", 604_800),
            ("2w", 1_209_600),
            ("59m", 3_540),
            ("90", 90),
            ("90s", 90),
            ("0", 0),
            ("00:10:00", 600),
            ("36:00:00", 129_600),
            ("10:00", 600),
        ] {
            assert_eq!(parse_duration_s(text), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn others_are_refused_where_they_go_wrong() {
        for (text, column, words) in [
            ("", 1, "there is no number"),
            ("h", 1, "there is no number"),
            ("1.5h", 2, "there is no unit '.'"),
            ("-1h", 1, "there is no number"),
            ("+5", 1, "there is no number"),
            ("3h4d", 4, "from the greatest to the least"),
            ("3h4h", 4, "each once"),
            ("3h4", 3, "4 has no unit"),
            ("3 h", 2, "there is no unit ' '"),
            ("5µ", 2, "there is no unit 'µ'"),
            ("00:99:00", 4, "99 is no number up to 59"),
            ("1::2", 3, "\"\" is no number"),
            ("1:2:3:4", 1, "too many colons"),
            ("300000000000000d", 1, "is too long"),
            ("99999999999999999999", 1, "is too long"),
        ] {
            let error = parse_duration_s(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for seconds in [0, 1, 59, 60, 3600, 86_399, 86_400, 356_400, 5_184_000, u64::MAX] {
            assert_eq!(parse_duration_s(&format_duration(seconds)), Ok(seconds));
        }
    }
}
