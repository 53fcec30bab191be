// SPDX-License-Identifier: GPL-2.0
//! A task's co-scheduling information: a file of its own, there as long as the task waits
//! (§4.2.3, 5.3.2).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::files::{self, Trust};
use crate::layout::{
    CsiRecord, VariantRecord, BEST_INDEX_AT, CSI_MAGIC, CSI_PREFIX, DEPENDENCY_CAPACITY, LAYOUT,
    NONE, VARIANT_CAPACITY,
};
use crate::{Error, Owner};

/// A way to execute a task (T5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Number of its programming model, below 32.
    pub model: u32,
    /// Threads that it uses.
    pub threads: u32,
    /// Profiled runtime in ns.
    pub runtime_ns: u64,
    /// Index of the device that it runs on.
    pub device: u32,
}

/// Information about a task for the co-scheduler (T5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csi {
    /// Process that owns the task.
    pub owner: Owner,
    /// Number of the task in its process.
    pub task: u64,
    /// Tasks of the same process that it depends on. The file has the last
    /// [`DEPENDENCY_CAPACITY`](crate::layout::DEPENDENCY_CAPACITY) of them.
    pub dependencies: Vec<u64>,
    /// Tasks of the same process that depend on it, in the file as many.
    pub reverse_dependencies: Vec<u64>,
    /// The variant that was chosen.
    pub best_index: Option<u32>,
    /// Variants of the task.
    pub variants: Vec<Variant>,
    /// Time that its data need to come to another memory, in ns.
    pub transfer_ns: u64,
    /// Whether the task is a transfer, which stands for an indirect dependency.
    pub is_transfer: bool,
}

impl Csi {
    /// The name of its entry, `PID-TASK` filled with zeros.
    pub(crate) fn name(owner: Owner, task: u64) -> [u8; 32] {
        let mut name = [0; 32];
        // 10 and 20 digits at most, and a dash.
        let _ = write!(&mut name[..], "{}-{task}", owner.pid);
        name
    }

    /// Returns the record for the file.
    pub(crate) fn to_record(&self) -> Result<CsiRecord, Error> {
        let mut record = CsiRecord::zero();
        record.magic = CSI_MAGIC;
        record.layout = LAYOUT;
        record.owner_pid = self.owner.pid;
        record.owner_start_ticks = self.owner.start_ticks;
        record.task = self.task;
        record.best_index = self.best_index.unwrap_or(NONE);
        record.transfer_ns = self.transfer_ns;
        record.is_transfer = self.is_transfer.into();
        record.dependency_count = put(&mut record.dependencies, &self.dependencies);
        record.reverse_count = put(&mut record.reverse_dependencies, &self.reverse_dependencies);
        if self.variants.len() > VARIANT_CAPACITY {
            return Err(Error::Full { what: "variants of a task", capacity: VARIANT_CAPACITY });
        }
        record.variant_count = self.variants.len() as u32;
        let places = record.variants.chunks_exact_mut(VariantRecord::BYTES);
        for (variant, place) in self.variants.iter().zip(places) {
            let mut own = VariantRecord::zero();
            own.model = variant.model;
            own.threads = variant.threads;
            own.runtime_ns = variant.runtime_ns;
            own.device = variant.device;
            place.copy_from_slice(&own.to_bytes());
        }
        Ok(record)
    }

    /// Made of a copy, if it is one that can be.
    pub(crate) fn from_record(record: &CsiRecord) -> Result<Self, &'static str> {
        if record.magic != CSI_MAGIC || record.layout != LAYOUT {
            return Err("it is no CSI of layout 1");
        }
        let take = |tasks: &[u64], count: u32| {
            let taken = tasks.get(..count as usize).map(<[u64]>::to_vec);
            taken.ok_or("it has more dependencies than there is room")
        };
        if record.variant_count as usize > VARIANT_CAPACITY {
            return Err("it has more variants than there is room");
        }
        let places = record.variants.chunks_exact(VariantRecord::BYTES);
        let variants: Vec<Variant> = places
            .take(record.variant_count as usize)
            .map(|place| {
                let mut bytes = [0; VariantRecord::BYTES];
                bytes.copy_from_slice(place);
                let own = VariantRecord::from_bytes(&bytes);
                Variant {
                    model: own.model,
                    threads: own.threads,
                    runtime_ns: own.runtime_ns,
                    device: own.device,
                }
            })
            .collect();
        if variants.iter().any(|variant| variant.model >= 32) {
            return Err("it has a variant of a programming model that there can't be");
        }
        let best_index = (record.best_index != NONE).then_some(record.best_index);
        if best_index.is_some_and(|best| best >= record.variant_count) {
            return Err("its best index is of no variant");
        }
        Ok(Self {
            owner: Owner { pid: record.owner_pid, start_ticks: record.owner_start_ticks },
            task: record.task,
            dependencies: take(&record.dependencies, record.dependency_count)?,
            reverse_dependencies: take(&record.reverse_dependencies, record.reverse_count)?,
            best_index,
            variants,
            transfer_ns: record.transfer_ns,
            is_transfer: record.is_transfer != 0,
        })
    }
}

/// Stores the last tasks of a list, as many as there is room for, and returns their number.
///
/// The owner of a task waits for all of its dependencies. With some of them, a master expects the
/// begin of the task less exactly. The last ones tend to end last.
fn put(field: &mut [u64; DEPENDENCY_CAPACITY], tasks: &[u64]) -> u32 {
    let last = &tasks[tasks.len().saturating_sub(field.len())..];
    field[..last.len()].copy_from_slice(last);
    last.len() as u32
}

/// The name of a CSI's file. It is made of numbers, never taken from shared memory, and no
/// process has that of another: one who had the same pid may have left his where only he
/// can remove them.
pub(crate) fn file_name(owner: Owner, task: u64) -> String {
    format!("{CSI_PREFIX}{}-{}-{task}", owner.pid, owner.start_ticks)
}

/// Returns the path of a CSI's file.
pub(crate) fn path(directory: &Path, owner: Owner, task: u64) -> PathBuf {
    directory.join(file_name(owner, task))
}

/// Writes a CSI. What this process has left under its name goes.
pub(crate) fn write(directory: &Path, group: Option<u32>, csi: &Csi) -> Result<(), Error> {
    let path = path(directory, csi.owner, csi.task);
    let bytes = csi.to_record()?.to_bytes();
    let made = match files::make(&path, group, &bytes) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&path).and_then(|()| files::make(&path, group, &bytes))
        }
        made => made,
    };
    made.map(|_| ()).map_err(|error| Error::io(path, error))
}

/// Reads a CSI; nothing if it is not there.
pub(crate) fn read(
    directory: &Path,
    trust: Trust,
    owner: Owner,
    task: u64,
) -> Result<Option<Csi>, Error> {
    let path = path(directory, owner, task);
    let file = match files::open(&path, trust, CsiRecord::BYTES as u64) {
        Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        file => file?,
    };
    let mut bytes = [0; CsiRecord::BYTES];
    let read = file.read_exact_at(&mut bytes, 0);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::damaged(&path, "it was made shorter"),
        _ => Error::io(&path, error),
    })?;
    let csi = Csi::from_record(&CsiRecord::from_bytes(&bytes));
    let csi = csi.map_err(|why| Error::damaged(&path, why))?;
    if (csi.owner, csi.task) != (owner, task) {
        return Err(Error::damaged(path, "it is the CSI of another task"));
    }
    Ok(Some(csi))
}

/// Writes the result into a CSI: which variant. Nothing happens if the CSI is gone.
pub(crate) fn write_best(
    directory: &Path,
    trust: Trust,
    owner: Owner,
    task: u64,
    best: u32,
) -> Result<(), Error> {
    let path = path(directory, owner, task);
    let file = match files::open(&path, trust, CsiRecord::BYTES as u64) {
        Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let written = file.write_all_at(&best.to_ne_bytes(), BEST_INDEX_AT);
    written.map_err(|error| Error::io(path, error))
}

/// Removes a CSI. In a directory like `/dev/shm` that of another user stays where it is:
/// without an entry it is nobody's.
pub(crate) fn remove(directory: &Path, owner: Owner, task: u64) {
    // A CSI without an entry is nobody's, and is cleaned with its owner.
    let _ = fs::remove_file(path(directory, owner, task));
}
