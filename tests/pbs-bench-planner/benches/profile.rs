// SPDX-License-Identifier: GPL-2.0
//! Benchmarks of profiles on one core. Documentation/planner-benchmarks.rst describes the
//! measurements; `make bench-planner` makes them.

mod cpu_time;
mod workload;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use cpu_time::CpuTime;
use criterion::{criterion_group, criterion_main, BenchmarkGroup, Criterion, Throughput};
use pbs_profile::{find_first_hole, Need, Profile, FOREVER};
use workload::{jobs, Job, Lengths, NODES};

/// Jobs of a replay.
const REPLAYED: usize = 28_000;
/// Reservations that first fit has against it.
const RESERVED: usize = 1_000_000;
/// Jobs that are submitted all at once.
const PACKED: usize = 10_000;
/// More than the machine has: jobs wait, and more and more of them.
const CROWDED_PERMILLE: u64 = 1100;
/// Nearly all that it has.
const BUSY_PERMILLE: u64 = 900;
/// Other jobs than those that are planned, to ask for.
const ASKED: u64 = 4096;

/// Plans a job where it fits first.
fn place(free: &mut Profile, job: &Job) -> u64 {
    let start = free
        .find_first_hole(job.nodes, job.planned, job.submitted..FOREVER)
        .expect("no job wants more than there is");
    let planned = free.subtract(start..start + job.planned, job.nodes);
    planned.expect("that is where it fits");
    start
}

/// Each job is planned when it is submitted, for as long as is estimated.
fn replay(jobs: &[Job]) -> Profile {
    let mut free = Profile::new(NODES);
    for job in jobs {
        free.forget_before(job.submitted);
        place(&mut free, job);
    }
    free
}

/// Like [`replay`], but the rest of an estimate is released when the job ends.
fn replay_with_ends(jobs: &[Job]) -> Profile {
    let mut free = Profile::new(NODES);
    let mut ends = BinaryHeap::new();
    for job in jobs {
        while let Some(&Reverse((end, planned, nodes))) = ends.peek() {
            if end > job.submitted {
                break;
            }
            ends.pop();
            let back = free.add(end..planned, nodes);
            back.expect("that much was taken");
        }
        free.forget_before(job.submitted);
        let start = place(&mut free, job);
        ends.push(Reverse((start + job.runtime, start + job.planned, job.nodes)));
    }
    free
}

fn replays(criterion: &mut Criterion<CpuTime>) {
    let jobs = jobs(REPLAYED, 1, Lengths::Estimated, CROWDED_PERMILLE);
    let mut group = criterion.benchmark_group("profile");
    group.throughput(Throughput::Elements(REPLAYED as u64));
    group.bench_function("replay", |bencher| bencher.iter(|| replay(&jobs)));
    group.bench_function("replay-with-ends", |bencher| {
        bencher.iter(|| replay_with_ends(&jobs));
    });
    group.finish();
}

/// Jobs of known length that are planned ahead, each at the first fit after the time
/// from which on it may run, and other such jobs.
struct Ahead {
    free: Profile,
    asked: Vec<Job>,
}

impl Ahead {
    /// Plans as many jobs as make that many steps, or all there are.
    fn new(jobs_ahead: usize, steps: usize) -> Self {
        let mut free = Profile::new(NODES);
        let mut last = 0;
        for job in jobs(jobs_ahead, 2, Lengths::Known, BUSY_PERMILLE) {
            if free.step_count() >= steps {
                break;
            }
            place(&mut free, &job);
            last = job.submitted;
        }
        let asked = others().into_iter().zip(0..).map(|(job, at)| Job {
            // In no order, and all over the time that is planned.
            submitted: last / ASKED * (at * 1531 % ASKED),
            ..job
        });
        Self { free, asked: asked.collect() }
    }
}

/// Jobs to ask for that are not planned.
fn others() -> Vec<Job> {
    jobs(ASKED as usize, 3, Lengths::Known, BUSY_PERMILLE)
}

/// Measures the growth of a search with the steps.
fn holes(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("profile/find-first-hole");
    group.throughput(Throughput::Elements(1));
    for steps in [100, 1000, 10_000, 100_000, 1_000_000] {
        let ahead = Ahead::new(RESERVED, steps);
        let mut asked = ahead.asked.iter().cycle();
        group.bench_function(steps.to_string(), |bencher| {
            bencher.iter(|| {
                let job = asked.next().expect("they go round");
                let from = job.submitted;
                ahead.free.find_first_hole(job.nodes, job.planned, from..FOREVER)
            });
        });
    }
    group.finish();
}

/// Finds a job a place, books and revokes it, one after the other of these.
fn book_and_revoke(
    group: &mut BenchmarkGroup<'_, CpuTime>,
    name: &str,
    mut free: Profile,
    asked: &[Job],
) {
    let mut asked = asked.iter().cycle();
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let job = asked.next().expect("they go round");
            let start = place(&mut free, job);
            free.add(start..start + job.planned, job.nodes)
        });
    });
}

fn first_fit(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("profile");
    let ahead = Ahead::new(RESERVED, usize::MAX);
    book_and_revoke(&mut group, "first-fit", ahead.free, &ahead.asked);

    // All at once: no hole is left that one of thousands would have fitted into.
    let mut free = Profile::new(NODES);
    for job in jobs(PACKED, 2, Lengths::Known, BUSY_PERMILLE) {
        place(&mut free, &Job { submitted: 0, ..job });
    }
    let asked = others().into_iter();
    let asked: Vec<_> = asked.map(|job| Job { submitted: 0, ..job }).collect();
    book_and_revoke(&mut group, "first-fit-packed", free, &asked);
    group.finish();
}

/// Measures small profiles: one core that is busy or not, with 20 slots, and the memory of its
/// node.
fn small(criterion: &mut Criterion<CpuTime>) {
    let mut core = Profile::new(1);
    let mut memory = Profile::new(1 << 36);
    for slot in 0..20 {
        let over = 100 * slot..100 * slot + 90;
        core.subtract(over.clone(), 1).expect("it is free");
        memory.subtract(over, (20 - slot) << 31).expect("it is free");
    }
    let needs = [(&core, 1), (&memory, 60 << 30)];
    let needs = needs.map(|(profile, amount)| Need { profile, amount });
    let mut group = criterion.benchmark_group("profile/small");
    group.throughput(Throughput::Elements(1));
    group.bench_function("find-first-hole-of-two", |bencher| {
        bencher.iter(|| find_first_hole(black_box(&needs), 50, 0..FOREVER));
    });
    group.bench_function("clone", |bencher| bencher.iter(|| black_box(&core).clone()));
    let mut changed = core.clone();
    group.bench_function("subtract-and-add", |bencher| {
        bencher.iter(|| {
            let taken = changed.subtract(1191..1199, 1);
            taken.and_then(|()| changed.add(1191..1199, 1))
        });
    });
    group.finish();
}

criterion_group!(
    name = benches;
    config = cpu_time::config();
    targets = small, replays, holes, first_fit
);
criterion_main!(benches);
