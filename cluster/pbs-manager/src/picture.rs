// SPDX-License-Identifier: GPL-2.0
//! A Gantt chart of the machine.

use std::collections::BTreeMap;

use pbs_cluster_planner::NCPUS;
use pbs_report::{lanes, Lane, Stay};
use pbs_site::{format_short_time, format_time};

use crate::engine::Engine;
use crate::manager::Manager;

/// Possible distances of two ticks, in seconds.
const STEPS: [u64; 14] = [
    1, 10, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 604_800, 2_592_000,
    31_536_000,
];
/// At most so many ticks.
const TICKS: u64 = 8;

impl<E: Engine> Manager<E> {
    /// The plan from now on as a picture: a row for each node, in the order of the site,
    /// with boxes as high as the cores that requests have. `span_s` seconds of it, or all.
    pub fn gantt(&self, span_s: Option<u64>) -> String {
        let from_s = self.clock_s();
        let rows = self.open_rows();
        let last_s = rows.iter().filter_map(|row| row.end_s).max();
        let until_s = match span_s {
            Some(span_s) => from_s.saturating_add(span_s),
            None => last_s.unwrap_or(from_s).max(from_s + 60),
        };
        let mut stays: BTreeMap<usize, Vec<Stay>> = BTreeMap::new();
        // What is in a reservation is where that is.
        for row in rows.iter().filter(|row| row.within.is_none()) {
            let (Some(start_s), Some(end_s)) = (row.start_s, row.end_s) else {
                continue;
            };
            for (node, amounts) in self.planner().used_by(row.id) {
                let name = if row.name.is_empty() {
                    row.id.to_string()
                } else {
                    format!("{} {}", row.id, row.name)
                };
                let zone = &self.site().time_zone;
                stays.entry(node).or_default().push(Stay {
                    from: start_s.max(from_s),
                    until: end_s,
                    takes: amounts[NCPUS],
                    of: row.id as usize,
                    title: format!(
                        "{name}: {} of {}, {} cores here, {} to {}",
                        row.user,
                        row.group,
                        amounts[NCPUS],
                        format_time(start_s, zone),
                        format_time(end_s, zone)
                    ),
                    name,
                });
            }
        }
        let nodes = self.site().nodes.iter().filter_map(|node| {
            let place = self.machine().node_by_name(&node.name)?;
            let state = self.node_state(&node.name);
            Some(Lane {
                name: node.name.clone(),
                note: state.map_or(String::new(), |state| state.name().into()),
                has: self.machine().has(place, NCPUS),
                stays: stays.remove(&place).unwrap_or_default(),
            })
        });
        let nodes: Vec<Lane> = nodes.collect();
        let title = format!("Plan of {}", self.site().name);
        let planned = rows.iter().filter(|row| row.start_s.is_some()).count();
        let description = format!(
            "{} nodes, {planned} requests, from {} on",
            nodes.len(),
            format_time(from_s, &self.site().time_zone)
        );
        let ticks = self.ticks(from_s, until_s);
        lanes(&title, &description, (from_s, until_s), &ticks, &nodes)
    }

    /// Round times, by the clock of the site where they are days.
    fn ticks(&self, from_s: u64, until_s: u64) -> Vec<(u64, String)> {
        let span_s = until_s - from_s;
        let step_s = STEPS.into_iter().find(|step_s| span_s / step_s <= TICKS);
        let step_s = step_s.unwrap_or(span_s.max(1));
        let first_s = from_s.div_ceil(step_s) * step_s;
        let times = (first_s..=until_s).step_by(step_s as usize);
        let zone = &self.site().time_zone;
        times.map(|at_s| (at_s, format_short_time(at_s, zone))).collect()
    }
}
