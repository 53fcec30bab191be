// SPDX-License-Identifier: GPL-2.0
//! The memory of the node, which the processes on all of its CPUs share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pbs_plan::Plan;

use crate::clock::Clock;
use crate::options::MemoryOver;

/// Memory of the node, as all of its CPUs share it.
pub(crate) type SharedMemory = Rc<RefCell<NodeMemory>>;

/// Memory of the node and its real use. The node itself is only aware of the use that it has
/// sampled.
#[derive(Debug, Default)]
pub(crate) struct NodeMemory {
    /// 0: the plan does not say; then there is always enough.
    limit_bytes: u64,
    used_bytes: u64,
    /// The greatest `used_bytes`.
    pub(crate) peak_bytes: u64,
    /// Processes that were ended since there was no memory for them.
    pub(crate) killed: u64,
    /// Memory used by the sampled processes of each CPU, as the CPUs have reported it to each
    /// other.
    told_bytes: HashMap<u32, u64>,
}

impl NodeMemory {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { limit_bytes: plan.memory_bytes, ..Self::default() }
    }

    /// Whether that much memory is left.
    pub(crate) fn has(&self, bytes: u64) -> bool {
        self.limit_bytes == 0 || self.used_bytes.saturating_add(bytes) <= self.limit_bytes
    }

    pub(crate) fn take(&mut self, bytes: u64) {
        self.used_bytes = self.used_bytes.saturating_add(bytes);
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
    }

    pub(crate) fn give(&mut self, bytes: u64) {
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }

    /// Returns the rate of a process under the present use of memory; `clock` is its rate if there
    /// is enough memory.
    pub(crate) fn pace(&self, clock: Clock, over: MemoryOver) -> Clock {
        let MemoryOver::Swap { slowdown } = over else {
            return clock;
        };
        if self.has(0) {
            return clock;
        }
        // Of `used` instructions `limit` find their memory, and each of the others
        // takes as long as `slowdown`.
        let (used, limit) = (u128::from(self.used_bytes), u128::from(self.limit_bytes));
        let takes = limit + (used - limit) * u128::from(slowdown.max(1));
        clock.slowed(used, takes)
    }

    /// A CPU shows the others what its processes use, as far as it knows; returns what
    /// those there use.
    pub(crate) fn tell(&mut self, cpu: u32, bytes: u64) -> u64 {
        self.told_bytes.insert(cpu, bytes);
        let others = self.told_bytes.iter().filter(|(&other, _)| other != cpu);
        others.fold(0, |sum, (_, &bytes)| sum.saturating_add(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::NodeMemory;
    use crate::clock::Clock;
    use crate::options::MemoryOver;

    #[test]
    fn what_is_swapped_out_makes_all_slower() {
        let swap = MemoryOver::Swap { slowdown: 10 };
        let mut memory = NodeMemory { limit_bytes: 1000, ..NodeMemory::default() };
        memory.take(1000);
        assert_eq!(memory.pace(Clock::new(1_000_000), swap), Clock::new(1_000_000));
        memory.take(1000);
        // Half of the instructions take ten times as long: 5.5 on average.
        assert_eq!(memory.pace(Clock::new(1_000_000), swap), Clock::new(181_818));
        assert_eq!(memory.pace(Clock::new(1_000_000), MemoryOver::Tell), Clock::new(1_000_000));
        memory.give(1000);
        assert_eq!(memory.pace(Clock::new(1_000_000), swap), Clock::new(1_000_000));
        assert_eq!(memory.peak_bytes, 2000);
    }

    #[test]
    fn others_are_told_what_is_used() {
        let mut memory = NodeMemory::default();
        assert_eq!(memory.tell(0, 5), 0);
        assert_eq!(memory.tell(1, 7), 5);
        assert_eq!(memory.tell(0, 6), 7);
        assert_eq!(memory.tell(1, 0), 6);
    }

    #[test]
    fn without_a_limit_there_is_always_enough() {
        let mut memory = NodeMemory::default();
        memory.take(u64::MAX);
        assert!(memory.has(1));
        let swap = MemoryOver::Swap { slowdown: 10 };
        assert_eq!(memory.pace(Clock::new(7), swap), Clock::new(7));
    }
}
