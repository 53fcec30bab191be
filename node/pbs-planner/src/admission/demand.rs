// SPDX-License-Identifier: GPL-2.0
//! The demand test's settings, and what it finds.

use pbs_job::Machine;

use super::edf::Overload;
use crate::store::{Capacity, Store};

/// Test of the demand of independent processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandTest {
    /// The share of a core's time that all processes together may ask for, in
    /// thousandths.
    pub share_permille: u64,
    /// The node orders processes by their deadlines, and so interrupts a task for one
    /// that is released later. Otherwise only plans are admitted in which each task has
    /// one slot.
    pub interrupts: bool,
}

/// A core of which more is asked than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreOverload {
    /// Number of the core on the machine.
    pub core: usize,
    /// The share of the core that was tested, in thousandths.
    pub share_permille: u64,
    /// The interval, as time of the core at that share.
    pub overload: Overload,
}

impl DemandTest {
    /// The share where nobody sets another, in thousandths.
    pub const SHARE_PERMILLE: u64 = 900;

    /// The test of a machine, with its own share or the default; `None`: it has none.
    pub fn of(machine: &Machine, capacity: Capacity, interrupts: bool) -> Option<Self> {
        let share_permille = machine.demand_permille.unwrap_or(Self::SHARE_PERMILLE);
        (share_permille > 0).then(|| Self::new(share_permille, capacity, interrupts))
    }

    /// A test with that share, or with what the execution time of `capacity` leaves of
    /// it.
    pub fn new(share_permille: u64, capacity: Capacity, interrupts: bool) -> Self {
        let most_permille = capacity.execution_ns(1000).max(1);
        Self { share_permille: share_permille.clamp(1, most_permille), interrupts }
    }

    /// The time in which that share of a core retires so many of its instructions.
    pub(crate) fn duration_ns(&self, store: &Store, core: usize, insns: u64) -> u64 {
        let rate = store.core_rate_insns_per_s(core);
        let share = u128::from(rate) * u128::from(self.share_permille) / 1000;
        store.machine().duration_ns(insns, u64::try_from(share).unwrap_or(rate).max(1))
    }
}

impl CoreOverload {
    /// Time that the core has for plans in the interval.
    pub fn supply_ns(&self) -> u64 {
        self.of_share(self.overload.supply_ns)
    }

    /// Time that all processes need that are released and must end in the interval.
    pub fn demand_ns(&self) -> u64 {
        self.of_share(self.overload.demand_ns)
    }

    fn of_share(&self, time_ns: u64) -> u64 {
        let time_ns = u128::from(time_ns) * u128::from(self.share_permille) / 1000;
        u64::try_from(time_ns).unwrap_or(u64::MAX)
    }
}
