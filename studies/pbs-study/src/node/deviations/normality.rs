// SPDX-License-Identifier: GPL-2.0
//! Whether values can have come from a normal distribution.

use serde::Serialize;

/// Above this, normal values would be so skewed or so heavy in one of twenty lists: the
/// quantile of the χ² distribution with two degrees of freedom, −2 ln 0.05.
const CRITICAL: f64 = 5.991;

/// The test of Jarque and Bera (1980): skewness and kurtosis of the values against those
/// of a normal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Normality {
    pub(super) values: usize,
    pub(super) mean: f64,
    pub(super) sigma: f64,
    /// 0 if normal; positive where few are much greater than the others.
    pub(super) skewness: f64,
    /// 0 if normal; positive where the ends are heavy.
    pub(super) excess_kurtosis: f64,
    /// n/6 · (skewness² + excess²/4); of normal values distributed as χ² with two degrees
    /// of freedom, if they are many.
    pub(super) jarque_bera: f64,
    /// Probability that normal values deviate as much, or more.
    pub(super) p: f64,
    /// Whether that is more than one of twenty.
    pub(super) holds: bool,
}

/// Tests one value or more.
pub(super) fn jarque_bera(values: &[f64]) -> Normality {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let moment = |power: i32| {
        let powers = values.iter().map(|value| (value - mean).powi(power));
        powers.sum::<f64>() / count
    };
    let variance = moment(2);
    // All alike: there is nothing to be normal.
    let (skewness, excess_kurtosis) = if variance > 0.0 {
        (moment(3) / (variance * variance.sqrt()), moment(4) / (variance * variance) - 3.0)
    } else {
        (0.0, 0.0)
    };
    let jarque_bera = count / 6.0 * (skewness.powi(2) + excess_kurtosis.powi(2) / 4.0);
    Normality {
        values: values.len(),
        mean,
        sigma: variance.sqrt(),
        skewness,
        excess_kurtosis,
        jarque_bera,
        p: libm::exp(-jarque_bera / 2.0),
        holds: jarque_bera <= CRITICAL,
    }
}

#[cfg(test)]
mod tests {
    use super::jarque_bera;

    #[test]
    fn the_moments_are_those_of_the_values() {
        // By hand: mean 2, variance 2, third moment 4, fourth 10.
        let of = jarque_bera(&[1.0, 1.0, 1.0, 3.0, 1.0, 5.0]);
        assert!((of.mean - 2.0).abs() < 1e-12);
        let variance = (4.0 * 1.0 + 1.0 + 9.0) / 6.0;
        assert!((of.sigma - f64::sqrt(variance)).abs() < 1e-12);
        let third = (-4.0 + 1.0 + 27.0) / 6.0;
        assert!((of.skewness - third / variance.powf(1.5)).abs() < 1e-12);
        let fourth = (4.0 + 1.0 + 81.0) / 6.0;
        let excess = fourth / variance.powi(2) - 3.0;
        assert!((of.excess_kurtosis - excess).abs() < 1e-12);
        let expected = of.skewness.powi(2) + excess.powi(2) / 4.0;
        assert!((of.jarque_bera - expected).abs() < 1e-12);
    }

    #[test]
    fn two_values_alone_are_not_normal() {
        // Symmetric, and an excess kurtosis of -2: n/6.
        let values: Vec<_> = (0..60).map(|it| f64::from(it % 2)).collect();
        let of = jarque_bera(&values);
        assert!((of.jarque_bera - 10.0).abs() < 1e-9, "{of:?}");
        assert!(!of.holds && of.p < 0.05);
        assert!(jarque_bera(&values[..30]).holds);
        assert!(jarque_bera(&[1.0; 5]).holds);
    }
}
