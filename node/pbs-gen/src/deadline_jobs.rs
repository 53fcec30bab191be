// SPDX-License-Identifier: GPL-2.0
//! Independent jobs with deadlines, with the lengths that they are declared with and those
//! that they really have.
//!
//! `scripts/compare-schedulers` runs them in the virtual machine, and `pbsctl study compare`
//! simulates them: both call [`jobs`], therefore a seed has the same jobs in both.

use pbs_job::{job_from_toml, Job};
use pbs_random::Xorshift;
use pbs_text::Problem;
use serde::{Deserialize, Serialize};

/// Number of jobs of a draw.
pub const JOBS: usize = 20;
/// Instructions of a millisecond, for all planned times and lengths.
pub const INSNS_PER_MS: u64 = 250_000;
/// Length of a rogue, in declared lengths, unless a workload has another.
pub const ROGUE_FACTOR: u64 = 10;

/// Least and greatest planned CPU time of a job.
const PLANNED_MS: (u64, u64) = (10, 80);
/// Time from the release to the deadline, in thousandths of the planned time.
const SLACK_PERMILLE: (u64, u64) = (1500, 4000);

/// Distribution of the errors, between the declared lengths and the real ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorShape {
    /// Evenly spread from the error below the declared length to the error above it.
    #[default]
    Uniform,
    /// Mostly a little shorter than declared and seldom much longer: up to twice the error,
    /// with the declared length as mean.
    Skewed,
    /// One error for all jobs of a draw.
    Common,
    /// Longer than declared in all jobs, by up to the error.
    Late,
}

impl ErrorShape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Skewed, Self::Common, Self::Late];

    /// Name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Skewed => "skewed",
            Self::Common => "common",
            Self::Late => "late",
        }
    }

    /// Deviation in thousandths of the error, from a number that is evenly spread between
    /// -1000 and 1000.
    fn deviation_permille(self, drawn_permille: i64) -> i64 {
        // From 0 to 2000.
        let share = drawn_permille + 1_000;
        match self {
            Self::Uniform | Self::Common => drawn_permille,
            // Three times the square of a number from 0 to 1, of which the mean is 1.
            Self::Skewed => 3 * share * share / 4_000 - 1_000,
            Self::Late => share / 2,
        }
    }

    /// Greatest length that a job without a fault may have, in percent of the declared one.
    pub fn greatest_percent(self, error_percent: u64) -> u64 {
        match self {
            Self::Skewed => 100 + 2 * error_percent,
            Self::Uniform | Self::Common | Self::Late => 100 + error_percent,
        }
    }
}

/// A setting of the virtual machine's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// Planned instructions of all jobs, in percent of the instructions that the CPU retires
    /// while jobs are released.
    pub load_percent: u64,
    /// Greatest error of a job's declared length.
    pub error_percent: u64,
    /// One job retires ten times what was planned.
    pub rogue: bool,
    /// Number of the draw.
    pub seed: u64,
}

/// Parameters of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Planned instructions of all jobs, in percent of the instructions that the CPU retires
    /// while jobs are released.
    pub load_percent: u64,
    /// Greatest error of a job's declared length.
    pub error_percent: u64,
    /// Distribution of the errors.
    pub shape: ErrorShape,
    /// Number of rogues, up to half of the jobs.
    pub rogues: usize,
    /// Length of a rogue, in declared lengths.
    pub rogue_factor: u64,
    /// Number of the draw.
    pub seed: u64,
}

impl From<&Setting> for Workload {
    fn from(setting: &Setting) -> Self {
        Self {
            load_percent: setting.load_percent,
            error_percent: setting.error_percent,
            shape: ErrorShape::Uniform,
            rogues: usize::from(setting.rogue),
            rogue_factor: ROGUE_FACTOR,
            seed: setting.seed,
        }
    }
}

/// One process with a deadline. Times count from the begin of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlineJob {
    /// Earliest begin.
    pub release_ns: u64,
    /// Latest end.
    pub deadline_ns: u64,
    /// Declared length.
    pub planned_insns: u64,
    /// Real length.
    pub real_insns: u64,
    /// The job is a rogue.
    pub rogue: bool,
}

impl DeadlineJob {
    /// Job as a planner receives it: one process of one task, with times that count from the
    /// begin of the run.
    ///
    /// # Errors
    ///
    /// Problems of the job, as the reader of jobs reports them.
    pub fn request(&self, index: usize) -> Result<Job, Vec<Problem>> {
        job_from_toml(&format!(
            "name = \"job{index}\"\nstart_ns = {}\ndeadline_ns = {}\n[[process]]\nid = 1\n\
             memory_bytes = 1_000_000\nattaches = \"itself\"\ntasks = [{}]\n",
            self.release_ns, self.deadline_ns, self.planned_insns
        ))
    }
}

/// Draws of one job.
#[derive(Clone, Copy)]
struct Drawn {
    planned_insns: u64,
    slack_permille: u64,
    at_permyriad: u64,
    deviation_permille: i64,
}

impl Drawn {
    fn new(random: &mut Xorshift) -> Self {
        let (least_ms, most_ms) = PLANNED_MS;
        Self {
            planned_insns: random.between(least_ms * INSNS_PER_MS, most_ms * INSNS_PER_MS),
            slack_permille: random.between(SLACK_PERMILLE.0, SLACK_PERMILLE.1),
            at_permyriad: random.between(0, 10_000),
            deviation_permille: random.between(0, 2_000) as i64 - 1_000,
        }
    }
}

/// The jobs of a draw, in the order of their releases. Settings of one seed that differ in
/// the load alone have the same lengths. Settings that differ in the error alone have the
/// same deadlines, and lengths that deviate in proportion to the error.
pub fn jobs(workload: &Workload) -> Vec<DeadlineJob> {
    let mut random = Xorshift::new(workload.seed);
    // The first numbers of a small seed are small.
    for _ in 0..16 {
        random.roll();
    }
    let mut drawn: Vec<_> = (0..JOBS).map(|_| Drawn::new(&mut random)).collect();
    let common_permille = drawn[0].deviation_permille;
    // The first job is released at once.
    drawn.sort_by_key(|job| job.at_permyriad);
    let rogues = rogues(&mut random, workload.rogues);
    let sum_insns: u64 = drawn.iter().map(|job| job.planned_insns).sum();
    let released_in_ns = time_ns(sum_insns) * 100 / workload.load_percent.max(1);
    let first_permyriad = drawn[0].at_permyriad;
    let of = |(index, job): (usize, Drawn)| {
        let drawn_permille = if workload.shape == ErrorShape::Common {
            common_permille
        } else {
            job.deviation_permille
        };
        let deviation_permille = workload.shape.deviation_permille(drawn_permille);
        let planned_insns = job.planned_insns;
        let error = deviation_permille * workload.error_percent as i64;
        let real_insns =
            planned_insns.saturating_add_signed(planned_insns as i64 * error / 100_000);
        let release_ns = released_in_ns * (job.at_permyriad - first_permyriad) / 10_000;
        let rogue = rogues.contains(&index);
        DeadlineJob {
            release_ns,
            deadline_ns: release_ns + time_ns(planned_insns) * job.slack_permille / 1_000,
            planned_insns,
            real_insns: if rogue { planned_insns * workload.rogue_factor } else { real_insns },
            rogue,
        }
    };
    drawn.into_iter().enumerate().map(of).collect()
}

/// Indices of the rogues, all in the first half of the jobs.
fn rogues(random: &mut Xorshift, count: usize) -> Vec<usize> {
    let mut rogues = vec![random.below(JOBS / 2)];
    while rogues.len() < count.min(JOBS / 2) {
        let next = random.below(JOBS / 2);
        if !rogues.contains(&next) {
            rogues.push(next);
        }
    }
    rogues.truncate(count);
    rogues
}

/// Time in which so many instructions are retired.
pub fn time_ns(insns: u64) -> u64 {
    insns * 1_000_000 / INSNS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting =
        Setting { load_percent: 100, error_percent: 20, rogue: false, seed: 3 };

    fn of(setting: &Setting) -> Vec<DeadlineJob> {
        jobs(&setting.into())
    }

    fn shaped(shape: ErrorShape, seed: u64) -> Vec<DeadlineJob> {
        jobs(&Workload { shape, seed, ..Workload::from(&SETTING) })
    }

    /// Real lengths in percent of the declared ones, over a hundred draws.
    fn percents(shape: ErrorShape) -> Vec<f64> {
        let jobs = (1..=100).flat_map(|seed| shaped(shape, seed));
        jobs.map(|job| 100.0 * job.real_insns as f64 / job.planned_insns as f64).collect()
    }

    /// The figures of the virtual machine in Documentation/ are of these jobs.
    #[test]
    fn the_first_draw_is_the_one_that_the_virtual_machine_has_always_run() {
        let jobs = of(&Setting { seed: 1, rogue: true, ..SETTING });
        let first: Vec<_> = jobs[..3]
            .iter()
            .map(|job| (job.release_ns, job.deadline_ns, job.planned_insns, job.real_insns))
            .collect();
        assert_eq!(first, FIRST_DRAW);
        assert_eq!(jobs.iter().position(|job| job.rogue), Some(ROGUE_OF_FIRST_DRAW));
    }

    const FIRST_DRAW: [(u64, u64, u64, u64); 3] = [
        (0, 118_509_966, 11_941_754, 13_900_201),
        (34_014_250, 178_135_201, 13_439_104, 134_391_040),
        (47_835_125, 80_192_690, 4_309_745, 4_724_342),
    ];
    const ROGUE_OF_FIRST_DRAW: usize = 1;

    #[test]
    fn a_seed_has_its_jobs() {
        assert_eq!(of(&SETTING), of(&SETTING));
        assert_ne!(of(&SETTING), of(&Setting { seed: 4, ..SETTING }));
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        for load_percent in [70, 100, 120] {
            let jobs = of(&Setting { load_percent, ..SETTING });
            let sum_insns: u64 = jobs.iter().map(|job| job.planned_insns).sum();
            let last_ns = jobs.iter().map(|job| job.release_ns).max().unwrap();
            let released_in_ns = time_ns(sum_insns) * 100 / load_percent;
            assert!(last_ns <= released_in_ns && last_ns > released_in_ns / 2);
            assert_eq!(jobs[0].release_ns, 0);
        }
    }

    #[test]
    fn errors_are_within_their_bound_and_proportional() {
        let of = |error_percent| of(&Setting { error_percent, ..SETTING });
        let mut differ = 0;
        for ((none, ten), twenty) in of(0).iter().zip(of(10)).zip(of(20)) {
            assert_eq!(none.real_insns, none.planned_insns);
            assert_eq!(none.deadline_ns, twenty.deadline_ns);
            let by = |job: &DeadlineJob| job.real_insns as i64 - job.planned_insns as i64;
            assert!((by(&twenty) - 2 * by(&ten)).abs() <= 2);
            assert!(by(&ten).unsigned_abs() * 10 <= ten.planned_insns + 10);
            differ += u32::from(by(&ten) != 0);
        }
        assert!(differ > 15);
    }

    #[test]
    fn there_is_one_rogue_and_all_else_stays() {
        let with = of(&Setting { rogue: true, ..SETTING });
        let without = of(&SETTING);
        let changed: Vec<_> = with.iter().zip(&without).filter(|(a, b)| a != b).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].0.real_insns, 10 * changed[0].1.planned_insns);
    }

    #[test]
    fn a_second_rogue_leaves_the_first_where_it_is() {
        let rogues = |rogues| -> Vec<usize> {
            let jobs = jobs(&Workload { rogues, ..Workload::from(&SETTING) });
            (0..JOBS).filter(|&index| jobs[index].rogue).collect()
        };
        let (one, three) = (rogues(1), rogues(3));
        assert_eq!((one.len(), three.len()), (1, 3));
        assert!(three.contains(&one[0]) && three.iter().all(|&index| index < JOBS / 2));
    }

    #[test]
    fn each_shape_has_its_errors() {
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        for shape in ErrorShape::ALL {
            let all = percents(shape);
            let most = all.iter().copied().fold(0.0, f64::max);
            let bound = shape.greatest_percent(20) as f64;
            assert!(most <= bound && most > bound - 2.0, "{shape:?}: {most}");
        }
        let skewed = percents(ErrorShape::Skewed);
        let shorter = skewed.iter().filter(|percent| **percent < 100.0).count();
        assert!(shorter * 100 > skewed.len() * 54, "{shorter}");
        assert!((mean(&skewed) - 100.0).abs() < 1.0, "{}", mean(&skewed));
        assert!(percents(ErrorShape::Late).iter().all(|percent| *percent >= 99.9));
        for seed in 1..=5 {
            let of = |job: &DeadlineJob| job.real_insns as f64 / job.planned_insns as f64;
            let common = shaped(ErrorShape::Common, seed);
            assert!(common.iter().all(|job| (of(job) - of(&common[0])).abs() < 1e-6));
        }
    }

    #[test]
    fn a_request_says_what_the_job_is() {
        let job = of(&SETTING)[2];
        let request = job.request(2).unwrap();
        assert_eq!((request.start_ns, request.deadline_ns), (job.release_ns, job.deadline_ns));
        let insns: u64 = request.tasks.iter().map(|task| task.insns).sum();
        assert_eq!(insns, job.planned_insns);
    }
}
