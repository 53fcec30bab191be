// SPDX-License-Identifier: GPL-2.0
//! Stickiness, and more than two processes, which the thesis left open (§7.3).

use pbs_cosched::{
    greedy, measure, speed_up, timing, Edge, ExecutionTarget, GreedyOptions, Options, Queues,
};
use pbs_random::Random;

use crate::cosched::row::ComparedClaim;
use crate::cosched::table_2_3;
use crate::cosched::workloads::{
    as_in_the_thesis, chain, platform, processes, run, task, without, Ways, GPU,
};

const MS: u64 = 1_000_000;

pub(crate) fn rows() -> Vec<ComparedClaim> {
    let mut rows: Vec<ComparedClaim> = [1, 2, 3].into_iter().map(stickiness).collect();
    rows.extend([2, 3, 4, 6].into_iter().map(processes_of_table_2_3));
    rows
}

/// A chain that can run on both, beside chains that urgently need the GPU for a while: once
/// these have ended, the chain is alone and could move to it.  Makespans of greedy with
/// stickiness and without.
fn stickiness(others: usize) -> ComparedClaim {
    const CASES: u32 = 400;
    let mut random = Random::new(29);
    let on = platform(4, &[("GPU", 1)]);
    let queues = Queues::idle(&on);
    let (mut better, mut worse, mut ratios) = (0, 0, 0.0);
    for _ in 0..CASES {
        let mut draw = |most: usize| (1 + random.index(most)) as u64;
        let mut workload = processes(&vec![0; others + 1]);
        for process in 0..others {
            let tasks = draw(4) as usize;
            chain(&mut workload, process, tasks, 0, &[(GPU, draw(20) * MS)]);
        }
        let mut before = None;
        for _ in 0..12 {
            let (gpu_ns, cpu_ns, transfer_ns) = (draw(20) * MS, draw(20) * MS, draw(10) * MS);
            let ways: Ways = vec![(GPU, gpu_ns), (ExecutionTarget::Threads(4), cpu_ns)];
            let after = before.map(|task| Edge { task, transfer_ns });
            before = Some(task(&mut workload, others, after.into_iter().collect(), &ways));
        }
        let [with_ns, without_ns] = [true, false].map(|stickiness| {
            let options = GreedyOptions { stickiness, ..GreedyOptions::default() };
            let mapping = greedy(&workload, &on, &queues, &options);
            timing(&workload, &on, &queues, &mapping).map_or(0, |of| of.end_ns())
        });
        better += u32::from(with_ns < without_ns);
        worse += u32::from(with_ns > without_ns);
        ratios += without_ns as f64 / with_ns as f64;
    }
    ComparedClaim::ours(
        &format!("stickiness, {} processes", others + 1),
        "5.4.3, 7.3",
        format!(
            "{:.1} % faster in the mean; {better} of {CASES} faster, {worse} slower",
            100.0 * (ratios / f64::from(CASES) - 1.0)
        ),
        "greedy with it against without; a chain of 12 tasks, GPU or 4 threads in up to 20 ms, \
         transfers of up to 10 ms, beside chains of up to 4 tasks that need the GPU",
    )
}

/// Processes of table 2.3, P1 and P2 in turn, 50 ms apart.
fn processes_of_table_2_3(count: usize) -> ComparedClaim {
    let ways = table_2_3::ways();
    let arrivals_ns: Vec<u64> = (0..count as u64).map(|of| of * 50_000_000).collect();
    let mut workload = processes(&arrivals_ns);
    for process in 0..count {
        chain(&mut workload, process, 5, 0, &ways[process % 2]);
    }
    let on = platform(8, &[("GPU", 1)]);
    let thesis = as_in_the_thesis();
    let fifo = measure(&workload, &on, &run(&workload, &on, &without(thesis)).timeline);
    let tell = |options: &Options| {
        let run = run(&workload, &on, options);
        let of = measure(&workload, &on, &run.timeline);
        let sum = of.score.turnarounds_ns as f64 / fifo.score.turnarounds_ns as f64;
        let rejected = run.decisions.iter().filter(|of| of.verdict.is_some() && !of.taken).count();
        format!(
            "{:.2} times as fast, turnarounds {:+.0} %, {rejected} rejected",
            speed_up(&fifo, &of),
            100.0 * (sum - 1.0)
        )
    };
    ComparedClaim::ours(
        &format!("{count} processes of table 2.3"),
        "7.3",
        format!(
            "greedy {}; the same with nothing worse than before {}; evolutionary {}",
            tell(&thesis),
            tell(&Options { reject_worse: true, ..thesis }),
            tell(&Options { evaluations: 2_000, ..Options::default() })
        ),
        "P1 and P2 in turn, 50 ms apart, chains; against not co-scheduling",
    )
}
