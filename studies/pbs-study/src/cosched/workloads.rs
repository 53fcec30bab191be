// SPDX-License-Identifier: GPL-2.0
//! Workloads in few words, and random ones.

use pbs_cosched::{
    simulate, Determination, DeviceType, Edge, ExecutionTarget, GreedyOptions, Options, Platform,
    Process, Run, Scheduler, Task, Variant, Workload,
};
use pbs_random::Random;

/// The first accelerator type.
pub(crate) const GPU: ExecutionTarget = ExecutionTarget::Device(0);

/// Places with runtimes in ns.
pub(crate) type Ways = Vec<(ExecutionTarget, u64)>;

pub(crate) fn platform(threads: u32, devices: &[(&str, u32)]) -> Platform {
    let device = |&(name, count): &(&str, u32)| DeviceType {
        name: name.to_owned(),
        count,
        ..DeviceType::default()
    };
    Platform { threads, devices: devices.iter().map(device).collect() }
}

/// Processes that arrive then, without tasks.
pub(crate) fn processes(arrivals_ns: &[u64]) -> Workload {
    let process = |(number, &arrival_ns): (usize, &u64)| Process {
        name: format!("P{}", number + 1),
        owner: 0,
        arrival_ns,
        deadline_ns: None,
    };
    let processes = arrivals_ns.iter().enumerate().map(process).collect();
    Workload { processes, tasks: Vec::new() }
}

/// Adds a task and tells its number.
pub(crate) fn task(
    workload: &mut Workload,
    process: usize,
    after: Vec<Edge>,
    ways: &[(ExecutionTarget, u64)],
) -> usize {
    let number = workload.tasks.len();
    let variant = |&(place, runtime_ns): &(ExecutionTarget, u64)| {
        let model = match place {
            ExecutionTarget::Threads(_) => "OMP",
            ExecutionTarget::Device(_) => "OCL",
        };
        Variant { model: model.to_owned(), place, runtime_ns }
    };
    let variants = ways.iter().map(variant).collect();
    workload.tasks.push(Task { name: format!("t{number}"), process, after, variants });
    number
}

/// Adds equal tasks, each behind the one before.
pub(crate) fn chain(
    workload: &mut Workload,
    process: usize,
    tasks: usize,
    transfer_ns: u64,
    ways: &[(ExecutionTarget, u64)],
) {
    let mut before = None;
    for _ in 0..tasks {
        let after = before.map(|task| Edge { task, transfer_ns });
        before = Some(task(workload, process, after.into_iter().collect(), ways));
    }
}

/// Adds equal tasks of which none waits.
pub(crate) fn heap(
    workload: &mut Workload,
    process: usize,
    tasks: usize,
    ways: &[(ExecutionTarget, u64)],
) {
    for _ in 0..tasks {
        task(workload, process, Vec::new(), ways);
    }
}

/// The thesis's own way: greedy, and what it decides is taken.
pub(crate) fn as_in_the_thesis() -> Options {
    Options {
        determination: Determination::CONTENTION,
        scheduler: Scheduler::Greedy(GreedyOptions::default()),
        reject_worse: false,
        ..Options::default()
    }
}

pub(crate) fn without(options: Options) -> Options {
    Options { determination: Determination::NEVER, ..options }
}

/// Runs a workload of this crate, which has no faults.
///
/// # Panics
///
/// If the simulator refuses it: a study without its run would print zeros.
pub(crate) fn run(workload: &Workload, on: &Platform, options: &Options) -> Run {
    simulate(workload, on, options)
        .unwrap_or_else(|faults| panic!("a workload of the study is refused: {faults:?}"))
}

pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// From a small graph to a large one: processes that arrive at once, chains and forks, two
/// types of accelerators, threads that scale more or less.
pub(crate) fn random(random: &mut Random, tasks: usize, on: &Platform) -> Workload {
    let processes_ = 1 + random.index(3.min(tasks));
    let mut workload = processes(&vec![0; processes_]);
    for number in 0..tasks {
        let process = number % processes_;
        let mut after = Vec::new();
        for before in (0..number).filter(|before| before % processes_ == process).rev().take(3) {
            if random.index(3) == 0 {
                let transfer_ns = random.index(3) as u64 * 1_000_000;
                after.push(Edge { task: before, transfer_ns });
            }
        }
        let one_ns = (5 + random.index(95)) as u64 * 1_000_000;
        // The part of the work that more threads share.
        let parallel_permille = 500 + random.index(500) as u64;
        let mut ways: Ways = Vec::new();
        let kind = random.index(5);
        if kind != 0 {
            for threads in 1..=on.threads {
                let shared_ns = one_ns * parallel_permille / 1000;
                let runtime_ns = one_ns - shared_ns + shared_ns / u64::from(threads);
                ways.push((ExecutionTarget::Threads(threads), runtime_ns));
            }
        }
        for device in 0..on.devices.len() {
            if kind == 0 || random.index(2) == 0 {
                let faster = 1 + random.index(6) as u64;
                ways.push((ExecutionTarget::Device(device), one_ns / faster));
            }
        }
        task(&mut workload, process, after, &ways);
    }
    workload
}
