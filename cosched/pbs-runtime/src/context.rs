// SPDX-License-Identifier: GPL-2.0
//! Context of a task's function: its regions, and the number of threads that it may use.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Access of a task to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The task reads the region.
    Read,
    /// The task writes all of the region, and does not read the old content.
    Write,
    /// The task reads and writes the region.
    ReadWrite,
}

impl Access {
    pub(crate) fn reads(self) -> bool {
        self != Self::Write
    }

    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// A region while a task has it.
#[derive(Debug)]
pub(crate) enum Guard<'a> {
    Read(RwLockReadGuard<'a, Vec<u8>>),
    Write(RwLockWriteGuard<'a, Vec<u8>>),
}

impl<'a> Guard<'a> {
    pub(crate) fn new(content: &'a RwLock<Vec<u8>>, access: Access) -> Result<Self, String> {
        const POISONED: &str = "a task that wrote the same region has panicked";
        match access {
            Access::Read => content.read().map(Self::Read).map_err(|_| POISONED.into()),
            Access::Write | Access::ReadWrite => {
                content.write().map(Self::Write).map_err(|_| POISONED.into())
            }
        }
    }
}

/// Context of a running task's function.
#[derive(Debug)]
pub struct Context<'a> {
    guards: Vec<Guard<'a>>,
    threads: u32,
}

impl<'a> Context<'a> {
    pub(crate) fn new(guards: Vec<Guard<'a>>, threads: u32) -> Self {
        Self { guards, threads }
    }

    /// Returns the number of threads that the variant may use, this one included. Threads that it
    /// starts run on its CPUs.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Returns the number of regions of the task.
    pub fn regions(&self) -> usize {
        self.guards.len()
    }

    /// The content of a region, by its place in the task's list.
    ///
    /// # Errors
    ///
    /// In words, where the task has no such region.
    pub fn read(&self, region: usize) -> Result<&[u8], String> {
        match self.guards.get(region) {
            Some(Guard::Read(guard)) => Ok(guard),
            Some(Guard::Write(guard)) => Ok(guard),
            None => Err(format!("it has no region {region}")),
        }
    }

    /// The content of a region to write.
    ///
    /// # Errors
    ///
    /// In words, where the task has no such region or only reads it.
    pub fn write(&mut self, region: usize) -> Result<&mut [u8], String> {
        match self.guards.get_mut(region) {
            Some(Guard::Write(guard)) => Ok(guard),
            Some(Guard::Read(_)) => Err(format!("it only reads region {region}")),
            None => Err(format!("it has no region {region}")),
        }
    }

    /// Two regions, one to read and one to write.
    ///
    /// # Errors
    ///
    /// As for [`Context::write`]; and if both are the same.
    pub fn read_write(&mut self, read: usize, write: usize) -> Result<(&[u8], &mut [u8]), String> {
        let pair = self.guards.get_disjoint_mut([read, write]);
        match pair.map_err(|_| format!("it has no two regions {read} and {write}"))? {
            [Guard::Read(from), Guard::Write(to)] => Ok((from, to)),
            [Guard::Write(from), Guard::Write(to)] => Ok((from, to)),
            [_, Guard::Read(_)] => Err(format!("it only reads region {write}")),
        }
    }
}
