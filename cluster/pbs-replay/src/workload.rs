// SPDX-License-Identifier: GPL-2.0
//! Jobs like those of OCuLUS (Keller, 6 and example 3).
//!
//! Published are how many jobs there were by their cores, how long they ran on average and
//! how well their users had estimated that, the jobs of a mean and of the busiest day, and
//! how many users and groups there are. Chosen here: run times are log-normal about their
//! mean with a spread of 1.2, from a second to 60 days; a user's estimate is right to a
//! part between nothing and twice the mean accuracy, at most all, in whole ten minutes; jobs
//! of one core come in arrays of 1 to 2,000, others by themselves, at any time of the day;
//! a few users have most of the jobs.

use pbs_gen::{Random, Stream};

use crate::TraceJob;

/// Cores, jobs of a year, mean run time in hours, accuracy of the estimate in percent.
const MIX: [(u64, u64, f64, f64); 10] = [
    (16, 57_516, 10.0, 41.67),
    (32, 9_701, 24.83, 39.68),
    (1_024, 277, 19.0, 65.30),
    (768, 468, 10.0, 55.91),
    (64, 3_883, 13.0, 46.00),
    (128, 14_002, 1.0, 26.43),
    (256, 684, 13.0, 39.30),
    (1_536, 77, 16.0, 64.01),
    (1, 1_480_565, 1.0, 21.39),
    (512, 151, 16.0, 62.61),
];

/// Of OCuLUS.
pub const CORES: u64 = 9_920;
/// Jobs on a day, on average.
pub const MEAN_DAY: usize = 3_082;
/// Jobs on the busiest day.
pub const BUSIEST_DAY: usize = 196_217;

const DAY_S: u64 = 86_400;
const MAX_RUN_S: f64 = 60.0 * 86_400.0;
const MAX_ARRAY: u64 = 2_000;
const USERS: u64 = 200;
const GROUPS: u64 = 70;

/// So many jobs, so many a day on average, in the order in which they come. Another seed,
/// other jobs.
pub fn oculus(jobs: usize, per_day: usize, seed: u64) -> Vec<TraceJob> {
    let mut random = Random::new(seed, Stream::Trace);
    let all: u64 = MIX.iter().map(|kind| kind.1).sum();
    let span_s = (jobs as u64 * DAY_S / per_day.max(1) as u64).max(1);
    let mut trace: Vec<TraceJob> = Vec::with_capacity(jobs);
    while trace.len() < jobs {
        let mut pick = random.below(all);
        let kind = MIX.iter().find(|kind| {
            let is_it = pick < kind.1;
            pick = pick.wrapping_sub(kind.1);
            is_it
        });
        let Some(&(cores, _, hours, accuracy_percent)) = kind else {
            continue;
        };
        let count = match cores {
            1 => 1 + random.below(MAX_ARRAY),
            _ => 1,
        };
        // A kind is picked by its jobs, of which an array has many.
        if random.below(count) > 0 {
            continue;
        }
        let submit_s = random.below(span_s);
        let user = user(&mut random);
        for _ in 0..count.min((jobs - trace.len()) as u64) {
            let job = job(&mut random, submit_s, user, cores, hours, accuracy_percent);
            trace.push(job);
        }
    }
    trace.sort_by_key(|job| job.submit_s);
    for (number, job) in (1..).zip(&mut trace) {
        job.number = number;
    }
    trace
}

fn job(
    random: &mut Random,
    submit_s: u64,
    user: u64,
    cores: u64,
    hours: f64,
    accuracy_percent: f64,
) -> TraceJob {
    const SPREAD: f64 = 1.2;
    let mean_s = hours * 3600.0;
    // The mean of a log-normal is greater than its median by this.
    let factor = libm::exp(SPREAD * random.normal() - SPREAD * SPREAD / 2.0);
    let run_s = (mean_s * factor).clamp(1.0, MAX_RUN_S);
    let part = (1 + random.below(1000)) as f64 / 1000.0 * 2.0 * accuracy_percent / 100.0;
    let requested_s = (run_s / part.min(1.0)).min(MAX_RUN_S);
    TraceJob {
        number: 0,
        submit_s,
        run_s: run_s as u64,
        requested_s: (requested_s as u64).div_ceil(600).max(1) * 600,
        cores,
        memory_bytes: None,
        user,
        group: user % GROUPS,
        deadline_s: None,
        status: crate::Status::Completed,
    }
}

/// A few have most.
fn user(random: &mut Random) -> u64 {
    let most = random.below(USERS) + 1;
    random.below(most)
}
