// SPDX-License-Identifier: GPL-2.0
//! Cluster availability profile: the availability of one cluster as a manager reports it to an
//! application (Klein and Pérez 2011, 3.1.4 and A.3).

use crate::{Profile, FOREVER};
use serde::{Deserialize, Serialize};

/// A number of nodes for a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// [`FOREVER`] for what has no end.
    pub duration_ns: u64,
    /// Number of nodes that an application may have.
    pub nodes: u64,
}

impl Step {
    /// Creates a step of `nodes` for `duration_ns`.
    pub fn new(duration_ns: u64, nodes: u64) -> Self {
        Self { duration_ns, nodes }
    }
}

/// A step function of absolute time; 0 before its begin and after its last step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cap {
    from_ns: u64,
    /// End and nodes of each step. The ends ascend.
    steps: Vec<(u64, u64)>,
}

impl Cap {
    /// Steps one after the other, of which the first begins at that time.
    pub fn new(from_ns: u64, steps: &[Step]) -> Self {
        let mut end_ns = from_ns;
        let mut cap = Self { from_ns, steps: Vec::with_capacity(steps.len()) };
        for step in steps.iter().filter(|step| step.duration_ns > 0) {
            if end_ns == FOREVER {
                break;
            }
            end_ns = end_ns.saturating_add(step.duration_ns);
            cap.push(end_ns, step.nodes);
        }
        cap
    }

    /// Returns the availability that a profile has from `from_ns` on.
    pub fn of_profile(profile: &Profile, from_ns: u64) -> Self {
        let steps = profile.steps_from(from_ns);
        Self::of_ends(from_ns, steps.map(|step| (step.until, step.value)))
    }

    /// Steps one after the other, of which the first begins at that time: each with the time
    /// at which it ends, and its nodes. One that does not end after the one before is nothing.
    pub fn of_ends(from_ns: u64, ends: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut cap = Self { from_ns, steps: Vec::new() };
        for (end_ns, nodes) in ends {
            if end_ns > cap.end_ns() {
                cap.push(end_ns, nodes);
            }
        }
        cap
    }

    /// Iterates over the steps from the first on, each with its duration and nodes: the form in
    /// which a profile is sent.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let mut from_ns = self.from_ns;
        self.steps.iter().map(move |&(end_ns, nodes)| {
            let duration_ns = match end_ns {
                FOREVER => FOREVER,
                end_ns => end_ns - from_ns,
            };
            from_ns = end_ns;
            Step { duration_ns, nodes }
        })
    }

    /// Returns the beginning of the first step.
    pub fn from_ns(&self) -> u64 {
        self.from_ns
    }

    fn end_ns(&self) -> u64 {
        self.steps.last().map_or(self.from_ns, |step| step.0)
    }

    fn push(&mut self, end_ns: u64, nodes: u64) {
        match self.steps.last_mut() {
            // Where nothing changes nobody has to look.
            Some(last) if last.1 == nodes => last.0 = end_ns,
            _ => self.steps.push((end_ns, nodes)),
        }
    }

    /// Nodes at a time.
    pub fn at(&self, time_ns: u64) -> u64 {
        if time_ns < self.from_ns {
            return 0;
        }
        let place = self.steps.partition_point(|&(end_ns, _)| end_ns <= time_ns);
        self.steps.get(place).map_or(0, |step| step.1)
    }

    /// Returns the time of the next change after `time_ns`, if there is one.
    pub fn next_change_ns(&self, time_ns: u64) -> Option<u64> {
        if time_ns < self.from_ns && !self.steps.is_empty() {
            return Some(self.from_ns);
        }
        let place = self.steps.partition_point(|&(end_ns, _)| end_ns <= time_ns);
        let (end_ns, nodes) = *self.steps.get(place)?;
        // After a last step of no nodes there are none either.
        let is_change = place + 1 < self.steps.len() || nodes > 0;
        (is_change && end_ns < FOREVER).then_some(end_ns)
    }

    /// The times from one to before another at which it may have other nodes: the first,
    /// and each change.
    pub fn times(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = u64> + '_ {
        let mut next = (from_ns < to_ns).then_some(from_ns);
        std::iter::from_fn(move || {
            let time_ns = next?;
            next = self.next_change_ns(time_ns).filter(|&ns| ns < to_ns);
            Some(time_ns)
        })
    }

    /// The least nodes from one time to before another; `None` where nothing is between.
    pub fn least(&self, from_ns: u64, to_ns: u64) -> Option<u64> {
        self.times(from_ns, to_ns).map(|ns| self.at(ns)).min()
    }

    /// The first time, not before one, from which on there are so many nodes for so long.
    pub fn first_hole_ns(&self, nodes: u64, duration_ns: u64, from_ns: u64) -> Option<u64> {
        let mut start_ns = from_ns;
        loop {
            let end_ns = start_ns.saturating_add(duration_ns.max(1));
            let mut times = self.times(start_ns, end_ns);
            let Some(low_ns) = times.find(|&ns| self.at(ns) < nodes) else {
                return Some(start_ns);
            };
            start_ns = self.next_change_ns(low_ns)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> Cap {
        Cap::new(10, &[Step::new(20, 4), Step::new(10, 2), Step::new(FOREVER, 8)])
    }

    #[test]
    fn a_view_yields_the_nodes_of_its_step() {
        let view = view();
        let at = [0, 9, 10, 29, 30, 39, 40, FOREVER - 1].map(|ns| view.at(ns));
        assert_eq!(at, [0, 0, 4, 4, 2, 2, 8, 8]);
        assert_eq!(Cap::default().at(3), 0);
    }

    #[test]
    fn the_example_of_a_view_is_reproduced() {
        // A.3: 4 nodes in [0, 3600), 3 in [3600, 7200), none after.
        let view = Cap::new(0, &[Step::new(3600, 4), Step::new(3600, 3)]);
        assert_eq!([1800, 3600, 7200].map(|s| view.at(s)), [4, 3, 0]);
        assert_eq!(view.times(0, FOREVER).collect::<Vec<_>>(), [0, 3600, 7200]);
    }

    #[test]
    fn changes_are_where_nodes_change() {
        let view = view();
        assert_eq!(view.times(0, FOREVER).collect::<Vec<_>>(), [0, 10, 30, 40]);
        assert_eq!(view.times(12, 30).collect::<Vec<_>>(), [12]);
        assert_eq!(view.times(12, 12).count(), 0);
        let flat = Cap::new(0, &[Step::new(5, 3), Step::new(0, 9), Step::new(5, 3)]);
        assert_eq!(flat.times(0, FOREVER).collect::<Vec<_>>(), [0, 10]);
    }

    #[test]
    fn holes_are_long_and_wide_enough() {
        let view = view();
        assert_eq!(view.first_hole_ns(4, 20, 0), Some(10));
        assert_eq!(view.first_hole_ns(4, 21, 0), Some(40));
        assert_eq!(view.first_hole_ns(2, 1000, 15), Some(15));
        assert_eq!(view.first_hole_ns(9, 1, 0), None);
        assert_eq!(view.least(20, 35), Some(2));
        assert_eq!(Cap::default().first_hole_ns(1, 1, 0), None);
    }

    #[test]
    fn nothing_follows_what_has_no_end() {
        let view = Cap::new(5, &[Step::new(FOREVER, 1), Step::new(3, 7)]);
        assert_eq!(view.at(FOREVER - 1), 1);
        assert_eq!(view.first_hole_ns(1, FOREVER, 0), Some(5));
    }
}
