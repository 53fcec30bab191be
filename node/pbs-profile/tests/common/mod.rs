// SPDX-License-Identifier: GPL-2.0
//! Naive profile: one number for each unit of time.

#![allow(dead_code)] // Each test uses a part of it.

use std::ops::Range;

use pbs_profile::{Profile, FOREVER};

/// Values of the times 0, 1, 2 and so on; the last holds for ever.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Naive {
    pub(crate) start: u64,
    pub(crate) values: Vec<u64>,
}

impl Naive {
    /// With so many times of their own.
    pub(crate) fn new(times: u64, value: u64) -> Self {
        Self { start: 0, values: vec![value; times as usize + 1] }
    }

    /// A time that has the value of `time`.
    fn index(&self, time: u64) -> usize {
        (time.max(self.start) as usize).min(self.values.len() - 1)
    }

    pub(crate) fn value_at(&self, time: u64) -> u64 {
        self.values[self.index(time)]
    }

    /// The times of an interval, those after the last as one.
    pub(crate) fn times(&self, over: &Range<u64>) -> Range<u64> {
        let start = over.start.max(self.start);
        let last = self.values.len() as u64 - 1;
        if start > last && start < over.end {
            return start..start + 1;
        }
        start..over.end.min(last + 1)
    }

    /// Applies it to every value, or to none if one says `None`.
    pub(crate) fn change(&mut self, over: &Range<u64>, with: impl Fn(u64) -> Option<u64>) -> bool {
        let mut values = self.values.clone();
        for time in self.times(over) {
            let index = self.index(time);
            match with(values[index]) {
                Some(value) => values[index] = value,
                None => return false,
            }
        }
        self.values = values;
        true
    }

    pub(crate) fn first(&self, over: &Range<u64>, is: impl Fn(u64) -> bool) -> Option<u64> {
        self.times(over).find(|&time| is(self.value_at(time)))
    }

    pub(crate) fn min_over(&self, over: &Range<u64>) -> Option<u64> {
        self.times(over).map(|time| self.value_at(time)).min()
    }

    pub(crate) fn max_over(&self, over: &Range<u64>) -> Option<u64> {
        self.times(over).map(|time| self.value_at(time)).max()
    }

    /// Returns the integral over an interval with an end among the times.
    pub(crate) fn integral(&self, over: &Range<u64>) -> u128 {
        let times = over.start.max(self.start)..over.end;
        times.map(|time| u128::from(self.value_at(time))).sum()
    }

    /// Whether at least `need` is there from `time` on for `duration`.
    pub(crate) fn fits(&self, need: u64, duration: u64, time: u64) -> bool {
        let over = time..time.saturating_add(duration);
        self.times(&over).all(|time| self.value_at(time) >= need)
    }

    /// Returns the first time at which all needs are fulfilled for `duration`.
    pub(crate) fn first_hole(
        needs: &[(&Self, u64)],
        duration: u64,
        window: &Range<u64>,
    ) -> Option<u64> {
        let start = needs.iter().map(|(of, _)| of.start).max()?;
        let last = needs.iter().map(|(of, _)| of.values.len() as u64).max()?;
        let from = window.start.max(start);
        let fits = |time| needs.iter().all(|(of, need)| of.fits(*need, duration, time));
        (from..=from.max(last))
            .take_while(|time| time.saturating_add(duration) <= window.end)
            .find(|&time| fits(time))
    }

    pub(crate) fn free_slots(
        &self,
        need: u64,
        duration: u64,
        window: &Range<u64>,
    ) -> Vec<Range<u64>> {
        let mut slots: Vec<Range<u64>> = Vec::new();
        let last = self.values.len() as u64 - 1;
        let free = |time: &u64| self.value_at(*time) >= need;
        for time in self.times(window).filter(free) {
            let end = if time >= last { window.end } else { time + 1 };
            match slots.last_mut() {
                Some(slot) if slot.end == time => slot.end = end,
                _ => slots.push(time..end),
            }
        }
        slots.retain(|slot| slot.end - slot.start >= duration);
        slots
    }

    pub(crate) fn forget_before(&mut self, time: u64) {
        self.start = self.start.max(time);
    }

    /// Value by value of two that have as many.
    pub(crate) fn combine(
        &self,
        other: &Self,
        with: impl Fn(u64, u64) -> Option<u64>,
    ) -> Option<Self> {
        let start = self.start.max(other.start);
        let both = self.values.iter().zip(&other.values).enumerate();
        let values = both.map(|(time, (&a, &b))| {
            if time as u64 >= start {
                with(a, b)
            } else {
                // Nobody looks at these.
                Some(0)
            }
        });
        Some(Self { start, values: values.collect::<Option<_>>()? })
    }

    /// Returns the steps in the form of a profile's steps.
    pub(crate) fn steps(&self) -> Vec<(u64, u64)> {
        let first = self.index(self.start);
        let mut steps = vec![(self.start, self.values[first])];
        for (time, &value) in (0u64..).zip(&self.values).skip(first + 1) {
            if steps[steps.len() - 1].1 != value {
                steps.push((time, value));
            }
        }
        steps
    }

    pub(crate) fn profile(&self) -> Profile {
        Profile::from_steps(self.steps()).unwrap()
    }

    /// Asserts that a profile is the same.
    pub(crate) fn assert_is(&self, profile: &Profile) {
        let steps: Vec<_> = profile.iter().map(|step| (step.from, step.value)).collect();
        let mine = self.steps();
        for (at, step) in steps.iter().enumerate() {
            assert_eq!(Some(step), mine.get(at), "step {at}");
        }
        assert_eq!(profile.step_count(), mine.len());
        assert_eq!(steps.len(), mine.len());
        assert_eq!(profile.start(), self.start);
        let mut begins: Vec<_> = steps.iter().map(|step| step.0).skip(1).collect();
        begins.push(FOREVER);
        let ends: Vec<_> = profile.iter().map(|step| step.until).collect();
        assert_eq!(ends, begins);
    }
}
