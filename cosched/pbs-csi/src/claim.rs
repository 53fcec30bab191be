// SPDX-License-Identifier: GPL-2.0
//! Start and end of tasks: from waiting to in execution, and out of the queue.

use pbs_uapi::clock::monotonic_ns;

use crate::csi;
use crate::layout::RUNNING;
use crate::node::Locked;
use crate::overdue::Stopped;
use crate::table::{Entry, State};
use crate::Error;

/// Claim of a task on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Slot of the task's entry.
    pub slot: u32,
    /// Number of the task.
    pub task: u64,
    /// The generation that its owner has fetched.
    pub generation: u64,
    /// The device.
    pub device: u32,
    /// Devices of the type, or threads.
    pub units: u32,
    /// Expected runtime.
    pub runtime_ns: u64,
    /// Whether it may start before others that are before it in the queue, as when these
    /// have not started though the device was free.
    pub overtakes: bool,
}

/// Result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The task may run on these devices of the type. Its CSI is gone.
    Started {
        /// The first of them, from 0; the others follow. Nothing: so many threads are free,
        /// but not one beside the other.
        instance: Option<u32>,
    },
    /// A result must be fetched first, or one is being calculated.
    Changed,
    /// The device is taken, or others are before in its queue.
    Busy {
        /// Expected end of the first task in execution there; 0: enough devices are free, but
        /// a task that is before in the queue has not started on them.
        until_ns: u64,
    },
    /// Somebody has removed the entry: the task is not known any more.
    Gone,
}

/// Occupation of a device that is not free.
#[derive(Clone, Copy)]
struct Occupation {
    until_ns: u64,
    is_by_others: bool,
}

impl Locked<'_> {
    /// Claims a device for a task and deletes its CSI (§4.2.3): it starts now.
    ///
    /// The queue of a device is first in, first out, in the order of rounds and submission: a
    /// task does not overtake a scheduled one of another process that is ready, and whose
    /// owner knows so. If it can't start, it overtakes waiting tasks of stopped processes, and
    /// the devices of their overdue tasks are lent to it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn claim(&mut self, claim: Claim) -> Result<Claimed, Error> {
        if self.header.status == RUNNING {
            self.recover()?;
        }
        if self.header.status == RUNNING || self.generation() != claim.generation {
            return Ok(Claimed::Changed);
        }
        let Some(mut entry) = self.own_entry(claim.slot, claim.task)? else {
            return Ok(Claimed::Gone);
        };
        let devices = self.devices()?;
        let Some(there) = devices.get(claim.device as usize) else {
            return Ok(Claimed::Gone);
        };
        let count = there.count;
        let units = claim.units.clamp(1, count.max(1));
        let claim = Claim { units, ..claim };
        let mut free = self.free_on(&entry, &claim, count, None)?;
        // Those who have it may be gone; this process is not.
        if free.is_err_and(|taken| taken.is_by_others) && self.sweep()? > 0 {
            free = self.free_on(&entry, &claim, count, None)?;
        }
        if free.is_err() {
            free = self.free_on(&entry, &claim, count, Some(monotonic_ns()))?;
        }
        let instance = match free {
            Ok(instance) => instance,
            Err(Occupation { until_ns, .. }) => return Ok(Claimed::Busy { until_ns }),
        };
        entry.state = State::InExecution;
        entry.device = Some(claim.device);
        entry.units = units;
        entry.instance = instance;
        entry.runtime_ns = claim.runtime_ns;
        entry.expected_end_ns = monotonic_ns().saturating_add(claim.runtime_ns);
        self.write_entry(&entry)?;
        self.node.step();
        csi::remove(&self.node.directory, entry.owner, entry.task);
        self.settle()?;
        Ok(Claimed::Started { instance })
    }

    /// The first of so many devices of the type that are free, or when some may be. With
    /// `lent_ns`, devices of other processes' tasks that are lent then count as free, and waiting
    /// tasks of stopped processes don't count.
    fn free_on(
        &self,
        own: &Entry,
        claim: &Claim,
        count: u32,
        lent_ns: Option<u64>,
    ) -> Result<Result<Option<u32>, Occupation>, Error> {
        let (generation, units) = (self.generation(), claim.units);
        let options = &self.node.options;
        let (mut used, mut until_ns) = (0_u64, 0);
        let mut is_by_others = false;
        let (mut taken, mut before) = (Vec::new(), Vec::new());
        for other in self.entries()? {
            if other.device != Some(claim.device) || other.slot == own.slot {
                continue;
            }
            let is_other = other.owner != own.owner;
            if is_other && lent_ns.is_some_and(|now_ns| other.is_lent(now_ns, options)) {
                continue;
            }
            is_by_others |= is_other;
            if other.state == State::InExecution {
                used += u64::from(other.units.max(1));
                if let Some(first) = other.instance {
                    taken.push(first..first.saturating_add(other.units.max(1)));
                }
                until_ns = match until_ns {
                    0 => other.expected_end_ns,
                    first => first.min(other.expected_end_ns),
                };
            } else {
                let knows = other.is_ready && other.acknowledged == generation;
                let is_before = other.place() < own.place();
                if is_other && other.is_scheduled && own.is_scheduled && knows && is_before {
                    before.push(other);
                }
            }
        }
        let has_room = |units: u32| used + u64::from(units) <= u64::from(count) || used == 0;
        if !has_room(units) {
            return Ok(Err(Occupation { until_ns, is_by_others }));
        }
        if claim.overtakes {
            before.clear();
        } else if lent_ns.is_some() {
            let mut stopped = Stopped::default();
            before.retain(|other| !stopped.is_stopped(other.owner));
        }
        if let Some(next) = before.iter().min_by_key(|other| other.place()) {
            // A task that has no room waits for the end of others. One that has could start.
            let until_ns = if has_room(next.units) { 0 } else { until_ns };
            return Ok(Err(Occupation { until_ns, is_by_others }));
        }
        // Only the end of what is taken, or the beginning, can be the first of what is free.
        let mut firsts: Vec<u32> = taken.iter().map(|taken| taken.end).collect();
        firsts.push(0);
        firsts.sort_unstable();
        let first = firsts.into_iter().find(|&first| {
            let end = first.saturating_add(units);
            end <= count && taken.iter().all(|of| of.end <= first || end <= of.start)
        });
        Ok(Ok(first))
    }

    /// Removes an ended task from the queue of its device. `now_ready` are tasks of this process,
    /// slot and number, whose last dependency it was.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn finish(&mut self, slot: u32, task: u64, now_ready: &[(u32, u64)]) -> Result<(), Error> {
        for &(slot, task) in now_ready {
            if let Some(mut entry) = self.own_entry(slot, task)? {
                entry.is_ready = true;
                self.write_entry(&entry)?;
            }
        }
        if self.own_entry(slot, task)?.is_some() {
            self.free(slot)?;
        }
        Ok(())
    }
}
