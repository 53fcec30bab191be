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

/// Nanoseconds in milliseconds, to the microsecond.
pub fn ms(ns: u64) -> String {
    format!("{}.{:03}", grouped(ns / 1_000_000), ns % 1_000_000 / 1_000)
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

/// A deviation with its sign: `+30.0 %`, `−40.1 %`.
pub(crate) fn percent(permille: i64, decimals: usize) -> String {
    let value = permille as f64 / 10.0;
    let text = format!("{:.decimals$}", value.abs());
    if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return format!("{text} %");
    }
    format!("{}{text} %", if value < 0.0 { '−' } else { '+' })
}

/// `(actual − planned) / planned` in thousandths, rounded.
pub(crate) fn deviation_permille(planned: u64, actual: u64) -> i64 {
    if planned == 0 {
        return 0;
    }
    let planned = i128::from(planned);
    let thousandths = (i128::from(actual) - planned) * 1000;
    let half = planned / 2 * thousandths.signum();
    i64::try_from((thousandths + half) / planned).unwrap_or(i64::MAX)
}
