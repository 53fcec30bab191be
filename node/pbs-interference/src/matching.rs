// SPDX-License-Identifier: GPL-2.0
//! Pairs of least cost: perfect matching of least weight in a complete graph.
//!
//! For two cores the best partition into pairs that run at the same time is such a
//! matching; for more it is NP-hard (Jiang et al.). This is the primal-dual method
//! of Edmonds with blossoms, in the form that takes O(n³): each vertex has a price,
//! edges whose prices make up their weight are tight, and an augmenting path of
//! tight edges is grown from all free vertices at once. Odd circles are shrunk to a
//! vertex with a price of its own.

use crate::blossom::Blossoms;

/// Pairs of `0..count`, each `(less, greater)`, ascending, with the least sum of
/// `cost`. Of an odd number one is left over, at the cost `single` of it alone.
///
/// Costs are bounded to 2^60 / `count`.
pub fn pairs(
    count: usize,
    cost: impl Fn(usize, usize) -> u64,
    single: impl Fn(usize) -> u64,
) -> (Vec<(usize, usize)>, Option<usize>) {
    let even = count + count % 2;
    if even == 0 {
        return (Vec::new(), None);
    }
    let most = (1_u64 << 60) / even as u64;
    let mut costs = vec![0; even * even];
    for one in 0..even {
        for other in one + 1..even {
            let cost = if other < count { cost(one, other) } else { single(one) };
            costs[one * even + other] = cost.min(most);
        }
    }
    let dearest = costs.iter().copied().max().unwrap_or(0);
    // With weights above zero a matching of the greatest weight has all vertices.
    let weight = |one: usize, other: usize| {
        let cost = costs[one.min(other) * even + one.max(other)];
        (dearest - cost + 1) as i64
    };
    let mate = Blossoms::new(even, weight).solve();
    let mut pairs = Vec::new();
    let mut left = None;
    for (one, &other) in mate.iter().enumerate() {
        if other == count {
            left = Some(one);
        } else if one < other && other < even {
            pairs.push((one, other));
        }
    }
    (pairs, left)
}
