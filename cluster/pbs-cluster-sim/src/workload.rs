// SPDX-License-Identifier: GPL-2.0
//! Jobs like those of OCuLUS (Keller, section 6 and example 3).
//!
//! Published, and kept: how many jobs there were by their cores, how long those of each size
//! ran on average and how well their users had estimated that; the jobs of a mean and of the
//! busiest day; about 200 users in about 70 groups; run times of seconds to 60 days; that
//! the many jobs of one core came as arrays.
//!
//! Chosen here, as it is not published:
//!
//! - What jobs ask for is log-normal with a sigma of [`SPREAD`], in whole ten minutes. They run
//!   for a part of it that is equally distributed about the mean accuracy.
//! - Arrays have 1 to [`Workload::longest_array`] jobs, log-uniformly; all of an array come
//!   at once and ask for the same. Jobs of several cores come by themselves.
//! - Jobs come at any time of the day alike, and a few users have most of them.
//! - The busiest day is a mean day with arrays of one core for all that is more.
//! - Memory is unknown, and nobody takes anything back.
//!
//! What is published does not fit together in all points, as it is of different years: jobs
//! of example 3 run for 91 minutes on average and not for 184, and use three tenths of the
//! machine at 3,082 a day. For a loaded cluster ask [`Workload::oculus`] for more a day.

use pbs_gen::{Random, Stream};

use crate::load::span_s;
use crate::{Size, Status, TraceJob};

/// Cores of OCuLUS.
pub const CORES: u64 = 9_920;
/// Jobs on a day, on average.
pub const MEAN_DAY: usize = 3_082;
/// Jobs on the busiest day.
pub const BUSIEST_DAY: usize = 196_217;
/// Sigma of the logarithm of what jobs ask for.
pub const SPREAD: f64 = 1.2;

const DAY_S: u64 = 86_400;
const MAX_S: f64 = 60.0 * DAY_S as f64;
/// Users ask for whole ten minutes.
const ROUND_S: u64 = 600;
const USERS: u64 = 200;
pub(crate) const GROUPS: u64 = 70;

/// Jobs of a size.
struct SizeOf {
    cores: u64,
    /// In a year, on average.
    jobs: u64,
    mean_run_hours: f64,
    /// Run time over what was asked for, on average.
    accuracy: f64,
}

const fn size(cores: u64, jobs: u64, mean_run_hours: f64, accuracy: f64) -> SizeOf {
    SizeOf { cores, jobs, mean_run_hours, accuracy }
}

/// Example 3, in its order.
const SIZES: [SizeOf; 10] = [
    size(16, 57_516, 10.0, 0.4167),
    // A day and 50 minutes.
    size(32, 9_701, 24.0 + 50.0 / 60.0, 0.3968),
    size(1_024, 277, 19.0, 0.6530),
    size(768, 468, 10.0, 0.5591),
    size(64, 3_883, 13.0, 0.4600),
    size(128, 14_002, 1.0, 0.2643),
    size(256, 684, 13.0, 0.3930),
    size(1_536, 77, 16.0, 0.6401),
    ONE_CORE,
    size(512, 151, 16.0, 0.6261),
];

const ONE_CORE: SizeOf = size(1, 1_480_565, 1.0, 0.2139);

/// Parameters of the generated jobs. Equal parameters produce equal jobs on every machine.
///
/// ```
/// use pbs_cluster_sim::workload::{Workload, MEAN_DAY};
///
/// let jobs = Workload::mean_day(1).generate();
/// assert_eq!(jobs.len(), MEAN_DAY);
/// assert!(jobs.is_sorted_by_key(|job| job.submit_s));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Number of jobs of all sizes.
    pub jobs: usize,
    /// Number of additional jobs of one core, in arrays.
    pub more_of_one_core: usize,
    /// In how many seconds they come.
    pub span_s: u64,
    /// Maximum number of jobs of an array.
    pub longest_array: u64,
    /// Seed of the random numbers: another seed yields other jobs.
    pub seed: u64,
}

impl Workload {
    /// Creates a workload with a number of jobs and their average number a day.
    pub fn oculus(jobs: usize, per_day: usize, seed: u64) -> Self {
        let span_s = jobs as u128 * u128::from(DAY_S) / per_day.max(1) as u128;
        Self {
            jobs,
            more_of_one_core: 0,
            span_s: u64::try_from(span_s).unwrap_or(u64::MAX).max(1),
            longest_array: 2_000,
            seed,
        }
    }

    /// Stretches or shortens the span, after which the same jobs request that part of a machine's
    /// core time.
    pub fn with_load(self, cores: u64, load_percent: u64) -> Self {
        let span_s = span_s(&self.generate(), cores, load_percent);
        Self { span_s, ..self }
    }

    /// A day with as many jobs as there were on average.
    pub fn mean_day(seed: u64) -> Self {
        Self::oculus(MEAN_DAY, MEAN_DAY, seed)
    }

    /// The day with the most jobs.
    pub fn busiest_day(seed: u64) -> Self {
        Self {
            more_of_one_core: BUSIEST_DAY - MEAN_DAY,
            longest_array: 10_000,
            ..Self::mean_day(seed)
        }
    }

    /// The jobs, in the order in which they come.
    pub fn generate(&self) -> Vec<TraceJob> {
        let mut random = Random::new(self.seed, Stream::Trace);
        let mut jobs = Vec::with_capacity(self.jobs + self.more_of_one_core);
        while jobs.len() < self.jobs {
            let room = self.jobs - jobs.len();
            let size = any_size(&mut random);
            self.array(&mut random, size, room, &mut jobs);
        }
        let all = self.jobs + self.more_of_one_core;
        while jobs.len() < all {
            let room = all - jobs.len();
            self.array(&mut random, &ONE_CORE, room, &mut jobs);
        }
        jobs.sort_by_key(|job| job.submit_s);
        for (number, job) in (1..).zip(&mut jobs) {
            job.number = number;
        }
        jobs
    }

    /// Adds a job, or an array of those of one core, or none.
    fn array(&self, random: &mut Random, size: &SizeOf, room: usize, jobs: &mut Vec<TraceJob>) {
        let count = match size.cores {
            1 => 1 + random.below(self.longest_array.max(1)),
            _ => 1,
        };
        // Sizes are drawn by their jobs, of which an array has many: so each job is as likely
        // as it has to be, and lengths of arrays are log-uniform.
        if random.below(count) > 0 {
            return;
        }
        let count = usize::try_from(count).unwrap_or(room).min(room);
        let mean_s = size.mean_run_hours * 3600.0 / size.accuracy;
        // The mean of a log-normal is greater than its median by this.
        let factor = libm::exp(SPREAD * random.normal() - SPREAD * SPREAD / 2.0);
        let requested_s = (mean_s * factor).clamp(1.0, MAX_S) as u64;
        let requested_s = requested_s.div_ceil(ROUND_S).max(1) * ROUND_S;
        let user = user(random);
        let whole = TraceJob {
            user,
            group: 1 + (user - 1) % GROUPS,
            status: Status::Completed,
            ..TraceJob::new(random.below(self.span_s.max(1)), 0, requested_s, size.cores)
        };
        let with_run = |random: &mut Random| {
            // From 0 to twice the accuracy, or as far below 1 as its mean wants.
            let half = size.accuracy.min(1.0 - size.accuracy);
            let part = size.accuracy - half + 2.0 * half * share(random);
            TraceJob { run_s: ((requested_s as f64 * part) as u64).clamp(1, requested_s), ..whole }
        };
        jobs.extend((0..count).map(|_| with_run(random)));
    }
}

/// Example 3 itself: what jobs are drawn from. What its columns do not tell, core time, is
/// jobs times run time times cores, as a part of that of the ten rows, which have 73.83 % of all.
pub fn published() -> Vec<Size> {
    let core_hours = |of: &SizeOf| of.jobs as f64 * of.mean_run_hours * of.cores as f64;
    let all_jobs: u64 = SIZES.iter().map(|of| of.jobs).sum();
    let all_core_hours: f64 = SIZES.iter().map(core_hours).sum();
    let size = |of: &SizeOf| Size {
        cores: of.cores,
        jobs: of.jobs as usize,
        share_of_jobs: of.jobs as f64 / all_jobs as f64,
        mean_run_s: of.mean_run_hours * 3600.0,
        mean_accuracy: of.accuracy,
        share_of_core_s: core_hours(of) / all_core_hours,
    };
    SIZES.iter().map(size).collect()
}

/// [`Workload::oculus`] as jobs.
pub fn oculus(jobs: usize, per_day: usize, seed: u64) -> Vec<TraceJob> {
    Workload::oculus(jobs, per_day, seed).generate()
}

/// Gives jobs deadlines, for experiments: `percent` of them, at any time from the one at
/// which they end if they start at once to that and `slack_percent` of what they ask for.
/// Others lose theirs. Nothing of this is published.
pub fn add_deadlines(jobs: &mut [TraceJob], percent: u64, slack_percent: u64, seed: u64) {
    let mut random = Random::new(seed, Stream::TraceDeadlines);
    for job in jobs {
        let (draw, slack) =
            (random.below(100), random.below(slack_percent.saturating_add(1).max(1)));
        let slack_s = u128::from(job.requested_s) * u128::from(slack) / 100;
        let slack_s = u64::try_from(slack_s).unwrap_or(u64::MAX);
        let end_s = job.submit_s.saturating_add(job.requested_s).saturating_add(slack_s);
        job.deadline_s = (draw < percent).then_some(end_s);
    }
}

/// Each as likely as it has jobs.
fn any_size(random: &mut Random) -> &'static SizeOf {
    let mut draw = random.below(SIZES.iter().map(|size| size.jobs).sum());
    for size in &SIZES {
        if draw < size.jobs {
            return size;
        }
        draw -= size.jobs;
    }
    &ONE_CORE
}

/// From 1; a few have most.
pub(crate) fn user(random: &mut Random) -> u64 {
    let most = 1 + random.below(USERS);
    1 + random.below(most)
}

/// Between 0 and 1.
pub(crate) fn share(random: &mut Random) -> f64 {
    const STEPS: u64 = 1 << 32;
    (random.below(STEPS) + 1) as f64 / STEPS as f64
}
