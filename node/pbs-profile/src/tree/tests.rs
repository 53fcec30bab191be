// SPDX-License-Identifier: GPL-2.0
//! Tests of the tree's invariants: order, bounds, extremes and free nodes.

use proptest::prelude::*;

use super::*;
use crate::{Profile, FOREVER};

impl Tree {
    /// Checks a node; returns its steps, leaves and inner nodes.
    fn check(&self, id: u32, height: u32, pending: u64, within: (u64, u64)) -> [usize; 3] {
        let (start, end) = within;
        assert!(self.len_of(id, height) > 0, "an empty node");
        assert_eq!(self.start_of(id, height), start);
        if height == 0 {
            let times = self.leaves[id].times();
            assert!(times.is_sorted_by(|a, b| a < b) && times.iter().all(|&time| time < end));
            return [times.len(), 1, 0];
        }
        let inner = &self.inners[id];
        assert!(inner.times().is_sorted_by(|a, b| a < b));
        let mut sums = [0, 0, 1];
        for (at, child) in inner.items().iter().enumerate() {
            let below = self.extremes_of(child.id, height - 1);
            assert_eq!(below.raised(child.pending), child.extremes);
            let real = child.extremes.raised(pending);
            assert!(real.least <= real.greatest, "a value wrapped around");
            let pending = pending.wrapping_add(child.pending);
            let within = (inner.times()[at], inner.end(at, end));
            let counted = self.check(child.id, height - 1, pending, within);
            sums.iter_mut().zip(counted).for_each(|(sum, n)| *sum += n);
        }
        sums
    }
}

fn check(profile: &Profile) {
    let tree = &profile.tree;
    let counted = tree.check(tree.root, tree.height, 0, (tree.start(), FOREVER));
    let known = [tree.steps, tree.leaves.len(), tree.inners.len()];
    assert_eq!(counted, known, "steps, leaves, inner nodes");
    if tree.height > 0 {
        assert!(tree.inners[tree.root].len() > 1, "a root with one child");
    }
    let steps: Vec<_> = profile.iter().map(|step| step.value).collect();
    assert!(steps.windows(2).all(|pair| pair[0] != pair[1]), "neighbours are equal");
}

#[derive(Clone, Debug)]
enum Change {
    Book {
        from: u64,
        length: u64,
        amount: u64,
    },
    /// Takes back one of the bookings.
    Revoke(prop::sample::Index),
    Forget(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        12 => (0u64..5000, 1u64..300, 1u64..1000).prop_map(|(from, length, amount)| {
            Change::Book { from, length, amount }
        }),
        // Whole stretches of the tree at once.
        2 => (0u64..5000, 300u64..5000, 1u64..1000).prop_map(|(from, length, amount)| {
            Change::Book { from, length, amount }
        }),
        8 => any::<prop::sample::Index>().prop_map(Change::Revoke),
        1 => (0u64..20).prop_map(Change::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_tree_stays_a_tree(
        begin in prop::collection::vec((0u64..5000, 1u64..300, 1u64..1000), 0..400),
        changes in prop::collection::vec(change(), 1..200),
    ) {
        let mut profile = Profile::new(1 << 62);
        let mut booked = Vec::new();
        let first = begin.into_iter().map(|(from, length, amount)| Change::Book {
            from, length, amount,
        });
        let mut past = 0;
        for change in first.chain(changes) {
            match change {
                Change::Book { from, length, amount } => {
                    profile.subtract(from..from + length, amount).unwrap();
                    booked.push((from..from + length, amount));
                }
                Change::Revoke(which) if !booked.is_empty() => {
                    let (over, amount) = booked.swap_remove(which.index(booked.len()));
                    profile.add(over, amount).unwrap();
                }
                Change::Revoke(_) => (),
                Change::Forget(by) => {
                    past += by;
                    profile.forget_before(past);
                }
            }
            check(&profile);
        }
        // Nothing remains of what is taken back, nor of the nodes.
        for (over, amount) in booked {
            profile.add(over, amount).unwrap();
            check(&profile);
        }
        prop_assert_eq!(profile.step_count(), 1);
        prop_assert_eq!(profile.tree.height, 0);
    }

    #[test]
    fn what_is_built_at_once_is_a_tree(values in prop::collection::vec(0u64..4, 1..3000)) {
        let steps = values.iter().zip(10..).map(|(&value, time)| (time, value));
        let profile = Profile::from_steps(steps).unwrap();
        check(&profile);
        for (&value, time) in values.iter().zip(10..) {
            prop_assert_eq!(profile.value_at(time), value);
        }
    }
}

/// A plan that grows at its end fills its nodes.
#[test]
fn nodes_are_full_where_time_only_grows() {
    let mut profile = Profile::new(100);
    for time in 0..4000u64 {
        profile.subtract(10 * time..10 * time + 5, 1).unwrap();
    }
    check(&profile);
    let tree = &profile.tree;
    let least = tree.steps() / LEAF;
    let leaves = tree.leaves.len();
    assert!(leaves <= least + least / 4, "{leaves} leaves, not {least}");
}
