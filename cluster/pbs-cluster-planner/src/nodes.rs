// SPDX-License-Identifier: GPL-2.0
//! All nodes with what is planned on them, and when how many chunks can start: Keller's
//! FCN, FCJ and FS (5.2).
//!
//! Keller's FCN has the stretches in which a chunk is free for the duration, and lets a
//! request start where one of their intersections begins. A chunk can also start within a
//! stretch, so here a node tells from when to when chunks can *start*; the sum of that over
//! the nodes is exact, and necessary for a mapping.

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_profile::FOREVER;

use crate::budget::SearchBudget;
use crate::gaps::Gaps;
use crate::machine::{Class, Machine, ResourceId, NCPUS};
use crate::memory::Memory;
use crate::need::{Fit, Kind, Need};
use crate::node_plan::NodePlan;
use crate::placed::{by_node, taken, Placed};

/// The plans of all nodes, in the machine's order.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    plans: Vec<NodePlan>,
    /// Whether each node accepts new requests. A node out of use keeps its plan.
    usable: Vec<bool>,
    /// Defective amounts of the nodes that have any. Their plans have them as used.
    defects: BTreeMap<usize, Vec<(ResourceId, u64)>>,
    /// Times in which nodes are closed, apart from each other and in their order. Their plans have
    /// all parts as used then.
    closed: BTreeMap<usize, Vec<Range<u64>>>,
    /// Gaps of each class.
    gaps: Vec<Gaps>,
    /// Nodes whose plans have changed since their gaps were computed.
    old: Vec<usize>,
    /// Reused.
    amounts: Vec<(ResourceId, u64)>,
}

/// Steps of a node that a booking moves in the time of a look.
const STEPS_MOVED: usize = 16;

/// A time from which so many chunks more, or fewer, can start.
pub(crate) type Change = (u64, i64);

impl Nodes {
    pub(crate) fn new(machine: &Machine) -> Self {
        let plan = NodePlan::new(machine.resources.len());
        let mut nodes = Self {
            plans: vec![plan; machine.node_count()],
            usable: vec![true; machine.node_count()],
            defects: BTreeMap::new(),
            closed: BTreeMap::new(),
            gaps: machine.classes.iter().map(Gaps::new).collect(),
            old: Vec::new(),
            amounts: Vec::new(),
        };
        for node in 0..machine.node_count() {
            nodes.renew(machine, node);
        }
        nodes
    }

    pub(crate) fn count_memory(&self, memory: &mut Memory) {
        for plan in &self.plans {
            for bytes in plan.vector_bytes() {
                memory.nodes.count(plan.step_count(), bytes);
            }
        }
    }

    pub(crate) fn plan(&self, node: usize) -> &NodePlan {
        &self.plans[node]
    }

    /// Records that the gaps of a node are old: its steps are searched until they are made anew.
    fn set_old(&mut self, machine: &Machine, node: usize) {
        let class = machine.class_of[node];
        if self.gaps[class].set_old(node - machine.classes[class].nodes.start) {
            self.old.push(node);
        }
    }

    /// Makes the gaps of all nodes anew whose plans have changed, as far as the budget allows. Many
    /// bookings in a row have them made once.
    pub(crate) fn renew_gaps(&mut self, machine: &Machine, budget: &SearchBudget) {
        while let Some(node) = self.old.pop_if(|_| !budget.is_empty()) {
            budget.take(self.plans[node].step_count());
            self.renew(machine, node);
        }
    }

    /// Returns the looks that stand for a booking on some nodes.
    pub(crate) fn booking_looks(&self, placed: &[Placed]) -> usize {
        let steps = by_node(placed).map(|of| self.plans[of[0].node as usize].step_count());
        steps.map(|steps| 1 + steps / STEPS_MOVED).sum()
    }

    /// Makes the gaps of a node anew.
    fn renew(&mut self, machine: &Machine, node: usize) {
        let class = machine.class_of[node];
        let of_class = node - machine.classes[class].nodes.start;
        self.gaps[class].renew(of_class, &self.plans[node]);
    }

    /// Returns a time before which the node has no place.
    fn earliest_s(&self, machine: &Machine, node: usize, cores: u64, duration_s: u64) -> u64 {
        if !self.usable[node] {
            return FOREVER;
        }
        let class = machine.class_of[node];
        let of_class = node - machine.classes[class].nodes.start;
        self.gaps[class].earliest_s(of_class, cores, duration_s)
    }

    /// njRS ⊕ nRS on all nodes of a mapping.
    pub(crate) fn book(
        &mut self,
        machine: &Machine,
        need: &Need,
        placed: &[Placed],
        over: Range<u64>,
    ) {
        self.change(machine, need, placed, over, true, true);
    }

    /// njRS ⊖ nRS.
    pub(crate) fn revoke(
        &mut self,
        machine: &Machine,
        need: &Need,
        placed: &[Placed],
        over: Range<u64>,
    ) {
        self.change(machine, need, placed, over, false, true);
    }

    /// Revokes for a trial: either [`Self::put_back`] or [`Self::settle`] follows.
    pub(crate) fn lift(
        &mut self,
        machine: &Machine,
        need: &Need,
        placed: &[Placed],
        over: Range<u64>,
    ) {
        self.change(machine, need, placed, over, false, false);
        self.set_stale(machine, placed, true);
    }

    /// Undoes a trial: everything is as before, including the gaps.
    pub(crate) fn put_back(
        &mut self,
        machine: &Machine,
        need: &Need,
        placed: &[Placed],
        over: Range<u64>,
    ) {
        self.change(machine, need, placed, over, true, false);
        self.set_stale(machine, placed, false);
    }

    /// Makes the removal of lifted chunks permanent.
    pub(crate) fn settle(&mut self, machine: &Machine, placed: &[Placed]) {
        for on_node in by_node(placed) {
            self.set_old(machine, on_node[0].node as usize);
        }
        self.set_stale(machine, placed, false);
    }

    fn set_stale(&mut self, machine: &Machine, placed: &[Placed], stale: bool) {
        for on_node in by_node(placed) {
            let node = on_node[0].node as usize;
            let class = machine.class_of[node];
            let of_class = node - machine.classes[class].nodes.start;
            self.gaps[class].set_stale(of_class, stale);
        }
    }

    fn change(
        &mut self,
        machine: &Machine,
        need: &Need,
        placed: &[Placed],
        over: Range<u64>,
        is_more: bool,
        renew: bool,
    ) {
        let mut amounts = std::mem::take(&mut self.amounts);
        for on_node in by_node(placed) {
            let node = on_node[0].node as usize;
            taken(machine, need, on_node, &mut amounts);
            let plan = &mut self.plans[node];
            if is_more {
                plan.add(over.clone(), &amounts)
            } else {
                plan.subtract(over.clone(), &amounts)
            }
            if renew {
                self.set_old(machine, node);
            }
        }
        self.amounts = amounts;
    }

    /// A node is out of use, or again in use.
    pub(crate) fn set_usable(&mut self, node: usize, usable: bool) {
        self.usable[node] = usable;
    }

    pub(crate) fn is_usable(&self, node: usize) -> bool {
        self.usable[node]
    }

    /// Sets the defective amounts of a node from a time on, and returns those before.
    pub(crate) fn set_defect(
        &mut self,
        machine: &Machine,
        node: usize,
        from_s: u64,
        parts: Vec<(ResourceId, u64)>,
    ) -> Vec<(ResourceId, u64)> {
        let before = self.defects.remove(&node).unwrap_or_default();
        self.plans[node].subtract(from_s..FOREVER, &before);
        self.plans[node].add(from_s..FOREVER, &parts);
        self.renew(machine, node);
        if !parts.is_empty() {
            self.defects.insert(node, parts);
        }
        before
    }

    /// Returns the defective amounts of a node.
    pub(crate) fn defect(&self, node: usize) -> &[(ResourceId, u64)] {
        self.defects.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Sets the times in which a node is closed, from a time on.
    pub(crate) fn set_closed(
        &mut self,
        machine: &Machine,
        node: usize,
        from_s: u64,
        times: Vec<Range<u64>>,
    ) {
        let all = whole(machine.class(node));
        let plan = &mut self.plans[node];
        for time in self.closed.remove(&node).unwrap_or_default() {
            plan.subtract(time.start.max(from_s)..time.end, &all);
        }
        for time in &times {
            plan.add(time.start.max(from_s)..time.end, &all);
        }
        self.renew(machine, node);
        if !times.is_empty() {
            self.closed.insert(node, times);
        }
    }

    /// Returns the times in which a node is closed.
    pub(crate) fn closed(&self, node: usize) -> &[Range<u64>] {
        self.closed.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Whether a node has a defect.
    pub(crate) fn has_defects(&self) -> bool {
        !self.defects.is_empty()
    }

    /// Returns the resources of which more than a node has is used at a time of an interval.
    pub(crate) fn scarce<'a>(
        &'a self,
        machine: &'a Machine,
        node: usize,
        over: &'a Range<u64>,
    ) -> impl Iterator<Item = ResourceId> + 'a {
        let plan = &self.plans[node];
        let has = &machine.class(node).has;
        (0..has.len()).filter(move |&resource| {
            let steps = plan.step_at(over.start)..plan.step_count();
            let mut steps = steps.take_while(|&step| plan.begin_s(step) < over.end);
            steps.any(|step| plan.used(step, resource) > has[resource])
        })
    }

    pub(crate) fn forget_before(&mut self, time_s: u64) {
        for plan in &mut self.plans {
            plan.forget_before(time_s);
        }
    }

    /// Returns the number of chunks of a kind that fit on a node throughout an interval, at most
    /// `most`.
    #[allow(clippy::too_many_arguments)] // The inputs of a search.
    pub(crate) fn fits_over(
        &self,
        machine: &Machine,
        node: usize,
        need: &Need,
        (kind, fit): (&Kind, &Fit),
        most: u64,
        over: &Range<u64>,
        budget: &SearchBudget,
    ) -> u64 {
        let class = machine.class(node);
        let cores = cores(class, need, kind);
        budget.take(1);
        if self.earliest_s(machine, node, cores, over.end - over.start) > over.start {
            return 0;
        }
        let plan = &self.plans[node];
        budget.take(plan.steps_in(over));
        if need.exclusive {
            let is_idle = plan.fits_over(over.clone(), &class.has, &whole(class), 1) == 1;
            return if is_idle { most } else { 0 };
        }
        plan.fits_over(over.clone(), &class.has, &fit.amounts, most)
    }

    /// Returns the amount of each resource that is free on a node throughout an interval; `None` if
    /// nothing is free.
    pub(crate) fn free_over(
        &self,
        machine: &Machine,
        node: usize,
        over: &Range<u64>,
    ) -> Option<Vec<u64>> {
        if !self.usable[node] {
            return None;
        }
        self.left_over(machine, node, over)
    }

    /// Returns the amounts that no request has throughout an interval, on a node in use or not;
    /// `None` if there are none.
    pub(crate) fn left_over(
        &self,
        machine: &Machine,
        node: usize,
        over: &Range<u64>,
    ) -> Option<Vec<u64>> {
        let plan = &self.plans[node];
        let mut free = machine.class(node).has.clone();
        let steps = plan.step_at(over.start)..plan.step_count();
        for step in steps.take_while(|&step| plan.begin_s(step) < over.end) {
            for (resource, free) in free.iter_mut().enumerate() {
                let left =
                    machine.class(node).has[resource].saturating_sub(plan.used(step, resource));
                *free = (*free).min(left);
            }
        }
        free.iter().any(|&free| free > 0).then_some(free)
    }

    /// Whether a request could start before a time, by the gaps alone: of the nodes that it
    /// is on they do not know what it leaves.
    pub(crate) fn may_start_before(
        &self,
        machine: &Machine,
        need: &Need,
        placed: &[Placed],
        until_s: u64,
    ) -> bool {
        need.kinds.iter().all(|kind| {
            let own = placed.iter().map(|placed| {
                let fit = &kind.fits[machine.class_of[placed.node as usize]];
                fit.as_ref().map_or(0, |fit| fit.most)
            });
            let mut left = kind.count.saturating_sub(own.fold(0, u64::saturating_add));
            for (index, (class, fit)) in machine.classes.iter().zip(&kind.fits).enumerate() {
                let Some(fit) = fit else { continue };
                if left == 0 {
                    break;
                }
                let cores = cores(class, need, kind);
                let gaps = &self.gaps[index];
                for node in 0..class.nodes.len() {
                    if need.may_be_on(class.nodes.start + node)
                        && gaps.earliest_s(node, cores, need.duration_s) < until_s
                    {
                        left = left.saturating_sub(fit.most);
                        if left == 0 {
                            break;
                        }
                    }
                }
            }
            left == 0
        })
    }

    /// The earliest start of one chunk from `from_s` on and before `until_s`, on any node.
    pub(crate) fn first_start_s(
        &self,
        machine: &Machine,
        need: &Need,
        from_s: u64,
        until_s: u64,
        budget: &SearchBudget,
    ) -> Option<u64> {
        let kind = &need.kinds[0];
        let mut best_s = until_s;
        for (class, fit) in machine.classes.iter().zip(&kind.fits) {
            let Some(fit) = fit else { continue };
            let cores = cores(class, need, kind);
            let whole = need.exclusive.then(|| whole(class));
            let amounts = whole.as_ref().unwrap_or(&fit.amounts);
            for node in class.nodes.clone().filter(|&node| need.may_be_on(node)) {
                budget.take(1);
                let earliest_s = self.earliest_s(machine, node, cores, need.duration_s);
                let start_s = earliest_s.max(from_s);
                if start_s >= best_s {
                    continue;
                }
                let plan = &self.plans[node];
                if let Some(found_s) =
                    first_in(plan, class, amounts, need.duration_s, start_s..best_s, budget)
                {
                    best_s = found_s;
                    if best_s == from_s {
                        return Some(best_s);
                    }
                }
            }
        }
        (best_s < until_s).then_some(best_s)
    }

    /// Whether somebody has something of the node in an interval.
    pub(crate) fn is_busy(&self, node: usize, over: &Range<u64>) -> bool {
        let plan = &self.plans[node];
        let steps = plan.step_at(over.start)..plan.step_count();
        let mut steps = steps.take_while(|&step| plan.begin_s(step) < over.end);
        steps.any(|step| plan.used(step, NCPUS) > 0)
    }

    /// Returns the changes in the number of chunks of a kind that can start, over all nodes, from
    /// `over.start` on and before `over.end`: FCJ, of starts. With several threads, each searches a
    /// part of the nodes (Keller, 5.4); the result does not depend on their number.
    pub(crate) fn starts(
        &self,
        machine: &Machine,
        need: &Need,
        kind: &Kind,
        over: Range<u64>,
        threads: usize,
    ) -> Vec<Change> {
        let all = 0..self.plans.len();
        let mut changes = match threads {
            0 | 1 => self.starts_of(machine, need, kind, &over, all),
            _ => {
                let part = all.len().div_ceil(threads).max(1);
                let parts: Vec<_> = all.clone().step_by(part).collect();
                let of_part = |&begin: &usize| {
                    let nodes = begin..all.end.min(begin + part);
                    self.starts_of(machine, need, kind, &over, nodes)
                };
                std::thread::scope(|scope| {
                    let (first, others) = parts.split_at(1.min(parts.len()));
                    let others: Vec<_> =
                        others.iter().map(|begin| scope.spawn(move || of_part(begin))).collect();
                    let mut changes: Vec<_> = first.iter().flat_map(of_part).collect();
                    for (thread, begin) in others.into_iter().zip(parts.iter().skip(1)) {
                        // Where a thread failed its part is asked for here.
                        changes.extend(thread.join().unwrap_or_else(|_| of_part(begin)));
                    }
                    changes
                })
            }
        };
        changes.sort_unstable();
        changes
    }

    /// Returns the number of looks that [`Self::starts`] takes.
    pub(crate) fn looks_at_starts(
        &self,
        machine: &Machine,
        need: &Need,
        kind: &Kind,
        over: &Range<u64>,
    ) -> usize {
        let mut looks = self.plans.len();
        for (class, _) in machine.classes.iter().zip(&kind.fits).filter(|(_, fit)| fit.is_some()) {
            let cores = cores(class, need, kind);
            for node in class.nodes.clone().filter(|&node| need.may_be_on(node)) {
                let earliest_s = self.earliest_s(machine, node, cores, need.duration_s);
                let first_s = earliest_s.max(over.start);
                if first_s < over.end {
                    let plan = &self.plans[node];
                    looks += plan.step_count() - plan.step_at(first_s);
                }
            }
        }
        looks
    }

    /// Returns the time from which on nothing changes on any node.
    pub(crate) fn tail_s(&self) -> u64 {
        self.plans.iter().map(NodePlan::tail_s).max().unwrap_or(0)
    }

    /// Returns the changes of [`Self::starts`] for some of the nodes, unsorted.
    fn starts_of(
        &self,
        machine: &Machine,
        need: &Need,
        kind: &Kind,
        over: &Range<u64>,
        of: Range<usize>,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut open = Vec::new();
        for (class, fit) in machine.classes.iter().zip(&kind.fits) {
            let Some(fit) = fit else { continue };
            let cores = cores(class, need, kind);
            let whole = need.exclusive.then(|| whole(class));
            let amounts = whole.as_ref().unwrap_or(&fit.amounts);
            // A node that is taken whole takes all that it can, or nothing.
            let (most, unit) = if need.exclusive {
                (1, fit.most.min(kind.count))
            } else {
                (fit.most.min(kind.count), 1)
            };
            let of_class = class.nodes.start.max(of.start)..class.nodes.end.min(of.end);
            for node in of_class.filter(|&node| need.may_be_on(node)) {
                let earliest_s = self.earliest_s(machine, node, cores, need.duration_s);
                let first_s = earliest_s.max(over.start);
                if first_s >= over.end {
                    continue;
                }
                open.clear();
                let plan = &self.plans[node];
                let fits = |step| plan.fits(step, &class.has, amounts, most) * unit;
                starts_on(plan, fits, need.duration_s, first_s..over.end, &mut open, &mut changes);
            }
        }
        changes
    }
}

/// The cores that must be free on a node.
fn cores(class: &Class, need: &Need, kind: &Kind) -> u64 {
    if need.exclusive {
        class.has[NCPUS]
    } else {
        kind.cores
    }
}

fn whole(class: &Class) -> Vec<(ResourceId, u64)> {
    let has = class.has.iter().copied().enumerate();
    has.filter(|&(_, amount)| amount > 0).collect()
}

/// The earliest start in `from_s..until_s` at which the amounts are free for the duration.
fn first_in(
    plan: &NodePlan,
    class: &Class,
    amounts: &[(ResourceId, u64)],
    duration_s: u64,
    Range { start: from_s, end: until_s }: Range<u64>,
    budget: &SearchBudget,
) -> Option<u64> {
    let mut start_s = from_s;
    for step in plan.step_at(from_s)..plan.step_count() {
        budget.take(1);
        if plan.fits(step, &class.has, amounts, 1) == 0 {
            start_s = plan.end_s(step);
            if start_s >= until_s {
                return None;
            }
        } else if plan.end_s(step).saturating_sub(start_s) >= duration_s {
            return Some(start_s);
        }
    }
    None
}

/// Adds the changes of one node: rectangles that are as many chunks high and as long as
/// can be, each of which lets its chunks start until the duration before its end.
fn starts_on(
    plan: &NodePlan,
    fits: impl Fn(usize) -> u64,
    duration_s: u64,
    starts_s: Range<u64>,
    open: &mut Vec<(u64, u64)>,
    changes: &mut Vec<Change>,
) {
    let mut close = |high: u64, since_s: u64, end_s: u64| {
        let last_s = match end_s {
            FOREVER => FOREVER,
            end_s if end_s < duration_s => return,
            end_s => end_s - duration_s,
        };
        if last_s >= since_s && since_s < starts_s.end {
            changes.push((since_s, high as i64));
            if last_s.saturating_add(1) < starts_s.end {
                changes.push((last_s + 1, -(high as i64)));
            }
        }
    };
    // Each entry of `open` is higher than the one below it, which is open since earlier.
    for step in plan.step_at(starts_s.start)..plan.step_count() {
        let begin_s = plan.begin_s(step).max(starts_s.start);
        if begin_s >= starts_s.end && open.is_empty() {
            return;
        }
        let high = fits(step);
        let mut since_s = begin_s;
        while let Some(&(top, top_since_s)) = open.last() {
            if top <= high {
                break;
            }
            open.pop();
            let below = open.last().map_or(0, |&(below, _)| below);
            // What of it goes on is not closed.
            close(top - below.max(high), top_since_s, begin_s);
            since_s = top_since_s;
        }
        if high > open.last().map_or(0, |&(top, _)| top) {
            open.push((high, since_s));
        }
    }
    while let Some((top, since_s)) = open.pop() {
        let below = open.last().map_or(0, |&(below, _)| below);
        close(top - below, since_s, FOREVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{NodeSpec, Resource};

    /// Bookings in a row leave the gaps of a node to the next search, which makes them once.
    #[test]
    fn many_bookings_have_gaps_made_once() {
        let specs = ["a", "b"].map(|name| NodeSpec::new(name, vec![8]));
        let ncpus = Resource { name: "ncpus".into(), job_wide: None };
        let machine = Machine::new(vec![ncpus], &specs);
        let need = Need::new(&machine, &"ncpus=6".parse().unwrap(), 10).unwrap();
        let mut nodes = Nodes::new(&machine);
        let on_first = [Placed { node: 0, kind: 0, count: 1 }];
        for at in 0..100 {
            nodes.book(&machine, &need, &on_first, 20 * at..20 * at + 10);
        }
        // Until then nothing is excluded.
        assert_eq!(nodes.earliest_s(&machine, 0, 6, 11), 0);
        let budget = SearchBudget::default();
        nodes.renew_gaps(&machine, &budget);
        nodes.renew_gaps(&machine, &budget);
        assert_eq!(budget.used(), nodes.plan(0).step_count() as u64);
        assert_eq!(nodes.earliest_s(&machine, 0, 6, 11), 20 * 99 + 10);
        // A budget that is spent leaves them as they are.
        nodes.revoke(&machine, &need, &on_first, 20 * 99..20 * 99 + 10);
        nodes.renew_gaps(&machine, &SearchBudget::of_looks(0));
        assert_eq!(nodes.earliest_s(&machine, 0, 6, 11), 0);
    }
}
