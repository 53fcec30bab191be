// SPDX-License-Identifier: GPL-2.0
//! Growth of an adaptive mesh's data (Klein and Pérez 2011, 2.1 and figure 1): the
//! acceleration-deceleration model.
//!
//! Published, and kept: 1,000 steps in phases of 1 to 200 steps, with uniform distribution; in even
//! phases the velocity grows by 0.01 a step, in odd ones it falls to 0.95 of itself; noise of σ =
//! 2; the maximum is normalised to 1,000.
//!
//! Chosen here, because it is not published:
//!
//! - Size and velocity begin at 0, and the phases with number 0, which is even.
//! - The noise is added to the size and not to the velocity, therefore it does not add up.
//! - No size is below 0; noise would make some of the first ones negative.
//! - Phases and noise have random numbers of their own: with other noise, a mesh has the
//!   same phases.

use pbs_gen::{Random, Stream};
use serde::Serialize;

/// Steps of an application.
pub const STEPS: usize = 1_000;
/// The greatest size, in the unit of the model.
pub const MOST: f64 = 1_000.0;
/// A phase has 1 to so many steps.
const LONGEST_PHASE: u64 = 200;
/// Increase of the velocity in a step of an even phase.
const ACCELERATION: f64 = 0.01;
/// Factor of the velocity in a step of an odd phase.
const DECELERATION: f64 = 0.95;
/// Standard deviation of the noise.
const SIGMA: f64 = 2.0;

/// The sizes of all steps.
///
/// ```
/// use pbs_rms_apps::WorkingSet;
///
/// let sizes = WorkingSet::new(1);
/// let most = sizes.normalised().iter().copied().fold(0.0, f64::max);
/// assert_eq!((sizes.normalised().len(), most), (1_000, 1_000.0));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct WorkingSet {
    sizes: Vec<f64>,
}

impl WorkingSet {
    /// Generates the working set of a seed, which is the same on every machine.
    pub fn new(seed: u64) -> Self {
        let mut phases = Random::new(seed, Stream::MeshPhases);
        let mut noise = Random::new(seed, Stream::MeshNoise);
        let (mut size, mut velocity) = (0.0, 0.0);
        let mut sizes = Vec::with_capacity(STEPS);
        let mut is_even = true;
        while sizes.len() < STEPS {
            let left = STEPS - sizes.len();
            let steps = 1 + phases.below(LONGEST_PHASE);
            for _ in (0..steps).take(left) {
                velocity = if is_even { velocity + ACCELERATION } else { velocity * DECELERATION };
                size += velocity;
                sizes.push((size + SIGMA * noise.normal()).max(0.0));
            }
            is_even = !is_even;
        }
        Self::of(sizes)
    }

    /// Sizes from elsewhere, brought to the same maximum. What is no number, or below 0, is
    /// taken for 0.
    pub fn of(mut sizes: Vec<f64>) -> Self {
        for size in &mut sizes {
            // Also of what is no number.
            *size = size.max(0.0);
            if !size.is_finite() {
                *size = 0.0;
            }
        }
        let most = sizes.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            for size in &mut sizes {
                // The quotient first: that of the maximum is 1 without rounding.
                *size = *size / most * MOST;
            }
        }
        Self { sizes }
    }

    /// The sizes s_i, from 0 to 1,000.
    pub fn normalised(&self) -> &[f64] {
        &self.sizes
    }

    /// The sizes S_i, where the greatest one is so many MiB.
    ///
    /// The report prints S_i = s_i · S_max, which is a thousand times too much, as the s_i
    /// reach 1,000.
    pub fn in_mib(&self, most_mib: f64) -> Vec<f64> {
        let sizes = self.sizes.iter();
        sizes.map(|size| size / MOST * most_mib).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(sizes: &[f64]) -> f64 {
        sizes.iter().sum::<f64>() / sizes.len() as f64
    }

    #[test]
    fn the_greatest_working_set_is_exactly_1000() {
        for seed in 0..500 {
            let set = WorkingSet::new(seed);
            let sizes = set.normalised();
            assert_eq!(sizes.len(), STEPS);
            assert_eq!(sizes.iter().copied().fold(0.0, f64::max), MOST, "{seed}");
            assert!(sizes.iter().all(|size| (0.0..=MOST).contains(size)));
        }
    }

    #[test]
    fn the_same_seed_is_the_same_mesh() {
        assert_eq!(WorkingSet::new(7), WorkingSet::new(7));
        assert_ne!(WorkingSet::new(7), WorkingSet::new(8));
    }

    #[test]
    fn meshes_grow() {
        for seed in 0..500 {
            let set = WorkingSet::new(seed);
            let sizes = set.normalised();
            let (first, last) = (mean(&sizes[..100]), mean(&sizes[900..]));
            assert!(last > 5.0 * first, "seed {seed}: {first} to {last}");
        }
    }

    #[test]
    fn the_printed_formula_would_be_a_thousand_times_too_much() {
        let sizes = WorkingSet::new(3).in_mib(4096.0);
        assert_eq!(sizes.iter().copied().fold(0.0, f64::max), 4096.0);
    }

    #[test]
    fn nonsense_has_no_size() {
        let set = WorkingSet::of(vec![f64::NAN, -1.0, 2.0, f64::INFINITY, 4.0]);
        assert_eq!(set.normalised(), [0.0, 0.0, 500.0, 0.0, 1000.0]);
        assert_eq!(WorkingSet::of(vec![0.0; 3]).normalised(), [0.0; 3]);
        assert!(WorkingSet::of(Vec::new()).in_mib(1.0).is_empty());
    }
}
