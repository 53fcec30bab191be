// SPDX-License-Identifier: GPL-2.0

//! The memory that the processes of a plan use, as other CPUs see it.

use core::sync::atomic::{AtomicU64, Ordering};
use kernel::mm::MemoryUse;

/// The memory of the plan processes of all CPUs: the sum of what each CPU has shown, which it
/// changes under the lock of its run queue.
static SHOWN_BYTES: AtomicU64 = AtomicU64::new(0);

/// The memory of a thread that the node has received last, and its period of [`MemoryInUse`].
#[derive(Default)]
pub(crate) struct MemorySample(MemoryUse, u64);

/// The memory of the processes of one CPU.
#[derive(Default)]
pub(crate) struct MemoryInUse {
    /// The bytes that other CPUs see.
    shown_bytes: u64,
    /// Rises with each task that ends and each plan, as peaks begin anew, and with each change of
    /// the configuration.
    period: u64,
}

impl MemoryInUse {
    /// Begins a new period, in which no earlier sample holds any more.
    pub(crate) fn begin_period(&mut self) {
        self.period += 1;
    }

    /// Whether the node has received as much already. Only a rise of a peak matters to it.
    pub(crate) fn is_known(&self, last: &MemorySample, used: &MemoryUse) -> bool {
        used.is_within(&last.0) && last.1 == self.period
    }

    /// The sample of this period.
    pub(crate) fn sample(&self, used: MemoryUse) -> MemorySample {
        MemorySample(used, self.period)
    }

    /// Shows other CPUs the memory that the processes here use. Returns the bytes of all other
    /// CPUs.
    pub(crate) fn show(&mut self, bytes: u64) -> u64 {
        let before_bytes = core::mem::replace(&mut self.shown_bytes, bytes);
        let change = bytes.wrapping_sub(before_bytes);
        let shown_bytes = if change == 0 {
            SHOWN_BYTES.load(Ordering::SeqCst)
        } else {
            SHOWN_BYTES.fetch_add(change, Ordering::SeqCst)
        };
        shown_bytes.wrapping_sub(before_bytes)
    }
}
