// SPDX-License-Identifier: GPL-2.0
//! Pairs of least cost.

mod made;

use made::seeded;
use pbs_interference::pairs;

/// The least sum of all matchings, one after the other.
fn least(left: &mut Vec<usize>, cost: &dyn Fn(usize, usize) -> u64, single: &[u64]) -> u64 {
    let Some(one) = left.pop() else {
        return 0;
    };
    let mut best = u64::MAX;
    if left.len().is_multiple_of(2) {
        // An odd number: this may be the one that is left over.
        best = single[one] + least(left, cost, &[u64::MAX / 4; 16]);
    }
    for place in 0..left.len() {
        let other = left.swap_remove(place);
        let rest = least(left, cost, single);
        best = best.min(rest.saturating_add(cost(one, other)));
        left.push(other);
        let last = left.len() - 1;
        left.swap(place, last);
    }
    left.push(one);
    best
}

/// a, b, c, d are 0 to 3. The cheapest pair first leaves only the dearest.
#[test]
fn the_cheapest_pair_first_is_not_the_cheapest_matching() {
    let costs = [(0, 1, 0), (2, 3, 10), (0, 2, 1), (1, 3, 1), (0, 3, 2), (1, 2, 2)];
    let cost = |one, other| {
        let found = costs.iter().find(|&&(a, b, _)| (a, b) == (one, other));
        found.map_or(99, |&(_, _, cost)| cost)
    };
    let (found, left) = pairs(4, cost, |_| 0);
    assert_eq!((found, left), (vec![(0, 2), (1, 3)], None));
    // Greedy: ab for nothing, then cd.
    let mut greedy = costs;
    greedy.sort_by_key(|&(_, _, cost)| cost);
    let first = greedy[0];
    let mut rest = greedy.iter();
    let rest = rest.find(|&&(a, b, _)| ![first.0, first.1].iter().any(|of| [a, b].contains(of)));
    assert_eq!(first.2 + rest.map_or(0, |&(_, _, cost)| cost), 10);
}

#[test]
fn no_matching_is_cheaper() {
    let mut random = seeded(11);
    for round in 0..3000 {
        let count = random.below(11) as usize;
        // Few different costs make many ties and blossoms.
        let most = [2, 5, 20, 1000, 1 << 40][round % 5];
        let costs: Vec<u64> = (0..count * count).map(|_| random.below(most)).collect();
        let single: Vec<u64> = (0..16).map(|_| random.below(most)).collect();
        let cost = |one: usize, other: usize| costs[one.min(other) * count + one.max(other)];
        let (found, left) = pairs(count, cost, |one| single[one]);
        let mut all: Vec<_> = found.iter().flat_map(|&(one, other)| [one, other]).collect();
        all.extend(left);
        all.sort_unstable();
        assert_eq!(all, (0..count).collect::<Vec<_>>());
        assert_eq!(left.is_some(), count % 2 == 1);
        let sum: u64 = found.iter().map(|&(one, other)| cost(one, other)).sum();
        let sum = sum + left.map_or(0, |one| single[one]);
        let mut everybody = (0..count).collect();
        assert_eq!(sum, least(&mut everybody, &cost, &single), "round {round}");
    }
}

/// For many tasks, no two pairs can be exchanged at less cost, and great costs are bounded.
#[test]
fn many_tasks_and_great_costs_are_matched() {
    let mut random = seeded(3);
    for (count, most) in [(61, 50), (80, 1 << 30), (40, u64::MAX)] {
        let costs: Vec<u64> = (0..count * count).map(|_| random.below(most)).collect();
        let cost = |one: usize, other: usize| costs[one.min(other) * count + one.max(other)];
        let (found, left) = pairs(count, cost, |_| 7);
        assert_eq!(found.len() * 2 + usize::from(left.is_some()), count);
        if most == u64::MAX {
            continue;
        }
        for (place, &(a, b)) in found.iter().enumerate() {
            for &(c, d) in &found[place + 1..] {
                let now = cost(a, b) + cost(c, d);
                assert!(now <= cost(a, c) + cost(b, d) && now <= cost(a, d) + cost(b, c));
            }
        }
    }
}
