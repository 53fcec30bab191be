// SPDX-License-Identifier: GPL-2.0
//! The entries: which tasks there are, and whose.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;

use pbs_uapi::clock::monotonic_ns;

use crate::csi::{self, Csi};
use crate::layout::{
    EntryRecord, CSIMF_NAME, CSI_PREFIX, DONE, ENTRIES_AT, ENTRY_CAPACITY, FREE, IN_EXECUTION,
    NONE, NOT_STARTED, WAITING,
};
use crate::node::{Locked, Node};
use crate::{Error, Owner};

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The task waits: it has a CSI and is subject to co-scheduling.
    Waiting,
    /// The task is in execution and keeps its variant (§1.2).
    InExecution,
}

/// A task in the CSIMF, and in the queue of its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Slot in the table.
    pub slot: u32,
    /// Process that owns the task.
    pub owner: Owner,
    /// Number of the task in its process.
    pub task: u64,
    /// State of the task.
    pub state: State,
    /// A co-scheduling gave it a variant.
    pub is_scheduled: bool,
    /// Whether all dependencies of the task have ended.
    pub is_ready: bool,
    /// Position in the order of submission.
    pub submission: u64,
    /// Time of registration, on `CLOCK_MONOTONIC`.
    pub registered_ns: u64,
    /// Priority from the co-scheduler; greater goes first.
    pub priority: u64,
    /// Round in which it was scheduled, from 1; 0: not scheduled.
    pub round: u32,
    /// Bit set of the models that it has variants of.
    pub capabilities: u32,
    /// The device in whose queue it is.
    pub device: Option<u32>,
    /// Devices or threads that it takes there.
    pub units: u32,
    /// In execution: the first of the devices or threads that it has, which follow each
    /// other; nothing if it has threads, but no certain ones.
    pub instance: Option<u32>,
    /// Expected end of a task in execution.
    pub expected_end_ns: u64,
    /// Expected runtime of the variant.
    pub runtime_ns: u64,
    /// Generation that its owner has fetched.
    pub acknowledged: u64,
}

impl Entry {
    pub(crate) fn from_record(slot: u32, record: &EntryRecord, devices: u32) -> Option<Self> {
        let state = match record.state {
            WAITING => State::Waiting,
            IN_EXECUTION => State::InExecution,
            _ => return None,
        };
        let owner = Owner { pid: record.owner_pid, start_ticks: record.owner_start_ticks };
        let device = (record.device != NONE).then_some(record.device);
        let is_one = record.name == Csi::name(owner, record.task)
            && device.is_none_or(|device| device < devices);
        is_one.then_some(Self {
            slot,
            owner,
            task: record.task,
            state,
            is_scheduled: record.scheduled != 0,
            is_ready: record.ready != 0,
            submission: record.submission,
            registered_ns: record.registered_ns,
            priority: record.priority,
            round: record.round,
            capabilities: record.capabilities,
            device,
            units: record.units,
            instance: (record.instance != NONE).then_some(record.instance),
            expected_end_ns: record.expected_end_ns,
            runtime_ns: record.runtime_ns,
            acknowledged: record.acknowledged,
        })
    }

    pub(crate) fn to_record(&self) -> EntryRecord {
        let mut record = EntryRecord::zero();
        record.name = Csi::name(self.owner, self.task);
        record.owner_pid = self.owner.pid;
        record.owner_start_ticks = self.owner.start_ticks;
        record.state = match self.state {
            State::Waiting => WAITING,
            State::InExecution => IN_EXECUTION,
        };
        record.scheduled = self.is_scheduled.into();
        record.ready = self.is_ready.into();
        record.task = self.task;
        record.submission = self.submission;
        record.registered_ns = self.registered_ns;
        record.priority = self.priority;
        record.round = self.round;
        record.capabilities = self.capabilities;
        record.device = self.device.unwrap_or(NONE);
        record.units = self.units;
        record.instance = self.instance.unwrap_or(NONE);
        record.expected_end_ns = self.expected_end_ns;
        record.runtime_ns = self.runtime_ns;
        record.acknowledged = self.acknowledged;
        record
    }

    /// Returns the position in the queue of its device: smaller values come first.
    pub fn place(&self) -> (u32, Reverse<u64>, u64) {
        (self.round, Reverse(self.priority), self.submission)
    }

    /// Removes the task from its queue, as before a new co-scheduling (§4.3).
    pub(crate) fn unschedule(&mut self) {
        self.is_scheduled = false;
        self.round = 0;
        self.priority = 0;
        self.device = None;
        self.units = 0;
        self.runtime_ns = 0;
    }
}

/// A task to register.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Information for the co-scheduler. The owner is this process.
    pub csi: Csi,
    /// Whether all dependencies of the task have ended.
    pub is_ready: bool,
    /// The device in whose queue it waits until a co-scheduling says otherwise.
    pub device: Option<u32>,
    /// Devices or threads that it takes there.
    pub units: u32,
    /// Expected runtime on the device.
    pub runtime_ns: u64,
}

impl Locked<'_> {
    /// All tasks, waiting and in execution. What can't be an entry is left out.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let devices = self.header.device_count;
        let all = self.records()?;
        let entries = all.iter().zip(0..);
        Ok(entries.filter_map(|(record, slot)| Entry::from_record(slot, record, devices)).collect())
    }

    /// Reads the records up to the last one ever used.
    fn records(&self) -> Result<Vec<EntryRecord>, Error> {
        let limit = (self.header.entry_limit as usize).min(ENTRY_CAPACITY);
        let mut bytes = vec![0; limit * EntryRecord::BYTES];
        self.node.read(&mut bytes, ENTRIES_AT)?;
        let records = bytes.chunks_exact(EntryRecord::BYTES).map(|bytes| {
            let mut own = [0; EntryRecord::BYTES];
            own.copy_from_slice(bytes);
            EntryRecord::from_bytes(&own)
        });
        Ok(records.collect())
    }

    /// The entry of a task of this process, if it is still there.
    pub(crate) fn own_entry(&self, slot: u32, task: u64) -> Result<Option<Entry>, Error> {
        if slot as usize >= ENTRY_CAPACITY {
            return Ok(None);
        }
        let mut bytes = [0; EntryRecord::BYTES];
        self.node.read(&mut bytes, ENTRIES_AT + slot as usize * EntryRecord::BYTES)?;
        let record = EntryRecord::from_bytes(&bytes);
        let entry = Entry::from_record(slot, &record, self.header.device_count);
        Ok(entry.filter(|entry| entry.owner == self.node.own && entry.task == task))
    }

    pub(crate) fn write_entry(&self, entry: &Entry) -> Result<(), Error> {
        self.write_record(entry.slot, &entry.to_record())
    }

    fn write_record(&self, slot: u32, record: &EntryRecord) -> Result<(), Error> {
        let at = ENTRIES_AT + slot as usize * EntryRecord::BYTES;
        self.write(&record.to_bytes(), at)
    }

    /// Frees a place in the table.
    pub(crate) fn free(&self, slot: u32) -> Result<(), Error> {
        self.write_record(slot, &EntryRecord::zero())
    }

    /// Stores the CSIs of new tasks and enters them, whether or not a co-scheduling is
    /// wanted (§4.3): all of them or none. The answer says where.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] where there is no room for all.
    pub fn register(&mut self, tasks: &[NewTask]) -> Result<Vec<u32>, Error> {
        let mut slots = self.free_slots(tasks.len())?;
        if slots.len() < tasks.len() {
            self.sweep()?;
            slots = self.free_slots(tasks.len())?;
        }
        if slots.len() < tasks.len() {
            return Err(Error::Full { what: "tasks of all processes", capacity: ENTRY_CAPACITY });
        }
        if let Some(last) = slots.last() {
            self.header.entry_limit = self.header.entry_limit.max(last + 1);
            self.header.entry_limit = self.header.entry_limit.min(ENTRY_CAPACITY as u32);
            self.write_state()?;
        }
        for (done, (task, &slot)) in tasks.iter().zip(&slots).enumerate() {
            if let Err(error) = self.register_one(task, slot) {
                for (task, &slot) in tasks[..=done].iter().zip(&slots) {
                    // The first error is the one to report; the owner's end frees the rest.
                    let _ = self.free(slot);
                    csi::remove(&self.node.directory, self.node.own, task.csi.task);
                }
                return Err(error);
            }
        }
        self.write_state()?;
        Ok(slots)
    }

    fn register_one(&mut self, task: &NewTask, slot: u32) -> Result<(), Error> {
        let csi = Csi { owner: self.node.own, ..task.csi.clone() };
        self.node.step();
        csi::write(&self.node.directory, self.node.options.group, &csi)?;
        let submission = self.header.submissions;
        self.header.submissions = submission.wrapping_add(1);
        self.write_entry(&Entry {
            slot,
            owner: self.node.own,
            task: csi.task,
            state: State::Waiting,
            is_scheduled: false,
            is_ready: task.is_ready,
            submission,
            registered_ns: monotonic_ns(),
            priority: 0,
            round: 0,
            capabilities: csi.variants.iter().fold(0, |set, of| set | 1 << of.model),
            device: task.device,
            units: task.units,
            instance: None,
            expected_end_ns: 0,
            runtime_ns: task.runtime_ns,
            // It knows of no result that it would have to fetch.
            acknowledged: self.generation(),
        })
    }

    fn free_slots(&self, count: usize) -> Result<Vec<u32>, Error> {
        let devices = self.header.device_count;
        let records = self.records()?;
        let used = records.len() as u32;
        let in_use = records.iter().zip(0..);
        let free = in_use.filter_map(|(record, slot)| {
            Entry::from_record(slot, record, devices).is_none().then_some(slot)
        });
        Ok(free.chain(used..ENTRY_CAPACITY as u32).take(count).collect())
    }

    /// Removes a task of this process that shall not run, or has ended. Nothing happens if
    /// it is gone already.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn withdraw(&mut self, slot: u32, task: u64) -> Result<(), Error> {
        if self.own_entry(slot, task)?.is_some() {
            self.free(slot)?;
        }
        self.node.step();
        csi::remove(&self.node.directory, self.node.own, task);
        self.settle()
    }

    /// Removes the entries of processes that are gone, and what is no entry. The answer is
    /// how many there were.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn sweep(&mut self) -> Result<usize, Error> {
        self.sweep_of(|owner| !owner.is_alive())
    }

    /// Removes the entries of such processes, and what is no entry.
    pub(crate) fn sweep_of(&mut self, is_gone: impl Fn(Owner) -> bool) -> Result<usize, Error> {
        let mut gone = HashMap::new();
        let mut removed = 0;
        for (record, slot) in self.records()?.iter().zip(0..) {
            if record.state == FREE {
                continue;
            }
            match Entry::from_record(slot, record, self.header.device_count) {
                Some(entry) => {
                    let of_owner = gone.entry(entry.owner);
                    if !*of_owner.or_insert_with(|| is_gone(entry.owner)) {
                        continue;
                    }
                    self.node.step();
                    csi::remove(&self.node.directory, entry.owner, entry.task);
                }
                None => self.node.step(),
            }
            self.free(slot)?;
            removed += 1;
        }
        self.settle()?;
        Ok(removed)
    }

    /// After the last acknowledgement nothing is left to be done (§5.3.1). Whoever sees it
    /// does it, as the master may be gone.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        if self.header.status != DONE {
            return Ok(());
        }
        let generation = self.generation();
        let mut waiting = self.entries()?.into_iter();
        if waiting.any(|of| of.state == State::Waiting && of.acknowledged != generation) {
            return Ok(());
        }
        self.set_status(NOT_STARTED, None);
        self.write_state()
    }
}

impl Node {
    /// Removes files whose owner is gone: he was killed before the entry was there, or after
    /// it had gone. Nobody else ever has his names, so it needs no lock. Not more than so
    /// many files are looked at: in a directory where others can make them there may be any
    /// number, and some can't be removed.
    pub(crate) fn remove_orphans(&self, at_most: usize) {
        let Ok(files) = fs::read_dir(&self.directory) else {
            return;
        };
        let names = files.flatten().map(|file| file.file_name());
        let owned = names.filter_map(|name| {
            let owner = owner_of(name.to_str()?)?;
            Some((name, owner))
        });
        for (name, owner) in owned.take(at_most) {
            let is_orphan = match owner {
                FileOwner::OfCsi(owner) => !owner.is_alive(),
                FileOwner::OfUnpublished(pid) => !Owner::is_pid_alive(pid),
            };
            if is_orphan {
                self.step();
                // A file that stays is found again by the next cleaning.
                let _ = fs::remove_file(self.directory.join(name));
            }
        }
    }
}

/// Owner of a file, according to its name.
pub(crate) enum FileOwner {
    /// The file is the CSI of a task of this process.
    OfCsi(Owner),
    /// The file is a CSIMF that a process of this pid was creating.
    OfUnpublished(u32),
}

/// Returns the owner of the file with this name, if it is one of ours.
pub(crate) fn owner_of(name: &str) -> Option<FileOwner> {
    let of_csi = parse_name(name).map(FileOwner::OfCsi);
    of_csi.or_else(|| parse_unpublished(name).map(FileOwner::OfUnpublished))
}

/// The owner in the name of a CSI's file, if it is one.
fn parse_name(name: &str) -> Option<Owner> {
    let mut numbers = name.strip_prefix(CSI_PREFIX)?.splitn(3, '-');
    let owner =
        Owner { pid: numbers.next()?.parse().ok()?, start_ticks: numbers.next()?.parse().ok()? };
    let task = numbers.next()?.parse().ok()?;
    // Not also with a sign or zeros before it.
    (csi::file_name(owner, task) == name).then_some(owner)
}

/// The pid of the name of a CSIMF that was being made.
fn parse_unpublished(name: &str) -> Option<u32> {
    let pid = name.strip_prefix(CSIMF_NAME)?.strip_prefix('.')?;
    pid.parse().ok()
}
