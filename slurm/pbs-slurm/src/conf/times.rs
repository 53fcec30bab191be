// SPDX-License-Identifier: GPL-2.0
//! Times as in `MaxTime`, and as `squeue` prints limits.

/// Seconds of `MINUTES`, `MINUTES:SECONDS`, `HOURS:MINUTES:SECONDS`, `DAYS-HOURS` with
/// minutes and seconds behind it; none: without an end, or no time.
pub fn seconds(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(days), rest),
        None => (None, text),
    };
    let parts: Option<Vec<u64>> = rest.split(':').map(|part| part.parse().ok()).collect();
    let (hours, minutes, seconds) = match (days, parts?.as_slice()) {
        (None, &[minutes]) => (0, minutes, 0),
        (None, &[minutes, seconds]) => (0, minutes, seconds),
        (Some(_), &[hours]) => (hours, 0, 0),
        (Some(_), &[hours, minutes]) => (hours, minutes, 0),
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        _ => return None,
    };
    let days: u64 = days.unwrap_or("0").parse().ok()?;
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    minutes.checked_mul(60)?.checked_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_are_as_in_the_manual_page() {
        for (text, expected) in [
            ("30", Some(1_800)),
            ("2:30", Some(150)),
            ("1:00:05", Some(3_605)),
            ("1-0", Some(86_400)),
            ("7-12:30", Some(649_800)),
            ("7-00:00:01", Some(604_801)),
            ("UNLIMITED", None),
            ("INFINITE", None),
            ("", None),
            ("1:2:3:4", None),
            ("99999999999999999999", None),
            ("18446744073709551615-0", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
