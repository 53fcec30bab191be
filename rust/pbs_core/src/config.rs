// SPDX-License-Identifier: GPL-2.0

//! The numbers of the policy.

use super::wire;
use super::{Fault, Rate, Refusal};

/// The numbers of the policy: `struct pbs_config` of the wire format.
///
/// Factors are given in thousandths: 1050 means 1.05.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// σ of t1, the preemption threshold (Leppert 2021, 3.2.2): the share of a
    /// slot's length that may be retired in it.  1001 to 100000.
    pub sigma_t1_permille: u64,
    /// PREEMPTION_LIMIT (3.2.2): a slot runs over its length by no more than
    /// this.  Up to 2^48.
    pub preemption_limit_insns: u64,
    /// NO_PREEMPTION (3.2.2): a slot may always run over its length by this.
    /// Up to `preemption_limit_insns`.
    pub no_preemption_insns: u64,
    /// A slot's ceiling on the clock is its length at the node's rate, times
    /// this, plus `ceiling_extra_ns`: user instructions alone bound nothing.
    /// 1000 to 1000000.
    pub ceiling_factor_permille: u64,
    /// The constant part of the ceiling.  100 µs to 3600 s.
    pub ceiling_extra_ns: u64,
    /// Execution time and unallocated time together (2.4.3).  1 ms to 10 s.
    pub window_period_ns: u64,
    /// Unallocated time, at the end of each period.  1 % to 90 % of it.
    pub window_unallocated_ns: u64,
}

impl Config {
    /// How many numbers there are.
    pub const COUNT: usize = 7;

    /// Their names, in the order of the wire format.
    pub const NAMES: [&'static str; Config::COUNT] = [
        "sigma_t1_permille",
        "preemption_limit_insns",
        "no_preemption_insns",
        "ceiling_factor_permille",
        "ceiling_extra_ns",
        "window_period_ns",
        "window_unallocated_ns",
    ];

    /// What a node runs with when neither its administrator nor the plan says
    /// otherwise.
    pub const DEFAULT: Config = Config {
        sigma_t1_permille: 1050,
        preemption_limit_insns: 50_000_000,
        no_preemption_insns: 10_000,
        ceiling_factor_permille: 2000,
        ceiling_extra_ns: 10_000_000,
        window_period_ns: 100_000_000,
        window_unallocated_ns: 5_000_000,
    };

    /// The numbers in the order of [`Config::NAMES`].
    pub const fn values(&self) -> [u64; Config::COUNT] {
        [
            self.sigma_t1_permille,
            self.preemption_limit_insns,
            self.no_preemption_insns,
            self.ceiling_factor_permille,
            self.ceiling_extra_ns,
            self.window_period_ns,
            self.window_unallocated_ns,
        ]
    }

    /// A configuration of `values` in the order of [`Config::NAMES`], unchecked.
    pub const fn from_values(values: [u64; Config::COUNT]) -> Config {
        Config {
            sigma_t1_permille: values[0],
            preemption_limit_insns: values[1],
            no_preemption_insns: values[2],
            ceiling_factor_permille: values[3],
            ceiling_extra_ns: values[4],
            window_period_ns: values[5],
            window_unallocated_ns: values[6],
        }
    }

    /// The least and the greatest value of each number.  Two of the ranges
    /// depend on another number.
    pub const fn ranges(&self) -> [(u64, u64); Config::COUNT] {
        let period_ns = self.window_period_ns;
        [
            (1001, 100_000),
            (0, 1 << 48),
            (0, self.preemption_limit_insns),
            (1000, 1_000_000),
            (100_000, 3_600_000_000_000),
            (1_000_000, 10_000_000_000),
            // Upwards, and downwards, to the nanosecond within the range.
            (
                period_ns.div_ceil(100),
                period_ns / 10 * 9 + period_ns % 10 * 9 / 10,
            ),
        ]
    }

    /// Refuses a configuration with a number out of its range.
    pub fn check(&self) -> Result<(), Refusal> {
        let numbers = self.values().into_iter().zip(self.ranges());
        for (index, (name, (value, (least, most)))) in
            Config::NAMES.into_iter().zip(numbers).enumerate()
        {
            if value < least || value > most {
                let fault = Fault::Config {
                    name,
                    value,
                    least,
                    most,
                };
                return Err(fault.at(wire::HEADER_BYTES + 8 * index));
            }
        }
        Ok(())
    }

    /// t1 of a slot: the slot ends when the instructions retired in it reach
    /// this (Leppert 2021, 3.2.2).
    ///
    /// It comes from the length of the slot and not of the task, which may
    /// have been pushed into a slot much shorter than itself.
    pub const fn t1_insns(&self, slot_insns: u64) -> u64 {
        let relative = permille(slot_insns, self.sigma_t1_permille);
        let limit = slot_insns.saturating_add(self.preemption_limit_insns);
        let least = slot_insns.saturating_add(self.no_preemption_insns);
        let capped = if relative < limit { relative } else { limit };
        if capped > least {
            capped
        } else {
            least
        }
    }

    /// The ceiling of a slot in plan time.
    pub const fn ceiling_ns(&self, slot_insns: u64, rate: Rate) -> u64 {
        permille(rate.to_ns(slot_insns), self.ceiling_factor_permille)
            .saturating_add(self.ceiling_extra_ns)
    }
}

/// `value · factor / 1000`, rounded down, exactly and without 128-bit division.
const fn permille(value: u64, factor_permille: u64) -> u64 {
    (value / 1000)
        .saturating_mul(factor_permille)
        .saturating_add((value % 1000).saturating_mul(factor_permille) / 1000)
}
