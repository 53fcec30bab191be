// SPDX-License-Identifier: GPL-2.0
//! More or fewer chunks for what runs: releasing and requesting resources while a job is
//! running, which Keller leaves to the future (8).

use std::ops::Range;
use std::sync::Arc;

use pbs_resources::Rset;

use crate::budget::SearchBudget;
use crate::machine::ResourceId;
use crate::need::Need;
use crate::placed::Placed;
use crate::planner::Planner;
use crate::request::Refusal;
use crate::search::{Place, Search};
use crate::types::{RequestId, Sums, Who};

impl Planner {
    /// Gives a running request another number of its chunks, until its end. Those that go
    /// are the ones on the most expensive nodes; those that come have to be free now.
    ///
    /// # Errors
    ///
    /// [`Refusal::OtherChunks`] if it is not the same kinds of chunks at the same kind of
    /// place, and what is told of a fixed start where more are not free; nothing is changed
    /// then.
    pub fn resize(&mut self, now_s: u64, id: RequestId, rset: &Rset) -> Result<(), Refusal> {
        let refused = Refusal::NoSuchRequest(id);
        let known = self.entries.get(&id);
        let known = known.filter(|entry| entry.is_running && entry.inside.is_none());
        let entry = known.ok_or(refused.clone())?.clone();
        let (Some(over), Some(mut place)) = (entry.over(), entry.place.clone()) else {
            return Err(refused);
        };
        let left = self.policy.point_s(now_s).max(over.start)..over.end;
        if left.is_empty() {
            return Err(refused);
        }
        let old = &entry.need;
        let need = Need::new(&self.machine, rset, old.asked_s())?.with_margin(old.margin_s);
        if !is_alike(old, &need) {
            return Err(Refusal::OtherChunks);
        }
        let budget = SearchBudget::default();
        // Pools know the request by all that it asks for now.
        self.system.prepare(&need.sums, need.asked_s(), &entry.who);
        self.book_as(&place.sums, (old, &need), &entry.who, &left);
        let more = addition(old, &need, left.end - left.start);
        let more = more.map(|(more, kinds)| {
            let search = self.search(&entry.who, &budget);
            let found = Search { whole: Some(&need), ..search }.exactly(&more, left.start);
            let is_new = |it: &Placed| place.nodes.iter().all(|had| had.node != it.node);
            let is_apart = |found: &Place| !need.scatter || found.nodes.iter().all(is_new);
            let refusal = if budget.is_exact() {
                Refusal::NotInTime { earliest_end_s: None }
            } else {
                Refusal::GaveUp
            };
            let found = found.filter(is_apart).ok_or(refusal);
            found.map(|found| (more, kinds, found))
        });
        let more = more.transpose().inspect_err(|_| {
            self.book_as(&place.sums, (&need, old), &entry.who, &left);
        })?;
        let asked = (&need.sums[..], need.asked_s());
        let (kept, given_back) = without(&place.nodes, old, &need);
        self.nodes.revoke(&self.machine, old, &given_back, left.clone());
        let sums = self.search(&entry.who, &budget).sums_of_chunks(old, &given_back);
        self.system.book(&sums, asked, &entry.who, left.clone(), false);
        // What it is asked for counts from its start.
        let had_s = left.start - over.start;
        self.system.count_area(&sums, had_s, &entry.who, false);
        place.nodes = kept;
        change(&mut place.sums, &sums, u64::saturating_sub);
        if let Some((more, kinds, found)) = more {
            self.nodes.book(&self.machine, &more, &found.nodes, left.clone());
            self.system.book(&found.sums, asked, &entry.who, left.clone(), true);
            self.system.count_area(&found.sums, had_s, &entry.who, true);
            change(&mut place.sums, &found.sums, u64::saturating_add);
            for placed in found.nodes {
                let kind = kinds.get(placed.kind as usize).copied().unwrap_or(0);
                put(&mut place.nodes, Placed { kind, ..placed });
            }
        }
        if !given_back.is_empty() {
            self.backfill.add(left.start);
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.need = Arc::new(need);
            entry.place = Some(place);
        }
        self.changed(id);
        Ok(())
    }

    /// Books what a request has for another need than that for which it was booked: pools that
    /// count their users may admit it for one of them only.
    pub(crate) fn book_as(
        &mut self,
        sums: &Sums,
        (before, now): (&Need, &Need),
        who: &Who,
        over: &Range<u64>,
    ) {
        for (need, is_more) in [(before, false), (now, true)] {
            let asked = (&need.sums[..], need.asked_s());
            self.system.book(sums, asked, who, over.clone(), is_more);
        }
    }
}

/// Whether only the number of chunks differs.
fn is_alike(one: &Need, other: &Need) -> bool {
    let mut kinds = one.kinds.iter().zip(&other.kinds);
    one.kinds.len() == other.kinds.len()
        && kinds.all(|(one, other)| (one.cores, &one.fits) == (other.cores, &other.fits))
        && (one.scatter, one.exclusive) == (other.scatter, other.exclusive)
        && (&one.job_wide, &one.avoided) == (&other.job_wide, &other.avoided)
}

/// Returns the additional need and the indices of its kinds of chunks; `None` if nothing is added.
fn addition(old: &Need, need: &Need, duration_s: u64) -> Option<(Need, Vec<u32>)> {
    let mut more = Need {
        kinds: Vec::new(),
        sums: Vec::new(),
        job_wide: Vec::new(),
        avoided: need.avoided.clone(),
        duration_s,
        margin_s: 0,
        ..*need
    };
    let mut kinds = Vec::new();
    for (index, (kind, before)) in need.kinds.iter().zip(&old.kinds).enumerate() {
        let count = kind.count.saturating_sub(before.count);
        if count == 0 {
            continue;
        }
        kinds.push(index as u32);
        let amounts: Vec<_> = kind.amounts.iter().map(|&(of, it)| (of, it * count)).collect();
        change(&mut more.sums, &amounts, u64::saturating_add);
        more.kinds.push(crate::need::Kind { count, ..kind.clone() });
    }
    (!kinds.is_empty()).then_some((more, kinds))
}

/// The chunks that stay, and those by which something is given back: of nodes that are
/// taken whole only those on which no chunk stays.
fn without(nodes: &[Placed], old: &Need, need: &Need) -> (Vec<Placed>, Vec<Placed>) {
    let mut surplus: Vec<u64> = old
        .kinds
        .iter()
        .zip(&need.kinds)
        .map(|(old, new)| old.count.saturating_sub(new.count))
        .collect();
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    for placed in nodes.iter().rev() {
        let surplus = &mut surplus[placed.kind as usize];
        let count = (*surplus).min(u64::from(placed.count)) as u32;
        *surplus -= u64::from(count);
        for (to, count) in [(&mut gone, count), (&mut kept, placed.count - count)] {
            if count > 0 {
                to.push(Placed { count, ..*placed });
            }
        }
    }
    kept.reverse();
    gone.reverse();
    if old.exclusive {
        gone.retain(|it| kept.iter().all(|other: &Placed| other.node != it.node));
    }
    (kept, gone)
}

/// Puts chunks to others in the order of nodes.
fn put(nodes: &mut Vec<Placed>, placed: Placed) {
    let key = |it: &Placed| (it.node, it.kind);
    match nodes.binary_search_by_key(&key(&placed), key) {
        Ok(at) => nodes[at].count += placed.count,
        Err(at) => nodes.insert(at, placed),
    }
}

fn change(
    sums: &mut Vec<(ResourceId, u64)>,
    by: &[(ResourceId, u64)],
    how: impl Fn(u64, u64) -> u64,
) {
    for &(resource, amount) in by {
        match sums.iter_mut().find(|(of, _)| *of == resource) {
            Some((_, sum)) => *sum = how(*sum, amount),
            None => sums.push((resource, how(0, amount))),
        }
    }
}
