// SPDX-License-Identifier: GPL-2.0

//! The outlets of a CPU: its ring of events, and its links to other CPUs.

use super::front::FrontLinks;
use crate::rings::events::EventWriter;

/// The ring of events of a CPU, and its links to other CPUs.
#[derive(Default)]
pub(crate) struct Outlet {
    /// The ring; `None` until the CPU has its first plan.
    ring: Option<EventWriter>,
    /// The fronts that it writes, and those that it reads.
    links: FrontLinks,
}

impl Outlet {
    /// Writes to that ring from now on.
    pub(crate) fn write_to(&mut self, ring: EventWriter) {
        self.ring = Some(ring);
    }

    /// The ring, if there is one.
    #[inline]
    pub(crate) fn ring_mut(&mut self) -> Option<&mut EventWriter> {
        self.ring.as_mut()
    }

    /// The links of the plan that is in force.
    pub(crate) fn links(&self) -> &FrontLinks {
        &self.links
    }

    /// Replaces the links of the old plan by those of the new one.
    pub(crate) fn swap_links(&mut self, links: &mut FrontLinks) {
        core::mem::swap(&mut self.links, links);
    }
}
