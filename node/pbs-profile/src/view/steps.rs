// SPDX-License-Identifier: GPL-2.0
//! A small step function, in a vector.

use std::ops::Range;

use crate::FOREVER;

/// Nodes over time, 0 before the first step: for a handful of steps, written often. What has
/// many steps is a [`Profile`](crate::Profile).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// From when on how many; neighbours differ, the last holds for ever.
    steps: Vec<(u64, u64)>,
}

impl Steps {
    /// Nodes at a time.
    pub fn at(&self, time_ns: u64) -> u64 {
        let place = self.steps.partition_point(|step| step.0 <= time_ns);
        place.checked_sub(1).map_or(0, |place| self.steps[place].1)
    }

    /// The most at any time.
    pub fn most(&self) -> u64 {
        self.steps.iter().map(|step| step.1).max().unwrap_or(0)
    }

    /// From when on how many, in the order of time.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.steps.iter().copied()
    }

    /// Whether the value is 0 at all times.
    pub fn is_zero(&self) -> bool {
        self.steps.is_empty()
    }

    /// Makes it nothing at any time.
    pub fn clear(&mut self) {
        self.steps.clear();
    }

    /// The stretches with at least one node.
    pub fn stretches(&self) -> impl Iterator<Item = (Range<u64>, u64)> + '_ {
        let ends = self.steps.iter().skip(1).map(|step| step.0);
        let ends = ends.chain(std::iter::once(FOREVER));
        let all = self.steps.iter().zip(ends);
        all.filter(|(step, _)| step.1 > 0)
            .map(|(&(from_ns, nodes), end_ns)| (from_ns..end_ns, nodes))
    }

    /// Adds `nodes` for a time.
    pub fn add(&mut self, over: Range<u64>, nodes: u64) {
        if over.is_empty() || nodes == 0 {
            return;
        }
        let from = self.split(over.start);
        let until = match over.end {
            FOREVER => self.steps.len(),
            end_ns => self.split(end_ns),
        };
        for step in &mut self.steps[from..until] {
            step.1 = step.1.saturating_add(nodes);
        }
        self.tidy();
    }

    /// The greater of both at each time.
    pub fn maximum(&self, other: &Self) -> Self {
        self.merge(other, u64::max)
    }

    /// Both together.
    pub fn sum(&self, other: &Self) -> Self {
        self.merge(other, u64::saturating_add)
    }

    /// Returns the amount by which this exceeds `other`.
    pub fn saturating_difference(&self, other: &Self) -> Self {
        self.merge(other, u64::saturating_sub)
    }

    /// Returns the differences between the two: the stretch, the nodes here, the nodes there.
    pub fn differences(&self, other: &Self) -> Vec<(Range<u64>, u64, u64)> {
        let times = self.times_of_both(other);
        let ends = times.iter().skip(1).copied();
        let ends = ends.chain(std::iter::once(FOREVER));
        let all = times.iter().zip(ends);
        all.map(|(&from_ns, end_ns)| (from_ns..end_ns, self.at(from_ns), other.at(from_ns)))
            .filter(|(_, here, there)| here != there)
            .collect()
    }

    /// Nodes times time over an interval.
    pub fn integral(&self, over: Range<u64>) -> u128 {
        let part = |stretch: Range<u64>| {
            let end_ns = stretch.end.min(over.end);
            u128::from(end_ns.saturating_sub(stretch.start.max(over.start)))
        };
        let stretches = self.stretches();
        stretches.map(|(stretch, nodes)| part(stretch) * u128::from(nodes)).sum()
    }

    fn merge(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        if other.is_zero() {
            return self.clone();
        }
        let times = self.times_of_both(other).into_iter();
        let mut merged =
            Self { steps: times.map(|ns| (ns, of(self.at(ns), other.at(ns)))).collect() };
        merged.tidy();
        merged
    }

    fn times_of_both(&self, other: &Self) -> Vec<u64> {
        let all = self.steps.iter().chain(&other.steps);
        let mut times: Vec<u64> = all.map(|step| step.0).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The place of the step that begins at a time, which may be a new one.
    fn split(&mut self, time_ns: u64) -> usize {
        let place = self.steps.partition_point(|step| step.0 < time_ns);
        if self.steps.get(place).is_none_or(|step| step.0 != time_ns) {
            self.steps.insert(place, (time_ns, self.at(time_ns)));
        }
        place
    }

    fn tidy(&mut self) {
        let mut before = 0;
        self.steps.retain(|step| {
            let differs = step.1 != before;
            before = step.1;
            differs
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_adds_up() {
        let mut steps = Steps::default();
        steps.add(10..20, 4);
        steps.add(20..FOREVER, 4);
        assert_eq!(steps.iter().collect::<Vec<_>>(), [(10, 4)]);
        steps.add(15..30, 2);
        steps.add(5..5, 9);
        assert_eq!([9, 10, 15, 29, 30].map(|ns| steps.at(ns)), [0, 4, 6, 6, 4]);
        assert_eq!(steps.most(), 6);
        let stretches: Vec<_> = steps.stretches().collect();
        assert_eq!(stretches, [(10..15, 4), (15..30, 6), (30..FOREVER, 4)]);
    }

    #[test]
    fn what_is_outside_is_not_integrated() {
        let mut steps = Steps::default();
        steps.add(10..20, 4);
        steps.add(30..FOREVER, 1);
        assert_eq!(steps.integral(15..35), 25);
        assert_eq!(steps.integral(20..30), 0);
    }

    #[test]
    fn two_are_compared_time_by_time() {
        let (mut a, mut b) = (Steps::default(), Steps::default());
        a.add(0..10, 4);
        b.add(5..15, 6);
        assert_eq!(a.maximum(&b).iter().collect::<Vec<_>>(), [(0, 4), (5, 6), (15, 0)]);
        let left = a.saturating_difference(&b);
        assert_eq!(left.stretches().collect::<Vec<_>>(), [(0..5, 4)]);
        assert_eq!(a.differences(&b), [(0..5, 4, 0), (5..10, 4, 6), (10..15, 0, 6)]);
        assert_eq!(a.differences(&a), []);
        assert_eq!(Steps::default().maximum(&b), b);
    }
}
