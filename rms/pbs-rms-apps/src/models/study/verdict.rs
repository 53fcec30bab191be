// SPDX-License-Identifier: GPL-2.0
//! Claims, what was found of them, and whether that is close enough.

use serde::Serialize;

/// Tolerance of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// Maximum.
    AtMost(f64),
    /// Minimum.
    AtLeast(f64),
    /// Range from the first to the second value.
    Between(f64, f64),
}

impl Tolerance {
    /// A value, and by which part of it one may be off.
    pub fn about(value: f64, part: f64) -> Self {
        Self::Between(value * (1.0 - part), value * (1.0 + part))
    }

    fn takes(self, found: f64) -> bool {
        match self {
            Self::AtMost(most) => found <= most,
            Self::AtLeast(least) => found >= least,
            Self::Between(least, most) => (least..=most).contains(&found),
        }
    }
}

/// A claim, held against the models.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// In words, with the section or figure that it is from.
    pub claim: String,
    /// Found value, in the unit of the tolerance.
    pub found: f64,
    /// Values that satisfy the claim.
    pub tolerance: Tolerance,
    /// Whether the claim holds.
    pub holds: bool,
}

impl Verdict {
    /// Whether what was found is within the tolerance.
    pub fn new(claim: impl Into<String>, found: f64, tolerance: Tolerance) -> Self {
        Self { claim: claim.into(), found, tolerance, holds: tolerance.takes(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_it() {
        let holds = |found, tolerance| Verdict::new("", found, tolerance).holds;
        assert!(holds(2.5, Tolerance::AtMost(2.5)) && !holds(2.6, Tolerance::AtMost(2.5)));
        assert!(holds(0.8, Tolerance::AtLeast(0.8)) && !holds(0.7, Tolerance::AtLeast(0.8)));
        let about = Tolerance::about(100.0, 0.05);
        assert!(holds(95.0, about) && holds(105.0, about) && !holds(106.0, about));
        assert!(!holds(f64::NAN, about) && !holds(f64::NAN, Tolerance::AtMost(1.0)));
    }
}
