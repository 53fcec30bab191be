// SPDX-License-Identifier: GPL-2.0
//! Orders of waiting jobs: sorted ones, permutations and moves.

use pbs_random::Random;

use super::score::{Objective, WaitingJob};

/// Returns sorted orders. Jobs that are alike keep the order in which they came.
pub(super) fn sorted(jobs: &[WaitingJob], objective: &Objective) -> Vec<Vec<u32>> {
    let by = |key: &dyn Fn(&WaitingJob) -> f64| {
        let keys: Vec<f64> = jobs.iter().map(key).collect();
        let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
        order.sort_by(|&a, &b| keys[a as usize].total_cmp(&keys[b as usize]));
        order
    };
    let area = |job: &WaitingJob| job.cores as f64 * job.duration_s as f64;
    let slowdown = |job: &WaitingJob| job.waited_s as f64 / job.expected_s.max(1) as f64;
    let mut orders = vec![
        (0..jobs.len() as u32).collect(),
        by(&|job| -objective.urgency(job)),
        by(&|job| job.duration_s as f64),
        by(&|job| -(job.duration_s as f64)),
        by(&|job| job.cores as f64),
        by(&|job| -(job.cores as f64)),
        by(&area),
        by(&|job| -area(job)),
        by(&|job| -slowdown(job)),
    ];
    // By the normalised waits of the users, if they cost something.
    let normalised = |job: &WaitingJob| (job.waited_s + 1) as f64 / job.user_core_s.max(1) as f64;
    if objective.fairness > 0.0 {
        orders.push(by(&|job| -normalised(job)));
    }
    // By the latest start that keeps a deadline or a promise.
    let latest_s = |job: &WaitingJob| job.latest_start_s.min(job.wanted_start_s);
    if objective.missed_deadline > 0.0 && jobs.iter().any(|job| latest_s(job) < u64::MAX) {
        orders.push(by(&|job| latest_s(job) as f64));
    }
    orders
}

/// Moves to the next permutation in lexical order. Returns `false` after the last one.
pub(super) fn next_permutation(order: &mut [u32]) -> bool {
    let Some(pivot) = (1..order.len()).rev().find(|&place| order[place - 1] < order[place]) else {
        return false;
    };
    let greater = order.iter().rposition(|&other| other > order[pivot - 1]).unwrap_or(pivot);
    order.swap(pivot - 1, greater);
    order[pivot..].reverse();
    true
}

/// Changes an order at two random places: exchanges two jobs, or moves one.
pub(super) fn change(order: &mut [u32], random: &mut Random) {
    let (from, to) = (random.index(order.len()), random.index(order.len()));
    if random.below(2) == 0 {
        order.swap(from, to);
    } else if from < to {
        order[from..=to].rotate_left(1);
    } else {
        order[to..=from].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_permutations_are_visited_once() {
        let mut order = [0, 1, 2, 3];
        let mut seen = std::collections::BTreeSet::from([order]);
        while next_permutation(&mut order) {
            assert!(seen.insert(order));
        }
        assert_eq!(seen.len(), 24);
    }

    /// One of the orders begins with the job that has waited longest for each core second of its user.
    #[test]
    fn users_are_sorted_by_fairness_if_it_costs_something() {
        let job =
            |waited_s, user_core_s| WaitingJob { waited_s, user_core_s, ..WaitingJob::new(1, 100) };
        let jobs = [job(99, 100), job(999, 10_000), job(19, 10)];
        let orders = |fairness| sorted(&jobs, &Objective { fairness, ..Objective::default() });
        let (without, with) = (orders(0.0), orders(1.0));
        assert_eq!(with.len(), without.len() + 1);
        assert_eq!(with.last(), Some(&vec![2, 0, 1]));
    }

    #[test]
    fn a_change_keeps_all_jobs() {
        let mut random = Random::new(1);
        let mut order: Vec<u32> = (0..7).collect();
        for _ in 0..100 {
            change(&mut order, &mut random);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..7).collect::<Vec<_>>());
        }
    }
}
