// SPDX-License-Identifier: GPL-2.0
//! Memory and resources that a process holds while it lives.

use std::ops::Range;

use pbs_job::Job;
use pbs_profile::Profile;

use super::{HeldAmount, Store};

/// Memory and resources that a process holds from its first task to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) memory_bytes: u64,
    /// Resources that the machine does not have are left out: such a job is refused.
    pub(crate) resources: Vec<HeldAmount>,
}

impl Needs {
    pub(crate) fn new(job: &Job, process: usize, store: &Store) -> Self {
        let amounts = job.amounts(process);
        let resources = amounts.iter().filter_map(|amount| {
            let resource = store.machine().resource(&amount.resource)?;
            Some(HeldAmount { resource, count: amount.count })
        });
        Self { memory_bytes: job.processes[process].memory_bytes, resources: resources.collect() }
    }

    /// Profiles of what is held on that core, each with the amount that is needed.
    pub(crate) fn profiles<'a>(
        &'a self,
        store: &'a Store,
        memory: &'a Profile,
    ) -> impl Iterator<Item = (&'a Profile, u64)> {
        let resources = self.resources.iter();
        let resources = resources.map(|held| (store.resource(held.resource), held.count));
        std::iter::once((memory, self.memory_bytes)).chain(resources)
    }

    /// The first time of the window at which too little of something is free on that core.
    pub(crate) fn first_lack(&self, store: &Store, core: usize, window: Range<u64>) -> Option<u64> {
        let lacks = self
            .profiles(store, store.memory(core))
            .filter_map(|(profile, amount)| profile.first_below(amount, window.clone()));
        lacks.min()
    }
}
