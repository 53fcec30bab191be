// SPDX-License-Identifier: GPL-2.0

//! Circles of tasks that wait for each other.

use core::fmt;

/// Tasks that wait for each other: none of them can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The first edges of the circle: process, task, and the process and task that it waits for.
    /// The awaited process is the process of the next edge; the task of the next edge is the
    /// awaited task or comes before it.
    edges: [[u32; 4]; Circle::SHOWN],
    /// Number of edges of the circle.
    count: u32,
}

impl Circle {
    /// Number of edges that always fit into a message.
    const SHOWN: usize = 3;

    /// A circle of no edges yet.
    pub(super) const EMPTY: Circle = Circle {
        edges: [[0; 4]; Circle::SHOWN],
        count: 0,
    };

    /// Adds the next edge of the circle.
    pub(super) fn push(&mut self, edge: [u32; 4]) {
        if let Some(place) = self.edges.get_mut(self.count as usize) {
            *place = edge;
        }
        self.count += 1;
    }

    /// The circle with the longest description.
    #[cfg(test)]
    pub fn longest() -> Circle {
        Circle {
            edges: [[u32::MAX; 4]; Circle::SHOWN],
            count: u32::MAX,
        }
    }
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tasks wait in a circle: ")?;
        let shown = self.edges.iter().take(self.count as usize);
        for (place, [process, task, after_process, after_task]) in shown.enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(
                f,
                "{comma}{process}/{task} for {after_process}/{after_task}"
            )?;
        }
        let more = self.count.saturating_sub(Circle::SHOWN as u32);
        if more != 0 {
            write!(f, " and {more} more")?;
        }
        f.write_str("; leave one of these edges out")
    }
}
