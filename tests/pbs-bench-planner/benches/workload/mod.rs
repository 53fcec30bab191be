// SPDX-License-Identifier: GPL-2.0
//! A synthetic workload of rigid jobs. It is no trace of a real machine.
//!
//! The same on every machine: a machine of [`NODES`] nodes, and jobs that
//!
//! - want 1 node (one in four), or 2 to 512, by powers of two in three of four
//!   cases, the small ones as often as the large ones on a logarithmic scale;
//! - run for a minute to a day, likewise on a logarithmic scale;
//! - are planned for as long as they run, or are estimated, as people do, with the
//!   next of a few round numbers that is no less than one to five times as long;
//! - are submitted at random times, so that what is planned takes the given share
//!   of what the machine has.
//!
//! Times are in seconds.

use pbs_random::Random;

/// Nodes of the machine.
pub(crate) const NODES: u64 = 1152;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Estimates that people give.
const ESTIMATES: [u64; 10] = [
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
];

#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) submitted: u64,
    pub(crate) nodes: u64,
    /// Planned run time.
    pub(crate) planned: u64,
    /// Real run time, which is no longer.
    pub(crate) runtime: u64,
}

/// Knowledge about the run times of jobs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Lengths {
    Known,
    Estimated,
}

/// Each order of magnitude as likely.
fn logarithmic(random: &mut Random, least: u64, greatest: u64) -> u64 {
    let (least, greatest) = (least as f64, greatest as f64);
    (least * (greatest / least).powf(random.unit())) as u64
}

fn nodes(random: &mut Random) -> u64 {
    if random.unit() < 0.25 {
        return 1;
    }
    let nodes = logarithmic(random, 2, 512);
    if random.unit() < 0.75 {
        nodes.next_power_of_two().min(512)
    } else {
        nodes
    }
}

/// Makes `count` jobs in the order in which they are submitted.
pub(crate) fn jobs(count: usize, seed: u64, lengths: Lengths, load_permille: u64) -> Vec<Job> {
    let mut random = Random::new(seed);
    let mut jobs: Vec<Job> = (0..count)
        .map(|_| {
            let (nodes, runtime) = (nodes(&mut random), logarithmic(&mut random, MINUTE, DAY));
            let guess = (runtime as f64 * (1.0 + 4.0 * random.unit())) as u64;
            let round = ESTIMATES.into_iter().find(|&round| round >= guess);
            Job {
                submitted: 0,
                nodes,
                planned: match lengths {
                    Lengths::Known => runtime,
                    Lengths::Estimated => round.unwrap_or(5 * DAY),
                },
                runtime,
            }
        })
        .collect();
    let area: u64 = jobs.iter().map(|job| job.nodes * job.planned).sum();
    let span = area * 1000 / (NODES * load_permille);
    let mut times: Vec<_> = (0..count).map(|_| random.next() % span).collect();
    times.sort_unstable();
    for (job, time) in jobs.iter_mut().zip(times) {
        job.submitted = time;
    }
    jobs
}
