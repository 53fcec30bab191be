// SPDX-License-Identifier: GPL-2.0
//! Numbers for people.

/// `20000000` as `20,000,000`.
pub fn grouped(number: impl Into<i128>) -> String {
    let number = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    if number < 0 {
        out.push('−');
    }
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Parses a number of which there is to be something.
///
/// # Errors
///
/// The reason, for an option of a command.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// Nanoseconds in milliseconds, to the microsecond.
pub fn ms(ns: u64) -> String {
    format!("{}.{:03}", grouped(ns / 1_000_000), ns % 1_000_000 / 1_000)
}

/// Duration in the unit that people would choose: `12 s`, `3.783 s`, `532.4 ms`, `2 h 5 min`.
///
/// Below a minute it has at most three decimals, without zeros at the end; from a minute on
/// whole seconds, and from a day on whole hours.
pub fn span(ns: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
    const LONG: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let seconds = ns / UNITS[0].0;
    if let Some(first) = LONG.iter().position(|&(unit_s, _)| seconds >= unit_s && unit_s > 1) {
        let mut left_s = seconds;
        let mut parts = Vec::new();
        for &(unit_s, name) in LONG.iter().skip(first).take(2) {
            if left_s >= unit_s {
                parts.push(format!("{} {name}", grouped(left_s / unit_s)));
            }
            left_s %= unit_s;
        }
        return parts.join(" ");
    }
    let (unit_ns, name) =
        UNITS.into_iter().find(|&(unit_ns, _)| ns >= unit_ns).unwrap_or((1, "ns"));
    let thousandths = (ns % unit_ns) * 1_000 / unit_ns;
    let decimals = format!(".{thousandths:03}");
    let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
    format!("{}{decimals} {name}", ns / unit_ns)
}

/// Bytes in the largest unit that leaves at least one.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_in_the_unit_that_people_choose() {
        assert_eq!(span(0), "0 ns");
        assert_eq!(span(999), "999 ns");
        assert_eq!(span(1_500), "1.5 µs");
        assert_eq!(span(532_400_000), "532.4 ms");
        assert_eq!(span(3_782_865_788), "3.782 s");
        assert_eq!(span(12_000_000_000), "12 s");
        assert_eq!(span(59_999_999_999), "59.999 s");
        assert_eq!(span(60_000_000_000), "1 min");
        assert_eq!(span(7_500_000_000_000), "2 h 5 min");
        assert_eq!(span(3_600_000_000_000), "1 h");
        assert_eq!(span(90_061_000_000_000), "1 d 1 h");
    }
}
