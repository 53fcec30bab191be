// SPDX-License-Identifier: GPL-2.0
//! Spread of values over several meshes.

use serde::Serialize;

/// Quantiles for drawing boxes and bands; all 0 if there are no values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The least.
    pub least: f64,
    /// 5 % are at most this.
    pub p5: f64,
    /// A quarter is at most this.
    pub p25: f64,
    /// Half is at most this.
    pub median: f64,
    /// Three quarters are at most this.
    pub p75: f64,
    /// 95 % are at most this.
    pub p95: f64,
    /// The greatest.
    pub most: f64,
}

impl Quantiles {
    /// Computes the quantiles of unsorted values, with linear interpolation between two values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let rank = part * sorted.len().saturating_sub(1) as f64;
            let value = |rank: f64| sorted.get(rank as usize).copied().unwrap_or(0.0);
            let (low, high) = (value(rank.floor()), value(rank.ceil()));
            low + (high - low) * rank.fract()
        };
        Self {
            least: at(0.0),
            p5: at(0.05),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            most: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_between_least_and_most() {
        let of = Quantiles::of((0..=100).rev().map(f64::from));
        assert_eq!(
            (of.least, of.p5, of.p25, of.median, of.p75, of.p95, of.most),
            (0.0, 5.0, 25.0, 50.0, 75.0, 95.0, 100.0)
        );
        assert_eq!(Quantiles::of([3.0, 1.0]).median, 2.0);
        assert_eq!(Quantiles::of([7.0]).p95, 7.0);
        assert_eq!(Quantiles::of([]), Quantiles::default());
    }
}
