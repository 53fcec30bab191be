// SPDX-License-Identifier: GPL-2.0
//! Queues while jobs enter them.  All timing of this crate happens in [`State::place`].

use crate::model::{ExecutionTarget, Platform};
use crate::problem::{FittingVariant, Job};
use crate::queues::{Memory, Queues};
use crate::resources::{Data, Resources, Transfer};

/// A restraint as times: threads to pass over, and the earliest start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) skip: usize,
    pub(crate) not_before_ns: u64,
}

/// Time and memory of a job's execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) memory: Memory,
}

/// The queues while jobs enter them.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Time from which each CPU thread is free, and its number; sorted in this order.
    pub(crate) threads: Vec<(u64, u32)>,
    /// Time from which each accelerator is free, by type.
    pub(crate) devices: Vec<Vec<u64>>,
    /// Placement of each job; meaningless until it is placed.
    pub(crate) placed: Vec<Placed>,
    /// Jobs that are placed.
    placed_jobs: Vec<bool>,
    /// The threads of the job placed last, if it took threads.
    pub(crate) taken: Vec<u32>,
    /// Transfers of the job placed last that had a link to themselves.
    pub(crate) carried: Vec<Transfer>,
    /// Pairs of neighbours in the last timeline with slow-downs.
    pub(crate) pairs: usize,
    resources: Resources,
}

impl State {
    pub(crate) fn new(platform: &Platform, queues: &Queues, jobs: usize) -> Self {
        let free_ns = |queue: Option<&Vec<crate::Entry>>| {
            queue.map_or(queues.now_ns, |queue| queues.free_ns(queue))
        };
        let mut threads: Vec<(u64, u32)> = (0..platform.threads)
            .map(|thread| (free_ns(queues.threads.get(thread as usize)), thread))
            .collect();
        let resources = Resources::new(platform, queues);
        for (thread, until_ns) in resources.hosts_busy(queues) {
            let free_ns = &mut threads[thread as usize].0;
            *free_ns = (*free_ns).max(until_ns);
        }
        threads.sort_unstable();
        let devices = platform.devices.iter().enumerate().map(|(device, of)| {
            let queue = |instance| queues.devices.get(device).and_then(|of| of.get(instance));
            (0..of.count as usize).map(|instance| free_ns(queue(instance))).collect()
        });
        Self {
            threads,
            devices: devices.collect(),
            placed: vec![Placed::default(); jobs],
            placed_jobs: vec![false; jobs],
            taken: Vec::new(),
            carried: Vec::new(),
            pairs: 0,
            resources,
        }
    }

    /// Whether a job is placed.
    pub(crate) fn is_placed(&self, job: usize) -> bool {
        self.placed_jobs[job]
    }

    /// Puts a job at the end of the queues it needs: those of the threads that are free first,
    /// or of the accelerator on which it starts first.  All it waits for must be placed and
    /// the way must fit the platform.  A restraint counts on threads only.
    pub(crate) fn place(
        &mut self,
        of: &Job,
        job: usize,
        way: &FittingVariant,
        held: Held,
    ) -> Placed {
        self.taken.clear();
        self.carried.clear();
        let placed = match way.place {
            ExecutionTarget::Threads(needed) => {
                let needed = needed as usize;
                let first = held.skip.min(self.threads.len() - needed);
                let (last, behind) = (first + needed - 1, first + needed);
                let ready_ns = self.bring(of, None).max(held.not_before_ns);
                let start_ns = ready_ns.max(self.threads[last].0);
                let end_ns = start_ns.saturating_add(way.runtime_ns);
                self.taken.extend(self.threads[first..behind].iter().map(|&(_, thread)| thread));
                self.taken.sort_unstable();
                // They move behind all that are free earlier.
                let passed = self.threads[behind..].iter();
                let earlier = passed.take_while(|&&(free_ns, _)| free_ns < end_ns).count();
                self.threads.copy_within(behind..behind + earlier, first);
                for (slot, &thread) in self.threads[first + earlier..].iter_mut().zip(&self.taken) {
                    *slot = (end_ns, thread);
                }
                Placed { start_ns, end_ns, memory: None }
            }
            ExecutionTarget::Device(device) => {
                let mut first = (u64::MAX, 0);
                for instance in 0..self.devices[device].len() as u32 {
                    let ready_ns = self.bring(of, Some((device, instance)));
                    let start_ns = ready_ns.max(self.devices[device][instance as usize]);
                    first = first.min((start_ns, instance));
                }
                let (mut start_ns, instance) = first;
                self.bring(of, Some((device, instance)));
                let host = self.resources.host(device, way.runtime_ns);
                if let Some((thread, ns)) = host {
                    start_ns = self.take_host(thread, start_ns, ns);
                }
                let end_ns = start_ns.saturating_add(way.runtime_ns);
                if let Some(free_ns) = self.devices[device].get_mut(instance as usize) {
                    *free_ns = end_ns;
                }
                Placed { start_ns, end_ns, memory: Some((device, instance)) }
            }
        };
        self.resources.carry(&self.carried);
        self.placed[job] = placed;
        self.placed_jobs[job] = true;
        placed
    }

    /// Takes a thread for so long, when it is free and not before a time.  Returns the begin.
    fn take_host(&mut self, thread: u32, ready_ns: u64, ns: u64) -> u64 {
        let Some(at) = self.threads.iter().position(|&(_, other)| other == thread) else {
            return ready_ns;
        };
        let start_ns = ready_ns.max(self.threads[at].0);
        let end_ns = start_ns.saturating_add(ns);
        let behind = self.threads[at + 1..].iter().take_while(|&&(free_ns, _)| free_ns < end_ns);
        let last = at + behind.count();
        self.threads.copy_within(at + 1..=last, at);
        self.threads[last] = (end_ns, thread);
        start_ns
    }

    /// Brings a job's data to a memory.  Returns the time at which all are there, and leaves the
    /// transfers in `carried`.
    fn bring(&mut self, of: &Job, here: Memory) -> u64 {
        if !self.resources.has_links() {
            return self.data_ns(of, here);
        }
        self.carried.clear();
        let after = of.after.iter().map(|&(job, transfer_ns)| {
            let Placed { end_ns, memory, .. } = self.placed[job];
            Data { memory, end_ns, transfer_ns }
        });
        let mut data: Vec<Data> = of.inputs.iter().copied().chain(after).collect();
        let ready_ns = self.resources.bring(of.task, here, &mut data, &mut self.carried);
        ready_ns.max(of.released_ns)
    }

    /// Returns the time at which all data that a job needs are in a memory, if no link is taken.
    pub(crate) fn data_ns(&self, of: &Job, here: Memory) -> u64 {
        let mut ready_ns = of.released_ns;
        let mut wait_for = |memory: Memory, end_ns: u64, transfer_ns: u64| {
            let travels_ns = if memory == here { 0 } else { transfer_ns };
            ready_ns = ready_ns.max(end_ns.saturating_add(travels_ns));
        };
        for &Data { memory, end_ns, transfer_ns, .. } in &of.inputs {
            wait_for(memory, end_ns, transfer_ns);
        }
        for &(job, transfer_ns) in &of.after {
            wait_for(self.placed[job].memory, self.placed[job].end_ns, transfer_ns);
        }
        ready_ns
    }
}
