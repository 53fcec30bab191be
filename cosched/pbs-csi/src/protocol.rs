// SPDX-License-Identifier: GPL-2.0
//! The status protocol: NOT_STARTED → RUNNING → DONE, one master, and all acknowledge
//! (§4.3, 5.3.1).
//!
//! A result is there with the status DONE and the generation that belongs to it. Until
//! then nobody acts on what is written, so it does not matter where a master is killed.

use std::cmp::Reverse;
use std::collections::HashMap;

use pbs_uapi::clock::monotonic_ns;

use crate::csi::{self, Csi};
use crate::devices::Device;
use crate::layout::{DONE, NOT_STARTED, RUNNING};
use crate::node::Locked;
use crate::overdue::Stopped;
use crate::table::{Entry, State};
use crate::{Error, Owner};

/// Process that computes.
#[derive(Debug)]
pub enum Begun {
    /// This process: with what it computes.
    Master(Snapshot),
    /// Another process. Once it has finished, there is a result to fetch.
    Other(Owner),
}

/// Input of a master, and its generation.
#[derive(Debug)]
pub struct Snapshot {
    /// Generation of the master, for [`Locked::publish`].
    pub generation: u64,
    /// `CLOCK_MONOTONIC`.
    pub now_ns: u64,
    /// The devices.
    pub devices: Vec<Device>,
    /// Tasks that wait, in the order of submission; without those of processes that are stopped.
    pub waiting: Vec<Waiting>,
    /// Tasks in execution, which keep their variants and devices; without those whose devices are lent.
    pub in_execution: Vec<Entry>,
}

/// A task that is subject to co-scheduling.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Entry of the task.
    pub entry: Entry,
    /// CSI of the task.
    pub csi: Csi,
}

/// Decision of a master on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Slot in the table.
    pub slot: u32,
    /// Process that owns the task.
    pub owner: Owner,
    /// Number of the task in its process.
    pub task: u64,
    /// Index of the chosen variant.
    pub best_index: u32,
    /// From 1.
    pub round: u32,
    /// Greater goes first.
    pub priority: u64,
    /// The device of the variant.
    pub device: u32,
    /// Devices or threads that it takes there.
    pub units: u32,
    /// Expected runtime on the device.
    pub runtime_ns: u64,
}

/// Decision on a task of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Number of the task.
    pub task: u64,
    /// Index of the chosen variant. `None`: the last co-scheduling did not include the task, or was
    /// taken back.
    pub best_index: Option<u32>,
    /// Position in the queue of its device: see [`Entry::place`].
    pub place: (u32, Reverse<u64>, u64),
}

impl Locked<'_> {
    /// Becomes master, if nobody is: the status is RUNNING, and the queues have only what
    /// is in execution.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn begin(&mut self) -> Result<Begun, Error> {
        self.recover()?;
        if self.header.status == RUNNING {
            return Ok(Begun::Other(self.master()));
        }
        self.sweep()?;
        let now_ns = monotonic_ns();
        self.header.started_ns = now_ns;
        self.set_status(RUNNING, Some(self.node.own));
        self.write_state()?;
        let generation = self.next_generation();
        let (mut waiting, mut in_execution) = (Vec::new(), Vec::new());
        let entries = self.entries()?;
        let mut stopped = Stopped::default();
        for mut entry in entries {
            if entry.state == State::InExecution {
                let is_overdue = entry.overdue_ns(now_ns, &self.node.options).is_some();
                if !is_overdue || !stopped.is_stopped(entry.owner) {
                    in_execution.push(entry);
                }
                continue;
            }
            entry.unschedule();
            self.write_entry(&entry)?;
            if stopped.is_stopped(entry.owner) {
                continue;
            }
            // Without a CSI, or with one that can't be, a task is not subject to anything.
            if let Ok(Some(csi)) = self.csi(&entry) {
                waiting.push(Waiting { entry, csi });
            }
        }
        waiting.sort_by_key(|of| (of.entry.submission, of.entry.slot));
        Ok(Begun::Master(Snapshot {
            generation,
            now_ns,
            devices: self.devices()?,
            waiting,
            in_execution,
        }))
    }

    /// Stores a result: best index, round and queue of each task, then DONE. What has gone
    /// meanwhile is left out.
    ///
    /// # Errors
    ///
    /// [`Error::Superseded`] where this process is not master of this generation any more.
    pub fn publish(&mut self, generation: u64, placements: &[Placement]) -> Result<(), Error> {
        let is_master = self.header.status == RUNNING && self.master() == self.node.own;
        if !is_master || self.generation() != generation {
            return Err(Error::Superseded);
        }
        let entries = self.entries()?;
        let entries: HashMap<u32, Entry> = entries.into_iter().map(|of| (of.slot, of)).collect();
        for placement in placements {
            let Some(entry) = entries.get(&placement.slot) else {
                continue;
            };
            let is_one = (entry.owner, entry.task) == (placement.owner, placement.task);
            if !is_one || entry.state != State::Waiting {
                continue;
            }
            let (directory, trust) = (&self.node.directory, self.node.trust);
            let owner = placement.owner;
            self.node.step();
            let best = placement.best_index;
            if csi::write_best(directory, trust, owner, placement.task, best).is_err() {
                continue;
            }
            let mut entry = entry.clone();
            entry.is_scheduled = true;
            entry.round = placement.round;
            entry.priority = placement.priority;
            entry.device = Some(placement.device);
            entry.units = placement.units;
            entry.runtime_ns = placement.runtime_ns;
            self.write_entry(&entry)?;
        }
        self.header.status = DONE;
        self.write_state()?;
        self.next_generation();
        self.settle()
    }

    /// Gives the part of the master back without a result, as after an error.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn abandon(&mut self, generation: u64) -> Result<(), Error> {
        let is_master = self.header.status == RUNNING && self.master() == self.node.own;
        if is_master && self.generation() == generation {
            self.take_back()?;
        }
        Ok(())
    }

    /// Fetches what was decided of waiting tasks of this process, slot and number, and
    /// acknowledges. The answer has the generation; nothing: a master is still computing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn fetch(&mut self, own: &[(u32, u64)]) -> Result<Option<(u64, Vec<Fetched>)>, Error> {
        self.recover()?;
        if self.header.status == RUNNING {
            return Ok(None);
        }
        let generation = self.generation();
        let mut fetched = Vec::with_capacity(own.len());
        for &(slot, task) in own {
            let Some(mut entry) = self.own_entry(slot, task)? else {
                continue;
            };
            if entry.state != State::Waiting {
                continue;
            }
            let mut best_index = None;
            if entry.is_scheduled {
                // A CSI that cannot be read has no best variant; its task waits until it can.
                best_index = self.csi(&entry).ok().flatten().and_then(|csi| csi.best_index);
            }
            fetched.push(Fetched { task, best_index, place: entry.place() });
            if entry.acknowledged != generation {
                entry.acknowledged = generation;
                self.write_entry(&entry)?;
            }
        }
        self.settle()?;
        Ok(Some((generation, fetched)))
    }

    /// Dismisses a master that is gone, or whose time is up.
    pub(crate) fn recover(&mut self) -> Result<(), Error> {
        if self.header.status != RUNNING {
            return Ok(());
        }
        let now_ns = monotonic_ns();
        let patience_ns = self.node.options.patience.as_nanos();
        // A time that is still to come was not written by a master.
        let has_had_its_time = self.header.started_ns > now_ns
            || u128::from(now_ns - self.header.started_ns) > patience_ns;
        if has_had_its_time || !self.master().is_alive() {
            self.take_back()?;
        }
        Ok(())
    }

    /// Ends a co-scheduling without a result: nothing is scheduled, and all look.
    pub(crate) fn take_back(&mut self) -> Result<(), Error> {
        for mut entry in self.entries()? {
            if entry.state == State::Waiting {
                entry.unschedule();
                self.write_entry(&entry)?;
            }
        }
        self.set_status(NOT_STARTED, None);
        self.write_state()?;
        self.next_generation();
        Ok(())
    }
}
