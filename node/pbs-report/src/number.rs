// SPDX-License-Identifier: GPL-2.0
//! Deviations, as they are calculated and written.

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
