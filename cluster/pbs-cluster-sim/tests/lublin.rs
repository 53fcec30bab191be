// SPDX-License-Identifier: GPL-2.0
//! The generated jobs are those of the model.

use pbs_cluster_sim::{Lublin, TraceJob};

const LUBLIN: Lublin =
    Lublin { jobs: 20_000, cores: 128, load_percent: 90, accuracy_percent: 22, seed: 3 };

fn share(jobs: &[TraceJob], is: impl Fn(&TraceJob) -> bool) -> f64 {
    jobs.iter().filter(|job| is(job)).count() as f64 / jobs.len() as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[test]
fn sizes_are_those_of_the_model() {
    for cores in [128, 9_920] {
        let jobs = Lublin { cores, ..LUBLIN }.generate();
        assert!(jobs.iter().all(|job| (1..=cores).contains(&job.cores)));
        // 24.4 % have one core, and what is rounded to one of those with few.
        let serial = share(&jobs, |job| job.cores == 1);
        assert!((0.235..0.255).contains(&serial), "{serial}");
        // 57.6 % of all have a power of two, and some of the others by chance.
        let parallel = share(&jobs, |job| job.cores > 1 && job.cores.is_power_of_two());
        assert!((0.57..0.66).contains(&parallel), "{parallel}");
        // 14 % of the parallel ones are in the upper piece: the last 2.5 doublings.
        let most = cores as f64;
        let wide = share(&jobs, |job| job.cores as f64 > most / 5.5);
        assert!((0.07..0.16).contains(&wide), "{wide}");
    }
}

#[test]
fn wide_jobs_are_long_more_often() {
    let jobs = LUBLIN.generate();
    let of = |from: u64, to: u64| {
        let of = jobs.iter().filter(|job| (from..=to).contains(&job.cores));
        mean(of.map(|job| libm::log(job.run_s as f64)))
    };
    // The logarithms' means are 3.95 and 9.36; of one core, 0.78 are of the former.
    let (narrow, wide) = (of(1, 1), of(64, 128));
    let expected = |cores: f64| {
        let short = -0.0054 * cores + 0.78;
        short * 4.2 * 0.94 + (1.0 - short) * 312.0 * 0.03
    };
    assert!((narrow - expected(1.0)).abs() < 0.15, "{narrow}");
    assert!((wide - expected(90.0)).abs() < 0.5, "{wide}");
    assert!(jobs.iter().all(|job| job.run_s <= 162_754));
}

#[test]
fn jobs_come_in_the_afternoon_and_ask_for_so_much() {
    for load_percent in [50, 90, 120] {
        let jobs = Lublin { load_percent, ..LUBLIN }.generate();
        assert!(jobs.is_sorted_by_key(|job| job.submit_s));
        let work = mean(jobs.iter().map(|job| (job.run_s * job.cores) as f64)) * 20_000.0;
        let span_s = jobs[jobs.len() - 1].submit_s as f64;
        let load = 100.0 * work / (128.0 * span_s);
        // The last job comes before the span ends.
        assert!((load / load_percent as f64 - 1.0).abs() < 0.03, "{load} %");
        let hour = |job: &TraceJob| job.submit_s / 3_600 % 24;
        let afternoon = share(&jobs, |job| (12..18).contains(&hour(job)));
        let night = share(&jobs, |job| hour(job) < 6);
        assert!(afternoon > 3.0 * night, "{afternoon} and {night}");
    }
}

#[test]
fn users_know_as_much_as_they_should() {
    for accuracy_percent in [22, 50, 100] {
        let jobs = Lublin { accuracy_percent, ..LUBLIN }.generate();
        assert!(jobs.iter().all(|job| job.run_s <= job.requested_s));
        let of = |job: &TraceJob| job.run_s as f64 / job.requested_s as f64;
        // Of short jobs a minute is much.
        let long = jobs.iter().filter(|job| job.run_s > 3_600);
        let found = 100.0 * mean(long.map(of));
        let wanted = accuracy_percent as f64;
        assert!((found / wanted - 1.0).abs() < 0.1, "{found} %, not {wanted} %");
    }
}

#[test]
fn seeds_decide() {
    let of = |seed| Lublin { seed, jobs: 50, ..LUBLIN }.generate();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
