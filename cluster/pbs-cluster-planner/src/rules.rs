// SPDX-License-Identifier: GPL-2.0
//! Rules for users: limits and free pools (Keller, 3).
//!
//! The validity of a rule is a list of intervals, derived from dates and cron strings by the
//! caller, up to a horizon. Nothing is planned beyond the horizon, therefore each search ends.

use std::ops::Range;
use std::sync::Arc;

use pbs_profile::FOREVER;
use pbs_resources::{Condition, Facts};
use pbs_site::{Share, Whom};

use crate::machine::ResourceId;

/// Subject of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Each resource that has no limit of its own at that time: `*`.
    All,
    /// One resource.
    Resource(ResourceId),
    /// Requests that have not ended: `jobs`.
    Requests,
    /// Unfinished requests that belong to arrays: `arrayjobs`.
    ArrayRequests,
}

/// Upper limit of a consumer's use of a resource. It binds requests that overlap its validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Consumer to whom the limit applies. A limit of everyone applies to each user without own
    /// limits.
    pub whom: Whom,
    /// Limited subject.
    pub of: Limited,
    /// Largest number of items at once; `None` is no limit.
    pub items: Option<Share>,
    /// Total use of the resource, in thousandths, up to which a consumer may exceed `items`
    /// (Keller, 8). `None`: the limit never gives way.
    pub soft_permille: Option<u64>,
    /// Maximum duration of a request.
    pub duration_s: Option<u64>,
    /// Items times seconds, summed over all requests that have not ended.
    pub area_s: Option<u64>,
    /// Validity of the limit: disjoint intervals in the order of time.
    pub valid: Vec<Range<u64>>,
}

/// Amount of a resource that is kept free for some users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name for operators.
    pub name: String,
    /// Resource of the pool.
    pub resource: ResourceId,
    /// Amount that is kept free.
    pub free: Share,
    /// Condition on requests that may use the pool; its amounts are those of the whole request.
    pub access: Condition,
    /// Whether what those use that may counts as kept free (Keller's formula says no).
    pub share: bool,
    /// Whether it keeps the resource only from requests that ask for it: outside of its own
    /// validity, a resource of a node may be taken along by whoever takes the node whole.
    pub for_askers: bool,
    /// Validity of the pool: disjoint intervals in the order of time.
    pub valid: Vec<Range<u64>>,
}

/// All limits and pools of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Limits of all consumers. A consumer without an entry is not limited.
    pub limits: Vec<Limit>,
    /// At most [`pbs_site::MOST_POOLS`]; further ones keep nothing.
    pub pools: Vec<Pool>,
    /// Times at which users and groups may have nothing: disjoint intervals in the order of time.
    /// The plan of a reservation shares them.
    pub locks: Arc<[(Whom, Vec<Range<u64>>)]>,
    /// Horizon of the validities; [`FOREVER`] if none repeats.
    pub horizon_s: u64,
}

impl Rules {
    /// Returns the rules with all times counted from that one on.
    pub fn counted_from(mut self, begin_s: u64) -> Self {
        let shift = |at_s: u64| if at_s == FOREVER { at_s } else { at_s.saturating_sub(begin_s) };
        let shifted = |all: &mut Vec<Range<u64>>| {
            all.iter_mut().for_each(|of| *of = shift(of.start)..shift(of.end));
            all.retain(|of| !of.is_empty());
        };
        self.limits.iter_mut().for_each(|of| shifted(&mut of.valid));
        self.pools.iter_mut().for_each(|of| shifted(&mut of.valid));
        let mut locks = self.locks.to_vec();
        locks.iter_mut().for_each(|(_, times)| shifted(times));
        self.locks = locks.into();
        self.horizon_s = shift(self.horizon_s);
        self
    }
}

impl Default for Rules {
    /// Everything for everybody.
    fn default() -> Self {
        Self { limits: Vec::new(), pools: Vec::new(), locks: Arc::default(), horizon_s: FOREVER }
    }
}

impl Rules {
    /// The rules inside a reservation, which has its resources from limits and pools already: users
    /// and groups have nothing while they are locked.
    pub(crate) fn inside(&self) -> Self {
        Self { locks: Arc::clone(&self.locks), horizon_s: self.horizon_s, ..Self::default() }
    }

    /// The limits of a consumer on a resource, each with the times at which it is the one
    /// that counts: one of the resource goes before one of all.
    pub(crate) fn of<'a>(
        &'a self,
        whom: &'a Whom,
        resource: ResourceId,
    ) -> Vec<(&'a Limit, Vec<Range<u64>>)> {
        let (named, others): (Vec<_>, Vec<_>) = self
            .whose(whom)
            .filter(|limit| limit.of == Limited::All || limit.of == Limited::Resource(resource))
            .partition(|limit| limit.of != Limited::All);
        let mut counts: Vec<_> = named.iter().map(|limit| (*limit, limit.valid.clone())).collect();
        for limit in others {
            let mut valid = limit.valid.clone();
            for other in &named {
                valid = without(&valid, &other.valid);
            }
            counts.push((limit, valid));
        }
        counts
    }

    /// The limits of a consumer: a user who has none has those of everyone.
    pub(crate) fn whose<'a>(&'a self, whom: &'a Whom) -> impl Iterator<Item = &'a Limit> {
        let has_own = self.limits.iter().any(|limit| limit.whom == *whom);
        let of = match (has_own, whom) {
            (false, Whom::User(_)) => &Whom::Everyone,
            _ => whom,
        };
        self.limits.iter().filter(move |limit| limit.whom == *of)
    }

    /// Returns the largest number of requests, or of array requests, for a consumer.
    pub(crate) fn most_requests(&self, whom: &Whom, of: Limited, now_s: u64) -> u64 {
        let limits = self.whose(whom).filter(|limit| {
            let is_valid = limit.valid.iter().any(|valid| valid.contains(&now_s));
            limit.of == of && is_valid
        });
        let items = limits.filter_map(|limit| limit.items?.least);
        items.min().unwrap_or(u64::MAX)
    }
}

/// Returns the parts of `of` that are not in `out`; both are in the order of time.
fn without(of: &[Range<u64>], out: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut out = out.iter().peekable();
    for range in of {
        let mut start = range.start;
        while let Some(next) = out.peek() {
            if next.start >= range.end {
                break;
            }
            if next.start > start {
                left.push(start..next.start);
            }
            start = start.max(next.end);
            if next.end > range.end {
                break;
            }
            out.next();
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

/// Facts about a request for the access condition of a pool.
pub(crate) struct OfRequest<'a> {
    pub(crate) amounts: &'a dyn Fn(&str) -> Option<u64>,
    pub(crate) duration_s: u64,
    pub(crate) user: &'a str,
    pub(crate) group: &'a str,
}

impl Facts for OfRequest<'_> {
    fn amount(&self, name: &str) -> Option<u64> {
        match name {
            "duration" => Some(self.duration_s),
            name => (self.amounts)(name),
        }
    }

    fn is_user(&self, name: &str) -> bool {
        self.user == name
    }

    fn is_group(&self, name: &str) -> bool {
        self.group == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_cut_out() {
        let of = [0..30, 35..50];
        assert_eq!(without(&of, &[]), of);
        assert_eq!(without(&of, &[5..10, 20..40]), [0..5, 10..20, 40..50]);
        assert_eq!(without(&of, &[5..10, 30..40]), [0..5, 10..30, 40..50]);
        assert_eq!(without(&of, &[10..37, 60..70]), [0..10, 37..50]);
        assert_eq!(without(&of, &[0..10, 15..90]).len(), 1);
        assert_eq!(without(&of, &[0..40, 40..50]), []);
    }
}
