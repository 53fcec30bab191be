// SPDX-License-Identifier: GPL-2.0

//! Whether a CPU is used for plans.

use core::sync::atomic::{AtomicBool, Ordering};

/// Whether a CPU has what it needs for plans, and whether it has one.
pub(crate) struct Usage {
    used: AtomicBool,
    has_plan: AtomicBool,
}

impl Usage {
    /// That of a CPU without a plan.
    pub(crate) const fn none() -> Self {
        Self {
            used: AtomicBool::new(false),
            has_plan: AtomicBool::new(false),
        }
    }

    /// Whether the CPU has what it needs for plans: it has a plan, or threads of one. See
    /// [`plans::usage`](crate::plans::usage).
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Sets that. Returns the previous value.
    pub(crate) fn set_used(&self, used: bool) -> bool {
        self.used.swap(used, Ordering::Relaxed)
    }

    /// Whether it has a plan.
    pub(crate) fn has_plan(&self) -> bool {
        self.has_plan.load(Ordering::Relaxed)
    }

    /// Notes that its plan has changed. With the run queue locked.
    pub(crate) fn set_has_plan(&self, has_plan: bool) {
        self.has_plan.store(has_plan, Ordering::Relaxed);
    }
}
