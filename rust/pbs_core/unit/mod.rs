// SPDX-License-Identifier: GPL-2.0

//! Tests of the policy core.

use crate::{Config, Policy, Rate};

/// The times of a configuration on a CPU that retires one instruction a
/// nanosecond: the same numbers as instructions.
trait AtOne {
    fn at_one(&self) -> Policy;
}

impl AtOne for Config {
    fn at_one(&self) -> Policy {
        Policy::new(*self, Rate::new(1_000_000))
    }
}

mod accounts;
mod audit;
mod configure;
mod contradictions;
mod deadlines;
mod dealing;
mod driver;
mod exact;
mod fuzz;
mod grants;
mod header;
mod idle;
mod kernel_time;
mod lease;
mod levels;
mod memory;
mod messages;
mod numbers;
mod order;
mod pieces;
mod predict;
mod properties;
mod random;
mod rates;
mod record;
mod responses;
mod scenarios;
mod scene;
mod signals;
mod snapshot;
mod sort;
mod stress;
mod swap;
mod text;
mod thresholds;
mod timeliness;
mod turns;
mod ways;
mod wire;
mod yardsticks;
