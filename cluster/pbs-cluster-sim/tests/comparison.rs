// SPDX-License-Identifier: GPL-2.0
//! Tables, JSON and pictures of several policies.

use pbs_cluster_sim::workload::{add_deadlines, oculus, CORES};
use pbs_cluster_sim::{
    check, replay, Comparison, Conservative, Easy, Fcfs, Format, Policy, TraceJob,
};

fn compared(jobs: &[TraceJob], cores: u64) -> Comparison {
    let mut comparison = Comparison::new("some days <&>", jobs, cores);
    let (mut fcfs, mut easy) = (Fcfs::new(cores), Easy::new(cores));
    let mut conservative = Conservative::new(cores);
    let all: [&mut dyn Policy; 3] = [&mut fcfs, &mut easy, &mut conservative];
    for policy in all {
        let outcomes = replay(jobs, policy, |_| ()).unwrap();
        assert_eq!(check(jobs, &outcomes, cores), Ok(()));
        comparison.push(policy.name(), jobs, &outcomes);
    }
    comparison
}

/// Ten thousand jobs, more than the machine can take.
fn loaded() -> Vec<TraceJob> {
    let mut jobs = oculus(10_000, 60_000, 1);
    add_deadlines(&mut jobs, 10, 100, 1);
    jobs
}

#[test]
fn backfilling_pays() {
    let comparison = compared(&loaded(), CORES);
    let wait_s = |policy: usize| comparison.policies[policy].metrics.wait_s.mean;
    assert!(wait_s(1) < wait_s(0) && wait_s(2) < wait_s(0));
}

#[test]
fn tables_have_a_row_for_each() {
    let comparison = compared(&loaded(), CORES);
    let text = comparison.text(Format::Text);
    assert!(text.starts_with("some days <&>: 10,000 jobs on 9,920 cores\n\npolicy"), "{text}");
    for name in ["FCFS", "EASY", "conservative"] {
        // One of all jobs and one of each size.
        let rows = text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(rows, 4, "{text}");
    }
    assert!(text.contains("deadlines kept") && !text.contains("killed"), "{text}");
    let rst = comparison.text(Format::Rst);
    assert_eq!(rst.lines().filter(|line| line.starts_with("====")).count(), 6, "{rst}");
}

#[test]
fn json_has_what_was_measured() {
    let json = serde_json::to_value(compared(&loaded(), CORES)).unwrap();
    assert_eq!((&json["jobs"], &json["cores"]), (&10_000.into(), &9_920.into()));
    let easy = &json["policies"][1];
    assert_eq!(easy["policy"], "EASY");
    assert!(easy["wait_s"]["p95"].is_f64() && easy["fairness"]["jain"].is_f64(), "{easy}");
    assert_eq!(easy["jobs"], 10_000);
}

/// Milliseconds instead of seconds, or a wrong clock, make a trace of thousands of years.
#[test]
fn a_picture_of_thousands_of_years_is_no_larger() {
    let bytes = |run_s: u64| {
        let jobs = [TraceJob::new(0, run_s, run_s, 4), TraceJob::new(5, 50, 60, 4)];
        compared(&jobs, 16).picture().len()
    };
    let hours = bytes(10_000);
    assert!(bytes(100_000_000_000) <= 2 * hours, "{hours}");
}

#[test]
fn pictures_are_xml() {
    let jobs = loaded();
    for (jobs, cores) in [(&jobs[..], CORES), (&jobs[..1], 4096), (&jobs[..0], 0)] {
        let picture = compared(jobs, cores).picture();
        let tree = roxmltree::Document::parse(&picture).unwrap();
        let lines = tree.descendants().filter(|node| node.has_tag_name("polyline"));
        assert_eq!(lines.count(), 6);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
