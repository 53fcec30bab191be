// SPDX-License-Identifier: GPL-2.0
//! Benchmarks of planning on one core. Documentation/planner-benchmarks.rst describes the
//! measurements; `make bench-planner` makes them.

mod cpu_time;
mod scenes;

use cpu_time::CpuTime;
use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use pbs_planner::{admit, reserve, Aim, Options, Progress, Replan, Request, RunId, Validation};
use scenes::{empty, large_net, open_net, small_jobs, S};

/// Jobs that are planned before the ones that are measured.
const PLANNED: u64 = 15_000;
/// Tasks that are open when a plan is made anew.
const OPEN: usize = 10_000;

/// One net on an empty machine, with all strategies.
fn plan_large_net(criterion: &mut Criterion<CpuTime>) {
    let (job, store) = (large_net(), empty());
    let mut group = criterion.benchmark_group("planner");
    group.sample_size(10);
    group.bench_function("large-net", |bencher| {
        bencher.iter_batched(
            || store.clone(),
            |mut store| {
                let request = Request::new(RunId(0), &job);
                let planned = reserve(&mut store, &request, &Options::default());
                planned.expect("there is no deadline");
                store
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// A job is asked for, validated, planned by its deadline, and revoked, among many.
fn admission(criterion: &mut Criterion<CpuTime>) {
    let mut store = empty();
    let validation = Validation::default();
    let of = |aim| Options { aim, ..Options::default() };
    let planned = small_jobs(500, 2);
    for (number, job) in (0..PLANNED).zip(planned.iter().cycle()) {
        let request = Request::new(RunId(number), job).not_before(number * S / 100);
        let planned = reserve(&mut store, &request, &of(Aim::Deadline));
        planned.expect("there is no deadline");
    }
    let asked = small_jobs(500, 3);
    let mut next = asked.iter().cycle();
    let mut group = criterion.benchmark_group("planner");
    group.throughput(Throughput::Elements(1));
    for (name, aim) in [("admission", Aim::Deadline), ("admission-best", Aim::Best)] {
        let options = of(aim);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let request = Request {
                    deadline_ns: 3600 * S,
                    ..Request::new(RunId(PLANNED), next.next().expect("they go round"))
                };
                let admitted = admit(&mut store, &request, &validation, &options);
                admitted.expect("an hour is enough");
                store.remove(RunId(PLANNED))
            });
        });
    }
    group.finish();
}

/// All of a net is left but the first task, which took longer than was thought.
fn replan(criterion: &mut Criterion<CpuTime>) {
    let mut store = empty();
    let mut job = open_net(OPEN);
    let request = Request::new(RunId(0), &job);
    let planned = reserve(&mut store, &request, &Options::default());
    let end_ns = planned.expect("there is no deadline").end_ns;
    let first = store.run(RunId(0)).expect("it is planned").tasks[0];
    let mut progress = vec![Progress::Waiting; job.processes.len()];
    progress[0] = Progress::Running { core: first.core, position: 0, retired_insns: S };
    job.tasks[0].insns += S;
    let running = [Request {
        run: RunId(0),
        job: &job,
        start_ns: 0,
        deadline_ns: 2 * end_ns,
        progress: &progress,
        is_last: false,
        awaited_by_ns: None,
    }];
    let replan = Replan::at(first.end_ns);
    let mut group = criterion.benchmark_group("planner");
    group.bench_function("replan", |bencher| {
        bencher.iter_batched(
            || store.clone(),
            |mut store| {
                let replanned = replan.run(&mut store, &running, &[]);
                (replanned.expect("the deadline is far away"), store)
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(
    name = benches;
    config = cpu_time::config();
    targets = plan_large_net, admission, replan
);
criterion_main!(benches);
