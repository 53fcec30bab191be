// SPDX-License-Identifier: GPL-2.0
//! Overdue tasks: in execution long after their expected end.
//!
//! The process of such a task may be stopped (Ctrl-Z, a debugger, a crash dump). As long as it is,
//! the other processes plan around it: the task's devices are lent to them. The waiting tasks of a
//! stopped process are left out of their schedules. Its entries stay, and nobody ends the process.
//! A process that continues renews its tasks with [`Locked::renew`], and has its devices again.
//!
//! The task of a process that runs is slow or stuck, which nobody can tell apart. It keeps its
//! devices, and an operator may remove its entry: see [`crate::Removal::Overdue`].

use std::collections::HashMap;

use pbs_uapi::clock::monotonic_ns;

use crate::node::{Locked, Options};
use crate::table::{Entry, State};
use crate::{Error, Owner};

impl Entry {
    /// Returns for how long the task has been overdue. `None`: it is not.
    ///
    /// The limit is [`Options::overdue_factor`] times the expected runtime, and at least
    /// [`Options::patience`] after the expected end.
    pub fn overdue_ns(&self, now_ns: u64, options: &Options) -> Option<u64> {
        if self.state != State::InExecution {
            return None;
        }
        let more_runtimes = u64::from(options.overdue_factor?.saturating_sub(1));
        let patience_ns = u64::try_from(options.patience.as_nanos()).unwrap_or(u64::MAX);
        let grace_ns = self.runtime_ns.saturating_mul(more_runtimes).max(patience_ns);
        let limit_ns = self.expected_end_ns.saturating_add(grace_ns);
        (now_ns > limit_ns).then(|| now_ns - limit_ns)
    }

    /// Returns whether the devices of the task are lent: it is overdue, and its process is stopped
    /// at the moment.
    pub fn is_lent(&self, now_ns: u64, options: &Options) -> bool {
        self.overdue_ns(now_ns, options).is_some() && self.owner.is_stopped()
    }
}

/// Processes that are stopped at the moment, looked up once each.
#[derive(Default)]
pub(crate) struct Stopped(HashMap<Owner, bool>);

impl Stopped {
    pub(crate) fn is_stopped(&mut self, owner: Owner) -> bool {
        *self.0.entry(owner).or_insert_with(|| owner.is_stopped())
    }
}

impl Locked<'_> {
    /// Expects the end of running tasks of this process, slot and number, a whole runtime from
    /// now. A process does this after it was stopped: its tasks are not overdue any more.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn renew(&mut self, own: &[(u32, u64)]) -> Result<(), Error> {
        let now_ns = monotonic_ns();
        for &(slot, task) in own {
            let entry = self.own_entry(slot, task)?;
            if let Some(mut entry) = entry.filter(|of| of.state == State::InExecution) {
                entry.expected_end_ns = now_ns.saturating_add(entry.runtime_ns);
                self.write_entry(&entry)?;
            }
        }
        Ok(())
    }

    /// Removes the entries of overdue tasks. Their processes continue, and their devices count
    /// as free from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn remove_overdue(&mut self) -> Result<usize, Error> {
        let now_ns = monotonic_ns();
        let mut removed = 0;
        for entry in self.entries()? {
            if entry.overdue_ns(now_ns, &self.node.options).is_some() {
                self.free(entry.slot)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}
