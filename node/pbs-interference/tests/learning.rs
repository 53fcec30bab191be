// SPDX-License-Identifier: GPL-2.0
//! Slow-downs that are learnt from runs.

mod made;

use made::{by, key, Design, GeneratedRuns};
use pbs_interference::{learn, Beside, Config, Entry, Key, Neighbour, Sample, Work};

fn sample(insns: u64, beside: &[(&[Neighbour], u64)]) -> Sample {
    let beside = beside
        .iter()
        .map(|&(neighbours, duration_ns)| Beside { neighbours: neighbours.to_vec(), duration_ns });
    Sample {
        victim: key(1),
        insns,
        ran_ns: beside.clone().map(|beside| beside.duration_ns).sum(),
        beside: beside.collect(),
    }
}

fn entries(config: &Config, work: Work, samples: &[Sample]) -> Vec<Entry<Key>> {
    let learnt = learn(config, work, samples).into_iter();
    learnt.flat_map(|learnt| learnt.entries).collect()
}

/// Runs that are not thought to scatter.
const EXACT: Config = Config { spread_permille: 1, ..Config::DEFAULT };

const S: u64 = 1_000_000_000;

/// 4 s alone are 4·10⁹ of the 10¹⁰; so the 10 s beside the other are 6·10⁹.
#[test]
fn only_the_time_beside_another_counts_as_slowed() {
    let samples =
        [sample(10 * S, &[(&[], 10 * S)]), sample(10 * S, &[(&[], 4 * S), (&[by(2)], 10 * S)])];
    let found = entries(&EXACT, Work::Retired, &samples);
    assert_eq!(found.len(), 1);
    let slowdown = found[0].slowdown;
    assert!((slowdown - 10.0 / 6.0).abs() < 0.002, "{slowdown}");
    assert!(found[0].low < slowdown && slowdown < found[0].high);
    assert_eq!(found[0].samples, 1);
    // Runs that may scatter by 5 % tell less: it is drawn to 1, but not to 1.4.
    let found = entries(&Config::DEFAULT, Work::Retired, &samples);
    assert!((1.5..1.667).contains(&found[0].slowdown), "{found:?}");
}

/// On the clock tier the count is the time; the work is constant.
#[test]
fn slowed_time_grows_on_the_clock_tier() {
    let samples =
        [sample(10 * S, &[(&[], 10 * S)]), sample(14 * S, &[(&[], 4 * S), (&[by(2)], 10 * S)])];
    let learnt = learn(&EXACT, Work::Constant, &samples);
    let slowdown = learnt[0].entries[0].slowdown;
    assert!((slowdown - 10.0 / 6.0).abs() < 0.002, "{slowdown}");
    let alone_ns = learnt[0].alone_ns.unwrap_or_default();
    assert!((alone_ns / (10 * S) as f64 - 1.0).abs() < 0.001);
    assert_eq!(learnt[0].alone_insns_per_s, None);
    // With counts of instructions the same figures would tell of no slow-down.
    let found = entries(&EXACT, Work::Retired, &samples);
    assert!((found[0].slowdown - 1.0).abs() < 0.002);
}

/// The bar: 8 runs, 2 % noise, within 5 %. Where each run is only partly beside the
/// other, they do not tell enough for all of them.
#[test]
fn eight_runs_teach_a_slowdown_within_five_percent() {
    for (design, least_permille) in
        [(Design::Turns, 990), (Design::Parts, 860), (Design::Clock, 860)]
    {
        let (mut within, mut inside, mut all) = (0, 0, 0);
        for seed in 0..500 {
            for found in GeneratedRuns::new(design, seed, 8, 0.02).errors() {
                let found = found.expect("a pair is learnt from eight runs");
                all += 1;
                within += u64::from(found.error <= 0.05);
                inside += u64::from(found.inside);
            }
        }
        assert!(1000 * within >= least_permille * all, "{design:?} {within}");
        // Nine of ten runs are to be in the interval.
        assert!(10 * inside >= 9 * all, "{design:?} {inside}");
    }
}

#[test]
fn more_runs_teach_better_and_runs_without_noise_exactly() {
    let median = |runs, noise| {
        let seeds = 0..100;
        let mut errors: Vec<_> = seeds
            .flat_map(|seed| GeneratedRuns::new(Design::Two, seed, runs, noise).errors())
            .flatten()
            .map(|found| found.error)
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    let (few, many) = (median(8, 0.02), median(40, 0.02));
    assert!(many < few / 2.0, "{few} {many}");
    assert!(median(40, 0.0) < 0.005);
}

#[test]
fn nothing_is_learnt_without_time_alone_and_beside() {
    let always = sample(6 * S, &[(&[by(2)], 10 * S)]);
    let found = entries(&Config::DEFAULT, Work::Retired, &vec![always; 20]);
    assert_eq!(found, []);
    // Of one in a thousand nothing can be told.
    let hardly = sample(10 * S, &[(&[], 9990 * S / 1000), (&[by(2)], 10 * S / 1000)]);
    let found = entries(&Config::DEFAULT, Work::Retired, &vec![hardly; 8]);
    assert_eq!(found, []);
    // Nor of a run that did nothing, or has lasted no time.
    let nothing = [sample(0, &[(&[], S)]), sample(S, &[(&[by(2)], 0)])];
    assert_eq!(learn(&Config::DEFAULT, Work::Retired, &nothing), []);
}

/// Ten runs, one of which took ten times as long for reasons of its own.
#[test]
fn a_stray_run_counts_for_little() {
    let alone = sample(10 * S, &[(&[], 10 * S)]);
    let beside = sample(5 * S, &[(&[by(2)], 10 * S)]);
    let stray = sample(5 * S, &[(&[by(2)], 100 * S)]);
    let mut samples = vec![alone; 5];
    samples.extend(vec![beside; 5]);
    samples.insert(7, stray);
    let found = entries(&Config::DEFAULT, Work::Retired, &samples);
    assert!((1.9..2.2).contains(&found[0].slowdown), "{found:?}");
}

#[test]
fn old_runs_are_forgotten() {
    let run = |insns| sample(insns, &[(&[by(2)], 10 * S)]);
    let alone = sample(10 * S, &[(&[], 10 * S)]);
    let mut samples = Vec::new();
    for turn in 0..80 {
        samples.push(alone.clone());
        samples.push(run(if turn < 40 { 5 * S } else { 8 * S }));
    }
    let found = entries(&Config::DEFAULT, Work::Retired, &samples);
    // From 2 to 1.25.
    assert!((found[0].slowdown - 1.25).abs() < 0.02, "{found:?}");
}
