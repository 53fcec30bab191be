// SPDX-License-Identifier: GPL-2.0
//! From the end of a job to the start of the next one on its nodes.

mod common;

use common::*;
use pbs_manager::ledger::NodeState;
use pbs_manager::Caller;
use pbs_slurm::steer::{Closing, Hold, JobState, Key, UNSEEN};

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

/// A service moves requests up between its turns. The planner sees that nodes are being cleaned, and
/// in the next turn that they are free, when the next job has its start within the window already.
/// The job starts there at once, let go before or not.
#[test]
fn a_start_within_the_window_moves_up_on_its_nodes() {
    for (clean_s, settles) in [(1, 1), (1, 2), (2, 1), (3, 1)] {
        let site = SITE.replace("release_timeout = '2s'", "release_timeout = '5s'");
        let name = format!("within-window-{clean_s}-{settles}");
        let mut lab = Lab::of_site(&name, &site, &["n01", "n02", "n03", "n04"]);
        lab.manager().defer();
        let first = lab.slurm.submit(1, 4, 8, 60, 20);
        lab.slurm.lingers(first, clean_s);
        let second = lab.slurm.submit(2, 4, 8, 60, 10);
        let mut free_s = None;
        while lab.state(second) != JobState::Running {
            lab.alone(1);
            for _ in 0..settles {
                lab.turn();
                while lab.manager().is_settling() {
                    lab.manager().settle_some(16);
                }
            }
            if matches!(lab.state(first), JobState::Over(_)) {
                free_s.get_or_insert(lab.now_s);
            }
            assert!(lab.now_s < T + 200);
        }
        let late_s = lab.now_s - free_s.unwrap();
        // A turn sees that they are free, and the next one lets the job go.
        let most_s = if settles == 1 { 2 } else { 1 };
        assert!(late_s <= most_s, "cleaned in {clean_s} s: {late_s} s after the nodes were free");
        lab.alone(20);
        let over = JobState::Over("completed".into());
        assert_eq!((lab.state(first), lab.state(second)), (over.clone(), over));
    }
}

/// The next job is let go while its nodes are being cleaned, however long they are booked for that,
/// and the batch system starts it in the second in which they are clean.
#[test]
fn the_next_job_is_let_go_while_nodes_are_cleaned() {
    for (name, is_deferred) in [("ahead-at-once", false), ("ahead-deferred", true)] {
        let site = SITE.replace("release_timeout = '2s'", "release_timeout = '40s'");
        let mut lab = Lab::of_site(name, &site, &["n01", "n02", "n03", "n04"]);
        let first = lab.slurm.submit(1, 4, 8, 120, 20);
        lab.slurm.lingers(first, 4);
        let second = lab.slurm.submit(2, 4, 8, 60, 10);
        let third = lab.slurm.submit(3, 1, 1, 60, 10);
        let mut seconds = 0;
        while !matches!(lab.state(first), JobState::Over(_)) {
            if is_deferred {
                lab.manager().defer();
            }
            lab.seconds(1);
            while lab.manager().is_settling() {
                lab.manager().settle_some(16);
            }
            seconds += 1;
            assert!(seconds < 60);
            let is_clean = matches!(lab.state(first), JobState::Over(_));
            assert!(is_clean || lab.state(second) != JobState::Running);
        }
        assert_eq!(lab.state(second), JobState::Running, "{name}");
        // It was let go once, and the plan follows without a word of jobs that run elsewhere.
        let commits = lab.slurm.commits.iter().filter(|(_, key, _)| *key == second);
        assert_eq!(commits.count(), 1, "{name}");
        assert!(!committed(&lab.state(third)), "{name}: it is not the next");
        while !matches!(lab.state(third), JobState::Over(_)) {
            lab.seconds(1);
            while lab.manager().is_settling() {
                lab.manager().settle_some(16);
            }
            seconds += 1;
            assert!(seconds < 120);
        }
        let news = lab.steer.news();
        assert!(news.is_empty(), "{name}: {news:?}");
    }
}

/// A planner that starts anew knows that what was let go while nodes were being cleaned may have
/// begun, and ended, without it.
#[test]
fn a_job_that_was_let_go_early_is_not_lost() {
    let site = SITE.replace("release_timeout = '2s'", "release_timeout = '40s'");
    let mut lab = Lab::of_site("ahead-restart", &site, &["n01", "n02", "n03", "n04"]);
    let first = lab.slurm.submit(1, 4, 8, 120, 20);
    lab.slurm.lingers(first, 4);
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.seconds(3);
    while !committed(&lab.state(second)) {
        lab.seconds(1);
    }
    assert!(matches!(lab.state(first), JobState::Completing(_)));
    lab.alone(20);
    assert_eq!(lab.state(second), JobState::Over("completed".into()));
    lab.slurm.crash(&[second]);
    lab.restart();
    lab.seconds(1);
    assert_eq!(lab.outcome(second), UNSEEN);
}

/// A lab in which a job has ended on some nodes and they are being cleaned for `lingers_s`. The next
/// job, of two nodes, was let go.
fn let_go_early(name: &str, lingers_s: u64) -> (Lab, Key, Key) {
    let site = SITE.replace("release_timeout = '2s'", "release_timeout = '40s'");
    let mut lab = Lab::of_site(name, &site, &["n01", "n02", "n03", "n04"]);
    let first = lab.slurm.submit(1, 4, 8, 120, 20);
    lab.slurm.lingers(first, lingers_s);
    let second = lab.slurm.submit(2, 2, 4, 60, 30);
    while !committed(&lab.state(second)) {
        lab.seconds(1);
        assert!(lab.now_s < T + 60, "{name}");
    }
    assert!(matches!(lab.state(first), JobState::Completing(_)), "{name}");
    (lab, first, second)
}

/// A job that was let go while nodes were being cleaned is held when the plan moves it to others,
/// though it is to start there before.
#[test]
fn a_job_that_was_let_go_early_is_held_when_it_moves() {
    let site = SITE.replace("release_timeout = '2s'", "release_timeout = '40s'");
    let mut lab = Lab::of_site("ahead-moved", &site, &["n01", "n02", "n03", "n04"]);
    let closed = |until_s| Closing {
        name: "r1".into(),
        why: "reservation r1".into(),
        nodes: vec!["n04".into()],
        times: std::iter::once(T..until_s).collect(),
        ..Closing::default()
    };
    lab.slurm.closed.push(closed(T + 90));
    let first = lab.slurm.submit(1, 3, 6, 120, 10);
    lab.slurm.lingers(first, 35);
    let second = lab.slurm.submit(2, 1, 2, 60, 30);
    while !committed(&lab.state(second)) {
        lab.seconds(1);
        assert!(lab.now_s < T + 40);
    }
    lab.slurm.closed = vec![closed(T + 40)];
    lab.seconds(1);
    assert!(committed(&lab.state(second)));
    let operator = Caller { user: "root".into(), is_operator: true };
    let nodes = ["n01", "n02", "n03"];
    lab.manager().nodes_out_of_use(&operator, &nodes, NodeState::Offline, "repair").unwrap();
    lab.seconds(1);
    assert_eq!(lab.state(second), JobState::Pending(Hold::Admin));
    while lab.state(second) != JobState::Running {
        lab.seconds(1);
        assert!(lab.now_s < T + 200);
    }
    assert_eq!(lab.slurm.job(second).unwrap().nodes, ["n04"]);
}

/// A planner that starts anew while such a job runs, and others of its nodes are still being
/// cleaned, takes it for one that runs where it was let go.
#[test]
fn a_new_planner_knows_a_job_that_was_let_go_early() {
    let (mut lab, first, second) = let_go_early("ahead-known", 25);
    lab.slurm.alter(second, |job| {
        (job.state, job.nodes) = (JobState::Running, job.required.clone());
    });
    let own = lab.slurm.job(second).unwrap().nodes.clone();
    lab.slurm.alter(first, |job| job.nodes.retain(|node| !own.contains(node)));
    let now_s = lab.now_s;
    lab.slurm.alter(second, |job| (job.start_s, job.end_s) = (Some(now_s), Some(now_s + 60)));
    lab.restart();
    for _ in 0..20 {
        lab.seconds(1);
        assert_eq!(lab.manager().nodes_out().count(), 0);
        let news = lab.steer.news();
        assert!(!news.iter().any(|news| news.contains("outside")), "{news:?}");
    }
    lab.seconds(40);
    assert_eq!(lab.outcome(second), "completed");
}

/// A job that was seen running and waits again, after a crash, is taken back like any other that
/// does not begin in time.
#[test]
fn a_job_that_waits_again_has_to_begin_in_time() {
    let (mut lab, first, second) = let_go_early("ahead-again", 4);
    let before = lab.slurm.save();
    while !matches!(lab.state(first), JobState::Over(_)) {
        lab.alone(1);
    }
    assert_eq!(lab.state(second), JobState::Running);
    // It is seen so before the plan has it.
    lab.turn();
    lab.slurm.crash_to(&before);
    lab.slurm.is_stuck = true;
    let mut news = Vec::new();
    for _ in 0..60 {
        lab.seconds(1);
        news.extend(lab.steer.news());
    }
    assert!(news.iter().any(|news| news.contains("did not start in time")), "{news:?}");
}

/// Only a job on whole nodes, which shares nothing with jobs elsewhere, is let go before the window.
#[test]
fn a_job_that_shares_is_let_go_in_its_window() {
    let site = SITE.replace("release_timeout = '2s'", "release_timeout = '40s'");
    let site = format!("{site}[resource.license-matlab]\nscope = 'job'\namount = 2\n");
    for (name, cpus, licenses) in [("whole", 2, 0), ("part", 1, 0), ("licence", 2, 1)] {
        let mut lab = Lab::of_site(&format!("ahead-{name}"), &site, &["n01", "n02", "n03", "n04"]);
        lab.slurm.licenses.insert("matlab".into(), 2);
        let first = lab.slurm.submit(1, 4, 8, 120, 20);
        lab.slurm.lingers(first, 10);
        let second = lab.slurm.submit(2, 1, cpus, 60, 10);
        lab.slurm.alter(second, |job| {
            job.demands.licenses =
                std::iter::once(("matlab".to_string(), licenses)).filter(|of| of.1 > 0).collect();
        });
        lab.seconds(22);
        assert!(matches!(lab.state(first), JobState::Completing(_)), "{name}");
        assert_eq!(committed(&lab.state(second)), name == "whole", "{name}");
        lab.seconds(40);
        assert_eq!(lab.outcome(second), "completed", "{name}");
    }
}
