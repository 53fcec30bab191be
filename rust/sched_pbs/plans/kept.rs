// SPDX-License-Identifier: GPL-2.0

//! The plans that are stored for recorders of the inputs of the policy.
//!
//! A plan comes into force under a number. The written plan is stored under that number as long as
//! anyone records, because a node can't be made again without it.

use crate::{
    linux::storage::CHARGED,
    pbs_core::{Config, Rate},
};
use kernel::{
    alloc::{KVVec, KVec},
    bindings,
    prelude::*,
    sync::Arc,
};

/// Total size of the plans that are stored.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// A plan that was written.
struct KeptPlan {
    number: u64,
    bytes: Arc<KVVec<u8>>,
    /// For each of its CPUs, the configuration and the rate with which it began.
    cpus: KVec<(u32, Config, Rate)>,
}

/// The plans that were written during a recording.
#[derive(Default)]
pub(crate) struct KeptPlans {
    /// Number of recorders.
    recorders: u32,
    /// The number of the last plan that was written meanwhile.
    last: u64,
    /// The plans, each at the place of its number modulo the length.
    plans: KVec<Option<KeptPlan>>,
}

impl KeptPlans {
    /// Whether anyone records.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorders != 0
    }

    /// Adds a recorder.
    pub(crate) fn add_recorder(&mut self) {
        self.recorders += 1;
    }

    /// Removes a recorder. Without a recorder nothing is stored.
    pub(crate) fn remove_recorder(&mut self) {
        self.recorders -= 1;
        if self.recorders == 0 {
            self.plans = KVec::new();
        }
    }

    /// The number of the plan that will be written next.
    pub(crate) fn next(&self) -> u64 {
        self.last + 1
    }

    /// The number of the plan that is about to come into force; 0: no recording.
    pub(crate) fn number(&mut self) -> u64 {
        if !self.is_recorded() {
            return 0;
        }
        self.last += 1;
        self.last
    }

    /// Stores the plan that got the last number, which has come into force. If there is no memory
    /// for it, a request for it reports that it is not stored.
    pub(crate) fn keep(
        &mut self,
        bytes: KVVec<u8>,
        cpus: impl Iterator<Item = (u32, Config, Rate)>,
    ) {
        if !self.is_recorded() {
            return;
        }
        let number = self.last;
        let keep = || -> Result<KeptPlan> {
            let mut begun = KVec::new();
            for cpu in cpus {
                begun.push(cpu, CHARGED)?;
            }
            Ok(KeptPlan {
                number,
                bytes: Arc::new(bytes, CHARGED)?,
                cpus: begun,
            })
        };
        let Ok(plan) = keep() else { return };
        while self.plans.len() < bindings::PBS_MAX_KEPT_PLANS as usize {
            if self.plans.push(None, CHARGED).is_err() {
                return;
            }
        }
        let place = number as usize % self.plans.len();
        if let Some(place) = self.plans.get_mut(place) {
            *place = Some(plan);
        }
        while self.bytes() > MAX_KEPT_BYTES {
            let kept = self.plans.iter_mut().filter(|place| place.is_some());
            let oldest = kept.min_by_key(|place| place.as_ref().map(|plan| plan.number));
            if let Some(oldest) = oldest {
                *oldest = None;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.plans
            .iter()
            .flatten()
            .map(|plan| plan.bytes.len())
            .sum()
    }

    /// The plan of that number, and the configuration and the rate with which it began on that CPU.
    pub(crate) fn get(&self, number: u64, cpu: u32) -> Option<(Arc<KVVec<u8>>, Config, Rate)> {
        let plan = self
            .plans
            .iter()
            .flatten()
            .find(|plan| plan.number == number)?;
        let of_cpu = |begun: &&(u32, Config, Rate)| begun.0 == cpu;
        let (_, config, rate) = plan.cpus.iter().find(of_cpu)?;
        Some((plan.bytes.clone(), *config, *rate))
    }
}
