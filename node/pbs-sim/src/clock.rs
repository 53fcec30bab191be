// SPDX-License-Identifier: GPL-2.0
//! Instructions and nanoseconds of the simulated CPU, exact.

use pbs_core::Rate;
use pbs_plan::{Cpu, Process};

const NS_PER_MS: u64 = 1_000_000;

/// The constant rate of the simulated CPU, or of a process on it.
///
/// The policy core converts in fixed point, as it must in the kernel; what a
/// process really retires is not a matter of that rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    insns_per_ms: u64,
}

impl Clock {
    /// A rate of at least 1.
    pub fn new(insns_per_ms: u64) -> Self {
        Self { insns_per_ms: insns_per_ms.max(1) }
    }

    /// Returns the clock of a CPU; `otherwise_insns_per_ms` is the rate if the plan declares none.
    pub(crate) fn of_cpu(cpu: &Cpu, otherwise_insns_per_ms: u64) -> Self {
        match cpu.rate_insns_per_ms {
            0 => Self::new(otherwise_insns_per_ms),
            insns_per_ms => Self::new(insns_per_ms),
        }
    }

    /// Returns the clock of a process that runs on the CPU whose clock this is.
    pub(crate) fn of_process(self, process: &Process) -> Self {
        match process.rate_insns_per_ms {
            0 => self,
            insns_per_ms => Self::new(insns_per_ms),
        }
    }

    pub(crate) fn insns_per_ms(self) -> u64 {
        self.insns_per_ms
    }

    /// Returns this rate in the form of the policy core.
    pub(crate) fn rate(self) -> Rate {
        Rate::new(self.insns_per_ms)
    }

    /// Returns the number of instructions retired at this rate in the time in which `insns` are
    /// retired at the rate of `other`, rounded up.
    pub(crate) fn insns_for(self, insns: u64, other: Self) -> u64 {
        if self.insns_per_ms == other.insns_per_ms {
            return insns;
        }
        let product = u128::from(insns) * u128::from(self.insns_per_ms);
        saturate(product.div_ceil(other.insns_per_ms.into()))
    }

    /// One at which the same takes `takes` instead of `used`, in whole instructions for
    /// each millisecond.
    pub(crate) fn slowed(self, used: u128, takes: u128) -> Self {
        let insns_per_ms = u128::from(self.insns_per_ms) * used / takes.max(1);
        Self::new(saturate(insns_per_ms))
    }

    /// The time after which `insns` have been retired, in whole nanoseconds.
    pub(crate) fn ns_for(self, insns: u64) -> u64 {
        match insns.checked_mul(NS_PER_MS) {
            Some(product) => product.div_ceil(self.insns_per_ms),
            None => saturate(
                (u128::from(insns) * u128::from(NS_PER_MS)).div_ceil(self.insns_per_ms.into()),
            ),
        }
    }

    /// The instructions that have been retired after `ns`.
    pub fn insns_in(self, ns: u64) -> u64 {
        match ns.checked_mul(self.insns_per_ms) {
            Some(product) => product / NS_PER_MS,
            None => saturate(u128::from(ns) * u128::from(self.insns_per_ms) / 1_000_000),
        }
    }
}

pub(crate) fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn the_time_for_a_count_is_the_first_at_which_it_is_reached() {
        for rate in [1, 3, 250_000, 333_333, 1_000_000, 2_999_999, u64::MAX] {
            let clock = Clock::new(rate);
            for insns in [0, 1, 2, 1000, 1_234_567, 1 << 40] {
                let ns = clock.ns_for(insns);
                assert!(clock.insns_in(ns) >= insns, "{insns} at {rate}");
                assert!(ns == 0 || clock.insns_in(ns - 1) < insns, "{insns} at {rate}");
            }
        }
    }

    #[test]
    fn instructions_of_one_rate_are_instructions_of_another() {
        let (slow, fast) = (Clock::new(300_000), Clock::new(900_000));
        assert_eq!(fast.insns_for(1000, fast), 1000);
        assert_eq!(fast.insns_for(1000, slow), 3000);
        assert_eq!(slow.insns_for(1000, fast), 334);
        assert_eq!(Clock::new(2).insns_for(u64::MAX, Clock::new(1)), u64::MAX);
    }

    #[test]
    fn great_numbers_do_not_overflow() {
        assert_eq!(Clock::new(1_000_000).ns_for(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(1).ns_for(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(2_000_000).insns_in(u64::MAX), u64::MAX);
    }
}
