// SPDX-License-Identifier: GPL-2.0
//! The device of a node, with its limits and the configuration of plans that have none.

use std::path::{Path, PathBuf};

use pbs_plan::Config;
use pbs_uapi::{Device, Event, Info};

use crate::device::{self, BATCH};
use crate::Error;

/// The kernel as a node sees it.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) path: PathBuf,
    pub(crate) device: Device,
    pub(crate) info: Info,
    /// The configuration of plans that have none, as it was at first. It may change while a
    /// plan runs.
    pub(crate) config: Config,
    /// Events that were read last.
    pub(crate) batch: Vec<Event>,
}

impl Kernel {
    /// Opens the device at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let device = device::open(path)?;
        Ok(Self {
            path: path.into(),
            info: device.info().map_err(Error::refused("limits"))?,
            config: device::config()?,
            device,
            batch: vec![Event::default(); BATCH],
        })
    }

    /// Reads events into the batch. Returns how many.
    pub(crate) fn read(&mut self) -> Result<usize, Error> {
        let read = self.device.read_events(&mut self.batch);
        read.map_err(|error| Error::file(&self.path, error))
    }

    /// The number of the next event.
    pub(crate) fn next_seq(&self) -> Result<u64, Error> {
        let info = self.device.info();
        Ok(info.map_err(Error::refused("events"))?.next_seq)
    }

    /// Reads on from the event of that number.
    pub(crate) fn seek(&mut self, seq: u64) -> Result<(), Error> {
        self.device.seek(seq).map_err(Error::refused("events"))
    }
}
