// SPDX-License-Identifier: GPL-2.0
//! Measured values, as they travel from the guest to the report.

use serde::{Deserialize, Serialize};

/// One measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: String,
}

impl Figure {
    pub fn new(name: &str, value: f64, unit: &str) -> Self {
        Self { name: name.into(), value, unit: unit.into() }
    }

    /// Formats the figure as a line of JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a number and two texts")
    }
}
