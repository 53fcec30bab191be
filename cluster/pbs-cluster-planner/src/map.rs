// SPDX-License-Identifier: GPL-2.0
//! Mapping of chunks to nodes: the second phase of Keller's mapping (5.2).
//!
//! Expensive chunks go on cheap nodes first. With one kind of chunk, this finds a mapping whenever
//! one exists. With several kinds it may fail. The search then backtracks step by step, up to a
//! fixed number of steps. The order of nodes is a matter of policy: see `choice`.

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_site::Mapping;

use crate::budget::{SearchBudget, COPY_LOOKS};
use crate::choice::{arrange, Host};
use crate::machine::{Machine, ResourceId, NCPUS};
use crate::need::{Fit, Need};
use crate::nodes::Nodes;
use crate::placed::Placed;

/// Number of backtracking steps after which the search for a mapping gives up.
const MAX_STEPS: u32 = 10_000;

/// Maps the request in that interval on what is planned, if that can be; the result is in
/// the order of nodes.
pub(crate) fn map(
    machine: &Machine,
    nodes: &Nodes,
    need: &Need,
    over: Range<u64>,
    mapping: Mapping,
    budget: &SearchBudget,
) -> Option<Vec<Placed>> {
    match &need.kinds[..] {
        [_] => one_kind(machine, nodes, need, over, mapping, budget),
        _ => {
            let free = |node| {
                budget.take(COPY_LOOKS + nodes.plan(node).steps_in(&over));
                nodes.free_over(machine, node, &over)
            };
            let mut several = Several::new(machine, need, free);
            several.arrange(mapping, nodes, &over);
            several.map(budget)
        }
    }
}

/// Maps the request on nodes that are all empty and in order: what can't be done there
/// never can.
pub(crate) fn map_empty(machine: &Machine, need: &Need, budget: &SearchBudget) -> bool {
    budget.begin_search();
    let empty = |node| {
        budget.take(COPY_LOOKS);
        Some(machine.class(node).has.clone())
    };
    need.kinds.len() == 1 || Several::new(machine, need, empty).map(budget).is_some()
}

fn one_kind(
    machine: &Machine,
    nodes: &Nodes,
    need: &Need,
    over: Range<u64>,
    mapping: Mapping,
    budget: &SearchBudget,
) -> Option<Vec<Placed>> {
    let kind = &need.kinds[0];
    let classes = machine.classes.iter().zip(&kind.fits);
    let classes = classes.filter_map(|(class, fit)| Some((class, fit.as_ref()?)));
    let hosts = classes.flat_map(|(class, fit)| {
        let of_class = class.nodes.clone().filter(|&node| need.may_be_on(node));
        of_class.map(move |node| (node, fit))
    });
    let room = |(node, fit): (usize, &Fit)| {
        let most = fit.most.min(kind.count);
        let count = nodes.fits_over(machine, node, need, (kind, fit), most, &over, budget);
        (node, count)
    };
    let mut hosts = hosts.map(room).filter(|&(_, count)| count > 0);
    if mapping == Mapping::Cheapest {
        // No more nodes are asked than are taken.
        return fill(&mut hosts, kind.count);
    }
    let mut hosts: Vec<Host> = hosts.collect();
    arrange(mapping, machine, nodes, &mut hosts, kind.count, &over);
    let mut placed = fill(&mut hosts.into_iter(), kind.count)?;
    placed.sort_unstable();
    Some(placed)
}

/// Takes chunks of each host until there are enough.
fn fill(hosts: &mut dyn Iterator<Item = Host>, wanted: u64) -> Option<Vec<Placed>> {
    let mut left = wanted;
    let mut placed = Vec::new();
    for (node, room) in hosts {
        let count = room.min(left);
        placed.push(Placed { node: node as u32, kind: 0, count: count as u32 });
        left -= count;
        if left == 0 {
            return Some(placed);
        }
    }
    None
}

/// Chunks of several kinds.
struct Several<'a> {
    machine: &'a Machine,
    need: &'a Need,
    /// The nodes that are of use at all, with what is free on each.
    nodes: Vec<(usize, Vec<u64>)>,
    /// Whether a chunk is there, where only one may be.
    taken: Vec<bool>,
    /// For each chunk that is placed: its node, by its place in `nodes`.
    chosen: Vec<usize>,
    steps: u32,
}

impl<'a> Several<'a> {
    fn new(machine: &'a Machine, need: &'a Need, free: impl Fn(usize) -> Option<Vec<u64>>) -> Self {
        let of_use = |&node: &usize| {
            let class = machine.class_of[node];
            need.may_be_on(node) && need.kinds.iter().any(|kind| kind.fits[class].is_some())
        };
        let is_whole =
            |node: usize, free: &Vec<u64>| !need.exclusive || *free == machine.class(node).has;
        let nodes: Vec<_> = (0..machine.node_count())
            .filter(of_use)
            .filter_map(|node| Some((node, free(node)?)))
            .filter(|(node, free)| is_whole(*node, free))
            .collect();
        Self { machine, need, taken: vec![false; nodes.len()], nodes, chosen: Vec::new(), steps: 0 }
    }

    /// Nodes are tried in the order of the policy; of switches by the cores that are free
    /// there.
    fn arrange(&mut self, mapping: Mapping, nodes: &Nodes, over: &Range<u64>) {
        if mapping == Mapping::Cheapest {
            return;
        }
        let mut hosts: Vec<Host> =
            self.nodes.iter().map(|(node, free)| (*node, free[NCPUS])).collect();
        let wanted = self.need.kinds.iter();
        let wanted = wanted.map(|kind| kind.cores.saturating_mul(kind.count));
        let wanted = wanted.fold(0, u64::saturating_add);
        arrange(mapping, self.machine, nodes, &mut hosts, wanted, over);
        let turns = hosts.iter().enumerate().map(|(turn, host)| (host.0, turn));
        let turns: BTreeMap<usize, usize> = turns.collect();
        self.nodes.sort_by_key(|(node, _)| turns.get(node));
    }

    fn map(mut self, budget: &SearchBudget) -> Option<Vec<Placed>> {
        let mut kinds = Vec::new();
        for (kind, of) in self.need.kinds.iter().enumerate() {
            // A need has no more chunks than its machine has cores.
            kinds.extend(std::iter::repeat_n(kind, of.count as usize));
        }
        // The node from which on the next chunk is tried.
        let mut from = 0;
        while self.chosen.len() < kinds.len() {
            let kind = kinds[self.chosen.len()];
            let found = self.first_from(kind, from);
            budget.take(found.map_or(self.nodes.len(), |at| at + 1).saturating_sub(from));
            match found {
                Some(at) => {
                    self.take(kind, at);
                    // Chunks that are alike need not be tried in another order.
                    let is_alike = kinds.get(self.chosen.len()) == Some(&kind);
                    from = if is_alike { at } else { 0 };
                }
                None => {
                    self.steps += 1;
                    let at = self.chosen.last().copied()?;
                    let looks = self.nodes.len() + self.chosen.len();
                    if self.steps >= MAX_STEPS || !budget.take_choice(looks) {
                        budget.skip();
                        return None;
                    }
                    self.give_back(kinds[self.chosen.len() - 1], at);
                    from = self.after_alike(at);
                }
            }
        }
        let mut placed: Vec<Placed> = Vec::new();
        let mut pairs: Vec<_> = self.chosen.iter().zip(&kinds).collect();
        pairs.sort_unstable();
        for (&at, &kind) in pairs {
            let (node, kind) = (self.nodes[at].0 as u32, kind as u32);
            match placed.last_mut() {
                Some(last) if (last.node, last.kind) == (node, kind) => last.count += 1,
                _ => placed.push(Placed { node, kind, count: 1 }),
            }
        }
        // Whatever the order was in which they were tried.
        placed.sort_unstable();
        Some(placed)
    }

    fn first_from(&self, kind: usize, from: usize) -> Option<usize> {
        (from..self.nodes.len()).find(|&at| {
            let (node, free) = &self.nodes[at];
            let fit = self.need.kinds[kind].fits[self.machine.class_of[*node]].as_ref();
            let fits = |&(resource, amount): &(ResourceId, u64)| free[resource] >= amount;
            !(self.need.scatter && self.taken[at])
                && fit.is_some_and(|fit| fit.amounts.iter().all(fits))
        })
    }

    /// The next node that is not the same thing again: another class, or other amounts.
    fn after_alike(&self, at: usize) -> usize {
        let class = |at: usize| self.machine.class_of[self.nodes[at].0];
        let is_alike = |other: &usize| {
            class(*other) == class(at)
                && self.nodes[*other].1 == self.nodes[at].1
                && self.taken[*other] == self.taken[at]
        };
        (at + 1..self.nodes.len()).find(|other| !is_alike(other)).unwrap_or(self.nodes.len())
    }

    fn take(&mut self, kind: usize, at: usize) {
        self.change(kind, at, u64::wrapping_sub);
        self.taken[at] = true;
        self.chosen.push(at);
    }

    fn give_back(&mut self, kind: usize, at: usize) {
        self.chosen.pop();
        self.change(kind, at, u64::wrapping_add);
        self.taken[at] = self.chosen.contains(&at);
    }

    fn change(&mut self, kind: usize, at: usize, of: impl Fn(u64, u64) -> u64) {
        let (node, free) = &mut self.nodes[at];
        let fit = &self.need.kinds[kind].fits[self.machine.class_of[*node]];
        for &(resource, amount) in fit.iter().flat_map(|fit| &fit.amounts) {
            free[resource] = of(free[resource], amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{NodeSpec, Resource};

    /// All mappings of a search share its budget; without it, only the first choice is tried.
    #[test]
    fn a_search_takes_back_choices_within_its_budget() {
        let node = |name: &str| NodeSpec::new(name, vec![10]);
        let ncpus = Resource { name: "ncpus".into(), job_wide: None };
        let machine = Machine::new(vec![ncpus], &[node("a"), node("b")]);
        let need = Need::new(&machine, &"2:ncpus=4+4:ncpus=3".parse().unwrap(), 10).unwrap();
        let map = |budget: &SearchBudget| {
            let free = |node| Some(machine.class(node).has.clone());
            Several::new(&machine, &need, free).map(budget).is_some()
        };
        let budget = SearchBudget::default();
        assert!(map(&budget));
        let used = budget.choices_used();
        assert!(used > 0);
        assert!(map(&SearchBudget::with_choices(used)));
        assert!(!map(&SearchBudget::with_choices(used - 1)));
        // What one mapping has used is missing to the next.
        let once = SearchBudget::with_choices(2 * used - 1);
        assert_eq!([map(&once), map(&once)], [true, false]);
    }
}
