// SPDX-License-Identifier: GPL-2.0
//! Shares of all jobs that keep their deadlines: those that the demand test admits, and
//! the declined ones as best effort behind them, on a node that runs the earliest deadline
//! first.

mod common;

use common::{job, machine};
use pbs_control::{Controller, Options};
use pbs_job::{Job, Machine};
use pbs_plan::{Config, Dispatch};
use pbs_planner::{Options as Search, Strategy};
use pbs_random::Random;

const US: u64 = 1_000;
const JOBS: usize = 20;
const DRAWS: u64 = 300;

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

/// Returns whether each job is admitted, if they are submitted one after the other.
fn admit(jobs: &[Drawn], demand_permille: u64) -> Vec<bool> {
    let options = Options {
        config: Some(Config { dispatch: Dispatch::Deadline as u64, ..Config::DEFAULT }),
        planning: Search {
            // Each job has one task: there is no better place than where it ends first.
            strategies: vec![Strategy::EarliestFinish],
            ..Search::default()
        },
        ..Options::default()
    };
    let mut controller = Controller::new(
        Machine { demand_permille: Some(demand_permille), ..machine() },
        options,
        1,
        1,
    );
    let answers = jobs.iter().map(|drawn| {
        let asked = job("drawn", &[drawn.planned_us * US], drawn.deadline_us * US);
        controller.admit(Job { start_ns: drawn.release_us * US, ..asked }, 0).is_ok()
    });
    answers.collect()
}

/// Counts the jobs that are in time if nobody else wants the CPU. Admitted jobs that have retired
/// at most half more than planned come first, then the other admitted jobs, then best effort.
/// Within each group the earliest deadline comes first.
fn kept(jobs: &[Drawn], admitted: &[bool]) -> usize {
    let mut done_us = vec![0; jobs.len()];
    let (mut kept, mut open, mut now_us) = (0, jobs.len(), 0);
    while open > 0 {
        let releases = jobs.iter().map(|job| job.release_us).filter(|&at_us| at_us > now_us);
        let until_us = releases.min().unwrap_or(u64::MAX);
        let ready = (0..jobs.len())
            .filter(|&it| jobs[it].release_us <= now_us && done_us[it] < jobs[it].real_us);
        let t2_us = |it: usize| jobs[it].planned_us * 3 / 2;
        let next = ready.min_by_key(|&it| {
            let is_behind = !admitted[it] || done_us[it] >= t2_us(it);
            (is_behind, !admitted[it], jobs[it].deadline_us)
        });
        let Some(next) = next else {
            now_us = until_us;
            continue;
        };
        let end_us = if done_us[next] < t2_us(next) {
            jobs[next].real_us.min(t2_us(next))
        } else {
            jobs[next].real_us
        };
        let length_us = (end_us - done_us[next]).min(until_us - now_us);
        done_us[next] += length_us;
        now_us += length_us;
        if done_us[next] == jobs[next].real_us {
            open -= 1;
            kept += usize::from(now_us <= jobs[next].deadline_us);
        }
    }
    kept
}

/// In thousandths: innocent jobs in time, without and with a rogue, and admitted jobs.
fn figures(load_percent: u64, demand_permille: u64) -> [usize; 3] {
    let mut sums = [0; 3];
    for seed in 1..=DRAWS {
        let jobs = draw(load_percent, false, seed);
        // What is declared is the same with a rogue.
        let admitted = admit(&jobs, demand_permille);
        sums[0] += kept(&jobs, &admitted);
        sums[1] += kept(&draw(load_percent, true, seed), &admitted);
        sums[2] += admitted.iter().filter(|admitted| **admitted).count();
    }
    let of = |sum: usize, jobs: usize| sum * 1_000 / (jobs * DRAWS as usize);
    [of(sums[0], JOBS), of(sums[1], JOBS - 1), of(sums[2], JOBS)]
}

#[test]
fn most_jobs_are_in_time_at_every_load() {
    let figures = [50, 70, 100, 130].map(|load_percent| {
        [0, 900, 950].map(|demand_permille| figures(load_percent, demand_permille))
    });
    println!("{figures:?}");
    let least_permille = [
        [[950, 940], [960, 950]],
        [[900, 880], [910, 900]],
        [[790, 775], [810, 790]],
        [[680, 660], [690, 670]],
    ];
    for (of_load, least) in figures.iter().zip(least_permille) {
        let [search, of_shares @ ..] = of_load;
        for ([calm, with_a_rogue, admitted], least) in of_shares.iter().zip(least) {
            assert!(*calm >= least[0] && *with_a_rogue >= least[1], "{of_load:?}");
            // The search alone admits at least a twentieth less.
            assert!(*admitted > search[2] + 50, "{of_load:?}");
        }
    }
}
