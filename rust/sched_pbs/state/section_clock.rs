// SPDX-License-Identifier: GPL-2.0

//! The time in a section under the lock of the run queue.

use crate::linux::sched_class::{self, RunQueue};
use kernel::clock;

/// Time for which a moment of two clocks converts one clock to the other: at the end they may
/// differ by half a thousandth of this. A tick usually comes earlier and takes a new moment:
/// elsewhere that would make one hand-over longer than the others.
const ANCHOR_NS: u64 = 5_000_000;

/// A moment of the monotonic clock and of that of the run queue.
#[derive(Clone, Copy, Default)]
struct Anchor {
    monotonic_ns: u64,
    clock_ns: u64,
}

/// The monotonic clock as the sections under the lock of a run queue read it.
#[derive(Default)]
pub(crate) struct SectionClock {
    /// The time in this section, 0: not requested.
    now_ns: u64,
    /// The time of the last request.
    recent_ns: u64,
    /// The clock of the run queue in this section.
    clock_ns: u64,
    /// A moment of both clocks.
    anchor: Anchor,
}

impl SectionClock {
    /// Begins a section; the clock of the run queue was read.
    pub(crate) fn begin_section(&mut self, rq: &RunQueue) {
        self.now_ns = 0;
        self.clock_ns = rq.clock_ns();
    }

    /// The time of the monotonic clock, which stands still during a section.
    ///
    /// The time is computed from the clock of the run queue and a recent moment of both clocks:
    /// reading a clock costs as much as a small decision.
    pub(crate) fn now_ns(&mut self) -> u64 {
        if self.now_ns == 0 {
            let since_ns = self.clock_ns.wrapping_sub(self.anchor.clock_ns);
            if since_ns >= ANCHOR_NS {
                // The section began a while ago.
                self.anchor = Anchor {
                    monotonic_ns: clock::monotonic_ns(),
                    clock_ns: sched_class::clock_ns(),
                };
            }
            let since_ns = self.clock_ns.wrapping_sub(self.anchor.clock_ns);
            self.now_ns = self.anchor.monotonic_ns.wrapping_add(since_ns);
            // The two clocks do not go at quite the same pace.
            self.now_ns = self.now_ns.max(self.recent_ns);
            self.recent_ns = self.now_ns;
        }
        self.now_ns
    }

    /// The time of the last request: in this section, or in an earlier one.
    pub(crate) fn recent_ns(&self) -> u64 {
        self.recent_ns
    }

    /// Discards the moment of both clocks: the next section takes a new one.
    pub(crate) fn forget_anchor(&mut self) {
        self.anchor = Anchor::default();
    }
}
