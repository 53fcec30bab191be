// SPDX-License-Identifier: GPL-2.0
//! Shares of all jobs that keep their deadlines: those that the demand test admits, and
//! the declined ones as best effort behind them, on a node that runs the earliest deadline
//! first.

mod common;

use common::{job, machine};
use pbs_control::{Controller, Options};
use pbs_job::{Job, Machine};
use pbs_planner::{Options as Search, Strategy};
use pbs_random::Random;

const US: u64 = 1_000;
const JOBS: usize = 20;
const DRAWS: u64 = 300;
/// Of each window of 20 ms the last millisecond is not for plans.
const WINDOW_US: u64 = 20_000;
const UNALLOCATED_US: u64 = 1_000;

/// A job with what it really takes.
#[derive(Clone)]
struct Drawn {
    release_us: u64,
    deadline_us: u64,
    planned_us: u64,
    real_us: u64,
}

/// Jobs as `scripts/compare-schedulers` draws them: 10 to 80 ms long, with deadlines after
/// 1.5 to 4 times as much, and real lengths up to a fifth off.
fn draw(load_percent: u64, rogue: bool, seed: u64) -> Vec<Drawn> {
    let mut random = Random::new(seed);
    let mut between = |least: u64, most: u64| least + random.below(most - least + 1);
    let mut jobs: Vec<_> = (0..JOBS)
        .map(|_| {
            let planned_us = between(10_000, 80_000);
            let slack_permille = between(1_500, 4_000);
            (between(0, 10_000), planned_us, slack_permille, between(800, 1_200))
        })
        .collect();
    jobs.sort_unstable();
    let rogue_is = between(0, JOBS as u64 / 2 - 1) as usize;
    let sum_us: u64 = jobs.iter().map(|job| job.1).sum();
    let (first, within_us) = (jobs[0].0, sum_us * 100 / load_percent);
    let jobs = jobs.into_iter().enumerate();
    jobs.map(|(index, (at, planned_us, slack_permille, real_permille))| {
        let release_us = within_us * (at - first) / 10_000;
        let is_rogue = rogue && index == rogue_is;
        Drawn {
            release_us,
            deadline_us: release_us + planned_us * slack_permille / 1_000,
            planned_us,
            real_us: if is_rogue { planned_us * 10 } else { planned_us * real_permille / 1_000 },
        }
    })
    .collect()
}

/// Which jobs are admitted, asked for one after the other.
fn admit(jobs: &[Drawn], demand_permille: Option<u64>) -> Vec<bool> {
    let options = Options {
        by_deadline: true,
        planning: Search {
            // Each job has one task: there is no better place than where it ends first.
            strategies: vec![Strategy::EarliestFinish],
            ..Search::default()
        },
        ..Options::default()
    };
    let mut controller = Controller::new(Machine { demand_permille, ..machine() }, options, 1, 1);
    let answers = jobs.iter().map(|drawn| {
        let asked = job("drawn", &[drawn.planned_us * US], drawn.deadline_us * US);
        controller.admit(Job { start_ns: drawn.release_us * US, ..asked }, 0).is_ok()
    });
    answers.collect()
}

/// How many of the jobs are in time, in steps of 100 µs: the earliest deadline first of
/// those that are admitted and retire no more than half more than planned, then those that
/// do, then best effort.
fn kept(jobs: &[Drawn], admitted: &[bool]) -> usize {
    const STEP_US: u64 = 100;
    let mut done_us = vec![0; jobs.len()];
    let mut kept = 0;
    let mut open = jobs.len();
    for step in 0.. {
        let now_us = step * STEP_US;
        if open == 0 {
            break;
        }
        if now_us % WINDOW_US >= WINDOW_US - UNALLOCATED_US {
            continue;
        }
        let ready = (0..jobs.len())
            .filter(|&it| jobs[it].release_us <= now_us && done_us[it] < jobs[it].real_us);
        let next = ready.min_by_key(|&it| {
            let beyond_t2 = done_us[it] * 2 > jobs[it].planned_us * 3;
            (!admitted[it] || beyond_t2, !admitted[it], jobs[it].deadline_us)
        });
        if let Some(next) = next {
            done_us[next] += STEP_US;
            if done_us[next] >= jobs[next].real_us {
                open -= 1;
                kept += usize::from(now_us + STEP_US <= jobs[next].deadline_us);
            }
        }
    }
    kept
}

/// In thousandths of all jobs: those in time, and those admitted by the demand test and by
/// the search alone.
fn figures(load_percent: u64, rogue: bool) -> [usize; 3] {
    let mut sums = [0; 3];
    for seed in 1..=DRAWS {
        let jobs = draw(load_percent, rogue, seed);
        let by_demand = admit(&jobs, None);
        let by_search = admit(&jobs, Some(0));
        sums[0] += kept(&jobs, &by_demand);
        for (sum, admitted) in sums[1..].iter_mut().zip([&by_demand, &by_search]) {
            *sum += admitted.iter().filter(|admitted| **admitted).count();
        }
    }
    sums.map(|sum| sum * 1_000 / (JOBS * DRAWS as usize))
}

#[test]
fn most_jobs_are_in_time_at_every_load() {
    for (load_percent, [calm, with_a_rogue]) in
        [(50, [960, 950]), (70, [910, 900]), (100, [810, 790]), (130, [690, 670])]
    {
        for (rogue, least_permille) in [(false, calm), (true, with_a_rogue)] {
            let [kept, by_demand, by_search] = figures(load_percent, rogue);
            println!("{load_percent} {rogue}: {kept} {by_demand} {by_search}");
            assert!(kept >= least_permille, "load {load_percent}: {kept} of {least_permille}");
            assert!(by_demand > by_search + 50, "{by_demand} {by_search}");
        }
    }
}
