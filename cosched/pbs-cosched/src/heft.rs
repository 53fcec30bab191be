// SPDX-License-Identifier: GPL-2.0
//! Heterogeneous Earliest Finish Time, of Topcuoglu, Hariri and Wu (2002): the yardstick that
//! §4.4.1 names.
//!
//! Tasks are taken by upward rank, each goes where it ends first, also into gaps.  Ours is that
//! a variant may need several threads: it goes where so many are free at once.

use std::cmp::Reverse;

use crate::mapping::Mapping;
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::problem::{Decisions, FittingVariant, Problem};
use crate::queues::Memory;
use crate::queues::Queues;
use crate::state::Placed;

/// Result of HEFT: the mapping, and the order in which the tasks were considered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heft {
    /// The mapping; tasks enter the queues as they start.
    pub mapping: Mapping,
    /// The waiting tasks by upward rank.
    pub by_rank: Vec<usize>,
}

/// Maps all waiting tasks by HEFT.
pub fn heft(workload: &Workload, platform: &Platform, queues: &Queues) -> Heft {
    let problem = Problem::new(workload, platform, queues);
    let (order, ways, by_rank) = decide(&problem);
    Heft {
        mapping: problem.mapping(Decisions::free(&order, &ways)),
        by_rank: by_rank.into_iter().map(|job| problem.jobs[job].task).collect(),
    }
}

/// The order of starts, the ways by job, and the order of ranks.
pub(crate) fn decide(problem: &Problem<'_>) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let by_rank = by_upward_rank(problem);
    let mut ways = vec![0; problem.jobs.len()];
    let mut state = problem.start();
    let mut threads = Occupation::new(state.threads.iter().map(|&(free_ns, _)| free_ns));
    let mut devices: Vec<Vec<Occupation>> = state
        .devices
        .iter()
        .map(|of| of.iter().map(|&free_ns| Occupation::new([free_ns].into_iter())).collect())
        .collect();
    for &job in &by_rank {
        let of = &problem.jobs[job];
        // Where it ends first: end, start, way, memory.
        let mut best: Option<(u64, u64, usize, Memory)> = None;
        let mut offer = |way: usize, start_ns: u64, memory: Memory| {
            let end_ns = start_ns.saturating_add(of.ways[way].runtime_ns);
            if best.is_none_or(|(least_ns, ..)| end_ns < least_ns) {
                best = Some((end_ns, start_ns, way, memory));
            }
        };
        for (way, &FittingVariant { place, runtime_ns, .. }) in of.ways.iter().enumerate() {
            match place {
                ExecutionTarget::Threads(needed) => {
                    let data_ns = state.data_ns(of, None);
                    offer(way, threads.first_gap_ns(data_ns, runtime_ns, needed), None);
                }
                ExecutionTarget::Device(device) => {
                    for (instance, of_one) in (0..).zip(&devices[device]) {
                        let memory = Some((device, instance));
                        let data_ns = state.data_ns(of, memory);
                        offer(way, of_one.first_gap_ns(data_ns, runtime_ns, 1), memory);
                    }
                }
            }
        }
        let Some((end_ns, start_ns, way, memory)) = best else {
            continue;
        };
        let (occupied, needed) = match (of.ways[way].place, memory) {
            (ExecutionTarget::Threads(needed), _) => (&mut threads, needed),
            (ExecutionTarget::Device(device), Some((_, instance))) => {
                (&mut devices[device][instance as usize], 1)
            }
            (ExecutionTarget::Device(_), None) => continue,
        };
        occupied.take(start_ns, end_ns, needed);
        ways[job] = way;
        state.placed[job] = Placed { start_ns, end_ns, memory };
    }
    let mut order = by_rank.clone();
    // Equal starts keep the order of ranks, which no predecessor breaks.
    order.sort_by_key(|&job| state.placed[job].start_ns);
    (order, ways, by_rank)
}

/// Jobs by the length of what follows, with mean runtimes and transfers; the longest first.
fn by_upward_rank(problem: &Problem<'_>) -> Vec<usize> {
    let mut rank = vec![0.0_f64; problem.jobs.len()];
    let mut place = vec![0; problem.jobs.len()];
    for (at, &job) in problem.submitted.iter().enumerate().rev() {
        let of = &problem.jobs[job];
        place[job] = at;
        let sum: f64 = of.ways.iter().map(|way| way.runtime_ns as f64).sum();
        let mean = sum / of.ways.len().max(1) as f64;
        rank[job] += mean;
        for &(before, transfer_ns) in &of.after {
            rank[before] = rank[before].max(rank[job] + transfer_ns as f64);
        }
    }
    let mut order: Vec<usize> = problem
        .submitted
        .iter()
        .copied()
        .filter(|&job| !problem.jobs[job].ways.is_empty())
        .collect();
    // Ranks that differ by rounding only are equal: the first submitted goes first.
    order.sort_by_key(|&job| (Reverse((rank[job] * 1000.0).round() as u64), place[job]));
    order
}

/// Number of free lanes among equal ones, over time.
struct Occupation {
    /// Number of free lanes, each from a time on; the first time is 0.
    free: Vec<(u64, u32)>,
}

impl Occupation {
    fn new(free_from_ns: impl Iterator<Item = u64>) -> Self {
        let mut from_ns: Vec<u64> = free_from_ns.collect();
        from_ns.sort_unstable();
        let mut free = vec![(0, 0)];
        for (count, from_ns) in (1..).zip(from_ns) {
            match free.last_mut() {
                Some(last) if last.0 == from_ns => last.1 = count,
                _ => free.push((from_ns, count)),
            }
        }
        Self { free }
    }

    /// The first time from `data_ns` on from which so many are free for so long.
    fn first_gap_ns(&self, data_ns: u64, runtime_ns: u64, needed: u32) -> u64 {
        let mut start_ns = data_ns;
        let first = self.free.partition_point(|&(from_ns, _)| from_ns <= data_ns).saturating_sub(1);
        for (at, &(from_ns, free)) in self.free.iter().enumerate().skip(first) {
            if from_ns >= start_ns.saturating_add(runtime_ns) && from_ns > start_ns {
                break;
            }
            if free < needed {
                start_ns = self.free.get(at + 1).map_or(u64::MAX, |next| next.0.max(data_ns));
            }
        }
        start_ns
    }

    fn take(&mut self, start_ns: u64, end_ns: u64, needed: u32) {
        if start_ns >= end_ns {
            return;
        }
        let first = self.step_at(start_ns);
        let last = self.step_at(end_ns);
        for step in &mut self.free[first..last] {
            step.1 = step.1.saturating_sub(needed);
        }
    }

    /// The step that begins then, made if there is none.
    fn step_at(&mut self, at_ns: u64) -> usize {
        let next = self.free.partition_point(|&(from_ns, _)| from_ns < at_ns);
        if self.free.get(next).is_none_or(|step| step.0 != at_ns) {
            let free = next.checked_sub(1).map_or(0, |before| self.free[before].1);
            self.free.insert(next, (at_ns, free));
        }
        next
    }
}
