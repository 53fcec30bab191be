// SPDX-License-Identifier: GPL-2.0

//! Ranges of the numbers of the policy, and the check of a configuration.

use super::config::{Config, Dispatch, IdlePolicy, PreemptionWay, StressCause, T1State, Threshold};
use super::refusal::{Fault, Refusal};
use super::wire::format;

impl Config {
    /// The least and the greatest value of each number.  Some of the ranges depend on another
    /// number.
    ///
    /// The ranges of t2_task keep t1 below it for every length: a task in its own slot meets t1
    /// first.
    pub const fn ranges(&self) -> [(u64, u64); Config::COUNT] {
        let period_ns = self.window_period_ns;
        [
            (1001, MAX_FACTOR),
            (0, 1 << 48),
            (0, self.preemption_limit_ns),
            (1000, 1_000_000),
            (100_000, 3_600_000_000_000),
            (1_000_000, 10_000_000_000),
            // Upwards, and downwards, to the nanosecond within the range.
            (
                period_ns.div_ceil(100),
                period_ns / 10 * 9 + period_ns % 10 * 9 / 10,
            ),
            (self.sigma_t1_permille.saturating_add(1), MAX_FACTOR),
            (self.no_preemption_ns.saturating_add(1), 1 << 49),
            (self.preemption_limit_ns.saturating_add(1), 1 << 49),
            (1, 1_000_000),
            (1000, MAX_FACTOR),
            (0, 1000),
            (0, 1 << 48),
            (0, 1 << 48),
            (1000, MAX_FACTOR),
            (0, 1000),
            (0, 1_000_000),
            (0, 1 << 40),
            (100_000, 1_000_000_000),
            (0, Threshold::ALL_BITS),
            (0, IdlePolicy::ALL.len() as u64 - 1),
            (0, 1),
            (0, 1),
            (1, 1000),
            (0, 1 << 48),
            (0, MAX_FACTOR),
            (0, 1 << 48),
            (self.memory_spacer_bytes, 1 << 56),
            (0, PreemptionWay::ALL.len() as u64 - 1),
            match self.idle_piece_ns {
                0 => (0, 1 << 48),
                // Even a quarter of it, as with `ByState`, is longer than a switch takes.
                _ => (100_000, 1 << 48),
            },
            (0, Dispatch::ALL.len() as u64 - 1),
            (0, StressCause::ALL.len() as u64 - 1),
            (0, 1),
            (0, 1),
            (0, 1000),
            (0, 1000),
            (0, 1 << 49),
            (0, 1 << 49),
            (0, T1State::ALL.len() as u64 - 1),
            (0, 1),
            (0, 1 << 48),
            (0, 1 << 48),
            (0, 1 << 48),
            (0, 1 << 48),
        ]
    }

    /// Refuses a configuration with a number out of its range.
    pub fn check(&self) -> Result<(), Refusal> {
        let (values, ranges) = (self.values(), self.ranges());
        let numbers = values.iter().zip(&ranges);
        for (index, (name, (&value, &(least, most)))) in
            Config::NAMES.iter().zip(numbers).enumerate()
        {
            if value < least || value > most {
                let fault = Fault::Config {
                    name,
                    value,
                    least,
                    most,
                };
                return Err(fault.at(format::HEADER_BYTES + 8 * index));
            }
        }
        Ok(())
    }
}

/// The greatest factor, in thousandths.
const MAX_FACTOR: u64 = 100_000;
