// SPDX-License-Identifier: GPL-2.0
//! Time that co-scheduling takes (§6.5).

use std::hint::black_box;
use std::time::{Duration, Instant};

use pbs_cosched::{
    evolutionary, greedy, heft, necessary, schedule, score, timing, Cost, Determination,
    EnhancedOptions, Entry, ExecutionTarget, GreedyOptions, Mapping, Objective, Platform, Priority,
    Queues, Scheduler, Workload,
};
use pbs_random::Random;
use serde::Serialize;

use crate::cosched::row::ComparedClaim;
use crate::cosched::workloads::{chain, platform, processes, random, GPU};

/// A scheduler of tables 6.1 and 6.2.
struct Published {
    name: &'static str,
    scheduler: Scheduler,
    /// The coefficients of n², n and 1.
    regression: Cost,
}

const fn greedy_by(priority: Priority) -> Scheduler {
    let options = GreedyOptions { contention: priority, leftovers: priority, stickiness: true };
    Scheduler::Greedy(options)
}

const fn enhanced(min_iterations: u32) -> Scheduler {
    Scheduler::EnhancedRandom(EnhancedOptions { min_iterations, max_iterations: 2_000 }, 1)
}

/// Tables 6.1 and 6.2; "248.572" is read as 248,572.
const PUBLISHED: [Published; 7] = [
    Published {
        name: "greedy, age",
        scheduler: greedy_by(Priority::Age),
        regression: Cost { a: 398.4, b: 61_230.0, c: 232_973.0 },
    },
    Published {
        name: "greedy, runtime",
        scheduler: greedy_by(Priority::Runtime),
        regression: Cost { a: 379.5, b: 126_480.0, c: 152_069.0 },
    },
    Published {
        name: "greedy, successors",
        scheduler: greedy_by(Priority::Successors),
        regression: Cost { a: 398.2, b: 71_221.0, c: 174_260.0 },
    },
    Published {
        name: "enhanced random, at least 2",
        scheduler: enhanced(2),
        regression: Cost { a: 6_394.0, b: -70_882.0, c: 2_753_900.0 },
    },
    Published {
        name: "enhanced random, at least 10",
        scheduler: enhanced(10),
        regression: Cost { a: 8_491.0, b: 248_572.0, c: 2_072_000.0 },
    },
    Published {
        name: "enhanced random, at least 30",
        scheduler: enhanced(30),
        regression: Cost { a: 10_911.0, b: 504_508.0, c: 5_254_200.0 },
    },
    Published {
        name: "plain random",
        scheduler: Scheduler::PlainRandom(1),
        regression: Cost { a: 330.7, b: 13_240.0, c: -2_814.0 },
    },
];

impl Published {
    /// Workload for the measurement: the random schedulers need mappings that are allowed.
    fn workload(&self, tasks: usize, on: &Platform) -> Workload {
        match self.scheduler {
            Scheduler::EnhancedRandom(..) => chains(tasks),
            _ => random(&mut Random::new(tasks as u64), tasks, on),
        }
    }

    fn measured(&self, tasks: usize, target_us: Option<f64>, each: Duration) -> Overhead {
        let on = machine();
        let workload = self.workload(tasks, &on);
        let queues = Queues::idle(&on);
        let objective = Objective::Lexicographic;
        let found = measured(self.name, tasks, target_us, each, || {
            let mut never = || false;
            black_box(schedule(&workload, &on, &queues, &self.scheduler, objective, &mut never));
        });
        let published_us = Some(self.regression.ns(tasks) as f64 / 1e3);
        Overhead { published_us, ..found }
    }
}

/// Results of the published regressions.
pub(crate) fn published() -> Vec<ComparedClaim> {
    let told = |of: &Published| {
        let ms = |tasks: usize| of.regression.ns(tasks) as f64 / 1e6;
        let mut row = ComparedClaim::ours(
            &format!("runtime overhead of {}", of.name),
            "6.5.2, T6.1, T6.2",
            format!("{:.1} ms for 100 tasks, {:.0} ms for 1,000", ms(100), ms(1000)),
            "no unit is given; if it is ns",
        )
        .with("ms_of_100_tasks", ms(100))
        .with("ms_of_1000_tasks", ms(1000));
        let Cost { a, b, c } = of.regression;
        row.published = format!("{a} x² {b:+} x {c:+}");
        row
    };
    PUBLISHED.iter().map(told).collect()
}

/// A figure measured with the clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// The measured operation.
    pub what: String,
    /// With so many tasks.
    pub tasks: usize,
    /// The median of many runs, in µs.
    pub median_us: f64,
    /// The 95th percentile of the runs.
    pub percentile_95_us: f64,
    /// Result of the thesis's regression, if it has one and its unit is ns.
    pub published_us: Option<f64>,
    /// Target; nothing is asserted.
    pub target_us: Option<f64>,
    /// More about it.
    pub remark: String,
}

/// Measures on this machine, each figure for about as long as told; meant for a release build.
pub fn overheads(each: Duration) -> Vec<Overhead> {
    let on = machine();
    let mut found = determinations(&on, each);
    for of in &PUBLISHED {
        let targets = match of.scheduler {
            Scheduler::Greedy(_) => [(100, Some(500.0)), (1000, Some(10_000.0))].as_slice(),
            Scheduler::PlainRandom(_) => &[(100, Some(50.0))],
            _ => &[(100, Some(2_000.0))],
        };
        for &(tasks, target_us) in targets {
            found.push(of.measured(tasks, target_us, each));
        }
    }
    found.extend(heft_and_evolutionary(&on, each));
    found
}

/// The cost of a scheduler on this machine: C(n) of §4.1, to compare with tables 6.1 and 6.2.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// The scheduler.
    pub scheduler: &'static str,
    /// ns per task squared, per task, and once.
    pub coefficients_ns: [f64; 3],
    /// The published coefficients, if their unit is ns.
    pub published_ns: [f64; 3],
}

/// Runs the thesis's schedulers on 10 to 1,000 tasks and fits their cost.
pub fn costs() -> Vec<Fitted> {
    let fit = |of: &Published| {
        let run = |&tasks: &usize| {
            let found = of.measured(tasks, None, Duration::from_millis(2));
            (tasks, (found.median_us * 1e3) as u64)
        };
        let runs: Vec<(usize, u64)> =
            [10, 20, 50, 100, 200, 400, 600, 800, 1000].iter().map(run).collect();
        let coefficients = |of: Cost| [of.a, of.b, of.c];
        Fitted {
            scheduler: of.name,
            coefficients_ns: coefficients(Cost::fit(&runs).expect("nine runs have a fit")),
            published_ns: coefficients(of.regression),
        }
    };
    PUBLISHED.iter().map(fit).collect()
}

fn machine() -> Platform {
    platform(8, &[("GPU", 2), ("FPGA", 1)])
}

/// Four chains of few threads, so that about half of the random mappings are allowed.
fn chains(tasks: usize) -> Workload {
    let mut chains = processes(&[0; 4]);
    let ways = [
        (ExecutionTarget::Threads(1), 40),
        (ExecutionTarget::Threads(2), 25),
        (GPU, 10),
        (ExecutionTarget::Device(1), 15),
    ]
    .map(|(place, ms)| (place, ms * 1_000_000));
    for process in 0..4 {
        chain(&mut chains, process, tasks / 4, 0, &ways);
    }
    chains
}

/// Median and 95th percentile of runs for as long as this.
fn measured(
    what: &str,
    tasks: usize,
    target_us: Option<f64>,
    each: Duration,
    mut run: impl FnMut(),
) -> Overhead {
    let until = Instant::now() + each;
    let mut times_us = Vec::new();
    while times_us.len() < 5 || (Instant::now() < until && times_us.len() < 5_000) {
        let start = Instant::now();
        run();
        times_us.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    times_us.sort_by(f64::total_cmp);
    Overhead {
        what: what.to_owned(),
        tasks,
        median_us: times_us[times_us.len() / 2],
        percentile_95_us: times_us[times_us.len() * 95 / 100],
        published_us: None,
        target_us,
        remark: String::new(),
    }
}

/// Measures a determination with as many tasks as table 6.4's file holds; all except one belong to
/// the process that asks.
fn determinations(on: &Platform, each: Duration) -> Vec<Overhead> {
    const TASKS: usize = 1_638;
    let mut dice = Random::new(6);
    let mut workload = random(&mut dice, TASKS - 1, on);
    workload.tasks.iter_mut().for_each(|of| of.process = 0);
    chain(&mut workload, 1, 1, 0, &[(GPU, 1)]);
    let mut queues = Queues::idle(on);
    let entry = Entry { process: 1, in_execution: true, runtime_ns: 1_000_000, end_ns: 1_000_000 };
    queues.threads.iter_mut().take(4).for_each(|queue| queue.push(entry));
    queues.devices[1][0].push(entry);
    // Nobody else stands in any queue, so that all tasks have to be looked at.
    let mut own = queues.clone();
    let entries = own.threads.iter_mut().chain(own.devices.iter_mut().flatten()).flatten();
    entries.for_each(|entry| entry.process = 0);
    let strategies = [
        ("always", Determination::ALWAYS, &queues),
        ("contention", Determination::CONTENTION, &own),
        ("speedup", Determination::SPEEDUP, &queues),
        ("amortization", Determination::AMORTIZATION, &queues),
    ];
    let cost = Cost::constant(1e15);
    strategies
        .iter()
        .map(|&(name, determination, queues)| {
            measured(&format!("determination, {name}"), TASKS, Some(20.0), each, || {
                black_box(necessary(&workload, on, queues, 0, &determination, &cost));
            })
        })
        .collect()
}

fn heft_and_evolutionary(on: &Platform, each: Duration) -> [Overhead; 2] {
    const TASKS: usize = 100;
    let workload = random(&mut Random::new(7), TASKS, on);
    let queues = Queues::idle(on);
    let heft = measured("HEFT", TASKS, None, each, || {
        black_box(heft(&workload, on, &queues));
    });
    [heft, within_50_ms(&workload, on, &queues, each)]
}

fn within_50_ms(workload: &Workload, on: &Platform, queues: &Queues, each: Duration) -> Overhead {
    let objective = Objective::Lexicographic;
    let key = |mapping: &Mapping| {
        timing(workload, on, queues, mapping).map(|of| score(workload, &of).makespan_ns)
    };
    let mut tried = 0;
    let mut found = 0;
    let tasks = workload.tasks.len();
    let mut of = measured("evolutionary", tasks, Some(50_000.0), each, || {
        let until = Instant::now() + Duration::from_millis(50);
        tried = 0;
        let mapping = evolutionary(workload, on, queues, objective, 1, &mut || {
            tried += 1;
            Instant::now() < until
        });
        found = key(&mapping).expect("a mapping of the search can be timed");
    });
    let timed = |mapping: &Mapping| key(mapping).expect("a scheduler's mapping can be timed");
    let greedy = timed(&greedy(workload, on, queues, &GreedyOptions::default()));
    let heft = timed(&heft(workload, on, queues).mapping);
    let faster = |than: u64| 100.0 * (than as f64 / found as f64 - 1.0);
    of.remark = format!(
        "{tried} mappings tried; {:.1} % faster than greedy, {:.1} % than HEFT",
        faster(greedy),
        faster(heft)
    );
    of
}
