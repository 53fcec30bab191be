// SPDX-License-Identifier: GPL-2.0
//! Arrows from tasks to those that waited for them.

use std::collections::HashSet;

use super::*;
use crate::svg::{CRITICAL, EDGE};

/// Number of edges above which only edges with a wait are drawn.
const MOST_EDGES: usize = 100;

impl Gantt<'_> {
    /// From the end of each task that is waited for to the beginning of who waits,
    /// in what became of the plan: red where the slot of that came too early.
    pub(super) fn arrows(&mut self) {
        let report = self.report;
        let waited: HashSet<_> = report.waited.iter().map(|wait| wait.edge).collect();
        let few = report.edges.len() <= MOST_EDGES;
        for edge in &report.edges {
            let has_waited = waited.contains(edge);
            if !few && !has_waited {
                continue;
            }
            let before = self.task(edge.after_process, Some(edge.after_task));
            let own = self.task(edge.process, Some(edge.task));
            let (Some(before), Some(own)) = (before, own) else {
                continue;
            };
            let (Some(ended_ns), Some(started_ns)) = (before.ended_ns, own.started_ns) else {
                continue;
            };
            let (Some(&from), Some(&to)) =
                (self.actual.get(&before.process), self.actual.get(&own.process))
            else {
                continue;
            };
            let x_of = |cpu: u32, at_ns: u64| {
                let origin = self.origin_ns.get(&cpu).copied().unwrap_or(0);
                self.x_of_ns(at_ns.saturating_sub(origin) as f64)
            };
            let (from_x, to_x) = (x_of(before.cpu, ended_ns), x_of(own.cpu, started_ns));
            let middle = |(y, height): (f64, f64)| y + height / 2.0;
            let (mut from_y, mut to_y) = (middle(from), middle(to));
            let mut bend = 0.0;
            if from == to {
                // Below what is between them in the same track.
                (from_y, to_y) = (from.0 + from.1, to.0 + to.1);
                bend = 8.0;
            }
            let title = format!("{} waits for {}", own.label(), before.label());
            let style = if has_waited { CRITICAL } else { EDGE };
            self.picture.arrow((from_x, from_y), (to_x, to_y), bend, style, &title);
        }
    }
}
