// SPDX-License-Identifier: GPL-2.0
//! Use and limits of a resource for users and groups: Keller's usdRS with the limits that apply to
//! it (4.1, 5.1).

use std::ops::Range;

use pbs_profile::Profile;
use pbs_site::Whom;

use crate::machine::ResourceId;
use crate::memory::Memory;
use crate::rules::{Limit, Rules};
use crate::types::NOTHING;

/// More than anybody can have.
const UNLIMITED: u64 = 1 << 61;

/// Amount that a consumer may still use under some of its limits.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    /// Use of the resource, in thousandths, below which the limit gives way.
    pub(crate) soft_permille: Option<u64>,
    pub(crate) profile: Profile,
}

/// A limit on each request, or on all of them together.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    duration_s: Option<u64>,
    area_s: Option<u64>,
    pub(crate) valid: Vec<Range<u64>>,
}

/// Limit that a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Duration,
    Area,
}

/// Use and limits of one resource for one consumer.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// One for all hard limits on items, and one for each soft one.
    pub(crate) allowances: Vec<Allowance>,
    pub(crate) bounds: Vec<Bound>,
    /// Items times seconds of what has not ended, if somebody wants to know.
    area: Option<u128>,
}

impl Account {
    /// Creates an account without use; `None` if nothing is limited.
    pub(crate) fn new(
        rules: &Rules,
        whom: &Whom,
        resource: ResourceId,
        available: u64,
    ) -> Option<Self> {
        let limits = rules.of(whom, resource);
        if limits.is_empty() {
            return None;
        }
        let is_bound = |limit: &Limit| limit.duration_s.is_some() || limit.area_s.is_some();
        let bounds = limits.iter().filter(|(limit, _)| is_bound(limit));
        let bounds = bounds.map(|(limit, valid)| Bound {
            duration_s: limit.duration_s,
            area_s: limit.area_s,
            valid: valid.clone(),
        });
        let has_area = limits.iter().any(|(limit, _)| limit.area_s.is_some());
        let mut account =
            Self { allowances: Vec::new(), bounds: bounds.collect(), area: has_area.then_some(0) };
        for (limit, valid) in limits {
            if let Some(items) = limit.items {
                account.limit(limit.soft_permille, items.of(available), &valid);
            }
        }
        Some(account)
    }

    /// Limits the allowance to that many items at those times.
    fn limit(&mut self, soft_permille: Option<u64>, items: u64, valid: &[Range<u64>]) {
        // All hard limits are one; of soft ones each has its own use below which it gives way.
        let hard = |of: &Allowance| of.soft_permille.is_none() && soft_permille.is_none();
        let at = self.allowances.iter().position(hard).unwrap_or_else(|| {
            self.allowances
                .push(Allowance { soft_permille, profile: Profile::new(NOTHING + UNLIMITED) });
            self.allowances.len() - 1
        });
        let profile = &mut self.allowances[at].profile;
        for over in valid {
            // The least of all that hold.
            let steps: Vec<_> =
                profile.steps_from(over.start).take_while(|step| step.from < over.end).collect();
            for step in steps {
                let part = step.from.max(over.start)..step.until.min(over.end);
                let less = step.value.saturating_sub(NOTHING + items);
                let done = profile.subtract(part, less);
                debug_assert_eq!(done, Ok(()));
            }
        }
    }

    /// Limits that are parts of what is available follow it, from a time on; what is used stays
    /// used.
    pub(crate) fn set_available(
        &mut self,
        rules: &Rules,
        (whom, resource): (&Whom, ResourceId),
        (before, available): (u64, u64),
        from_s: u64,
    ) {
        let unused = |available| Self::new(rules, whom, resource, available);
        let (Some(old), Some(new)) = (unused(before), unused(available)) else { return };
        let unused = old.allowances.iter().zip(&new.allowances);
        for (allowance, (old, new)) in self.allowances.iter_mut().zip(unused) {
            for old in old.profile.steps_from(from_s) {
                let over = old.from.max(from_s)..old.until;
                let steps = new.profile.steps_from(over.start);
                for new in steps.take_while(|step| step.from < over.end) {
                    let part = new.from.max(over.start)..new.until.min(over.end);
                    let done = if new.value < old.value {
                        allowance.profile.subtract(part, old.value - new.value)
                    } else {
                        allowance.profile.add(part, new.value - old.value)
                    };
                    debug_assert_eq!(done, Ok(()));
                }
            }
        }
    }

    /// Adds the items and seconds of an accepted request to those that have not ended, or removes
    /// them.
    pub(crate) fn count_area(&mut self, amount: u64, span_s: u64, is_more: bool) {
        if let Some(area) = &mut self.area {
            let more = u128::from(amount) * u128::from(span_s);
            *area = if is_more { area.saturating_add(more) } else { area.saturating_sub(more) };
        }
    }

    /// The limits that a request of so many items exceeds, with when they hold.
    pub(crate) fn exceeded(
        &self,
        amount: u64,
        duration_s: u64,
    ) -> impl Iterator<Item = (Exceeded, &[Range<u64>])> {
        let own = u128::from(amount) * u128::from(duration_s);
        let area = self.area.unwrap_or(0) + own;
        self.bounds.iter().filter_map(move |bound| {
            if bound.duration_s.is_some_and(|most_s| duration_s > most_s) {
                return Some((Exceeded::Duration, &bound.valid[..]));
            }
            let is_too_much = bound.area_s.is_some_and(|most| area > u128::from(most));
            is_too_much.then_some((Exceeded::Area, &bound.valid[..]))
        })
    }

    pub(crate) fn count_memory(&self, memory: &mut Memory) {
        for of in &self.allowances {
            let bytes = size_of::<Allowance>() + of.profile.heap_bytes();
            memory.consumers.count(of.profile.step_count(), bytes);
        }
    }
}
