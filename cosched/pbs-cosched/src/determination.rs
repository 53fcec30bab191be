// SPDX-License-Identifier: GPL-2.0
//! When to co-schedule: the four strategies (§4.1, §5.1).

use std::fmt;

use crate::baseline::fastest;
use crate::cost::Cost;
use crate::model::{Place, Platform, Task, Workload};
use crate::queues::{Entry, Queues};

/// Which waits have to amortize the cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Amortization {
    /// The longest on a desired device (§5.1.5).
    #[default]
    Longest,
    /// The shortest on any device: all are occupied for so long (§4.1).
    AllOccupied,
}

/// The strategies that are set.  The first in this order decides, as in listing 5.2; none set
/// means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Determination {
    /// Whenever tasks are submitted, even if no other process has any.
    pub always: bool,
    /// If a desired device's queue has an entry of another process.
    pub contention: bool,
    /// If the desired devices would save more than co-scheduling costs.
    pub speedup: bool,
    /// If tasks wait longer than co-scheduling takes.
    pub amortization: Option<Amortization>,
}

impl Determination {
    /// No strategy: never.
    pub const NEVER: Self = Self {
        always: false,
        contention: false,
        speedup: false,
        amortization: None,
    };
    /// Always.
    pub const ALWAYS: Self = Self {
        always: true,
        ..Self::NEVER
    };
    /// Hardware contention.
    pub const CONTENTION: Self = Self {
        contention: true,
        ..Self::NEVER
    };
    /// Speedup.
    pub const SPEEDUP: Self = Self {
        speedup: true,
        ..Self::NEVER
    };
    /// Waiting time amortization, by §5.1.5.
    pub const AMORTIZATION: Self = Self {
        amortization: Some(Amortization::Longest),
        ..Self::NEVER
    };
}

impl Default for Determination {
    /// Hardware contention, as in listing 5.1.
    fn default() -> Self {
        Self::CONTENTION
    }
}

/// What decided, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Necessity {
    /// Always is set.
    Always,
    /// No other process has a waiting task.
    Alone,
    /// Whether a desired device's queue has an entry of another process.
    Contention(bool),
    /// What the desired devices would save, and what co-scheduling costs.
    Speedup { saved_ns: u64, cost_ns: u64 },
    /// How long is waited, and what co-scheduling costs.
    Amortization { wait_ns: u64, cost_ns: u64 },
    /// No strategy is set.
    NoStrategy,
}

impl Necessity {
    /// Whether to co-schedule.
    pub fn is_necessary(&self) -> bool {
        match *self {
            Self::Always | Self::Contention(true) => true,
            Self::Alone | Self::Contention(false) | Self::NoStrategy => false,
            Self::Speedup { saved_ns, cost_ns } => saved_ns > cost_ns,
            Self::Amortization { wait_ns, cost_ns } => wait_ns > cost_ns,
        }
    }
}

impl fmt::Display for Necessity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (what, ns, cost_ns) = match *self {
            Self::Always => return to.write_str("always"),
            Self::Alone => return to.write_str("no other process has a waiting task"),
            Self::Contention(true) => {
                return to.write_str("another process stands in the queue of a desired device");
            }
            Self::Contention(false) => {
                return to.write_str("no other process stands in the queue of a desired device");
            }
            Self::NoStrategy => return to.write_str("no strategy is set"),
            Self::Speedup { saved_ns, cost_ns } => {
                ("desired devices would save", saved_ns, cost_ns)
            }
            Self::Amortization { wait_ns, cost_ns } => ("tasks wait", wait_ns, cost_ns),
        };
        write!(
            to,
            "{what} {:.3} ms, co-scheduling costs {:.3} ms",
            ms(ns),
            ms(cost_ns)
        )
    }
}

/// Whether a process that has just submitted tasks should have everything mapped anew.
///
/// `queues` are as it finds them, with all entries of others.  Its own tasks are those of the
/// workload that belong to it and wait.  A queue is counted as another process's if not as many
/// of its kind as a variant needs are without such an entry.
pub fn necessary(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    process: usize,
    determination: &Determination,
    cost: &Cost,
) -> Necessity {
    if determination.always {
        return Necessity::Always;
    }
    let tasks = || {
        workload
            .tasks
            .iter()
            .enumerate()
            .filter(|&(task, _)| queues.waits(task))
    };
    if !tasks().any(|(_, of)| of.process != process) {
        return Necessity::Alone;
    }
    if *determination == Determination::NEVER {
        return Necessity::NoStrategy;
    }
    let mine = || tasks().filter(|(_, of)| of.process == process);
    let desired =
        |(task, of): (usize, &Task)| Some(of.variants[fastest(workload, platform, task)?].place);
    if determination.contention {
        let others = Kinds::new(queues, |queue| {
            u64::from(queue.iter().any(|entry| entry.process != process))
        });
        let contended = |place: Place| others.at(place) > 0;
        return Necessity::Contention(mine().filter_map(desired).any(contended));
    }
    let cost_ns = cost.ns(tasks().count());
    let waits = Kinds::new(queues, |queue| queues.free_ns(queue) - queues.now_ns);
    if determination.speedup {
        let mut saved_ns = 0_u64;
        for (_, of) in mine() {
            let mut best = u64::MAX;
            let mut free = u64::MAX;
            let mut waiting = u64::MAX;
            for variant in &of.variants {
                let wait_ns = waits.at(variant.place);
                if wait_ns == u64::MAX {
                    continue; // It does not fit.
                }
                best = best.min(variant.runtime_ns);
                if wait_ns == 0 {
                    free = free.min(variant.runtime_ns);
                }
                waiting = waiting.min(wait_ns.saturating_add(variant.runtime_ns));
            }
            let without_ns = if free == u64::MAX { waiting } else { free };
            saved_ns = saved_ns.saturating_add(without_ns.saturating_sub(best));
        }
        return Necessity::Speedup { saved_ns, cost_ns };
    }
    let wait_ns = match determination.amortization {
        Some(Amortization::AllOccupied) => {
            let one = (0..waits.devices.len())
                .map(Place::Device)
                .chain([Place::Threads(1)]);
            one.map(|place| waits.at(place)).min()
        }
        _ => mine()
            .filter_map(desired)
            .map(|place| waits.at(place))
            .max(),
    };
    Necessity::Amortization {
        wait_ns: wait_ns.unwrap_or(0),
        cost_ns,
    }
}

/// A number of each queue, by kind and in order.
struct Kinds {
    threads: Vec<u64>,
    devices: Vec<Option<u64>>,
}

impl Kinds {
    fn new(queues: &Queues, of: impl Fn(&[Entry]) -> u64) -> Self {
        let mut threads: Vec<u64> = queues.threads.iter().map(|queue| of(queue)).collect();
        threads.sort_unstable();
        let least = |queues: &Vec<Vec<Entry>>| queues.iter().map(|queue| of(queue)).min();
        Self {
            threads,
            devices: queues.devices.iter().map(least).collect(),
        }
    }

    /// The largest on those that a variant takes first; `u64::MAX` if there are not so many.
    fn at(&self, place: Place) -> u64 {
        let number = match place {
            Place::Threads(needed) => (needed as usize)
                .checked_sub(1)
                .and_then(|last| self.threads.get(last))
                .copied(),
            Place::Device(device) => self.devices.get(device).copied().flatten(),
        };
        number.unwrap_or(u64::MAX)
    }
}
