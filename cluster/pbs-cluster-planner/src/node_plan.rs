// SPDX-License-Identifier: GPL-2.0
//! Use of a node over time: Keller's nRS (4.1), all resources of a node in one list of steps.
//!
//! A node has few steps because it hosts few requests at a time. The steps lie side by side in
//! memory and are searched in the order of time. [`Gaps`](crate::gaps::Gaps) keeps the number of
//! searched nodes small.

use std::ops::Range;

use pbs_profile::FOREVER;

use crate::machine::ResourceId;

/// Amounts of resources that are needed at once.
pub(crate) type Amounts = [(ResourceId, u64)];

/// The steps of a node. The first begins at 0 or where what was is forgotten, the last has
/// no end and uses nothing, unless the node is out of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodePlan {
    begins_s: Vec<u64>,
    /// Use of each resource, one entry for each of `begins_s`.
    used: Vec<Vec<u64>>,
}

impl NodePlan {
    pub(crate) fn new(resources: usize) -> Self {
        Self { begins_s: vec![0], used: vec![vec![0]; resources] }
    }

    /// Returns the memory that each resource takes; the times count for the first resource.
    pub(crate) fn vector_bytes(&self) -> impl Iterator<Item = usize> + '_ {
        let times = size_of::<Self>() + self.begins_s.capacity() * size_of::<u64>();
        let used = self.used.iter().enumerate();
        used.map(move |(resource, used)| {
            let values = size_of::<Vec<u64>>() + used.capacity() * size_of::<u64>();
            values + if resource == 0 { times } else { 0 }
        })
    }

    pub(crate) fn step_count(&self) -> usize {
        self.begins_s.len()
    }

    pub(crate) fn begin_s(&self, step: usize) -> u64 {
        self.begins_s[step]
    }

    /// Returns the end of the step.
    pub(crate) fn end_s(&self, step: usize) -> u64 {
        self.begins_s.get(step + 1).copied().unwrap_or(FOREVER)
    }

    pub(crate) fn used(&self, step: usize, resource: ResourceId) -> u64 {
        self.used[resource][step]
    }

    /// The step that a time is in.
    pub(crate) fn step_at(&self, time_s: u64) -> usize {
        let after = self.begins_s.partition_point(|&begin_s| begin_s <= time_s);
        after.saturating_sub(1)
    }

    /// Returns the number of steps that an interval is in.
    pub(crate) fn steps_in(&self, over: &Range<u64>) -> usize {
        let before_end = self.begins_s.partition_point(|&begin_s| begin_s < over.end);
        before_end.saturating_sub(self.step_at(over.start))
    }

    /// Returns the time from which on nothing changes.
    pub(crate) fn tail_s(&self) -> u64 {
        self.begins_s.last().copied().unwrap_or(0)
    }

    /// ⊕: uses more. What exceeds the node is the caller's fault.
    pub(crate) fn add(&mut self, over: Range<u64>, amounts: &Amounts) {
        self.change(over, amounts, u64::wrapping_add);
    }

    /// ⊖: uses less. What was not used is the caller's fault.
    pub(crate) fn subtract(&mut self, over: Range<u64>, amounts: &Amounts) {
        self.change(over, amounts, u64::wrapping_sub);
    }

    fn change(&mut self, over: Range<u64>, amounts: &Amounts, of: impl Fn(u64, u64) -> u64) {
        let over = over.start.max(self.begins_s[0])..over.end;
        if over.is_empty() {
            return;
        }
        let first = self.cut(over.start);
        let last = match over.end {
            FOREVER => self.begins_s.len(),
            end_s => self.cut(end_s),
        };
        for &(resource, amount) in amounts {
            for used in &mut self.used[resource][first..last] {
                *used = of(*used, amount);
            }
        }
        // Only at the borders can neighbours have become equal.
        if last < self.begins_s.len() {
            self.join(last);
        }
        self.join(first);
    }

    /// Makes a step begin at that time, which is not before the first step, and returns its index.
    fn cut(&mut self, time_s: u64) -> usize {
        let step = self.step_at(time_s);
        if self.begins_s[step] == time_s {
            return step;
        }
        self.begins_s.insert(step + 1, time_s);
        for used in &mut self.used {
            used.insert(step + 1, used[step]);
        }
        step + 1
    }

    /// Removes the step if it is as the one before it.
    fn join(&mut self, step: usize) {
        let is_same = |used: &Vec<u64>| used[step - 1] == used[step];
        if step > 0 && self.used.iter().all(is_same) {
            self.begins_s.remove(step);
            for used in &mut self.used {
                used.remove(step);
            }
        }
    }

    /// Forgets what was before.
    pub(crate) fn forget_before(&mut self, time_s: u64) {
        let step = self.step_at(time_s);
        if step > 0 {
            self.begins_s.drain(..step);
            for used in &mut self.used {
                used.drain(..step);
            }
        }
    }

    /// Returns how many times the amounts fit in a step beside the current use, at most `most`.
    pub(crate) fn fits(&self, step: usize, has: &[u64], amounts: &Amounts, most: u64) -> u64 {
        let mut fits = most;
        for &(resource, amount) in amounts {
            let free = has[resource].saturating_sub(self.used[resource][step]);
            if free < amount * fits {
                fits = free / amount;
            }
        }
        fits
    }

    /// Returns how many times the amounts fit throughout an interval, at most `most`.
    pub(crate) fn fits_over(
        &self,
        over: Range<u64>,
        has: &[u64],
        amounts: &Amounts,
        most: u64,
    ) -> u64 {
        let mut fits = most;
        for step in self.step_at(over.start)..self.begins_s.len() {
            if fits == 0 || self.begins_s[step] >= over.end {
                break;
            }
            fits = self.fits(step, has, amounts, fits);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_join_again() {
        let mut plan = NodePlan::new(2);
        let before = plan.clone();
        plan.add(10..20, &[(0, 3)]);
        plan.add(20..30, &[(0, 3)]);
        assert_eq!(plan.step_count(), 3);
        plan.add(15..FOREVER, &[(1, 1)]);
        assert_eq!(plan.fits_over(12..40, &[4, 1], &[(0, 1)], 9), 1);
        assert_eq!(plan.fits_over(12..40, &[4, 1], &[(0, 1), (1, 1)], 9), 0);
        plan.subtract(15..FOREVER, &[(1, 1)]);
        plan.subtract(10..30, &[(0, 3)]);
        assert_eq!(plan, before);
    }

    #[test]
    fn what_was_is_forgotten() {
        let mut plan = NodePlan::new(1);
        plan.add(10..20, &[(0, 3)]);
        plan.forget_before(15);
        assert_eq!((plan.step_count(), plan.begin_s(0)), (2, 10));
        plan.subtract(0..20, &[(0, 3)]);
        assert_eq!(plan.step_count(), 1);
    }
}
