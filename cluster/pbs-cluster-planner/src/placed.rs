// SPDX-License-Identifier: GPL-2.0
//! Chunks on nodes, and the resources that they take there.

use crate::machine::{Machine, ResourceId};
use crate::need::Need;

/// Chunks of one kind on a node: a part of Keller's njRS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// The node, by its place in the order of weights.
    pub node: u32,
    /// Kind of chunk, the most demanding first.
    pub kind: u32,
    /// Number of chunks.
    pub count: u32,
}

/// Computes the amounts that a request takes of a node.
pub(crate) fn taken(
    machine: &Machine,
    need: &Need,
    on_node: &[Placed],
    amounts: &mut Vec<(ResourceId, u64)>,
) {
    amounts.clear();
    let Some(first) = on_node.first() else { return };
    let class = machine.class_of[first.node as usize];
    if need.exclusive {
        let has = machine.classes[class].has.iter().copied().enumerate();
        amounts.extend(has.filter(|&(_, amount)| amount > 0));
        return;
    }
    for placed in on_node {
        let Some(fit) = &need.kinds[placed.kind as usize].fits[class] else {
            continue;
        };
        for &(resource, amount) in &fit.amounts {
            let more = amount * u64::from(placed.count);
            match amounts.iter_mut().find(|(of, _)| *of == resource) {
                Some((_, sum)) => *sum += more,
                None => amounts.push((resource, more)),
            }
        }
    }
}

/// The chunks of each node, node by node.
pub(crate) fn by_node(placed: &[Placed]) -> impl Iterator<Item = &[Placed]> {
    placed.chunk_by(|one, other| one.node == other.node)
}
