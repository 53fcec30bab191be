// SPDX-License-Identifier: GPL-2.0

//! Use of a CPU for plans.

use core::sync::atomic::{AtomicBool, Ordering};

/// Whether a CPU has the resources that plans need, and whether it has a plan.
pub(crate) struct Usage {
    used: AtomicBool,
    has_plan: AtomicBool,
}

impl Usage {
    /// The usage of a CPU without a plan.
    pub(crate) const fn none() -> Self {
        Self {
            used: AtomicBool::new(false),
            has_plan: AtomicBool::new(false),
        }
    }

    /// Whether the CPU has the resources that plans need: it has a plan, or threads of one. See
    /// [`plans::usage`](crate::plans::usage).
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Sets the `used` flag. Returns its previous value.
    pub(crate) fn set_used(&self, used: bool) -> bool {
        self.used.swap(used, Ordering::Relaxed)
    }

    /// Whether the CPU has a plan.
    pub(crate) fn has_plan(&self) -> bool {
        self.has_plan.load(Ordering::Relaxed)
    }

    /// Notes that the plan has changed. With the run queue locked.
    pub(crate) fn set_has_plan(&self, has_plan: bool) {
        self.has_plan.store(has_plan, Ordering::Relaxed);
    }
}
