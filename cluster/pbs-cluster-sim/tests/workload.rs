// SPDX-License-Identifier: GPL-2.0
//! The generated jobs are those of the publication.

use std::collections::{BTreeMap, BTreeSet};

use pbs_cluster_sim::workload::{add_deadlines, published, Workload, BUSIEST_DAY, CORES, MEAN_DAY};
use pbs_cluster_sim::{swf, TraceJob};

const DAY_S: u64 = 86_400;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[test]
fn days_have_as_many_jobs_as_published() {
    for (workload, count) in
        [(Workload::mean_day(7), MEAN_DAY), (Workload::busiest_day(7), BUSIEST_DAY)]
    {
        let jobs = workload.generate();
        assert_eq!(jobs.len(), count);
        assert!(jobs.is_sorted_by_key(|job| job.submit_s));
        assert!(jobs.iter().all(|job| job.submit_s < DAY_S && job.cores <= CORES));
        assert!(jobs.iter().zip(1..).all(|(job, number)| job.number == number));
    }
}

#[test]
fn sizes_times_and_users_are_as_published() {
    // Without arrays, so that each job is drawn by itself.
    let workload = Workload { longest_array: 1, ..Workload::oculus(300_000, MEAN_DAY, 3) };
    let jobs = workload.generate();
    let mut by_cores: BTreeMap<u64, Vec<&TraceJob>> = BTreeMap::new();
    for job in &jobs {
        by_cores.entry(job.cores).or_default().push(job);
        assert!(1 <= job.run_s && job.run_s <= job.requested_s);
        assert!(job.requested_s <= 60 * DAY_S && job.requested_s % 600 == 0);
    }
    let sizes: Vec<_> = by_cores.keys().copied().collect();
    assert_eq!(sizes, [1, 16, 32, 64, 128, 256, 512, 768, 1024, 1536]);
    let accuracy =
        |jobs: &[&TraceJob]| mean(jobs.iter().map(|job| job.run_s as f64 / job.requested_s as f64));
    let share = by_cores[&1].len() as f64 / jobs.len() as f64;
    assert!((0.93..0.96).contains(&share), "{share} have one core");
    // 22 % of all.
    let all: Vec<_> = jobs.iter().collect();
    assert!((0.21..0.235).contains(&accuracy(&all)), "{}", accuracy(&all));
    for (cores, hours, expected) in [(1, 1.0, 0.2139), (16, 10.0, 0.4167), (128, 1.0, 0.2643)] {
        let (of, found) = (&by_cores[&cores], accuracy(&by_cores[&cores]));
        assert!((found - expected).abs() < 0.01, "{cores} cores: accuracy {found}");
        let mean_hours = mean(of.iter().map(|job| job.run_s as f64 / 3600.0));
        assert!((0.95..1.05).contains(&(mean_hours / hours)), "{cores} cores: {mean_hours} h");
    }
    let users: BTreeSet<_> = jobs.iter().map(|job| job.user).collect();
    let groups: BTreeSet<_> = jobs.iter().map(|job| job.group).collect();
    assert!((150..=200).contains(&users.len()), "{}", users.len());
    assert_eq!(groups.len(), 70);
}

#[test]
fn what_is_published_adds_up() {
    let sizes = published();
    let jobs: usize = sizes.iter().map(|of| of.jobs).sum();
    assert_eq!((sizes.len(), jobs), (10, 1_567_324));
    let of = |cores| sizes.iter().find(|of| of.cores == cores).unwrap();
    assert!((of(1).share_of_jobs - 0.9446).abs() < 1e-4);
    // Rank 1 of example 3: 17.75 % of all, of which the ten have 73.83 %.
    let first = 0.7383 * of(16).share_of_core_s;
    assert!((first - 0.1775).abs() < 0.005, "{first}");
    let all: f64 = sizes.iter().map(|of| of.share_of_core_s).sum();
    assert!((all - 1.0).abs() < 1e-9);
}

#[test]
fn arrays_come_at_once() {
    let jobs = Workload::busiest_day(1).generate();
    let arrays = jobs.chunk_by(|a, b| {
        (a.submit_s, a.user, a.requested_s, a.cores) == (b.submit_s, b.user, b.requested_s, 1)
    });
    let lengths: Vec<_> = arrays.map(<[TraceJob]>::len).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    assert!((2_000..=10_000).contains(&longest), "{longest}");
    assert!(lengths.len() < jobs.len() / 100, "{} arrays", lengths.len());
}

#[test]
fn seeds_decide() {
    let mean_day = |seed| Workload::mean_day(seed).generate();
    assert_eq!(mean_day(1), mean_day(1));
    assert_ne!(mean_day(1), mean_day(2));
    let first = mean_day(1)[0];
    let found = (first.submit_s, first.run_s, first.requested_s, first.cores, first.user);
    // On every machine.
    assert_eq!(found, (269, 245, 600, 128, 16));
}

#[test]
fn jobs_are_the_same_as_a_file() {
    let jobs = Workload::mean_day(5).generate();
    let mut text = Vec::new();
    swf::write(&mut text, &jobs, None, CORES).unwrap();
    let trace = swf::read(&text[..]).unwrap();
    assert_eq!((trace.header.cores(), trace.jobs), (Some(CORES), jobs));
}

#[test]
fn deadlines_leave_room_to_run() {
    let mut jobs = Workload::mean_day(5).generate();
    let before = jobs.clone();
    add_deadlines(&mut jobs, 30, 200, 1);
    let with = jobs.iter().filter(|job| job.deadline_s.is_some()).count();
    assert!((800..1050).contains(&with), "{with} have one");
    for job in &jobs {
        let at_once_s = job.submit_s + job.requested_s;
        let deadline_s = job.deadline_s.unwrap_or(at_once_s);
        assert!((at_once_s..=at_once_s + 2 * job.requested_s).contains(&deadline_s));
    }
    add_deadlines(&mut jobs, 0, u64::MAX, 1);
    assert_eq!(jobs, before);
}
