// SPDX-License-Identifier: GPL-2.0
//! Search for CPUs and an order of tasks in which they slow each other least.
//!
//! The search begins with the given order, which ignores slow-downs, and for two CPUs also with
//! pairs of least cost. Then it exchanges and moves tasks as long as the result improves, all timed
//! with [`Fluid`]. The result is never worse than the given order.

use pbs_random::Random;

use crate::fluid::{Fluid, Lane, Task, Timing};
use crate::matching::pairs;
use crate::{Sharing, Slowdowns};

/// Length of the search, and its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Number of orders that are timed.
    pub orders: u32,
    /// Another seed, other orders first.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { orders: 2000, seed: 1 }
    }
}

/// Order that the search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// The order.
    pub lanes: Vec<Lane>,
    /// Timing of the order.
    pub timing: Timing,
    /// Timing of the given order.
    pub given: Timing,
    /// Number of orders that were timed.
    pub timed: u32,
}

/// The best order that the search finds; `None` if the given one never ends.
/// Tasks that are fixed stay where they are.
///
/// The makespan counts, and of equal ones the sum of all ends.
pub fn arrange(
    tasks: &[Task],
    given: &[Lane],
    slowdowns: &Slowdowns,
    sharing: &Sharing,
    effort: Effort,
) -> Option<Arrangement> {
    let mut search = Search {
        fluid: Fluid::new(tasks, slowdowns, sharing),
        left: effort.orders,
        random: Random::new(effort.seed),
    };
    let unaware = search.fluid.time(given)?;
    let mut best = (given.to_vec(), unaware.clone());
    let matched = match given {
        [one, other] if !tasks.iter().any(|task| task.stays) => {
            Some(matched(tasks, [one, other], &mut search.fluid))
        }
        _ => None,
    };
    // Each start gets its part of the effort.
    for (start, parts) in [(Some(given.to_vec()), 2), (matched, 1)] {
        let Some(timing) = start.as_ref().and_then(|start| search.time(start)) else {
            continue;
        };
        let least = match given.len() {
            2 => search.left - search.left / parts,
            _ => 0,
        };
        let found = search.climb(tasks, start.unwrap_or_default(), timing, least);
        if rank(&found.1) < rank(&best.1) {
            best = found;
        }
    }
    Some(Arrangement {
        lanes: best.0,
        timing: best.1,
        given: unaware,
        timed: effort.orders - search.left,
    })
}

fn rank(timing: &Timing) -> (u64, u128) {
    (timing.makespan_ns, timing.sum_ns)
}

/// Two CPUs: pairs of least cost one after the other, in the order in which their
/// first was given.
fn matched(tasks: &[Task], given: [&Lane; 2], fluid: &mut Fluid<'_>) -> Vec<Lane> {
    let cpus = given.map(|lane| lane.cpu);
    let mut lanes = given.map(|lane| Lane {
        order: lane.order[..lane.fixed.min(lane.order.len())].to_vec(),
        ..lane.clone()
    });
    // By turns from both, so that what comes first stays about where it was.
    let mut rest = given.map(|lane| lane.order.iter().skip(lane.fixed));
    let mut movable = Vec::new();
    loop {
        let next: Vec<_> = rest.iter_mut().filter_map(Iterator::next).collect();
        if next.is_empty() {
            break;
        }
        movable.extend(next);
    }
    let alone_ns = |place: usize| tasks[place].alone_ns;
    let mut beside_ns = vec![0; movable.len() * movable.len()];
    for (row, &one) in movable.iter().enumerate() {
        for (column, &other) in movable.iter().enumerate().skip(row + 1) {
            beside_ns[row * movable.len() + column] = fluid.pair_ns(cpus, one, other);
        }
    }
    let serial_ns = |one, other| alone_ns(one).saturating_add(alone_ns(other));
    let cost = |one: usize, other: usize| {
        let beside_ns = beside_ns[one * movable.len() + other];
        beside_ns.min(serial_ns(movable[one], movable[other]))
    };
    let (found, left) = pairs(movable.len(), cost, |one| alone_ns(movable[one]));
    let mut load_ns = lanes.clone().map(|lane| {
        let fixed = lane.order.iter().map(|&place| alone_ns(place));
        fixed.fold(0, u64::saturating_add)
    });
    let mut give = |lane: usize, place: usize| {
        lanes[lane].order.push(place);
        load_ns[lane] = load_ns[lane].saturating_add(alone_ns(place));
        usize::from(load_ns[1] < load_ns[0])
    };
    let mut emptier = 0;
    for (row, column) in found {
        let (one, other) = (movable[row], movable[column]);
        let beside_ns = beside_ns[row * movable.len() + column];
        if serial_ns(one, other) < beside_ns {
            // Rather one after the other.
            give(emptier, one);
            emptier = give(emptier, other);
        } else {
            let is_longer = alone_ns(one) >= alone_ns(other);
            let (longer, shorter) = if is_longer { (one, other) } else { (other, one) };
            give(emptier, longer);
            emptier = give(1 - emptier, shorter);
        }
    }
    if let Some(one) = left {
        give(emptier, movable[one]);
    }
    lanes.to_vec()
}

struct Search<'a> {
    fluid: Fluid<'a>,
    /// Number of orders that may still be timed.
    left: u32,
    random: Random,
}

/// Change of an order. Tasks are given by lane and index in the lane.
#[derive(Clone, Copy, Debug)]
enum Change {
    Swap((usize, usize), (usize, usize)),
    Move((usize, usize), (usize, usize)),
}

impl Search<'_> {
    fn time(&mut self, lanes: &[Lane]) -> Option<Timing> {
        self.left = self.left.checked_sub(1)?;
        self.fluid.time(lanes)
    }

    /// Changes the order as long as it gets better, until no more than `least` orders
    /// may be timed.
    fn climb(
        &mut self,
        tasks: &[Task],
        mut lanes: Vec<Lane>,
        mut timing: Timing,
        least: u32,
    ) -> (Vec<Lane>, Timing) {
        loop {
            let mut changes = changes(&lanes);
            self.shuffle(&mut changes);
            let mut better = false;
            for change in changes {
                if self.left <= least {
                    return (lanes, timing);
                }
                let Some(changed) = changed(&lanes, change, tasks) else {
                    continue;
                };
                let found = self.time(&changed);
                if let Some(found) = found.filter(|found| rank(found) < rank(&timing)) {
                    (lanes, timing) = (changed, found);
                    better = true;
                }
            }
            if !better {
                return (lanes, timing);
            }
        }
    }

    fn shuffle(&mut self, changes: &mut [Change]) {
        for last in (1..changes.len()).rev() {
            changes.swap(last, self.random.index(last + 1));
        }
    }
}

/// Each two exchanged, and each anywhere else.
fn changes(lanes: &[Lane]) -> Vec<Change> {
    let places = |extra: usize| {
        let lanes = lanes.iter().enumerate();
        lanes.flat_map(move |(number, lane)| {
            let places = lane.fixed..lane.order.len() + extra;
            places.map(move |place| (number, place))
        })
    };
    let mut changes = Vec::new();
    for one in places(0) {
        let later = places(0).filter(|&other| other > one);
        changes.extend(later.map(|other| Change::Swap(one, other)));
        changes.extend(places(1).map(|to| Change::Move(one, to)));
    }
    changes
}

/// The order after a change; `None`: there is nothing to change any more, or a task
/// would leave the CPU on which it stays.
fn changed(lanes: &[Lane], change: Change, tasks: &[Task]) -> Option<Vec<Lane>> {
    let (Change::Swap(from, to) | Change::Move(from, to)) = change;
    let at = |(lane, place): (usize, usize)| lanes[lane].order.get(place).copied();
    let moved = match change {
        Change::Swap(one, other) => [at(one), at(other)],
        Change::Move(one, _) => [at(one), None],
    };
    let mut moved = moved.into_iter().flatten();
    if from.0 != to.0 && moved.any(|task| tasks[task].stays) {
        return None;
    }
    let mut changed = lanes.to_vec();
    match change {
        Change::Swap(one, other) => {
            let (first, second) = (at(one)?, at(other)?);
            changed[one.0].order[one.1] = second;
            changed[other.0].order[other.1] = first;
        }
        Change::Move(from, to) => {
            let task = at(from)?;
            changed[from.0].order.remove(from.1);
            let order = &mut changed[to.0].order;
            if to.1 > order.len() {
                return None;
            }
            order.insert(to.1, task);
        }
    }
    (changed != lanes).then_some(changed)
}
