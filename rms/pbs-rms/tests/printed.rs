// SPDX-License-Identifier: GPL-2.0
//! The algorithms as they are printed (A.4), where they can be run: what they place, and where
//! the manager places it.
//!
//! `fit` can be run for chains of NEXT, one for each application: then no request is its own
//! parent's neighbour in time, and no two of an application overlap. Time is a row of unit
//! steps here, which has nothing in common with profiles but what it means.

mod driver;

use driver::{ask, next, Driver};
use pbs_gen::{Random, Stream};
use pbs_rms::{Kind, RequestId};

const HORIZON: usize = 600;

/// A CAP in unit steps; the last value holds for ever.
#[derive(Clone)]
struct UnitSteps(Vec<u64>);

impl UnitSteps {
    fn at(&self, time: u64) -> u64 {
        let place = usize::try_from(time).unwrap_or(HORIZON).min(HORIZON - 1);
        self.0[place]
    }

    /// findHole of A.3.
    fn find_hole(&self, nodes: u64, duration: u64, from: u64) -> u64 {
        let fits = |start: u64| (start..start + duration).all(|time| self.at(time) >= nodes);
        (from..).find(|&start| fits(start)).expect("the machine is empty at the end")
    }

    fn take(&mut self, nodes: u64, duration: u64, from: u64) {
        for time in from..from + duration {
            let place = usize::try_from(time).expect("before the horizon");
            self.0[place] -= nodes;
        }
    }
}

/// fit() as printed: a child that does not fit where its parent ends raises the parent's
/// earliestScheduleAt, and that one is taken up again.
fn fit(chain: &[(u64, u64)], row: &UnitSteps) -> Vec<u64> {
    let mut earliest = vec![0; chain.len()];
    let mut scheduled = vec![0; chain.len()];
    let mut place = 0;
    while place < chain.len() {
        let (nodes, duration) = chain[place];
        let constrained = match place {
            0 => 0,
            _ => scheduled[place - 1] + chain[place - 1].1,
        };
        let found = row.find_hole(nodes, duration, earliest[place].max(constrained));
        scheduled[place] = found;
        if place > 0 && found > constrained {
            earliest[place - 1] = found - chain[place - 1].1;
            place -= 1;
        } else {
            place += 1;
        }
    }
    scheduled
}

#[test]
fn chains_are_where_the_printed_algorithm_places_them() {
    for seed in 0..300 {
        let mut random = Random::new(seed, Stream::Messages);
        let nodes = 4 + random.below(12);
        let mut row = UnitSteps(vec![nodes; HORIZON]);
        let mut rms = Driver::new(nodes);
        let kinds = [Kind::PreAllocation, Kind::NonPreemptible];
        // All ask before anybody is placed, in the order of connection.
        let mut asked: Vec<(pbs_rms::AppId, Vec<RequestId>)> = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..1 + random.below(8) {
            let app = rms.connect();
            let kind = kinds[random.index(2)];
            let length = 1 + random.below(4);
            let chain: Vec<(u64, u64)> =
                (0..length).map(|_| (1 + random.below(nodes), 1 + random.below(12))).collect();
            let mut ids: Vec<RequestId> = Vec::new();
            for &(nodes, duration) in &chain {
                let request = ask(kind, nodes, duration);
                let request = match ids.last() {
                    Some(&parent) => next(parent, request),
                    None => request,
                };
                ids.push(rms.request(app, request));
            }
            let scheduled = fit(&chain, &row);
            for (&(nodes, duration), &from) in chain.iter().zip(&scheduled) {
                row.take(nodes, duration, from);
            }
            asked.push((app, ids));
            expected.push(scheduled);
        }
        rms.pass(0);
        for ((app, ids), expected) in asked.into_iter().zip(expected) {
            let requests = &rms.rms.session(app).expect("it is there").requests;
            let found: Vec<u64> = ids
                .iter()
                .map(|id| {
                    let request = requests.iter().find(|request| request.id == *id);
                    let request = request.expect("it is there");
                    let at = request.started_ns.or(request.scheduled_ns);
                    at.expect("it is placed")
                })
                .collect();
            assert_eq!(found, expected, "seed {seed}");
        }
    }
}

/// eqSchedule() as printed (algorithm 3), lines 6 to 25, but for line 25, by which everyone would
/// see everything: what each sees, and whether somebody's wish was met exactly before all was
/// divided, whom the printed rounds take for inactive from then on.
fn eq_schedule(nodes: u64, wants: &[u64]) -> (Vec<u64>, bool) {
    let sum: u64 = wants.iter().sum();
    let active = wants.iter().filter(|&&wanted| wanted > 0).count() as u64;
    if sum <= nodes {
        let part = |&wanted: &u64| {
            let partitions = active + u64::from(wanted == 0);
            (nodes - (sum - wanted)).max(nodes / partitions)
        };
        return (wants.iter().map(part).collect(), false);
    }
    let mut left = nodes;
    let mut wants: Vec<i64> = wants.iter().map(|&wanted| wanted as i64).collect();
    let was_inactive: Vec<bool> = wants.iter().map(|&wanted| wanted == 0).collect();
    let mut parts = vec![0; wants.len()];
    let mut is_any_met = false;
    while left > 0 && wants.iter().any(|&wanted| wanted >= 0) {
        let is_met = |(&wanted, &was): (&i64, &bool)| wanted == 0 && !was;
        is_any_met |= wants.iter().zip(&was_inactive).any(is_met);
        let mut partitions = wants.iter().filter(|&&wanted| wanted > 0).count() as u64;
        partitions += u64::from(wants.contains(&0));
        let equal = (left / partitions).max(1);
        for (wanted, part) in wants.iter_mut().zip(&mut parts) {
            if *wanted < 0 {
                continue;
            }
            left -= equal.min(*wanted as u64).min(left);
            *wanted -= equal as i64;
            *part += equal;
            if left == 0 {
                break;
            }
        }
    }
    (parts, is_any_met)
}

fn divided(nodes: u64, wants: &[u64]) -> Vec<u64> {
    let mut rms = Driver::new(nodes);
    let apps: Vec<_> = wants.iter().map(|_| rms.connect()).collect();
    for (&app, &wanted) in apps.iter().zip(wants).filter(|want| *want.1 > 0) {
        rms.request(app, ask(Kind::Preemptible, wanted, pbs_rms::FOREVER));
    }
    rms.pass(0);
    let part = |&app| rms.views(app).preemptible.at(0);
    apps.iter().map(part).collect()
}

#[test]
fn preemptible_nodes_are_divided_as_by_the_printed_rounds() {
    let (mut compared, mut crowded) = (0, 0);
    for seed in 0..2_000 {
        let mut random = Random::new(seed, Stream::Messages);
        let nodes = 1 + random.below(40);
        let count = 1 + random.below(5);
        let wants: Vec<u64> = (0..count).map(|_| random.below(nodes + 1)).collect();
        let (expected, is_any_met) = eq_schedule(nodes, &wants);
        if is_any_met {
            continue;
        }
        compared += 1;
        let parts = divided(nodes, &wants);
        let is_crowded = wants.iter().sum::<u64>() > nodes;
        if !is_crowded {
            assert_eq!(parts, expected, "{nodes} for {wants:?}");
            continue;
        }
        crowded += 1;
        // By its rounds one may see more than it wants; what it has of that is the same.
        let of = |parts: &[u64]| -> Vec<u64> {
            let both = parts.iter().zip(&wants);
            both.map(|(&part, &wanted)| part.min(wanted)).collect()
        };
        assert_eq!(of(&parts), of(&expected), "{nodes} for {wants:?}");
    }
    assert!(compared > 1_000 && crowded > 500, "{compared}, {crowded}");
}

#[test]
fn a_satisfied_request_gets_no_more() {
    // As printed, the second is inactive in the second round, and sees a node of the third.
    for wants in [[2, 3, 10], [2, 3, 9]] {
        assert_eq!(eq_schedule(9, &wants), (vec![3, 4, 4], true));
    }
    assert_eq!(divided(9, &[2, 3, 9]), [3, 3, 4]);
}
