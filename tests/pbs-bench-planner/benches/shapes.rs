// SPDX-License-Identifier: GPL-2.0
//! The longest answers: CPU time and work of questions about large jobs, each asked once, as lines
//! of `{name, value, unit}`, for `make bench-planner`. Documentation/planner-benchmarks.rst
//! describes the measurements.

use pbs_gen::nets::{machine, Fan};
use pbs_job::{Job, Machine};
use pbs_planner::{
    admit_beside, earliest_deadline_beside, reserve, Balancing, Capacity, DemandTest, Options,
    Progress, Replan, Request, RunId, Store, Validation,
};
use pbs_uapi::clock::thread_cpu_ns;

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
/// Tries of `pbsctl`, five times as many as those of the service.
const TRIES: usize = 18_000;
const RUN: RunId = RunId(0);

fn main() {
    let of_job = |processes: usize, mib: u64| Fan::of(processes, mib << 20).job();
    let shapes = [
        ("fan-400-of-1-gib", of_job(400, 1024)),
        ("fan-800-of-512-mib", of_job(800, 512)),
        ("fan-400-begun", Fan { ahead_insns: S, ..Fan::of(400, GIB) }.job()),
        ("fan-1000-begun-of-many-sizes", Fan { ahead_insns: S, ..sizes(1000) }.job()),
        ("fan-1000-of-many-sizes", sizes(1000).job()),
        ("fan-5000-of-many-sizes", sizes(5000).job()),
        ("800-alone-of-512-mib", Fan { root_insns: 0, ..Fan::of(800, GIB / 2) }.job()),
    ];
    for (name, job) in &shapes {
        ask(name, job);
    }
}

/// Processes of unlike sizes, 1 GiB in the middle.
fn sizes(processes: u64) -> Fan {
    let memory_bytes = (0..processes).map(|process| GIB / 2 + process * 7919 % 1024 * (GIB / 1024));
    Fan { memory_bytes: memory_bytes.collect(), ..Fan::of(0, 0) }
}

/// A node of 16 cores and 256 GiB.
fn node() -> Machine {
    machine(1, &[(256 * GIB, &[S; 16])])
}

fn ask(name: &str, job: &Job) {
    let empty = Store::new(node(), Balancing::Dynamic);
    let request = Request::new(RUN, job);
    let options = Options { local_search_tries: TRIES, ..Options::default() };
    let test = DemandTest::of(&node(), Capacity::WHOLE, true);
    let validation = Validation::default();

    let mut store = empty.clone();
    let planned = timed(name, "plan", || reserve(&mut store, &request, &options));
    let end_ns = planned.map_or(10_000 * S, |planned| planned.end_ns);
    // Too short for the plan, and not for the bound, if that is in between.
    let late = Request { deadline_ns: end_ns / 20 * 19, ..request };
    let mut refused = empty.clone();
    let test = test.as_ref();
    timed(name, "declined", || {
        admit_beside(&mut refused, &late, &[], &validation, &options, test).map(drop)
    })
    .ok();
    timed(name, "earliest", || {
        earliest_deadline_beside(&mut refused, &late, &[], &validation, &options, test)
    });

    let Some(first) = store.run(RUN).map(|run| run.tasks[0]) else { return };
    let mut progress = vec![Progress::Waiting; job.processes.len()];
    progress[0] = Progress::Running { core: first.core, position: 1, retired_insns: 0 };
    let running = [Request { deadline_ns: 2 * end_ns, progress: &progress, ..request }];
    timed(name, "replan", || Replan::at(S).run(&mut store, &running, &[]).map(drop)).ok();
}

fn timed<T>(shape: &str, question: &str, ask: impl FnOnce() -> T) -> T {
    let begin_ns = thread_cpu_ns();
    let answer = ask();
    let seconds = (thread_cpu_ns() - begin_ns) as f64 / 1e9;
    println!(r#"{{"name":"shapes/{shape}/{question}","value":{seconds:.3},"unit":"s"}}"#);
    answer
}
