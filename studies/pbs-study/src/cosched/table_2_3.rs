// SPDX-License-Identifier: GPL-2.0
//! Table 2.3 and the scenario of §2.5.1.

use pbs_cosched::{
    brute_force, measure, speed_up, ExecutionTarget, Objective, Options, Platform, Queues, Run,
    Slot, State, Where, Workload,
};

use crate::cosched::row::{as_printed, ComparedClaim};
use crate::cosched::workloads::{
    as_in_the_thesis, chain, heap, ms, platform, processes, run, without, Ways, GPU,
};

/// Runtimes on so many threads, in µs, and the speed-up in percent, as printed.
const P1: [(u64, &str); 8] = [
    (456_974, "100.00"),
    (231_780, "197.15"),
    (164_420, "277.78"),
    (133_707, "341.77"),
    (124_008, "368.50"),
    (120_069, "380.59"),
    (116_824, "391.11"),
    (115_801, "394.62"),
];
const P1_GPU: (u64, &str) = (201_337, "226.96");
const P2: [(u64, &str); 8] = [
    (2_568_818, "100.00"),
    (1_285_409, "199.84"),
    (858_272, "299.30"),
    (645_204, "398.15"),
    (517_763, "496.14"),
    (433_136, "593.07"),
    (372_971, "688.73"),
    (328_102, "782.93"),
];
const SECTION: &str = "2.5.1";

fn on_threads(printed: &[(u64, &str)]) -> Ways {
    (1..).map(ExecutionTarget::Threads).zip(printed.iter().map(|&(us, _)| us * 1000)).collect()
}

/// The ways of a task of each process.
pub(crate) fn ways() -> [Ways; 2] {
    let mut p1 = on_threads(&P1);
    p1.push((GPU, P1_GPU.0 * 1000));
    [p1, on_threads(&P2)]
}

/// Five tasks of each process, the second process right behind the first.
fn scenario(chains: bool) -> (Workload, Platform) {
    let mut workload = processes(&[0, 1]);
    for (process, ways) in ways().iter().enumerate() {
        if chains {
            chain(&mut workload, process, 5, 0, ways)
        } else {
            heap(&mut workload, process, 5, ways)
        }
    }
    (workload, platform(8, &[("GPU", 1)]))
}

pub(crate) fn rows() -> Vec<ComparedClaim> {
    let (workload, on) = scenario(true);
    let thesis = as_in_the_thesis();
    let fifo = run(&workload, &on, &without(thesis));
    let co_scheduled = run(&workload, &on, &thesis);
    let end_ms =
        |of: &Run, process: usize| ms(of.timeline.process_end_ns(&workload, process).unwrap_or(0));
    let before = measure(&workload, &on, &fifo.timeline);
    let after = measure(&workload, &on, &co_scheduled.timeline);
    let ratio = speed_up(&before, &after);
    let (p1_ms, p2_ms) = (ms(P1[7].0 * 1000), ms(P2[7].0 * 1000));
    let shared_ms = 2.0 * 5.0 * p1_ms;
    let rest_ms = 5.0 * p2_ms - 5.0 * p1_ms;
    let mut rows = vec![
        speed_ups(),
        ComparedClaim::figure(
            "T_total, P2 waits",
            SECTION,
            ("2219.515", "ms"),
            end_ms(&fifo, 1),
            "simulated",
        ),
        ComparedClaim::figure(
            "P2's part alone if the CPUs are shared",
            SECTION,
            ("1061.504", "ms"),
            rest_ms,
            "a slip: five lines above it is 1061.505",
        ),
        ComparedClaim::figure(
            "T_total, CPUs shared at half speed",
            SECTION,
            ("2219.515", "ms"),
            shared_ms + rest_ms,
            "arithmetic",
        ),
        ComparedClaim::figure(
            "P1's end, co-scheduled",
            SECTION,
            ("317.139", "ms"),
            end_ms(&co_scheduled, 0),
            "simulated; printed is one task on the GPU instead of four",
        ),
        ComparedClaim::figure(
            "P2's end, co-scheduled",
            SECTION,
            ("1756.311", "ms"),
            end_ms(&co_scheduled, 1),
            "simulated; the printed formula has 4 tasks, its value 5",
        ),
        ComparedClaim::figure(
            "speed-up",
            SECTION,
            ("126.37", "%"),
            100.0 * ratio,
            &format!("a ratio: {:.1} % faster", 100.0 * (ratio - 1.0)),
        ),
    ];
    for (claim, printed, value) in [
        ("load before, of nine devices", "88", before.load),
        ("load before, CPU as one", "50", before.load_monolithic),
        ("load after, of nine devices", "93.98", after.load),
        ("load after, CPU as one", "72.92", after.load_monolithic),
    ] {
        rows.push(ComparedClaim::figure(
            claim,
            SECTION,
            (printed, "%"),
            100.0 * value,
            "simulated",
        ));
    }
    rows.extend(independent());
    rows
}

/// The speed-ups of the table against its own runtimes.
fn speed_ups() -> ComparedClaim {
    let mut off = Vec::new();
    let mut all = 0;
    let mut look = |name: String, one_us: u64, (us, printed): (u64, &str)| {
        all += 1;
        let value = 100.0 * one_us as f64 / us as f64;
        if as_printed(printed, value).is_none() {
            off.push(format!("{name} {value:.2} ({printed})"));
        }
    };
    for (name, printed) in [("P1", &P1), ("P2", &P2)] {
        for (threads, &of) in (1..).zip(printed) {
            look(format!("{name} n={threads}"), printed[0].0, of);
        }
    }
    look("P1 GPU".to_owned(), P1[0].0, P1_GPU);
    let recomputed = if off.is_empty() {
        format!("all {all} as printed")
    } else {
        format!("{} of {all} as printed, not {}", all - off.len(), off.join(", "))
    };
    let holds = off.is_empty();
    ComparedClaim::statement(
        "speed-ups of table 2.3",
        SECTION,
        "17 figures",
        recomputed,
        holds,
        "arithmetic",
    )
    .with("as_printed", (all - off.len()) as f64)
}

/// Claims about the tasks of the table without dependencies.
fn independent() -> Vec<ComparedClaim> {
    let (workload, on) = scenario(false);
    let thesis = as_in_the_thesis();
    let fifo_ms = ms(run(&workload, &on, &without(thesis)).timeline.end_ns());
    let greedy_ms = ms(run(&workload, &on, &thesis).timeline.end_ns());
    let careful = run(&workload, &on, &Options { reject_worse: true, ..thesis });
    let reason = careful.decisions.last().and_then(|of| of.verdict).map(|of| of.reason.to_string());
    let best =
        run(&workload, &on, &Options { objective: Objective::Makespan, ..Options::default() });
    let optimum = when_p2_comes(&workload, &on);
    vec![
        ComparedClaim::ours(
            "T_total of greedy if the tasks are independent",
            SECTION,
            format!(
                "{greedy_ms:.3} ms, {:.3} times as fast as not co-scheduling",
                fifo_ms / greedy_ms
            ),
            "the scenario says only that tasks are submitted; its figures need chains",
        )
        .with("ms", greedy_ms)
        .with("without_ms", fifo_ms),
        ComparedClaim::ours(
            "the same with nothing accepted that is worse than none",
            SECTION,
            format!("{:.3} ms", ms(careful.timeline.end_ns())),
            &format!("not accepted: {}", reason.unwrap_or_default()),
        )
        .with("ms", ms(careful.timeline.end_ns())),
        ComparedClaim::ours(
            "the same, evolutionary",
            SECTION,
            format!("{:.3} ms", ms(best.timeline.end_ns())),
            "5,000 mappings tried",
        )
        .with("ms", ms(best.timeline.end_ns())),
        ComparedClaim::ours(
            "the same, optimum",
            SECTION,
            match optimum {
                Some(ns) => format!("{:.3} ms, {:.4} times as fast", ms(ns), fifo_ms / ms(ns)),
                None => "not proved".to_owned(),
            },
            "brute force, proved",
        )
        .with("ms", optimum.map_or(f64::NAN, ms)),
    ]
}

/// The optimum once P1's first task runs on all threads.
fn when_p2_comes(workload: &Workload, on: &Platform) -> Option<u64> {
    let end_ns = P1[7].0 * 1000;
    let mut queues = Queues::idle(on);
    let entry = pbs_cosched::Entry { process: 0, in_execution: true, runtime_ns: end_ns, end_ns };
    queues.threads.iter_mut().for_each(|queue| queue.push(entry));
    let place = Where::Threads((0..on.threads).collect());
    queues.tasks = vec![State::Started(Slot { start_ns: 0, end_ns, place })];
    queues.now_ns = 1;
    let found = brute_force(workload, on, &queues, Objective::Makespan, &mut || true)?;
    let timeline = pbs_cosched::timing(workload, on, &queues, &found.mapping)
        .expect("a mapping of the search can be timed");
    found.proved.then(|| timeline.end_ns())
}
