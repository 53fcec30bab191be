// SPDX-License-Identifier: GPL-2.0
//! Search for the earliest start of a request and its place (Keller, 5.1 and 5.2).
//!
//! The search asks the cluster's profiles and the nodes in turn until both agree on a time. The
//! profiles yield times at which the sums are free; the nodes yield times at which enough chunks
//! can start. Only then are the chunks mapped. No earlier start exists, because free amounts change
//! only at times that one of the two yields.
//!
//! A search looks at no more than its [`SearchBudget`] allows. Without any look left, the end of
//! the plan is tried, from which on nothing changes: there all nodes in use are empty, but for
//! their defects.

use std::ops::Range;

use pbs_profile::{intersection, FOREVER};

use crate::budget::{SearchBudget, PROFILE_LOOKS};
use crate::machine::{Machine, ResourceId};
use crate::map::map;
use crate::need::Need;
use crate::node_plan::NodePlan;
use crate::nodes::{Change, Nodes};
use crate::placed::{by_node, taken, Placed};
use crate::policy::Policy;
use crate::system::{Ask, System};
use crate::types::{Sums, Who};

/// A place in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start_s: u64,
    pub(crate) nodes: Vec<Placed>,
    /// Amounts that the request takes of the cluster.
    pub(crate) sums: Vec<(ResourceId, u64)>,
}

/// Inputs of a search.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) nodes: &'a Nodes,
    pub(crate) system: &'a System,
    pub(crate) who: &'a Who,
    pub(crate) policy: &'a Policy,
    /// Need of the request by which pools and limits judge it, if it is not the sought one: a part
    /// that a request gets in addition.
    pub(crate) whole: Option<&'a Need>,
    /// Looks of the call that searches.
    pub(crate) budget: &'a SearchBudget,
}

/// A search that ends because its budget is spent.
struct Spent;

impl<'a> Search<'a> {
    /// The earliest place in the window, all of it in the window. If the budget does not suffice,
    /// the place at the end of the plan.
    pub(crate) fn earliest(&self, need: &Need, window: Range<u64>) -> Option<Place> {
        self.budget.begin_search();
        let ask = self.ask(need, &need.sums);
        let last_s = last_start_s(need, window.end.min(ask.horizon_s))?;
        match self.first(need, &ask, &window, last_s) {
            Ok(found) => found,
            Err(Spent) => {
                self.budget.cut();
                self.at_the_end(need, &ask, &window, last_s)
            }
        }
    }

    /// The earliest place, if the budget suffices to find out.
    fn first(
        &self,
        need: &Need,
        ask: &Ask<'_>,
        window: &Range<u64>,
        last_s: u64,
    ) -> Result<Option<Place>, Spent> {
        let mut starts = Starts::new(self, need, last_s + 1);
        let mut time_s = window.start;
        loop {
            let start_s = ask.next_start_s(need.duration_s, time_s..window.end);
            self.count(ask)?;
            let Some(asked_s) = start_s else {
                return Ok(None);
            };
            let Some(start_s) = starts.next_s(asked_s)? else {
                return Ok(None);
            };
            time_s = start_s;
            if start_s > asked_s {
                continue;
            }
            if let Some(place) = self.place_at(need, time_s) {
                return Ok(Some(place));
            }
            time_s = self.next_change_s(time_s).min(ask.next_change_s(time_s));
            if time_s > last_s {
                return Ok(None);
            }
        }
    }

    /// Counts the looks of questions to the cluster's profiles.
    fn count(&self, ask: &Ask<'_>) -> Result<(), Spent> {
        self.budget.take(ask.take_looks());
        self.check_budget()
    }

    fn check_budget(&self) -> Result<(), Spent> {
        if self.budget.is_spent() {
            Err(Spent)
        } else {
            Ok(())
        }
    }

    /// The place from which on nothing changes, if that is in the window.
    fn at_the_end(
        &self,
        need: &Need,
        ask: &Ask<'_>,
        window: &Range<u64>,
        last_s: u64,
    ) -> Option<Place> {
        let tail_s = self.nodes.tail_s().max(ask.tail_s());
        let tail_s = self.policy.point_s(tail_s.max(window.start));
        if tail_s > last_s {
            return None;
        }
        let time_s = ask.next_start_s(need.duration_s, tail_s..window.end)?;
        if time_s > last_s {
            return None;
        }
        self.budget.renew_choices();
        self.place_at(need, time_s)
    }

    /// Returns the earliest time at which the nodes have room for the request, regardless of other
    /// limits. If the budget does not suffice, the time before which they have none.
    pub(crate) fn on_nodes(&self, need: &Need, window: Range<u64>) -> Option<u64> {
        self.budget.begin_search();
        let last_s = last_start_s(need, window.end)?;
        let mut starts = Starts::new(self, need, last_s + 1);
        let mut time_s = window.start;
        loop {
            match starts.next_s(time_s) {
                Ok(next_s) => time_s = next_s?,
                Err(Spent) => {
                    self.budget.cut();
                    return Some(time_s);
                }
            }
            let over = time_s..time_s + need.duration_s;
            if self.map(need, over).is_some() {
                return Some(time_s);
            }
            time_s = self.next_change_s(time_s);
        }
    }

    /// The latest place in the window, all of it in the window. Where it ends something
    /// begins, or the window ends.
    pub(crate) fn latest(&self, need: &Need, window: Range<u64>) -> Option<Place> {
        self.budget.begin_search();
        let found = self.last(need, window);
        found.unwrap_or_else(|Spent| {
            self.budget.cut();
            None
        })
    }

    /// The latest place, if the budget suffices to find out.
    fn last(&self, need: &Need, window: Range<u64>) -> Result<Option<Place>, Spent> {
        let ask = self.ask(need, &need.sums);
        let Some(last_s) = last_start_s(need, window.end.min(ask.horizon_s)) else {
            return Ok(None);
        };
        let plans = || (0..self.machine.node_count()).map(|node| self.nodes.plan(node));
        let steps: usize = plans().map(NodePlan::step_count).sum();
        self.budget.take(steps.saturating_add(ask.change_count()));
        self.check_budget()?;
        let mut times: Vec<u64> = vec![last_s];
        let begins = plans().flat_map(|plan| (0..plan.step_count()).map(|step| plan.begin_s(step)));
        let starts = begins.chain(ask.changes());
        times.extend(starts.filter_map(|begin_s| begin_s.checked_sub(need.duration_s)));
        times.retain(|time_s| (window.start..=last_s).contains(time_s));
        times.sort_unstable();
        times.dedup();
        for time_s in times.into_iter().rev() {
            let over = time_s..time_s + need.duration_s;
            let is_free = ask.next_start_s(need.duration_s, over) == Some(time_s);
            self.count(&ask)?;
            if let Some(place) = is_free.then(|| self.place_at(need, time_s)).flatten() {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The place at a time at which the cluster has the sums, if there is one.
    fn place_at(&self, need: &Need, start_s: u64) -> Option<Place> {
        let over = start_s..start_s + need.duration_s;
        let nodes = self.map(need, over.clone())?;
        let sums = self.sums(need, &nodes);
        if need.exclusive {
            let ask = self.ask(need, &sums);
            self.budget.take(PROFILE_LOOKS);
            if ask.next_start_s(need.duration_s, over) != Some(start_s) {
                return None;
            }
        }
        Some(Place { start_s, nodes, sums })
    }

    fn map(&self, need: &Need, over: Range<u64>) -> Option<Vec<Placed>> {
        map(self.machine, self.nodes, need, over, self.policy.mapping, self.budget)
    }

    /// Returns the conditions on the cluster for a request that takes these sums.
    pub(crate) fn ask(&self, need: &Need, sums: &Sums) -> Ask<'a> {
        let whole = self.whole.unwrap_or(need);
        self.system.ask(sums, whole.asked_s(), (&whole.sums, whole.asked_s()), self.who)
    }

    /// The place at that time, if there is one.
    pub(crate) fn exactly(&self, need: &Need, start_s: u64) -> Option<Place> {
        let window = start_s..start_s.checked_add(need.duration_s)?;
        self.earliest(need, window)
    }

    /// Returns the amounts that the mapping takes of the cluster: more than the need if nodes are
    /// taken whole.
    fn sums(&self, need: &Need, nodes: &[Placed]) -> Vec<(ResourceId, u64)> {
        if !need.exclusive {
            return need.sums.clone();
        }
        let mut sums = need.job_wide.clone();
        sums.extend(self.sums_of_chunks(need, nodes));
        sums
    }

    /// Returns the amounts that chunks take of the cluster, by the nodes that host them.
    pub(crate) fn sums_of_chunks(&self, need: &Need, nodes: &[Placed]) -> Vec<(ResourceId, u64)> {
        let mut sums: Vec<(ResourceId, u64)> = Vec::new();
        let mut amounts = Vec::new();
        for on_node in by_node(nodes) {
            taken(self.machine, need, on_node, &mut amounts);
            for &(resource, amount) in &amounts {
                match sums.iter_mut().find(|(of, _)| *of == resource) {
                    Some((_, sum)) => *sum += amount,
                    None => sums.push((resource, amount)),
                }
            }
        }
        sums
    }

    /// The next time at which something changes on a node.
    fn next_change_s(&self, after_s: u64) -> u64 {
        self.budget.take(2 * self.machine.node_count());
        let nodes = (0..self.machine.node_count()).map(|node| {
            let plan = self.nodes.plan(node);
            plan.end_s(plan.step_at(after_s))
        });
        nodes.min().unwrap_or(FOREVER)
    }
}

/// The last time at which it can start to be over in time.
fn last_start_s(need: &Need, end_s: u64) -> Option<u64> {
    match end_s {
        FOREVER => (FOREVER - 1).checked_sub(need.duration_s),
        end_s => end_s.checked_sub(need.duration_s),
    }
}

/// Times at which enough chunks of all kinds can start, in order.
enum Starts<'a> {
    /// One chunk: the nodes are asked again for each time.
    One { search: Search<'a>, need: &'a Need, until_s: u64 },
    /// Several: all times are gathered when the first is asked for.
    Many {
        search: Search<'a>,
        need: &'a Need,
        until_s: u64,
        /// FS (Keller, 5.2), of starts; `None` before.
        free: Option<Vec<Range<u64>>>,
    },
}

impl<'a> Starts<'a> {
    fn new(search: &Search<'a>, need: &'a Need, until_s: u64) -> Self {
        let search = *search;
        match &need.kinds[..] {
            [kind] if kind.count == 1 => Self::One { search, need, until_s },
            _ => Self::Many { search, need, until_s, free: None },
        }
    }

    /// The first time from `from_s` on; it never goes back.
    fn next_s(&mut self, from_s: u64) -> Result<Option<u64>, Spent> {
        match self {
            Self::One { search, need, until_s } => {
                search.check_budget()?;
                let Search { machine, nodes, budget, .. } = *search;
                Ok(nodes.first_start_s(machine, need, from_s, *until_s, budget))
            }
            Self::Many { search, need, until_s, free } => {
                search.check_budget()?;
                let free = match free {
                    Some(free) => free,
                    None => free.insert(search.free_starts(need, from_s, *until_s)?),
                };
                let at = free.partition_point(|free| free.end <= from_s);
                Ok(free.get(at).map(|free| free.start.max(from_s)))
            }
        }
    }
}

impl Search<'_> {
    /// Returns the intervals in which enough chunks of each kind can start.
    fn free_starts(
        &self,
        need: &Need,
        from_s: u64,
        until_s: u64,
    ) -> Result<Vec<Range<u64>>, Spent> {
        let mut together: Option<Vec<Range<u64>>> = None;
        for kind in &need.kinds {
            let over = from_s..until_s;
            self.budget.take(self.nodes.looks_at_starts(self.machine, need, kind, &over));
            self.check_budget()?;
            let threads = self.policy.threads;
            let changes = self.nodes.starts(self.machine, need, kind, over, threads);
            let enough = enough(&changes, kind.count, until_s);
            together = Some(match together {
                None => enough,
                Some(together) => intersection(together, enough).collect(),
            });
        }
        Ok(together.unwrap_or_default())
    }
}

/// Returns the intervals in which the running sum of `changes`, which are in the order of time, is
/// at least `wanted`.
pub(crate) fn enough(changes: &[Change], wanted: u64, until_s: u64) -> Vec<Range<u64>> {
    let mut enough: Vec<Range<u64>> = Vec::new();
    let mut count = 0;
    for (index, &(time_s, change)) in changes.iter().enumerate() {
        count += change;
        let next_s = changes.get(index + 1).map_or(until_s, |&(next_s, _)| next_s);
        if next_s == time_s || count < wanted as i64 {
            continue;
        }
        match enough.last_mut() {
            Some(last) if last.end == time_s => last.end = next_s,
            _ => enough.push(time_s..next_s),
        }
    }
    enough
}
