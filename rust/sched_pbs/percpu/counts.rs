// SPDX-License-Identifier: GPL-2.0

//! The number of events of each kind on a CPU.

use crate::pbs_core::EventKind;
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of events of each kind, since boot.
pub(crate) struct Counts([AtomicU64; EventKind::END]);

impl Counts {
    /// Counts before the first event.
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; EventKind::END])
    }

    /// The number of events of the kind with that number.
    pub(crate) fn get(&self, kind: usize) -> u64 {
        self.0
            .get(kind)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts one more event of `kind`. With the run queue locked: this way no other CPU does.
    #[inline]
    pub(crate) fn add_one(&self, kind: EventKind) {
        if let Some(count) = self.0.get(kind as usize) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }
}
