// SPDX-License-Identifier: GPL-2.0
//! Intervals of shares: what a number of draws tells of a share.

/// Quantile of the normal distribution for 95 % on both sides.
const Z: f64 = 1.959_963_985;

/// The share of draws that had an outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// The measured share, from 0 to 1.
    pub(crate) share: f64,
    /// Number of draws.
    pub(crate) draws: u64,
}

impl Share {
    /// The 95 % interval of the true share, after Wilson.
    pub(crate) fn interval(self) -> [f64; 2] {
        let draws = self.draws.max(1) as f64;
        let share = self.share.clamp(0.0, 1.0);
        let middle = share + Z * Z / (2.0 * draws);
        let half = Z * (share * (1.0 - share) / draws + Z * Z / (4.0 * draws * draws)).sqrt();
        let whole = 1.0 + Z * Z / draws;
        [((middle - half) / whole).max(0.0), ((middle + half) / whole).min(1.0)]
    }

    /// The 95 % interval of the difference to another share of other draws, after Newcombe.
    pub(crate) fn difference(self, other: Self) -> [f64; 2] {
        let ([low, high], [other_low, other_high]) = (self.interval(), other.interval());
        let difference = self.share - other.share;
        let down = (self.share - low).hypot(other_high - other.share);
        let up = (high - self.share).hypot(other.share - other_low);
        [difference - down, difference + up]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: [f64; 2], expected: [f64; 2]) -> bool {
        found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 0.0005)
    }

    /// Newcombe 1998, examples of table I and of method 10.
    #[test]
    fn intervals_are_those_of_the_literature() {
        let share = |of: u64, draws: u64| Share { share: of as f64 / draws as f64, draws };
        assert!(is_near(share(81, 263).interval(), [0.2553, 0.3662]));
        assert!(is_near(share(15, 148).interval(), [0.0624, 0.1605]));
        assert!(is_near(share(56, 70).difference(share(48, 80)), [0.0524, 0.3339]));
    }
}
