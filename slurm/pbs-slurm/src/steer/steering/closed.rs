// SPDX-License-Identifier: GPL-2.0
//! Nodes that the batch system reserves for a time, or on which it runs a job of such a
//! reservation: nothing is planned there then.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pbs_manager::ledger::ClosedRow;
use pbs_manager::{Error, Manager};

use super::left::ENDED_LATE_S;
use super::{operator, Steer};
use crate::steer::link::Link;

/// Longest text that names the reservations of a node.
const MOST_WHY_CHARS: usize = 200;

impl Steer {
    /// Closes nodes for the times of reservations, and opens those that have none any more.
    pub(super) fn close_nodes(&mut self, manager: &mut Manager<Link>) -> Result<(), Error> {
        for remark in &self.world.remarks {
            if !self.remarks.contains(remark) {
                self.news.push(remark.clone());
            }
        }
        self.remarks.clone_from(&self.world.remarks);
        let cleaned_s = manager.site().release_timeout_s.saturating_add(ENDED_LATE_S);
        let left = self.left_nodes(cleaned_s);
        let mut wanted: BTreeMap<&str, (Vec<Range<u64>>, BTreeSet<&str>)> = BTreeMap::new();
        for closing in &self.world.closed {
            // Jobs in the reservation may run to its end, or for longer. Nobody's plan is to move
            // when they do.
            let after_s = match closing.loose {
                None => closing.overrun_s.unwrap_or(0).saturating_add(cleaned_s),
                Some(_) => 0,
            };
            let times = closing.times.iter();
            let times = times.map(|time| time.start..time.end.saturating_add(after_s));
            for node in &closing.nodes {
                let of = wanted.entry(node).or_default();
                of.0.extend(times.clone());
                of.1.insert(&closing.why);
            }
        }
        for (nodes, (from_s, until_s), why) in &left {
            for node in *nodes {
                let of = wanted.entry(node).or_default();
                of.0.push(*from_s..*until_s);
                of.1.insert(why);
            }
        }
        let before = manager.closed().map(|row| row.name.clone());
        let before: Vec<String> = before.filter(|name| !wanted.contains_key(&**name)).collect();
        wanted.extend(before.iter().map(|name| (&**name, Default::default())));
        // Nodes of other partitions are none of the site.
        wanted.retain(|name, _| manager.machine().node_by_name(name).is_some());
        let rows = wanted.into_iter().map(|(name, (times, why))| {
            let why = why.into_iter().collect::<Vec<_>>().join("; ");
            ClosedRow {
                name: name.into(),
                times: times.into_iter().map(|time| (time.start, time.end)).collect(),
                why: why.chars().take(MOST_WHY_CHARS).collect(),
            }
        });
        let rows: Vec<ClosedRow> = rows.collect();
        let now_s = self.looked.as_secs();
        let is_open = manager.closed().any(|before| {
            let now = rows.binary_search_by(|row| row.name.cmp(&before.name)).ok();
            let times = now.and_then(|place| rows.get(place)).map_or(&[][..], |now| &now.times);
            before.times.iter().any(|&(from_s, end_s)| !covers(times, from_s.max(now_s), end_s))
        });
        manager.set_closed(&operator(), rows)?;
        if is_open {
            self.try_declined_again();
        }
        Ok(())
    }
}

/// Whether times, in any order, contain all of a time.
fn covers(times: &[(u64, u64)], from_s: u64, end_s: u64) -> bool {
    let mut times = times.to_vec();
    times.sort_unstable();
    let reached = times.into_iter().fold(from_s, |reached_s, (from_s, end_s)| {
        if from_s <= reached_s {
            reached_s.max(end_s)
        } else {
            reached_s
        }
    });
    reached >= end_s
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_time_is_covered_by_several() {
        assert!(covers(&[(5, 10), (0, 6)], 2, 10));
        assert!(!covers(&[(6, 10), (0, 5)], 2, 10));
        assert!(!covers(&[(0, 9)], 2, 10) && !covers(&[], 2, 10));
        // A time that is over needs nothing.
        assert!(covers(&[], 10, 10));
    }
}
