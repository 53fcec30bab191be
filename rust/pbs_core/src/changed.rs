// SPDX-License-Identifier: GPL-2.0

//! Processes that changed since they were copied for the next plan.

use super::memory::{Memory, NoMemory};

/// The processes that have changed since they were copied, each once at the most.
pub(super) struct Changed<M: Memory> {
    processes: M::Slice<u32>,
    len: usize,
}

impl<M: Memory> Changed<M> {
    /// Room for all of `processes` processes.
    pub(super) fn new(processes: usize) -> Result<Changed<M>, NoMemory> {
        Ok(Changed {
            processes: M::alloc(processes, 0)?,
            len: 0,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, p: u32) {
        if let Some(place) = self.processes.get_mut(self.len) {
            *place = p;
            self.len += 1;
        }
    }

    #[cfg(test)]
    pub(super) fn contains(&self, p: u32) -> bool {
        self.processes[..self.len].contains(&p)
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        self.processes.get(self.len).copied()
    }
}
