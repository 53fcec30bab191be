// SPDX-License-Identifier: GPL-2.0
//! What the cluster's planner gets done on one core, beside Keller's procedure as printed.
//!
//! One decision is: unbook a planned request, seek an earlier place, map, and book that or
//! what was. The jobs are those of Keller's example 3; 200 users of 70 groups have limits,
//! and a pool keeps cores free for small requests. A thread's time on a CPU is what counts.

use std::sync::Arc;

use pbs_cluster::literal::Literal;
use pbs_cluster::{Limit, Limited, Machine, Planner, Pool, Request, RequestId, Rules};
use pbs_gen::{Random, Stream};
use pbs_replay::{workload, Policy};
use pbs_site::{Share, Site, Whom};

/// The time that this thread had of a CPU, in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
    ns.unwrap_or(0) as f64 / 1e9
}

/// How much of it something takes, with what it says.
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
        of: Limited::Resource(pbs_cluster::NCPUS),
        items: Some(Share {
            least: Some(64),
            permille: Some(percent * 10),
        }),
        soft_permille: None,
        duration_s: Some(61 * 86_400),
        area_s: None,
        valid: always(),
    };
    let users = (0..200).map(|user| limit(Whom::User(user.to_string()), 60));
    let groups = (0..70).map(|group| limit(Whom::Group(group.to_string()), 80));
    let free = Share {
        least: Some(10),
        permille: Some(20),
    };
    let access = "ncpus<4 & duration<1h".parse().expect("a condition");
    Rules {
        limits: users.chain(groups).collect(),
        pools: vec![Pool {
            name: "short".into(),
            resource: pbs_cluster::NCPUS,
            free,
            access,
            share: false,
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
            request.user = job.user.to_string();
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

/// The same by the procedure as printed, without its limits and pools.
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

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0)
}

fn main() {
    let row = |what: &str, value: f64, unit: &str, bar: &str| {
        println!("{what:<58} {value:>12.1} {unit:<6} {bar}");
    };
    println!("{:<58} {:>12}        target", "what", "measured");
    let scenes = [
        (
            "OCuLUS, 10,000 jobs",
            Site::oculus(),
            10_000,
            1,
            4096,
            "20,000",
        ),
        (
            "ARMINIUS, 10,000 jobs",
            Site::arminius(),
            10_000,
            1,
            512,
            "40,000",
        ),
        (
            "OCuLUS, 2,000 jobs of 512 cores and more",
            Site::oculus(),
            2_000,
            512,
            4096,
            "2,000",
        ),
    ];
    for (name, site, count, least, most, bar) in scenes {
        let machine = Arc::new(Machine::of_site(&site));
        let mut planner = Planner::new(machine.clone(), rules());
        let all = requests(count, least, most);
        let (took_s, declined) = timed(|| {
            let declined = all
                .iter()
                .filter(|request| planner.submit(0, request).is_err());
            declined.count()
        });
        row(
            &format!("{name}: submissions"),
            count as f64 / took_s,
            "/s",
            "15,000 in process",
        );
        row(&format!("{name}: declined"), declined as f64, "", "");
        row(
            &format!("{name}: changes of free cores"),
            planner.steps() as f64,
            "",
            "345",
        );
        let literally = decide_literally(&planner, 3.0);
        let decided = decide(&mut planner, 3.0);
        row(&format!("{name}: decisions"), decided, "/s", bar);
        row(
            &format!("{name}: as printed, without limits"),
            literally,
            "/s",
            "",
        );
        row(
            &format!("{name}: times as many"),
            decided / literally,
            "",
            "",
        );
    }
    let machine = Arc::new(Machine::of_site(&Site::oculus()));
    let mut decided = Vec::new();
    for count in [1_000, 100_000] {
        let mut planner = Planner::new(machine.clone(), rules());
        for request in requests(count, 16, 4096) {
            let _ = planner.submit(0, &request);
        }
        let per_second = decide(&mut planner, 3.0);
        row(
            &format!("decisions beside {count} jobs"),
            per_second,
            "/s",
            "",
        );
        decided.push(per_second);
        if count == 100_000 {
            let one = requests(1, 16, 16);
            let (took_s, _) = timed(|| planner.submit(0, &one[0]));
            row("a submission beside 100,000 jobs", took_s * 1e3, "ms", "10");
        }
    }
    row(
        "a decision beside 100,000 jobs, to one beside 1,000",
        decided[0] / decided[1],
        "",
        "3",
    );
    let mut planner = Planner::new(machine.clone(), rules());
    let one = &requests(1, 1, 1)[0];
    let (took_s, ()) = timed(|| {
        for _ in 0..10_000 {
            let _ = planner.submit(0, one);
        }
    });
    row("an array of 10,000", took_s, "s", "0.5");
    let jobs: Vec<_> = workload::oculus(workload::BUSIEST_DAY, workload::BUSIEST_DAY, 1);
    let mut planned = pbs_replay::Planned::new(machine.clone(), Rules::default(), 10);
    let (took_s, replayed) = timed(|| pbs_replay::replay(&jobs, &mut planned, |_| ()));
    row("the busiest day of 196,217 jobs", took_s, "s", "60");
    if let Err(fault) = replayed {
        println!("{}: {fault}", planned.name());
    }
    row(
        "peak of memory of all this",
        peak_kib() as f64 / 1024.0,
        "MiB",
        "",
    );
}
