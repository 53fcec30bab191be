// SPDX-License-Identifier: GPL-2.0
//! Each policy does what it is known for, on thousands of small random traces.

use std::sync::Arc;

use pbs_cluster_planner::optimise::{Budget, Objective};
use pbs_cluster_planner::{Machine, NodeSpec, Resource, Rules};
use pbs_cluster_sim::{
    check, replay, Conservative, Easy, Estimates, Expect, Fcfs, NeverRan, Optimised, Optimising,
    Outcome, Planned, Policy, Promise, TraceJob, Unstarted,
};
use pbs_gen::{Random, Stream};

const CORES: u64 = 8;
const TRACES: u64 = 2_000;
/// After this all have ended, whatever waits for whom.
const HORIZON_S: u64 = 320;

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
    let ncpus = Resource { name: "ncpus".into(), job_wide: None };
    let nodes = cores
        .iter()
        .enumerate()
        .map(|(index, &cores)| NodeSpec::new(format!("n{index}"), vec![cores]));
    let machine = Machine::new(vec![ncpus], &nodes.collect::<Vec<_>>());
    Planned::new(Arc::new(machine), Rules::default(), usize::MAX)
}

/// Jobs that a policy declines have its reason: no place by the deadline, under both planners.
#[test]
fn jobs_that_never_ran_have_reasons() {
    let late = |number| TraceJob { number, deadline_s: Some(9), ..TraceJob::new(0, 10, 10, CORES) };
    let jobs = [late(1), TraceJob { number: 2, preceding: Some(1), ..TraceJob::new(5, 1, 1, 1) }];
    let optimised = Optimised::new(
        CORES,
        Optimising {
            objective: Objective::default(),
            budget: Budget::default(),
            promise: Promise::Deadline,
            expect: Expect::Limit,
            express: None,
            seed: 1,
        },
    );
    let policies: [Box<dyn Policy>; 2] =
        [Box::new(planned(&[4, 4]).keeping_deadlines()), Box::new(optimised)];
    for mut policy in policies {
        let outcomes = replay(&jobs, policy.as_mut(), |_| ()).unwrap();
        let all = Unstarted::of_replay(&jobs, &outcomes, CORES, &policy.declined(), |_| true);
        let expected = [
            Unstarted { why: NeverRan::Deadline, jobs: 1, first: 1 },
            Unstarted { why: NeverRan::Predecessor, jobs: 1, first: 2 },
        ];
        assert_eq!(all, expected, "{}", policy.name());
    }
}

fn starts(jobs: &[TraceJob], policy: &mut dyn Policy) -> Vec<u64> {
    let outcomes = replay(jobs, policy, |_| ()).unwrap();
    check(jobs, &outcomes, CORES).unwrap();
    let start = |outcome: &Outcome| outcome.start_s.expect("all start");
    outcomes.iter().map(start).collect()
}

/// Returns the free cores of each second from `now_s` on, if running jobs use their whole requested
/// time.
fn free(jobs: &[TraceJob], starts: &[Option<u64>], now_s: u64) -> Vec<u64> {
    let free = (now_s..now_s + HORIZON_S).map(|time_s| {
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
            let head_at = free.iter().position(|&free| free >= jobs[head].cores).unwrap();
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

/// FCFS: each starts at the first second, not before the one that came before it, from
/// which on those before it leave it enough.
fn fcfs_one_by_one(jobs: &[TraceJob]) -> Vec<u64> {
    let mut starts: Vec<u64> = Vec::new();
    for job in jobs {
        let before = starts.last().copied().unwrap_or(0);
        let has_room = |now_s: &u64| {
            let others = jobs.iter().zip(&starts);
            let running = others.filter(|(other, start_s)| *start_s + other.run_s > *now_s);
            running.map(|(other, _)| other.cores).sum::<u64>() + job.cores <= CORES
        };
        let start_s = (before.max(job.submit_s)..).find(has_room).unwrap();
        starts.push(start_s);
    }
    starts
}

/// Conservative backfilling second by second, and core seconds looked at one by one.
fn conservative_by_seconds(jobs: &[TraceJob]) -> Vec<u64> {
    let mut planned: Vec<Option<u64>> = vec![None; jobs.len()];
    for now_s in 0..HORIZON_S {
        let fits = |planned: &[Option<u64>], job: usize, from_s: u64| {
            (from_s..from_s + jobs[job].requested_s).all(|time_s| {
                let used = (0..jobs.len()).filter(|&other| other != job).filter(|&other| {
                    planned[other].is_some_and(|start_s| {
                        // Who has started and is over has given back what is left.
                        let is_over = start_s + jobs[other].run_s <= now_s;
                        let until_s = start_s + jobs[other].requested_s;
                        !is_over && (start_s..until_s).contains(&time_s)
                    })
                });
                used.map(|other| jobs[other].cores).sum::<u64>() + jobs[job].cores <= CORES
            })
        };
        let ends_early = |job: usize| {
            let end_s = |start_s| start_s + jobs[job].run_s;
            jobs[job].run_s < jobs[job].requested_s && planned[job].map(end_s) == Some(now_s)
        };
        if (0..jobs.len()).any(ends_early) {
            for job in 0..jobs.len() {
                if planned[job].is_some_and(|start_s| start_s > now_s) {
                    planned[job] = (now_s..).find(|&from_s| fits(&planned, job, from_s));
                }
            }
        }
        for job in (0..jobs.len()).filter(|&job| jobs[job].submit_s == now_s) {
            planned[job] = (now_s..).find(|&from_s| fits(&planned, job, from_s));
        }
    }
    planned.into_iter().flatten().collect()
}

/// A policy, of which is noted after each question who waits first and when it starts at
/// the latest.
struct Watched {
    easy: Easy,
    reservations: Vec<(usize, u64)>,
}

impl Policy for Watched {
    fn name(&self) -> &str {
        self.easy.name()
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        self.easy.submit(now_s, job, what);
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        self.easy.ended(now_s, job);
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.easy.start(now_s, started);
        self.reservations.extend(self.easy.reservation());
    }
}

#[test]
fn fcfs_is_as_worked_out_one_by_one() {
    for seed in 0..TRACES {
        let jobs = trace(seed);
        let starts = starts(&jobs, &mut Fcfs::new(CORES));
        assert!(starts.is_sorted(), "seed {seed}: somebody overtakes");
        assert_eq!(starts, fcfs_one_by_one(&jobs), "seed {seed}");
    }
}

#[test]
fn conservative_is_as_worked_out_second_by_second() {
    for seed in 0..TRACES {
        let jobs = trace(seed);
        let starts = starts(&jobs, &mut Conservative::new(CORES));
        assert_eq!(starts, conservative_by_seconds(&jobs), "seed {seed}");
    }
}

#[test]
fn easy_never_delays_the_first() {
    let mut waited = 0;
    for seed in 0..TRACES {
        for estimates in [Estimates::Users, Estimates::Perfect] {
            let jobs: Vec<_> = trace(seed).iter().map(|job| job.with(estimates)).collect();
            let mut watched = Watched { easy: Easy::new(CORES), reservations: Vec::new() };
            let starts = starts(&jobs, &mut watched);
            for (job, at_most_s) in watched.reservations {
                assert!(starts[job] <= at_most_s, "seed {seed}: job {job}");
                waited += 1;
            }
        }
    }
    assert!(waited > TRACES, "{waited} have waited");
}

#[test]
fn conservative_keeps_what_it_told() {
    let mut earlier = 0;
    for seed in 0..TRACES {
        let jobs = trace(seed);
        // However few are looked at for an earlier time.
        for looks in [0, 1, 3, usize::MAX] {
            let mut policy = Conservative::new(CORES).with_most_looks(looks);
            let starts = starts(&jobs, &mut policy);
            for (job, start_s) in starts.into_iter().enumerate() {
                let told_s = policy.told_s(job).unwrap();
                assert!(start_s <= told_s, "seed {seed}: job {job}");
                earlier += u64::from(start_s < told_s);
                assert!(looks > 0 || start_s == told_s, "seed {seed}: job {job}");
            }
        }
    }
    assert!(earlier > TRACES, "{earlier} were earlier than told");
}

#[test]
fn what_has_no_room_is_declined() {
    let wide = [CORES + 1, 0, CORES];
    let jobs = wide.map(|cores| TraceJob::new(0, 10, 20, cores));
    let (mut fcfs, mut easy) = (Fcfs::new(CORES), Easy::new(CORES));
    let mut conservative = Conservative::new(CORES);
    let all: [&mut dyn Policy; 3] = [&mut fcfs, &mut easy, &mut conservative];
    for policy in all {
        let outcomes = replay(&jobs, policy, |_| ()).unwrap();
        let starts: Vec<_> = outcomes.iter().map(|outcome| outcome.start_s).collect();
        assert_eq!(starts, [None, None, Some(0)], "{}", policy.name());
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
        let jobs: Vec<_> = trace(seed).iter().map(|job| job.with(Estimates::Perfect)).collect();
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
        assert_eq!(one, starts(&jobs, &mut Conservative::new(CORES)), "seed {seed}");
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

#[test]
fn who_is_planned_to_a_deadline_keeps_it_or_is_declined() {
    let (mut declined, mut kept, mut missed) = (0, 0, 0);
    for seed in 0..TRACES {
        let mut jobs = trace(seed);
        pbs_cluster_sim::workload::add_deadlines(&mut jobs, 50, 100, seed);
        let outcomes = |policy: &mut Planned| replay(&jobs, policy, |_| ()).unwrap();
        let careless = outcomes(&mut planned(&[CORES]));
        let careful = outcomes(&mut planned(&[CORES]).keeping_deadlines());
        check(&jobs, &careful, CORES).unwrap();
        for ((job, careful), careless) in jobs.iter().zip(&careful).zip(&careless) {
            let Some(deadline_s) = job.deadline_s else {
                assert!(careful.start_s.is_some(), "seed {seed}: who has none is never declined");
                continue;
            };
            match careful.start_s {
                Some(_) => assert!(careful.end_s <= deadline_s, "seed {seed}: {careful:?}"),
                None => declined += 1,
            }
            kept += u32::from(careful.start_s.is_some());
            missed += u32::from(careless.end_s > deadline_s);
        }
    }
    assert!(declined > 100 && kept > 100 && missed > 100, "{declined}, {kept}, {missed}");
}
