// SPDX-License-Identifier: GPL-2.0

//! Sums over the active processes of a node.

use super::run::Run;

/// The sums over the active processes (3.3.6): those that have begun and have tasks left.  Every
/// change of a process updates them, and they are wide enough to be exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Changes with the number of the processes and with the lengths of their
    /// tasks, but not with lateness alone.  Never 0.
    progress: u32,
    /// Number of active processes.
    active: u32,
    lateness_insns: i128,
    begun_insns: u128,
    finished_insns: u128,
    /// Peaks of the resident sizes.
    memory_bytes: u128,
}

impl Sums {
    pub(super) const ZERO: Sums = Sums {
        progress: 1,
        active: 0,
        lateness_insns: 0,
        begun_insns: 0,
        finished_insns: 0,
        memory_bytes: 0,
    };

    /// Replaces `old`, which is a part of the sums, by `new`.
    #[inline(always)]
    pub(super) fn replace(&mut self, old: &Share, new: &Share) {
        let lengths = |share: &Share| (share.active, share.begun_insns, share.finished_insns);
        if lengths(old) != lengths(new) {
            self.advance();
            self.active = self.active.wrapping_sub(old.active.into()) + u32::from(new.active);
            let grown =
                |sum: u128, old: u64, new: u64| sum.wrapping_sub(old.into()) + u128::from(new);
            self.begun_insns = grown(self.begun_insns, old.begun_insns, new.begun_insns);
            self.finished_insns =
                grown(self.finished_insns, old.finished_insns, new.finished_insns);
        }
        self.lateness_insns += i128::from(new.lateness_insns) - i128::from(old.lateness_insns);
        if old.memory_bytes != new.memory_bytes {
            let others_bytes = self.memory_bytes.wrapping_sub(old.memory_bytes.into());
            self.memory_bytes = others_bytes + u128::from(new.memory_bytes);
        }
    }

    /// Adds a rise of the peak of an active process.
    pub(super) fn add_memory(&mut self, bytes: u64) {
        self.memory_bytes += u128::from(bytes);
    }

    /// Sum of the memory peaks of the active processes.
    pub(super) fn memory_bytes(&self) -> u64 {
        u64::try_from(self.memory_bytes).unwrap_or(u64::MAX)
    }

    /// Returns the sums at that progress.
    #[cfg(any(test, feature = "std"))]
    pub(super) fn at_progress(self, progress: u32) -> Sums {
        Sums { progress, ..self }
    }

    /// Notes that an active process has begun a task of that length.
    pub(super) fn begin_task(&mut self, insns: u64) {
        if insns != 0 {
            self.advance();
            self.begun_insns = self.begun_insns.wrapping_add(insns.into());
        }
    }

    /// Makes the cached checks of thresholds invalid.
    pub(super) fn advance(&mut self) {
        self.progress = self.progress.wrapping_add(1).max(1);
    }

    /// Notes that one process has become later by `insns`, and nothing else has changed.
    pub(super) fn add_lateness(&mut self, insns: i64) {
        self.lateness_insns += i128::from(insns);
    }

    pub(super) fn progress(&self) -> u32 {
        self.progress
    }

    /// Number of active processes.
    pub(super) fn active(&self) -> u32 {
        self.active
    }

    /// Lateness of the node.
    pub(super) fn lateness_insns(&self) -> i64 {
        let insns = self.lateness_insns as i64;
        if i128::from(insns) == self.lateness_insns {
            insns
        } else {
            self.extreme_lateness_insns()
        }
    }

    /// Instructions by which the node is early.
    pub(super) fn early_insns(&self) -> u64 {
        self.lateness_insns().min(0).unsigned_abs()
    }

    /// The lateness where it does not fit into 64 bits: a separate function, because the other case
    /// is frequent.
    #[cold]
    fn extreme_lateness_insns(&self) -> i64 {
        if self.lateness_insns < 0 {
            i64::MIN
        } else {
            i64::MAX
        }
    }

    pub(super) fn begun_insns(&self) -> u64 {
        u64::try_from(self.begun_insns).unwrap_or(u64::MAX)
    }

    pub(super) fn finished_insns(&self) -> u64 {
        u64::try_from(self.finished_insns).unwrap_or(u64::MAX)
    }
}

/// Share of one process in the sums: nothing unless it is active.
#[derive(Clone, Copy)]
pub(super) struct Share {
    active: bool,
    lateness_insns: i64,
    begun_insns: u64,
    finished_insns: u64,
    memory_bytes: u64,
}

impl Share {
    pub(super) const NONE: Share = Share {
        active: false,
        lateness_insns: 0,
        begun_insns: 0,
        finished_insns: 0,
        memory_bytes: 0,
    };

    #[inline(always)]
    pub(super) fn of(run: &Run) -> Share {
        if !run.is_active() {
            return Share::NONE;
        }
        Share {
            active: true,
            lateness_insns: run.lateness_insns(),
            begun_insns: run.begun_insns(),
            finished_insns: run.account.planned_insns,
            memory_bytes: run.process_peak.rss_bytes,
        }
    }
}
