// SPDX-License-Identifier: GPL-2.0

//! Rates of the processes of a node.

use super::memory::{Memory, NoMemory};
use super::plan::{Plan, Process};
use super::rate::Rate;

/// The rates at which the CPU retires the instructions of the processes.
pub(super) struct Rates<M: Memory> {
    /// The rate of the CPU, as declared by the plan, else by the machine.
    cpu: Rate,
    /// Own rates by process, if the plan declares them.  Empty if the plan declares none.
    own: M::Slice<Option<Rate>>,
}

impl<M: Memory> Rates<M> {
    pub(super) fn new(plan: &Plan<M>, cpu: Rate) -> Result<Rates<M>, NoMemory> {
        let own_rate = |process: &Process| match process.rate_insns_per_ms {
            0 => None,
            insns_per_ms => Some(Rate::new(insns_per_ms.into())),
        };
        let declared = plan.processes.iter().any(|p| own_rate(p).is_some());
        let len = if declared { plan.processes.len() } else { 0 };
        let mut own = M::alloc(len, None)?;
        for (rate, process) in own.iter_mut().zip(plan.processes.iter()) {
            *rate = own_rate(process);
        }
        Ok(Rates {
            cpu: plan.rate(cpu),
            own,
        })
    }

    /// The rate of the CPU.
    pub(super) fn cpu(&self) -> Rate {
        self.cpu
    }

    /// Changes the rate of the CPU, unless `plan` declares one.
    pub(super) fn set_cpu(&mut self, plan: &Plan<M>, cpu: Rate) {
        self.cpu = plan.rate(cpu);
    }

    /// The rate of process `p`.
    pub(super) fn of(&self, p: u32) -> Rate {
        self.own(p).unwrap_or(self.cpu)
    }

    /// The rate that the plan declares for process `p`.
    pub(super) fn own(&self, p: u32) -> Option<Rate> {
        self.own.get(p as usize).copied().flatten()
    }
}
