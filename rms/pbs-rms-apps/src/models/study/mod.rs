// SPDX-License-Identifier: GPL-2.0
//! The figures of Klein and Pérez (2011) that need no manager, and whether their claims hold
//! of the models as read here.
//!
//! The report says with how many meshes none of its figures was made; here it is 50, or any
//! number. Nothing here prints.

mod equivalents;
mod figure1;
mod figure2;
mod figure3;
mod figure4;
mod quantiles;
mod verdict;

pub use equivalents::{equivalents, Equivalents};
pub use figure1::{figure1, Figure1};
pub use figure2::{figure2, Figure2, SpeedUpRow};
pub use figure3::{figure3, EndTimeRow, Figure3};
pub use figure4::{figure4, Figure4, StaticChoiceRow};
pub use quantiles::Quantiles;
pub use verdict::{Tolerance, Verdict};

use std::ops::Range;

use serde::Serialize;

use crate::{Allocation, SpeedUp, WorkingSet};

/// The target efficiency of the evaluation (5.1.1).
pub const TARGET: f64 = 0.75;

/// Meshes under study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// The seed of the first one; the others follow.
    pub seed: u64,
    /// Number of meshes.
    pub meshes: u64,
}

impl Default for Sample {
    fn default() -> Self {
        Self { seed: 0, meshes: 50 }
    }
}

impl Sample {
    fn seeds(self) -> Range<u64> {
        self.seed..self.seed.saturating_add(self.meshes)
    }

    /// All meshes.
    pub fn working_sets(self) -> Vec<WorkingSet> {
        self.seeds().map(WorkingSet::new).collect()
    }
}

/// The nodes of all meshes at a target efficiency.
fn allocations(sets: &[WorkingSet], most_mib: f64, target: f64) -> Vec<Allocation> {
    let model = SpeedUp::default();
    let of = |set| Allocation::new(set, most_mib, target, model);
    sets.iter().map(of).collect()
}

/// Returns the share of the values for which the condition holds; 1 if there are none.
fn share<T>(all: &[T], is: impl Fn(&T) -> bool) -> f64 {
    match all.len() {
        0 => 1.0,
        count => all.iter().filter(|one| is(one)).count() as f64 / count as f64,
    }
}
