// SPDX-License-Identifier: GPL-2.0
//! A scenario in which the four strategies differ, which the thesis left open (§7.3).
//!
//! Four episodes, far apart.  In each but the first, a process comes while another's chain is
//! in the GPU's queue.

use pbs_cosched::{Cost, Determination, ExecutionTarget, Options, Platform, Workload};

use crate::cosched::row::ComparedClaim;
use crate::cosched::workloads::{as_in_the_thesis, chain, heap, platform, processes, run, GPU};

const MS: u64 = 1_000_000;
/// Time that co-scheduling takes; tasks wait for it.
const COST_MS: u64 = 10;
/// Between episodes.
const APART_MS: u64 = 1_000;

const STRATEGIES: [(&str, Determination); 4] = [
    ("always", Determination::ALWAYS),
    ("contention", Determination::CONTENTION),
    ("speedup", Determination::SPEEDUP),
    ("amortization", Determination::AMORTIZATION),
];

const EPISODES: [&str; 4] = [
    "alone, four tasks that would all queue for the GPU",
    "waits less than it costs, would save less",
    "six tasks wait less than it costs, but would save more",
    "waits more than it costs, would save less",
];

fn scenario() -> (Workload, Platform) {
    let at = |episode: u64, ms: u64| (episode * APART_MS + ms) * MS;
    let mut workload =
        processes(&[at(0, 0), at(1, 0), at(1, 1), at(2, 0), at(2, 1), at(3, 0), at(3, 1)]);
    let both = |gpu_ms, cpu_ms| [(GPU, gpu_ms * MS), (ExecutionTarget::Threads(1), cpu_ms * MS)];
    heap(&mut workload, 0, 4, &both(20, 30));
    chain(&mut workload, 1, 2, 0, &[(GPU, 4 * MS)]);
    heap(&mut workload, 2, 1, &both(5, 9));
    chain(&mut workload, 3, 2, 0, &[(GPU, 4 * MS)]);
    heap(&mut workload, 4, 6, &both(5, 9));
    chain(&mut workload, 5, 2, 0, &[(GPU, 30 * MS)]);
    heap(&mut workload, 6, 1, &both(5, 9));
    (workload, platform(4, &[("GPU", 1)]))
}

/// Indices of the processes that decide, one for each episode.
const DECIDES: [usize; 4] = [0, 2, 4, 6];

/// Compares the strategies. Returns for each strategy, by episode, whether the arriving process
/// co-schedules, and the sum of the episode's turnarounds in ms.
pub(crate) fn compare() -> Vec<(&'static str, Vec<(bool, u64)>)> {
    let (workload, on) = scenario();
    STRATEGIES
        .iter()
        .map(|&(name, determination)| {
            let cost = Cost::constant((COST_MS * MS) as f64);
            let options = Options { determination, cost, charge_cost: true, ..as_in_the_thesis() };
            let run = run(&workload, &on, &options);
            let turnaround_ms = |process: usize| {
                let end_ns = run.timeline.process_end_ns(&workload, process).unwrap_or(0);
                (end_ns - workload.processes[process].arrival_ns) / MS
            };
            let episode = |&last: &usize| {
                let taken = run.decisions.iter().any(|of| of.process == last && of.taken);
                (taken, (last.saturating_sub(1)..=last).map(turnaround_ms).sum())
            };
            (name, DECIDES.iter().map(episode).collect())
        })
        .collect()
}

pub(crate) fn rows() -> Vec<ComparedClaim> {
    let compared = compare();
    let mut rows = Vec::new();
    for (episode, what) in EPISODES.iter().enumerate() {
        let told: Vec<String> = compared
            .iter()
            .map(|(name, of)| {
                let (taken, turnarounds_ms) = of[episode];
                format!("{name} {} {turnarounds_ms}", if taken { "yes" } else { "no" })
            })
            .collect();
        rows.push(ComparedClaim::ours(
            &format!("when the strategies differ: {what}"),
            "7.3",
            format!("{} ms", told.join(", ")),
            &format!(
                "co-scheduled or not, and the sum of turnarounds; greedy, which costs {COST_MS} ms"
            ),
        ));
    }
    let sum = |of: &[(bool, u64)]| of.iter().map(|episode| episode.1).sum::<u64>();
    let told: Vec<String> =
        compared.iter().map(|(name, of)| format!("{name} {}", sum(of))).collect();
    rows.push(ComparedClaim::ours(
        "when the strategies differ: all episodes",
        "7.3",
        format!("{} ms", told.join(", ")),
        "the sum of turnarounds",
    ));
    rows
}
