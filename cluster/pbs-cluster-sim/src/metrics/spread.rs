// SPDX-License-Identifier: GPL-2.0
//! Statistics of one figure over many jobs.

use serde::Serialize;

/// Mean, median, 95th percentile and maximum of one figure over all jobs. Without jobs, all are 0.
///
/// The pth percentile of n values is the value at position ⌈p·n/100⌉ in order (the nearest rank),
/// which always exists. Means of whole numbers use the exact sum. Means of ratios use a sum whose
/// error does not grow with the number of jobs (Neumaier 1974).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Arithmetic.
    pub mean: f64,
    /// The 50th percentile.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    pub(super) fn of_seconds(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
        Self {
            mean: sum as f64 / values.len().max(1) as f64,
            median: percentile(&values, 50).unwrap_or(0) as f64,
            p95: percentile(&values, 95).unwrap_or(0) as f64,
            max: percentile(&values, 100).unwrap_or(0) as f64,
        }
    }

    pub(super) fn of_ratios(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            mean: mean(&values),
            median: percentile(&values, 50).unwrap_or(0.0),
            p95: percentile(&values, 95).unwrap_or(0.0),
            max: percentile(&values, 100).unwrap_or(0.0),
        }
    }
}

/// Returns a percentile of sorted values.
fn percentile<T: Copy>(values: &[T], percent: usize) -> Option<T> {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied()
}

/// Neumaier's sum, by how many there are; 0 of none.
pub(super) fn mean(values: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for &value in values {
        let next: f64 = sum + value;
        lost +=
            if f64::abs(sum) >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    (sum + lost) / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_are_there() {
        let spread = Spread::of_seconds((1..=20).rev().collect());
        let expected = Spread { mean: 10.5, median: 10.0, p95: 19.0, max: 20.0 };
        assert_eq!(spread, expected);
        assert_eq!(Spread::of_ratios((1..=20).map(f64::from).collect()), expected);
        let one = Spread::of_seconds(vec![7]);
        assert_eq!((one.mean, one.median, one.p95, one.max), (7.0, 7.0, 7.0, 7.0));
        assert_eq!(Spread::of_seconds(Vec::new()), Spread::default());
        assert_eq!(Spread::of_ratios(Vec::new()), Spread::default());
    }

    #[test]
    fn sums_are_exact() {
        let huge = Spread::of_seconds(vec![u64::MAX, u64::MAX]);
        assert_eq!(huge.mean, u64::MAX as f64);
        assert_eq!(mean(&[1e100, 1.0, -1e100]), 1.0 / 3.0);
    }
}
