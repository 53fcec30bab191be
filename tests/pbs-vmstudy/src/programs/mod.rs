// SPDX-License-Identifier: GPL-2.0
//! Real programs with input that grows: what they retire, and how well that is predicted.
//!
//! In the guest each run is a plan of its own and prints what was retired, as a line of
//! JSON; outside, predictions are made of that and held against it.

mod guest;
mod predict;

use serde::{Deserialize, Serialize};

pub use guest::measure;
pub use predict::report;

/// A run of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Run {
    program: String,
    /// Size of the input.
    input_bytes: u64,
    /// Part of the text that is the input: inputs of the same size differ in this.
    part: u32,
    /// The how manieth run on that input, from 0 on.
    repeat: u32,
    /// Instructions by the class's count.
    retired_insns: u64,
}
