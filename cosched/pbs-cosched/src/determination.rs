// SPDX-License-Identifier: GPL-2.0
//! Determination, the decision when to co-schedule: the four strategies (§4.1, §5.1).

use std::fmt;

use crate::cost::Cost;
use crate::model::{ExecutionTarget, Platform, Task, Workload};
use crate::queues::{Entry, Queues};

/// Waits that must amortize the cost.
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
    pub const NEVER: Self =
        Self { always: false, contention: false, speedup: false, amortization: None };
    /// Always.
    pub const ALWAYS: Self = Self { always: true, ..Self::NEVER };
    /// Hardware contention.
    pub const CONTENTION: Self = Self { contention: true, ..Self::NEVER };
    /// Speedup.
    pub const SPEEDUP: Self = Self { speedup: true, ..Self::NEVER };
    /// Waiting time amortization, by §5.1.5.
    pub const AMORTIZATION: Self =
        Self { amortization: Some(Amortization::Longest), ..Self::NEVER };
}

impl Default for Determination {
    /// Hardware contention, as in listing 5.1.
    fn default() -> Self {
        Self::CONTENTION
    }
}

/// Result of a determination: the strategy that decided, and its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Necessity {
    /// Always is set.
    Always,
    /// No other process has a waiting task.
    Alone,
    /// Whether a desired device's queue has an entry of another process.
    Contention(bool),
    /// Time that the desired devices would save, and cost of co-scheduling.
    Speedup { saved_ns: u64, cost_ns: u64 },
    /// Waiting time, and cost of co-scheduling.
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
        write!(to, "{what} {:.3} ms, co-scheduling costs {:.3} ms", ms(ns), ms(cost_ns))
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
    let tasks = || workload.tasks.iter().enumerate().filter(|&(task, _)| queues.waits(task));
    if !tasks().any(|(_, of)| of.process != process) {
        return Necessity::Alone;
    }
    if *determination == Determination::NEVER {
        return Necessity::NoStrategy;
    }
    let mine = || tasks().map(|(_, of)| of).filter(|of| of.process == process);
    if determination.contention {
        let others = Kinds::new(platform, queues, |queue| {
            u64::from(queue.iter().any(|entry| entry.process != process))
        });
        let contended = mine().filter_map(|of| others.of_fastest(of)).any(|number| number > 0);
        return Necessity::Contention(contended);
    }
    let cost_ns = cost.ns(tasks().count());
    let waits = Kinds::new(platform, queues, |queue| queues.free_ns(queue) - queues.now_ns);
    if determination.speedup {
        let saved_ns = mine().map(|of| saved_ns(of, &waits)).fold(0, u64::saturating_add);
        return Necessity::Speedup { saved_ns, cost_ns };
    }
    let wait_ns = match determination.amortization {
        Some(Amortization::AllOccupied) => {
            let devices = (0..platform.devices.len()).map(ExecutionTarget::Device);
            devices.chain([ExecutionTarget::Threads(1)]).map(|place| waits.of(place)).min()
        }
        _ => mine().filter_map(|of| waits.of_fastest(of)).max(),
    };
    Necessity::Amortization { wait_ns: wait_ns.unwrap_or(0), cost_ns }
}

/// Returns the time that a task would save on the devices on which it is fastest, compared with
/// free devices.  If no device is free, it is compared with the device on which it would end first.
fn saved_ns(task: &Task, waits: &Kinds) -> u64 {
    let [mut best_ns, mut free_ns, mut waiting_ns] = [u64::MAX; 3];
    // More threads come last as a rule, and are faster: few others are looked at closely.
    for variant in task.variants.iter().rev() {
        let runtime_ns = variant.runtime_ns;
        if runtime_ns >= free_ns {
            continue;
        }
        match waits.of(variant.place) {
            u64::MAX => continue, // It does not fit.
            0 => free_ns = runtime_ns,
            wait_ns => waiting_ns = waiting_ns.min(runtime_ns.saturating_add(wait_ns)),
        }
        best_ns = best_ns.min(runtime_ns);
    }
    let without_ns = if free_ns == u64::MAX { waiting_ns } else { free_ns };
    without_ns.saturating_sub(best_ns)
}

/// A number for each kind and number of queues that a variant can take.
struct Kinds {
    /// Values for numbers of threads, from none on: the largest value among that many queues with
    /// the least values.
    threads: Vec<u64>,
    /// Least value for each accelerator type.
    devices: Vec<u64>,
}

impl Kinds {
    fn new(platform: &Platform, queues: &Queues, number: impl Fn(&[Entry]) -> u64) -> Self {
        let of = |queue: Option<&Vec<Entry>>| number(queue.map_or(&[], Vec::as_slice));
        let threads = (0..platform.threads as usize).map(|thread| of(queues.threads.get(thread)));
        let mut threads: Vec<u64> = threads.collect();
        threads.sort_unstable();
        // No variant has no threads.
        threads.insert(0, u64::MAX);
        let devices = platform.devices.iter().enumerate().map(|(device, kind)| {
            let queue = |instance| queues.devices.get(device).and_then(|of| of.get(instance));
            let least = (0..kind.count as usize).map(|instance| of(queue(instance))).min();
            least.unwrap_or(u64::MAX)
        });
        Self { threads, devices: devices.collect() }
    }

    /// `u64::MAX` if there are not so many.
    fn of(&self, place: ExecutionTarget) -> u64 {
        let number = match place {
            ExecutionTarget::Threads(threads) => self.threads.get(threads as usize),
            ExecutionTarget::Device(device) => self.devices.get(device),
        };
        number.copied().unwrap_or(u64::MAX)
    }

    /// The number where a task is fastest, which is what it desires.
    fn of_fastest(&self, task: &Task) -> Option<u64> {
        let mut desired: Option<(u64, u32, u64)> = None;
        // In reverse for the same reason as above.
        for variant in task.variants.iter().rev() {
            let runtime_ns = variant.runtime_ns;
            if desired.is_some_and(|(least_ns, ..)| runtime_ns > least_ns) {
                continue;
            }
            let threads = match variant.place {
                ExecutionTarget::Threads(threads) => threads,
                ExecutionTarget::Device(_) => 0,
            };
            let number = self.of(variant.place);
            let better = desired
                .is_none_or(|(least_ns, fewest, _)| (runtime_ns, threads) <= (least_ns, fewest));
            if number != u64::MAX && better {
                desired = Some((runtime_ns, threads, number));
            }
        }
        desired.map(|(.., number)| number)
    }
}
