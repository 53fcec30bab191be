// SPDX-License-Identifier: GPL-2.0
//! Choice among suitable nodes: policies of mapping (Keller, 5 and 8).

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_site::Mapping;

use crate::machine::Machine;
use crate::nodes::Nodes;
use crate::placed::Placed;

/// A node with how much of something it offers.
pub(crate) type Host = (usize, u64);

/// Puts hosts into the order in which they are taken. They come in the order of weight.
pub(crate) fn arrange(
    mapping: Mapping,
    machine: &Machine,
    nodes: &Nodes,
    hosts: &mut [Host],
    wanted: u64,
    over: &Range<u64>,
) {
    match mapping {
        Mapping::Cheapest => {}
        Mapping::Busy => hosts.sort_by_key(|&(node, _)| !nodes.is_busy(node, over)),
        Mapping::Switches => {
            let turns = turns(machine, hosts, wanted);
            hosts.sort_by_key(|&(node, _)| turns.get(&machine.switch_of[node]));
        }
    }
}

/// Each switch with its turn: first the one that offers least of those that offer enough,
/// or else the ones that offer most.
fn turns(machine: &Machine, hosts: &[Host], wanted: u64) -> BTreeMap<u32, usize> {
    let mut offers: BTreeMap<u32, u64> = BTreeMap::new();
    for &(node, offered) in hosts {
        let offer = offers.entry(machine.switch_of[node]).or_default();
        *offer = offer.saturating_add(offered);
    }
    let mut order: Vec<(u32, u64)> = offers.into_iter().collect();
    order.sort_by_key(|&(switch, offer)| {
        if offer >= wanted {
            (false, offer, switch)
        } else {
            (true, u64::MAX - offer, switch)
        }
    });
    let turns = order.into_iter().enumerate();
    turns.map(|(turn, (switch, _))| (switch, turn)).collect()
}

/// Returns the cost of a mapping. Two mappings of one request can be compared by it.
pub(crate) fn price(
    mapping: Mapping,
    machine: &Machine,
    nodes: &Nodes,
    placed: &[Placed],
    over: &Range<u64>,
) -> (usize, i128) {
    let mut hosts: Vec<usize> = placed.iter().map(|placed| placed.node as usize).collect();
    hosts.dedup();
    let first = match mapping {
        Mapping::Cheapest => 0,
        Mapping::Busy => {
            let idle = hosts.iter().filter(|&&node| !nodes.is_busy(node, over));
            idle.count()
        }
        Mapping::Switches => {
            let mut switches: Vec<_> = hosts.iter().map(|&node| machine.switch_of[node]).collect();
            switches.sort_unstable();
            switches.dedup();
            switches.len()
        }
    };
    let weights = hosts.iter().map(|&node| machine.class(node).weight);
    (first, weights.sum())
}
