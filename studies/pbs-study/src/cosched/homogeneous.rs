// SPDX-License-Identifier: GPL-2.0
//! The homogeneous scenario of §6.4: two processes of equal tasks, CPU only.

use pbs_cosched::{measure, ExecutionTarget, Measures, Workload};
use pbs_random::Random;

use crate::cosched::row::ComparedClaim;
use crate::cosched::workloads::{as_in_the_thesis, chain, platform, processes, run, without};

/// Without co-scheduling and with greedy: four chained tasks of each process.
fn both(threads: u32, ways: &[(ExecutionTarget, u64)], offset_ns: u64) -> [Measures; 2] {
    let mut workload: Workload = processes(&[0, offset_ns]);
    chain(&mut workload, 0, 4, 0, ways);
    chain(&mut workload, 1, 4, 0, ways);
    let on = platform(threads, &[]);
    let thesis = as_in_the_thesis();
    [without(thesis), thesis]
        .map(|options| measure(&workload, &on, &run(&workload, &on, &options).timeline))
}

pub(crate) fn rows() -> Vec<ComparedClaim> {
    let second = 1_000_000_000;
    let ways =
        [(ExecutionTarget::Threads(1), 10 * second), (ExecutionTarget::Threads(2), 5 * second)];
    let [fifo, greedy] = both(2, &ways, 10 * second);
    let s = |ns: u64| ns / second;
    let remark = "two threads, tasks of 10 s on one and 5 s on both, offset 10 s";
    let turnarounds = |of: &Measures| of.score.turnarounds_ns;
    let mut rows = vec![
        ComparedClaim::statement(
            "sum of execution times is greater",
            "6.4.2",
            "no figure",
            format!("{} s instead of {} s", s(turnarounds(&greedy)), s(turnarounds(&fifo))),
            turnarounds(&greedy) > turnarounds(&fifo),
            remark,
        )
        .with("without_s", s(turnarounds(&fifo)) as f64)
        .with("with_s", s(turnarounds(&greedy)) as f64),
        ComparedClaim::statement(
            "difference Δ of execution times is lower",
            "6.4.2",
            "no figure",
            format!("{} s instead of {} s", s(greedy.delta_ns), s(fifo.delta_ns)),
            greedy.delta_ns < fifo.delta_ns,
            remark,
        )
        .with("without_s", s(fifo.delta_ns) as f64)
        .with("with_s", s(greedy.delta_ns) as f64),
        ComparedClaim::statement(
            "no speed-up",
            "6.4.2",
            "no figure",
            format!(
                "makespan {} s instead of {} s",
                s(greedy.score.makespan_ns),
                s(fifo.score.makespan_ns)
            ),
            greedy.score.makespan_ns >= fifo.score.makespan_ns,
            remark,
        )
        .with("without_s", s(fifo.score.makespan_ns) as f64)
        .with("with_s", s(greedy.score.makespan_ns) as f64),
    ];
    rows.extend(always());
    rows
}

/// "Always", over tasks of which more or less scales, as Prime Stress's two parts.
fn always() -> Vec<ComparedClaim> {
    const CASES: u32 = 300;
    let mut random = Random::new(64);
    let (mut greater, mut fairer, mut faster) = (0, 0, 0);
    for _ in 0..CASES {
        let threads = 2 + random.index(15) as u32;
        let serial_permille = random.index(600) as u64;
        let whole_ns = 1_000_000_000;
        let serial_ns = whole_ns * serial_permille / 1000;
        let on = |threads: u32| serial_ns + (whole_ns - serial_ns) / u64::from(threads);
        let ways: Vec<(ExecutionTarget, u64)> =
            (1..=threads).map(|threads| (ExecutionTarget::Threads(threads), on(threads))).collect();
        // The second process comes while the first is under way.
        let offset_ns = 1 + random.index(4 * on(threads) as usize - 1) as u64;
        let [fifo, greedy] = both(threads, &ways, offset_ns);
        greater += u32::from(greedy.score.turnarounds_ns > fifo.score.turnarounds_ns);
        fairer += u32::from(greedy.delta_ns < fifo.delta_ns);
        faster += u32::from(greedy.score.makespan_ns < fifo.score.makespan_ns);
    }
    let of_all = |number: u32| format!("in {number} of {CASES} cases");
    let remark = "random: 2 to 16 threads, up to 60 % of a task serial, any offset";
    vec![
        ComparedClaim::statement(
            "the sum is always greater",
            "6.4.2",
            "always",
            of_all(greater),
            greater == CASES,
            &format!("{remark}; where tasks scale badly, sharing pays: faster {}", of_all(faster)),
        )
        .with("cases", f64::from(CASES))
        .with("greater", f64::from(greater))
        .with("faster", f64::from(faster)),
        ComparedClaim::statement(
            "Δ is lower",
            "6.4.2",
            "significantly",
            of_all(fairer),
            fairer == CASES,
            remark,
        )
        .with("cases", f64::from(CASES))
        .with("lower", f64::from(fairer)),
    ]
}
