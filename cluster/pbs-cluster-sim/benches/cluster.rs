// SPDX-License-Identifier: GPL-2.0
//! Throughput of the cluster's planner on one core, beside Keller's procedure as printed.
//!
//! One decision takes a planned request out of the plan, searches an earlier place, maps, and books
//! that place or the old one. The jobs are those of Keller's example 3. Limits apply to 200 users
//! of 70 groups, and a pool keeps cores free for small requests. The measure is a thread's time on
//! a CPU.

mod rows;

use std::cmp::Reverse;
use std::sync::Arc;

use pbs_cluster_planner::literal::Literal;
use pbs_cluster_planner::optimise::{Budget, Improving, Objective};
use pbs_cluster_planner::{Limit, Limited, Machine, Planner, Pool, Request, RequestId, Rules};
use pbs_cluster_sim::{workload, Policy};
use pbs_gen::{Random, Stream};
use pbs_site::{Promise, Share, Site, Whom};
use pbs_uapi::clock::thread_cpu_ns;
use rows::{Bar, Rows};
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// Time for which decisions are counted, in seconds.
const LONG_S: f64 = 2.0;

/// The time that this thread had of a CPU, in seconds; to the nanosecond, for some of what is
/// measured takes less than a tick.
fn cpu_s() -> f64 {
    thread_cpu_ns() as f64 / 1e9
}

/// Measures the CPU time of a closure and returns it with the closure's result.
fn timed<T>(what: impl FnOnce() -> T) -> (f64, T) {
    let begin_s = cpu_s();
    let said = what();
    (cpu_s() - begin_s, said)
}

/// Limits for each user and each group, and a pool for short and small requests.
fn rules() -> Rules {
    let always = || std::iter::once(0..u64::MAX).collect();
    let limit = |whom, percent: u64| Limit {
        whom,
        of: Limited::Resource(pbs_cluster_planner::NCPUS),
        items: Some(Share { least: Some(64), permille: Some(percent * 10) }),
        soft_permille: None,
        duration_s: Some(61 * 86_400),
        area_s: None,
        valid: always(),
    };
    let users = (0..200).map(|user| limit(Whom::User(user.to_string()), 60));
    let groups = (0..70).map(|group| limit(Whom::Group(group.to_string()), 80));
    let free = Share { least: Some(10), permille: Some(20) };
    let access = "ncpus<4 & duration<1h".parse().expect("a condition");
    Rules {
        limits: users.chain(groups).collect(),
        pools: vec![Pool {
            name: "short".into(),
            resource: pbs_cluster_planner::NCPUS,
            free,
            access,
            share: false,
            for_askers: false,
            valid: always(),
        }],
        ..Rules::default()
    }
}

/// Requests of so many cores and more, as the cluster can have them.
fn requests(count: usize, least: u64, most: u64) -> Vec<Request> {
    let per_day = workload::MEAN_DAY;
    let mut seed = 0;
    let mut requests = Vec::new();
    while requests.len() < count {
        seed += 1;
        let jobs = workload::oculus(20_000, per_day, seed);
        // Arrays are alike: a few of each.
        let jobs = jobs.iter().step_by(if most == 1 { 1 } else { 20 });
        let jobs = jobs.filter(|job| (least..=most).contains(&job.cores));
        requests.extend(jobs.map(|job| {
            let cores = job.cores;
            let text = match cores {
                1..=15 => format!("ncpus={cores}:mem=2g"),
                _ => format!("{}:ncpus=16:mem=30g", cores / 16),
            };
            // The text is ours.
            let mut request = Request::new(text.parse().expect("a request"), job.requested_s);
            request.user = job.user.to_string().into();
            request.group = job.group.to_string();
            request
        }));
    }
    requests.truncate(count);
    requests
}

/// Decisions a second: somebody leaves, and others look for a better place.
fn decide(planner: &mut Planner, seconds: f64) -> f64 {
    let mut random = Random::new(1, Stream::Trace);
    let mut ids: Vec<RequestId> = planner.requests().collect();
    let before = planner.decisions();
    let (took_s, ()) = timed(|| {
        let begin_s = cpu_s();
        while cpu_s() - begin_s < seconds && ids.len() > 10 {
            let id = ids.swap_remove(random.below(ids.len() as u64) as usize);
            planner.remove(0, id);
            planner.backfill(0, 1000);
        }
    });
    (planner.decisions() - before) as f64 / took_s
}

/// Measures decisions per second of the procedure as printed, without limits and pools.
fn decide_literally(planner: &Planner, seconds: f64) -> f64 {
    let mut literal = Literal::of(planner);
    let mut random = Random::new(1, Stream::Trace);
    let ids: Vec<RequestId> = planner.requests().collect();
    let mut count = 0;
    let (took_s, ()) = timed(|| {
        let begin_s = cpu_s();
        while cpu_s() - begin_s < seconds {
            literal.decide(planner, 0, ids[random.below(ids.len() as u64) as usize]);
            count += 1;
        }
    });
    f64::from(count) / took_s
}

/// A cluster, its jobs, and what is wanted of it.
struct Scene {
    part: &'static str,
    name: &'static str,
    site: fn() -> Site,
    jobs: usize,
    cores: std::ops::RangeInclusive<u64>,
    least_decisions: f64,
}

const SCENES: [Scene; 3] = [
    Scene {
        part: "oculus",
        name: "OCuLUS, 10,000 jobs",
        site: Site::oculus,
        jobs: 10_000,
        cores: 1..=4096,
        least_decisions: 20_000.0,
    },
    Scene {
        part: "arminius",
        name: "ARMINIUS, 10,000 jobs",
        site: Site::arminius,
        jobs: 10_000,
        cores: 1..=512,
        least_decisions: 40_000.0,
    },
    Scene {
        part: "wide",
        name: "OCuLUS, 2,000 jobs of 512 cores and more",
        site: Site::oculus,
        jobs: 2_000,
        cores: 512..=4096,
        least_decisions: 2_000.0,
    },
];

/// Jobs are submitted, then decided about: as here, and as printed.
fn scene(rows: &Rows, of: &Scene) {
    let machine = Arc::new(Machine::of_site(&(of.site)()));
    let mut planner = Planner::new(machine, rules());
    let all = requests(of.jobs, *of.cores.start(), *of.cores.end());
    let (took_s, declined) = timed(|| {
        let declined = all.iter().filter(|request| planner.submit(0, request).is_err());
        declined.count()
    });
    let name = of.name;
    let tell = |row: &str, value, unit, bar, what: &str| {
        let what = format!("{name}: {what}");
        rows.tell(&format!("{}-{row}", of.part), value, unit, bar, &what);
    };
    let (per_second, none) = ("per second", Bar::None);
    let submissions = of.jobs as f64 / took_s;
    let (least, what) = (Bar::AtLeast(15_000.0), "submitted in process");
    tell("submissions", submissions, per_second, least, what);
    tell("declined", declined as f64, "jobs", none, "declined");
    let what = "changes of free cores in the plan";
    tell("slots", planner.steps() as f64, "slots", none, what);
    let last_s = planner.free(pbs_cluster_planner::NCPUS).map(|step| step.0).last();
    let weeks = last_s.unwrap_or(0) as f64 / (7.0 * 86_400.0);
    let what = "how far the plan reaches";
    tell("weeks", weeks, "weeks", none, what);
    let memory = planner.memory();
    let all = [memory.system, memory.nodes, memory.consumers];
    let sum =
        |of: fn(&pbs_cluster_planner::Vectors) -> usize| all.iter().map(of).sum::<usize>() as f64;
    let (bar, what) = (Bar::AtMost(60.0), "all vectors of the plan");
    tell("vectors-megabytes", sum(|of| of.bytes) / 1e6, "MB", bar, what);
    tell("vectors", sum(|of| of.vectors), "vectors", none, "how many those are");
    let what = "the slots of all of them";
    tell("vector-slots", sum(|of| of.slots), "slots", none, what);
    let literally = decide_literally(&planner, LONG_S);
    let decided = decide(&mut planner, LONG_S);
    let bar = Bar::AtLeast(of.least_decisions);
    tell("decisions", decided, per_second, bar, "decisions");
    let what = "decisions as printed, without limits and pools";
    tell("literal-decisions", literally, per_second, none, what);
    let what = "times as many decisions as by the procedure as printed";
    tell("times-literal", decided / literally, "times", none, what);
}

/// Measures a wide request beside 10,000 jobs: it is planned, mapped and booked, and given back.
fn wide_beside(rows: &Rows) {
    let mut planner = Planner::new(oculus(), rules());
    for request in requests(10_000, 1, 4096) {
        let _ = planner.submit(0, &request);
    }
    let mut took_us: Vec<f64> = requests(500, 512, 4096)
        .iter()
        .filter_map(|request| {
            let (took_s, planned) = timed(|| {
                let id = planner.submit(0, request).ok()?;
                planner.remove(0, id);
                Some(())
            });
            planned.map(|()| took_s * 1e6)
        })
        .collect();
    took_us.sort_by(f64::total_cmp);
    let mean_us = took_us.iter().sum::<f64>() / took_us.len() as f64;
    let what = "to plan and give back a request of 512 cores and more beside 10,000 jobs";
    rows.tell("wide-beside-mean", mean_us, "us", Bar::AtMost(500.0), what);
    let most_us = took_us[(took_us.len() * 99 / 100).min(took_us.len() - 1)];
    rows.tell("wide-beside-p99", most_us, "us", Bar::None, "99 % of them");
}

/// Measures the planner with ten and a hundred times as many jobs.
fn many(rows: &Rows) {
    let machine = oculus();
    let mut decided = Vec::new();
    for count in [1_000, 100_000] {
        let mut planner = Planner::new(machine.clone(), rules());
        for request in requests(count, 16, 4096) {
            let _ = planner.submit(0, &request);
        }
        if count == 100_000 {
            answers(rows, &mut planner);
        }
        let per_second = decide(&mut planner, LONG_S);
        let (name, what) =
            (format!("decisions-beside-{count}"), format!("decisions beside {count} jobs"));
        rows.tell(&name, per_second, "per second", Bar::None, &what);
        decided.push(per_second);
    }
    rows.tell(
        "decision-beside-many",
        decided[0] / decided[1],
        "times",
        Bar::AtMost(3.0),
        "what a decision takes beside 100,000 jobs, of one beside 1,000",
    );
}

/// Measures the time to answer a request while all planned requests are searched for better places:
/// ten of them, then the answer.
fn answers(rows: &Rows, planner: &mut Planner) {
    let first = planner.requests().next();
    if let Some(first) = first {
        planner.remove(0, first);
    }
    let one = &requests(1, 16, 16)[0];
    let mut took_ms: Vec<f64> = (0..100)
        .map(|_| {
            let (took_s, _) = timed(|| {
                planner.backfill(0, 10);
                planner.submit(0, one)
            });
            took_s * 1e3
        })
        .collect();
    took_ms.sort_by(f64::total_cmp);
    let (median, most) = (took_ms[took_ms.len() / 2], took_ms[took_ms.len() - 1]);
    let (bar, what) = (Bar::AtMost(10.0), "a submission while 100,000 jobs are backfilled");
    rows.tell("answer-while-backfilling", median, "ms", bar, what);
    let what = "the same, the longest of 100";
    rows.tell("longest-while-backfilling", most, "ms", bar, what);
}

fn array(rows: &Rows) {
    let mut planner = Planner::new(oculus(), rules());
    let one = &requests(1, 1, 1)[0];
    let (took_s, planned) =
        timed(|| (0..10_000).filter(|_| planner.submit(0, one).is_ok()).count());
    let what = "to plan an array of 10,000 jobs of one core";
    rows.tell("array-seconds", took_s, "s", Bar::AtMost(0.5), what);
    rows.tell("array-planned", planned as f64, "jobs", Bar::AtLeast(10_000.0), "of them planned");
    // Keller plans it in blocks, between which others are answered.
    let mut planner = Planner::new(oculus(), rules());
    let blocks = (0..20).map(|_| {
        let (took_s, ()) = timed(|| {
            for _ in 0..500 {
                let _ = planner.submit(0, one);
            }
        });
        took_s * 1e3
    });
    let most = blocks.fold(0.0, f64::max);
    let what = "others wait for a block of 500 at most";
    rows.tell("array-block", most, "ms", Bar::AtMost(30.0), what);
}

/// The search for a better plan of 1,000 waiting requests: all of its pieces, between which calls
/// of a service are answered.
fn improve(rows: &Rows) {
    let bar = Bar::AtMost(2.0);
    for (name, cores) in [("mixed", 1..=4096), ("wide", 512..=4096)] {
        let mut planner = Planner::new(oculus(), rules());
        for request in requests(1_000, *cores.start(), *cores.end()) {
            let _ = planner.submit(0, &Request { promise: Promise::None, ..request });
        }
        let improving = Improving {
            objective: Objective::default(),
            budget: Budget { orders: 200, placements: 20_000 },
            seed: 1,
        };
        let (begin_s, found) = timed(|| planner.improvement(0, &improving, &|_| None));
        let mut found = found.expect("requests that can move");
        let (mut all_s, mut longest_s, mut steps, mut goes_on) = (0.0, 0.0_f64, 0_u64, true);
        while goes_on {
            let (took_s, more) = timed(|| found.run(1));
            (all_s, longest_s, steps) = (all_s + took_s, longest_s.max(took_s), steps + 1);
            goes_on = more;
        }
        let orders = found.orders() as f64;
        let placements = found.placements() as f64;
        let (take_s, (moved, _)) = timed(|| planner.take_improvement(0, found));
        let tell = |row: &str, value, unit, bar, what: &str| {
            let what = format!("search on OCuLUS, {name} requests: {what}");
            rows.tell(&format!("improve-{name}-{row}"), value, unit, bar, &what);
        };
        tell("begin", begin_s * 1e3, "ms", bar, "to begin, with the copy of the plan");
        tell("step", longest_s * 1e3, "ms", bar, "the longest step");
        tell("take", take_s * 1e3, "ms", bar, "to take the better plan");
        tell("moved", moved as f64, "jobs", Bar::None, "requests that moved");
        tell("steps", steps as f64, "steps", Bar::None, "steps of the search");
        let per_second = "per second";
        // Each wide request holds hundreds of nodes, and no bar is known for them.
        let least = if name == "mixed" { Bar::AtLeast(500.0) } else { Bar::None };
        tell("orders", orders / all_s, per_second, least, "orders");
        tell("placements", placements / all_s, per_second, Bar::None, "placed requests");
    }
}

fn oculus() -> Arc<Machine> {
    Arc::new(Machine::of_site(&Site::oculus()))
}

/// The order in which a better place is sought, of jobs that came in another one. The planner
/// keeps them in that order, and so never sorts.
fn sort(rows: &Rows) {
    let mut random = Random::new(1, Stream::Trace);
    let jobs: Vec<(Reverse<u64>, u64, u64)> =
        (0..60_000).map(|id| (Reverse(random.below(1_000)), random.below(1 << 32), id)).collect();
    let mut took_ms: Vec<f64> = (0..11)
        .map(|_| {
            let mut jobs = jobs.clone();
            let (took_s, ()) = timed(|| jobs.sort_unstable());
            std::hint::black_box(jobs);
            took_s * 1e3
        })
        .collect();
    took_ms.sort_by(f64::total_cmp);
    let what = "to sort 60,000 jobs by priority and time of submission";
    rows.tell("sort", took_ms[5], "ms", Bar::AtMost(10.0), what);
}

/// Decisions of a thread that stays on a CPU, beside those of one that need not. Both are
/// measured by turns, as the machine has other things to do.
fn pinned(rows: &Rows) {
    let Ok(all) = sched_getaffinity(None) else {
        return;
    };
    let mut one = CpuSet::new();
    if let Some(cpu) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| all.is_set(cpu)) {
        one.set(cpu);
    }
    let mut planner = Planner::new(oculus(), rules());
    for request in requests(10_000, 1, 4096) {
        let _ = planner.submit(0, &request);
    }
    let mut decided = [Vec::new(), Vec::new()];
    for turn in 0..10 {
        let cpus = [&all, &one][turn % 2];
        if sched_setaffinity(None, cpus).is_ok() {
            decided[turn % 2].push(decide(&mut planner, 0.5));
        }
    }
    let _ = sched_setaffinity(None, &all);
    let [free, pinned] = decided.map(|mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        of.get(of.len() / 2).copied().unwrap_or(0.0)
    });
    let (unit, none) = ("per second", Bar::None);
    rows.tell("unpinned-decisions", free, unit, none, "decisions of a thread on any CPU");
    rows.tell("pinned-decisions", pinned, unit, none, "decisions of one that stays on its own");
    let what = "times as many decisions if it is pinned";
    rows.tell("times-pinned", pinned / free, "times", none, what);
}

fn busiest_day(rows: &Rows) {
    let jobs = workload::oculus(workload::BUSIEST_DAY, workload::BUSIEST_DAY, 1);
    let mut planned = pbs_cluster_sim::Planned::new(oculus(), Rules::default(), 10);
    let (took_s, replayed) = timed(|| pbs_cluster_sim::replay(&jobs, &mut planned, |_| ()));
    let outcomes = replayed.unwrap_or_else(|fault| panic!("{}: {fault}", planned.name()));
    let ran = outcomes.iter().filter(|of| of.start_s.is_some()).count();
    let what = "to replay the busiest day";
    rows.tell("busiest-day", took_s, "s", Bar::AtMost(60.0), what);
    rows.tell("busiest-day-jobs", ran as f64, "jobs", Bar::None, "jobs that ran");
}

fn main() {
    let Some(rows) = Rows::from_arguments() else {
        return;
    };
    for of in SCENES.iter().filter(|of| rows.wants(of.part)) {
        scene(&rows, of);
    }
    if rows.wants("wide") {
        wide_beside(&rows);
    }
    if rows.wants("many") {
        many(&rows);
    }
    if rows.wants("array") {
        array(&rows);
    }
    if rows.wants("improve") {
        improve(&rows);
    }
    if rows.wants("sort") {
        sort(&rows);
    }
    if rows.wants("pinned") {
        pinned(&rows);
    }
    if rows.wants("busiest-day") {
        busiest_day(&rows);
    }
}
