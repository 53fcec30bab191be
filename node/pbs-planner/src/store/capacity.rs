// SPDX-License-Identifier: GPL-2.0
//! Part of a core that plans may use.

use pbs_plan::Config;

/// The share of a core's time and of its rate that plans may use.
///
/// The planner sees only the CPU time that is left to it (Glaß 2024, 4.3): a
/// part is *unallocated time*, in which the rest of the system lives (Leppert
/// 2021, 2.4.3). And it takes the node for slower than it is, which leaves the
/// node its *capacity buffer* to balance lateness with (3.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Execution time and unallocated time together.
    pub window_period_ns: u64,
    /// Execution time.
    pub execution_ns: u64,
    /// CAPACITY_BUFFER: what the node can do to what is planned; at least 1000.
    pub capacity_buffer_permille: u64,
}

impl Capacity {
    /// All of it, as Glaß's files mean their rates.
    pub const WHOLE: Self =
        Self { window_period_ns: 1, execution_ns: 1, capacity_buffer_permille: 1000 };

    /// Returns the capacity that a node with this configuration has for its plans.
    pub fn of(config: &Config) -> Self {
        let window_period_ns = config.window_period_ns.max(1);
        let execution_ns = window_period_ns.saturating_sub(config.window_unallocated_ns);
        Self {
            window_period_ns,
            execution_ns: execution_ns.max(1),
            capacity_buffer_permille: config.capacity_buffer_permille.max(1000),
        }
    }

    /// The rate to plan with, of a core that retires so many instructions in a
    /// second of execution time; at least 1.
    pub fn planned_rate(&self, rate_insns_per_s: u64) -> u64 {
        let executed = self.executed(rate_insns_per_s);
        let planned = executed * 1000 / u128::from(self.capacity_buffer_permille.max(1));
        u64::try_from(planned).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the execution time contained in `time_ns`.
    pub fn execution_ns(&self, time_ns: u64) -> u64 {
        u64::try_from(self.executed(time_ns)).unwrap_or(u64::MAX)
    }

    fn executed(&self, value: u64) -> u128 {
        let period_ns = u128::from(self.window_period_ns.max(1));
        u128::from(value) * u128::from(self.execution_ns) / period_ns
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self::of(&Config::DEFAULT)
    }
}
