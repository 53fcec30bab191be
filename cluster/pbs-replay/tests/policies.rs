// SPDX-License-Identifier: GPL-2.0
//! Each policy does what it is known for, on thousands of small random traces.

use std::sync::Arc;

use pbs_cluster::{Machine, NodeSpec, Resource, Rules};
use pbs_gen::{Random, Stream};
use pbs_replay::{
    check, replay, Conservative, Easy, Estimates, Fcfs, Outcome, Planned, Policy, TraceJob,
};

const CORES: u64 = 8;
const TRACES: u64 = 2_000;

fn trace(seed: u64) -> Vec<TraceJob> {
    let mut random = Random::new(seed, Stream::Trace);
    let mut jobs: Vec<TraceJob> = (0..1 + random.below(12))
        .map(|number| {
            let run_s = 1 + random.below(12);
            let submit_s = random.below(30);
            let requested_s = run_s + random.below(2) * random.below(12);
            TraceJob {
                number,
                user: random.below(3),
                ..TraceJob::new(submit_s, run_s, requested_s, 1 + random.below(CORES))
            }
        })
        .collect();
    jobs.sort_by_key(|job| job.submit_s);
    jobs
}

fn planned(cores: &[u64]) -> Planned {
    let ncpus = Resource {
        name: "ncpus".into(),
        job_wide: None,
    };
    let nodes = cores.iter().enumerate().map(|(index, &cores)| NodeSpec {
        name: format!("n{index}"),
        has: vec![cores],
        words: Vec::new(),
        prio: 0,
        only_if: None,
        kept: None,
    });
    let machine = Machine::new(vec![ncpus], &nodes.collect::<Vec<_>>());
    Planned::new(Arc::new(machine), Rules::default(), usize::MAX)
}

fn starts(jobs: &[TraceJob], policy: &mut dyn Policy) -> Vec<u64> {
    let outcomes = replay(jobs, policy, |_| ()).unwrap();
    check(jobs, &outcomes, CORES).unwrap();
    let start = |outcome: &Outcome| outcome.start_s.expect("all start");
    outcomes.iter().map(start).collect()
}

/// What is free from a second on, if those that run do so for as long as they may.
fn free(jobs: &[TraceJob], starts: &[Option<u64>], now_s: u64) -> Vec<u64> {
    let free = (now_s..now_s + 1000).map(|time_s| {
        let used = jobs.iter().zip(starts).filter_map(|(job, start_s)| {
            let start_s = (*start_s)?;
            let ended = start_s + job.run_s <= now_s;
            let until_s = start_s + job.requested_s;
            (!ended && (start_s..until_s).contains(&time_s)).then_some(job.cores)
        });
        CORES - used.sum::<u64>()
    });
    free.collect()
}

/// EASY second by second: all is worked out anew from who runs.
fn easy_by_seconds(jobs: &[TraceJob]) -> Vec<u64> {
    let mut starts = vec![None; jobs.len()];
    let mut now_s = 0;
    while starts.contains(&None) {
        loop {
            let waits = |job: &usize| starts[*job].is_none() && jobs[*job].submit_s <= now_s;
            let queue: Vec<usize> = (0..jobs.len()).filter(waits).collect();
            let free = free(jobs, &starts, now_s);
            let Some(&head) = queue.first() else { break };
            if jobs[head].cores <= free[0] {
                starts[head] = Some(now_s);
                continue;
            }
            let head_at = free
                .iter()
                .position(|&free| free >= jobs[head].cores)
                .unwrap();
            let extra = free[head_at] - jobs[head].cores;
            let next = queue[1..].iter().find(|&&job| {
                let in_time = jobs[job].requested_s <= head_at as u64;
                jobs[job].cores <= free[0] && (in_time || jobs[job].cores <= extra)
            });
            let Some(&next) = next else { break };
            starts[next] = Some(now_s);
        }
        now_s += 1;
    }
    starts.into_iter().flatten().collect()
}

#[test]
fn fcfs_lets_nobody_overtake() {
    for seed in 0..TRACES {
        let jobs = trace(seed);
        let starts = starts(&jobs, &mut Fcfs::new(CORES));
        assert!(starts.is_sorted(), "seed {seed}");
        // Who waits does so because there is no room.
        for (index, job) in jobs.iter().enumerate() {
            let before = index.checked_sub(1).map_or(0, |before| starts[before]);
            let earliest_s = before.max(job.submit_s);
            if starts[index] > earliest_s {
                let all: Vec<_> = (0..jobs.len())
                    .map(|of| (of < index).then_some(starts[of]))
                    .collect();
                let now_s = starts[index] - 1;
                let used: u64 = (0..index)
                    .filter(|&of| all[of].is_some_and(|start_s| start_s + jobs[of].run_s > now_s))
                    .map(|of| jobs[of].cores)
                    .sum();
                assert!(used + job.cores > CORES, "seed {seed}");
            }
        }
    }
}

#[test]
fn easy_is_as_worked_out_second_by_second() {
    for seed in 0..TRACES {
        let jobs = trace(seed);
        let starts = starts(&jobs, &mut Easy::new(CORES));
        assert_eq!(starts, easy_by_seconds(&jobs), "seed {seed}");
    }
}

/// With exact estimates nothing moves after it was planned, and each job is where it could
/// be at the earliest beside those that came before.
#[test]
fn conservative_reserves_for_all() {
    for seed in 0..TRACES {
        let jobs: Vec<_> = trace(seed)
            .iter()
            .map(|job| job.with(Estimates::Perfect))
            .collect();
        let starts = starts(&jobs, &mut Conservative::new(CORES));
        let mut used = [0; 2000];
        for (job, start_s) in jobs.iter().zip(starts) {
            let fits = |from_s: &u64| {
                let over = *from_s as usize..(from_s + job.requested_s) as usize;
                used[over].iter().all(|used| used + job.cores <= CORES)
            };
            let expected_s = (job.submit_s..).find(fits).unwrap();
            assert_eq!(start_s, expected_s, "seed {seed}");
            for used in &mut used[start_s as usize..(start_s + job.run_s) as usize] {
                *used += job.cores;
            }
        }
    }
}

/// On one node the planner is conservative backfilling.
#[test]
fn the_planner_on_one_node_is_conservative() {
    for seed in 0..TRACES {
        let jobs = trace(seed);
        let one = starts(&jobs, &mut planned(&[CORES]));
        assert_eq!(
            one,
            starts(&jobs, &mut Conservative::new(CORES)),
            "seed {seed}"
        );
    }
}

/// On several nodes it never uses more than there is, and all start.
#[test]
fn the_planner_starts_all() {
    for seed in 0..TRACES {
        let mut jobs = trace(seed);
        for job in &mut jobs {
            job.cores = job.cores.min(4);
        }
        starts(&jobs, &mut planned(&[4, 4]));
    }
}
