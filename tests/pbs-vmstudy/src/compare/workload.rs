// SPDX-License-Identifier: GPL-2.0
//! The jobs that all schedulers get: drawn, the same for a seed each time.

use pbs_vmtest::harness::Random;
use serde::{Deserialize, Serialize};

/// Number of jobs.
pub const JOBS: usize = 20;
/// Each is planned for so much CPU time.
const PLANNED_MS: (u64, u64) = (10, 80);
/// From its release to its deadline, in thousandths of the time that it is planned for.
const SLACK_PERMILLE: (u64, u64) = (1500, 4000);
/// A rogue retires so many times what was said.
const ROGUE_FACTOR: u64 = 10;
/// Rate of all planned times and lengths.
const INSNS_PER_MS: u64 = 250_000;

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// All planned instructions, of what the CPU retires while jobs are released.
    pub load_percent: u64,
    /// Jobs retire up to so much more or less than was planned.
    pub error_percent: u64,
    /// One job retires ten times what was planned.
    pub rogue: bool,
    /// Others are other jobs.
    pub seed: u64,
}

/// One process with a deadline. Times count from the begin of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Earliest begin of the job.
    pub release_ns: u64,
    /// Deadline of the job.
    pub deadline_ns: u64,
    /// Declared length.
    pub planned_insns: u64,
    /// Real length.
    pub real_insns: u64,
    /// Whether the job is the rogue.
    pub rogue: bool,
}

/// The jobs, in the order of their releases. Of a seed, settings that differ in nothing
/// but the load have the same lengths, those with another error the same deadlines, and
/// they deviate in proportion to it.
pub fn jobs(setting: &Setting) -> Vec<Job> {
    let mut random = Random::new(setting.seed);
    // The first numbers of a small seed are small.
    for _ in 0..16 {
        random.roll();
    }
    let mut jobs: Vec<_> = (0..JOBS)
        .map(|_| {
            let planned_insns =
                random.between(PLANNED_MS.0 * INSNS_PER_MS, PLANNED_MS.1 * INSNS_PER_MS);
            let slack_permille = random.between(SLACK_PERMILLE.0, SLACK_PERMILLE.1);
            let at_permyriad = random.between(0, 10_000);
            let deviation_permille = random.between(0, 2_000) as i64 - 1_000;
            (planned_insns, slack_permille, at_permyriad, deviation_permille)
        })
        .collect();
    // The first comes at once.
    jobs.sort_by_key(|job| job.2);
    let rogue = random.below(JOBS / 2);
    let sum_insns: u64 = jobs.iter().map(|job| job.0).sum();
    let released_in_ns = time_ns(sum_insns) * 100 / setting.load_percent;
    let first_permyriad = jobs[0].2;
    let jobs = jobs.into_iter().enumerate();
    jobs.map(|(index, (planned_insns, slack_permille, at_permyriad, deviation_permille))| {
        let release_ns = released_in_ns * (at_permyriad - first_permyriad) / 10_000;
        let is_rogue = setting.rogue && index == rogue;
        let deviation_insns =
            planned_insns as i64 * deviation_permille * setting.error_percent as i64 / 100_000;
        let real_insns = planned_insns.saturating_add_signed(deviation_insns);
        Job {
            release_ns,
            deadline_ns: release_ns + time_ns(planned_insns) * slack_permille / 1_000,
            planned_insns,
            real_insns: if is_rogue { planned_insns * ROGUE_FACTOR } else { real_insns },
            rogue: is_rogue,
        }
    })
    .collect()
}

/// In which so many instructions are retired.
pub fn time_ns(insns: u64) -> u64 {
    insns * 1_000_000 / INSNS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting =
        Setting { load_percent: 100, error_percent: 20, rogue: false, seed: 3 };

    #[test]
    fn a_seed_has_its_jobs() {
        assert_eq!(jobs(&SETTING), jobs(&SETTING));
        assert_ne!(jobs(&SETTING), jobs(&Setting { seed: 4, ..SETTING }));
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        for load_percent in [70, 100, 120] {
            let jobs = jobs(&Setting { load_percent, ..SETTING });
            let sum_insns: u64 = jobs.iter().map(|job| job.planned_insns).sum();
            let last_ns = jobs.iter().map(|job| job.release_ns).max().unwrap();
            let released_in_ns = time_ns(sum_insns) * 100 / load_percent;
            assert!(last_ns <= released_in_ns && last_ns > released_in_ns / 2);
            assert_eq!(jobs[0].release_ns, 0);
        }
    }

    #[test]
    fn errors_are_within_their_bound_and_proportional() {
        let of = |error_percent| jobs(&Setting { error_percent, ..SETTING });
        let mut differ = 0;
        for ((none, ten), twenty) in of(0).iter().zip(of(10)).zip(of(20)) {
            assert_eq!(none.real_insns, none.planned_insns);
            assert_eq!(none.deadline_ns, twenty.deadline_ns);
            let by = |job: &Job| job.real_insns as i64 - job.planned_insns as i64;
            assert!((by(&twenty) - 2 * by(&ten)).abs() <= 2);
            assert!(by(&ten).unsigned_abs() * 10 <= ten.planned_insns + 10);
            differ += u32::from(by(&ten) != 0);
        }
        assert!(differ > 15);
    }

    #[test]
    fn there_is_one_rogue_and_all_else_stays() {
        let with = jobs(&Setting { rogue: true, ..SETTING });
        let without = jobs(&SETTING);
        let changed: Vec<_> = with.iter().zip(&without).filter(|(a, b)| a != b).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].0.real_insns, 10 * changed[0].1.planned_insns);
    }
}
