// SPDX-License-Identifier: GPL-2.0
//! Resources that tasks on accelerators take besides them: links, and a part of the host's time.

use crate::model::{Host, Platform};
use crate::queues::{Memory, Queues, State, Where};

/// A transfer that had a link to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Task that needs the data.
    pub task: usize,
    /// Type of the accelerator whose link it is.
    pub device: usize,
    /// Number of the accelerator within its type.
    pub instance: u32,
    /// Begin of the transfer.
    pub start_ns: u64,
    /// End of the transfer.
    pub end_ns: u64,
}

/// Data that a task needs from another memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) memory: Memory,
    pub(crate) end_ns: u64,
    pub(crate) transfer_ns: u64,
}

/// Links and hosts while tasks enter the queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    /// Time from which the link of each accelerator is free, by type; a type without links has
    /// none.  Empty if no type has links.
    links: Vec<Vec<u64>>,
    /// Host of each type; empty if no type has one.
    hosts: Vec<Option<Host>>,
}

impl Resources {
    pub(crate) fn new(platform: &Platform, queues: &Queues) -> Self {
        let links = platform.devices.iter().map(|of| vec![queues.now_ns; of.links() as usize]);
        let host = |host: &Host| host.thread < platform.threads && host.permille > 0;
        let hosts = platform.devices.iter().map(|of| of.host.filter(host));
        let mut own = Self { links: links.collect(), hosts: hosts.collect() };
        // The queues are copied often.
        if own.links.iter().all(Vec::is_empty) {
            own.links.clear();
        }
        if own.hosts.iter().all(Option::is_none) {
            own.hosts.clear();
        }
        own
    }

    /// Whether transfers take turns on some link.
    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns the thread that a task on an accelerator of a type takes, and for how long.
    pub(crate) fn host(&self, device: usize, runtime_ns: u64) -> Option<(u32, u64)> {
        let host = (*self.hosts.get(device)?)?;
        Some((host.thread, host.taken_ns(runtime_ns)))
    }

    /// Returns the times at which started tasks on accelerators leave their hosts.
    pub(crate) fn hosts_busy<'a>(
        &'a self,
        queues: &'a Queues,
    ) -> impl Iterator<Item = (u32, u64)> + 'a {
        queues.tasks.iter().filter_map(|state| {
            let State::Started(slot) = state else {
                return None;
            };
            let Where::Device { device, .. } = slot.place else {
                return None;
            };
            let runtime_ns = slot.end_ns.saturating_sub(slot.start_ns);
            let (thread, ns) = self.host(device, runtime_ns)?;
            Some((thread, slot.start_ns.saturating_add(ns)))
        })
    }

    /// Brings data to a memory, what is ready first at first; each transfer takes the links of both
    /// memories.  Returns the time at which all are there, and adds the transfers to `carried`.
    pub(crate) fn bring(
        &self,
        task: usize,
        here: Memory,
        data: &mut [Data],
        carried: &mut Vec<Transfer>,
    ) -> u64 {
        data.sort_by_key(|of| of.end_ns);
        let mut ready_ns = 0;
        for of in data.iter() {
            let mut start_ns = of.end_ns;
            if of.memory == here || of.transfer_ns == 0 {
                ready_ns = ready_ns.max(start_ns);
                continue;
            }
            let ends = [of.memory, here];
            for (device, instance) in ends.iter().flatten().copied() {
                let free_ns = self.links[device].get(instance as usize).copied().unwrap_or(0);
                let own = carried.iter().rev();
                let mut own = own.filter(|of| (of.device, of.instance) == (device, instance));
                let before_ns = own.next().map_or(free_ns, |of| of.end_ns);
                start_ns = start_ns.max(before_ns);
            }
            let end_ns = start_ns.saturating_add(of.transfer_ns);
            for (device, instance) in ends.into_iter().flatten() {
                if !self.links[device].is_empty() {
                    carried.push(Transfer { task, device, instance, start_ns, end_ns });
                }
            }
            ready_ns = ready_ns.max(end_ns);
        }
        ready_ns
    }

    /// Takes the links of transfers.
    pub(crate) fn carry(&mut self, carried: &[Transfer]) {
        for of in carried {
            if let Some(free_ns) = self.links[of.device].get_mut(of.instance as usize) {
                *free_ns = of.end_ns;
            }
        }
    }
}
