// SPDX-License-Identifier: GPL-2.0
//! Small nets and their machines, whose best plans can be proven: 4 to 14
//! processes on 2 to 12 cores, flat and deep, with equal rates and others, and
//! memory from plenty to scarce.

use pbs_job::{Action, Job, Machine};

use super::{job_of, machine, Random};

/// The step of time, and the unit in which lengths of these nets are told.
pub const SMALL_TICK_NS: u64 = 1_000_000_000;
/// The greatest memory of a process, in bytes.
const MOST_BYTES: u64 = 100;
/// The instructions of the longest task; at the slowest rate so many ticks.
const MOST_INSNS: u64 = 600;

/// A job, and what it is to run on.
pub struct Small {
    /// Machine on which the job runs.
    pub machine: Machine,
    /// The job, without a deadline.
    pub job: Job,
}

/// Parents of the processes.
#[derive(Clone, Copy)]
enum Shape {
    /// All are children of the first.
    Flat,
    /// The parent is one of the two processes before it.
    Deep,
    /// The parent is any process before it.
    Mixed,
}

/// The net of that seed.
pub fn small(seed: u64) -> Small {
    let random = &mut Random::new(seed);
    // The first numbers of neighbouring seeds are alike.
    for _ in 0..16 {
        random.below(2);
    }
    let processes = 4 + random.below(11) as usize;
    let shape = random.of(&[Shape::Flat, Shape::Deep, Shape::Mixed]);
    let items = items(random, processes, shape);
    let job = job_of(random, &items, MOST_BYTES, MOST_INSNS);
    Small { machine: some_machine(random, &job), job }
}

/// The tasks of every process: its own, and its children's forks and joins.
fn items(random: &mut Random, processes: usize, shape: Shape) -> Vec<Vec<Action>> {
    // Per process: first its forks, then what it does itself beside its children,
    // then its joins. Of a few nets all is mixed, and children wait for each other.
    let mixed = random.below(5) == 0;
    let mut forks: Vec<Vec<Action>> = vec![Vec::new(); processes];
    let mut joins = forks.clone();
    for child in 1..processes {
        let parent = match shape {
            Shape::Flat => 0,
            Shape::Deep => child - 1 - random.below(2.min(child as u64)) as usize,
            Shape::Mixed => random.below(child as u64) as usize,
        };
        forks[parent].push(Action::Fork { child });
        let place = random.below(joins[parent].len() as u64 + 1) as usize;
        joins[parent].insert(place, Action::Join { child: Some(child) });
    }
    let lists = forks.into_iter().zip(joins).enumerate();
    let items = lists.map(|(process, (forks, joins))| {
        let calculations = random.below(3) as usize + usize::from(process > 0);
        let mut own = vec![match process {
            0 => Action::Start,
            _ => Action::ForkEnd,
        }];
        own.extend(forks);
        own.extend(vec![Action::Calculation; calculations]);
        own.extend(joins);
        let some = if mixed { 3 } else { 1 };
        for _ in 0..random.below(some + 1) {
            let place = 1 + random.below(own.len() as u64) as usize;
            own.insert(place, Action::Calculation);
        }
        if process == 0 {
            own.push(Action::End);
        }
        own
    });
    items.collect()
}

fn some_machine(random: &mut Random, job: &Job) -> Machine {
    let nodes = 1 + random.below(3);
    let most_cores = 2 + random.below(11);
    let cores = nodes.max(2) + random.below(most_cores.max(nodes) - nodes.max(2) + 1);
    let rates = [2, 3, 4, 6];
    let same = random.of(&rates);
    let is_equal = random.below(2) == 0;
    let mixed = random.below(4) == 0;
    let all = || job.processes.iter().map(|process| process.memory_bytes);
    let (sum, most): (u64, u64) = (all().sum(), all().max().unwrap_or(0));
    let scarcity = random.below(3);
    let nodes: Vec<(u64, Vec<u64>)> = (0..nodes)
        .map(|node| {
            let of_node = random.of(&rates);
            let here = cores / nodes + u64::from(node < cores % nodes);
            let rates = (0..here).map(|_| match (is_equal, mixed) {
                (true, _) => same,
                (false, true) => random.of(&rates),
                (false, false) => of_node,
            });
            let rates = rates.collect();
            let bytes = match scarcity {
                0 => sum,
                1 => most.max(sum * (30 + random.below(40)) / 100),
                _ => most + random.below(most.max(sum * 3 / 10)),
            };
            (bytes, rates)
        })
        .collect();
    let nodes: Vec<(u64, &[u64])> =
        (nodes.iter()).map(|(bytes, rates)| (*bytes, &rates[..])).collect();
    machine(SMALL_TICK_NS, &nodes)
}
