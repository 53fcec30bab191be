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
struct Row(Vec<u64>);

impl Row {
    fn at(&self, time: u64) -> u64 {
        let place = usize::try_from(time).unwrap_or(HORIZON).min(HORIZON - 1);
        self.0[place]
    }

    /// findHole of A.3.
    fn find_hole(&self, nodes: u64, duration: u64, from: u64) -> u64 {
        let fits = |start: u64| (start..start + duration).all(|time| self.at(time) >= nodes);
        (from..)
            .find(|&start| fits(start))
            .expect("the machine is empty at the end")
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
fn fit(chain: &[(u64, u64)], row: &Row) -> Vec<u64> {
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
        let mut row = Row(vec![nodes; HORIZON]);
        let mut rms = Driver::new(nodes);
        let kinds = [Kind::PreAllocation, Kind::NonPreemptible];
        // All ask before anybody is placed, in the order of connection.
        let mut asked: Vec<(pbs_rms::AppId, Vec<RequestId>)> = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..1 + random.below(8) {
            let app = rms.connect();
            let kind = kinds[random.index(2)];
            let length = 1 + random.below(4);
            let chain: Vec<(u64, u64)> = (0..length)
                .map(|_| (1 + random.below(nodes), 1 + random.below(12)))
                .collect();
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

/// eqSchedule() as printed, lines 7 to 19, where all want more than there is: rounds in which
/// each gets an equal part of what is left, and what it wants at most.
#[test]
fn where_all_is_wanted_the_printed_rounds_divide_alike() {
    for seed in 0..300 {
        let mut random = Random::new(seed, Stream::Messages);
        let nodes = 20 + random.below(40);
        let count = 2 + random.below(4);
        // Each wants more than an equal part, so that one round is enough.
        let least = nodes / count + 1;
        let mut rms = Driver::new(nodes);
        let apps: Vec<_> = (0..count).map(|_| rms.connect()).collect();
        for &app in &apps {
            let wanted = (least + random.below(9)).min(nodes);
            rms.request(app, ask(Kind::Preemptible, wanted, pbs_rms::FOREVER));
        }
        rms.pass(0);
        let parts: Vec<u64> = apps
            .iter()
            .map(|&app| rms.views(app).preemptible.at(0))
            .collect();
        let rest = nodes % count;
        let expected = (0..count).map(|place| nodes / count + u64::from(place < rest));
        assert_eq!(parts, expected.collect::<Vec<_>>(), "seed {seed}");
    }
}
