// SPDX-License-Identifier: GPL-2.0
//! From the end of a job to the start of the next one on its nodes.

mod common;

use common::*;
use pbs_slurm::steer::JobState;

/// The nodes of a job that has ended are being cleaned, for less time than is booked for that. The
/// next job, which would start within the window, does not wait for the booked end.
#[test]
fn a_job_starts_once_nodes_are_cleaned() {
    let site = SITE.replace("release_timeout = '2s'", "release_timeout = '9s'");
    let mut lab = Lab::of_site("cleaned-early", &site, &["n01", "n02", "n03", "n04"]);
    let first = lab.slurm.submit(1, 4, 8, 60, 20);
    lab.slurm.lingers(first, 2);
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    while !matches!(lab.state(first), JobState::Completing(_)) {
        lab.seconds(1);
    }
    let ended_s = lab.now_s;
    while lab.state(second) != JobState::Running {
        lab.seconds(1);
        assert!(lab.now_s < T + 200);
    }
    assert!(lab.now_s <= ended_s + 3, "{} s after the end", lab.now_s - ended_s);
    lab.seconds(20);
    assert_eq!((lab.outcome(first), lab.outcome(second)), ("completed".into(), "completed".into()));
}

/// The planner sees the end of a job only when the nodes are free again, a second later or in the
/// same one. The next job, which would start within the window, does not wait for the booked end.
#[test]
fn a_job_starts_once_nodes_are_seen_free() {
    let site = SITE.replace("release_timeout = '2s'", "release_timeout = '9s'");
    for late_s in 0..3 {
        let name = format!("free-late-{late_s}");
        let mut lab = Lab::of_site(&name, &site, &["n01", "n02", "n03", "n04"]);
        let first = lab.slurm.submit(1, 4, 8, 60, 20);
        let second = lab.slurm.submit(2, 4, 8, 60, 10);
        lab.seconds(18);
        assert_eq!(lab.state(first), JobState::Running);
        lab.slurm.cancel(first);
        lab.alone(late_s);
        let seen_s = lab.now_s;
        lab.turn();
        while lab.state(second) != JobState::Running {
            lab.seconds(1);
            assert!(lab.now_s < T + 200);
        }
        assert!(lab.now_s <= seen_s + 2, "{late_s}: {} s after the look", lab.now_s - seen_s);
    }
}
