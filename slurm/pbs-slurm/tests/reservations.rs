// SPDX-License-Identifier: GPL-2.0
//! Reservations of the batch system: plans go round them.

mod common;

use common::*;
use pbs_slurm::steer::{Closing, JobState, NodeState};

/// Reserves nodes from so many seconds after the beginning, for so long.
fn reserved(nodes: &[&str], from_s: u64, for_s: u64) -> Closing {
    Closing {
        name: "maint".into(),
        why: "reservation maint for users root".into(),
        nodes: nodes.iter().map(|&node| node.into()).collect(),
        times: std::iter::once(T + from_s..T + from_s + for_s).collect(),
        ..Closing::default()
    }
}

#[test]
fn plans_go_round_reservations() {
    let mut lab = Lab::new("round-reservations");
    let all = lab.slurm.submit(1, 4, 8, 60, 50);
    let small = lab.slurm.submit(2, 1, 1, 60, 50);
    lab.seconds(2);
    assert_eq!(lab.state(all), JobState::Running);
    // Nodes of other partitions are none of the site.
    lab.slurm.closed = vec![reserved(&["n01", "n02", "n03", "other"], 100, 100)];
    let next = lab.slurm.submit(3, 4, 8, 60, 50);
    lab.slurm.node("n04", NodeState::Up);
    lab.seconds(2);
    let told = &lab.slurm.told[&next];
    assert!(told.starts_with("planned for 2025-1"), "{told}");
    assert!(lab.row(next).start_s >= Some(T + 200), "{:?}", lab.row(next).start_s);
    // A planner that is started anew knows of them before it plans.
    lab.restart();
    assert_eq!(lab.manager().closed().count(), 3);
    lab.seconds(100);
    assert_eq!((lab.outcome(all), lab.outcome(small)), ("completed".into(), "completed".into()));
    // While the reservation lasts its nodes are reserved, and not out of use.
    for node in ["n01", "n02", "n03"] {
        lab.slurm.node(node, NodeState::Reserved);
    }
    let beside = lab.slurm.submit(4, 1, 1, 60, 5);
    lab.seconds(20);
    assert_eq!(lab.manager().nodes_out().count(), 0);
    assert_eq!(lab.slurm.job(beside).unwrap().nodes, ["n04"]);
    // It ends early: jobs move up.
    lab.slurm.closed.clear();
    for node in ["n01", "n02", "n03"] {
        lab.slurm.node(node, NodeState::Up);
    }
    lab.seconds(20);
    assert!(lab.now_s < T + 200);
    assert_eq!(lab.state(next), JobState::Running);
    lab.seconds(60);
    assert_eq!(lab.outcome(next), "completed");
}

/// A node that Slurm reserves is not used, even if the reservation can't be read.
#[test]
fn a_node_with_an_unknown_reservation_gets_nothing_new() {
    let mut lab = Lab::new("unknown-reservation");
    lab.slurm.node("n01", NodeState::Reserved);
    let jobs: Vec<_> = (1..9).map(|job| lab.slurm.submit(job, 1, 1, 60, 5)).collect();
    lab.seconds(60);
    for job in jobs {
        assert_eq!(lab.outcome(job), "completed");
        assert_ne!(lab.slurm.job(job).unwrap().nodes, ["n01"]);
    }
    lab.slurm.node("n01", NodeState::Up);
    lab.seconds(2);
    assert_eq!(lab.manager().nodes_out().count(), 0);
}

/// A job that was let go, and that a new reservation is in the way of, is held and planned anew.
#[test]
fn a_reservation_made_in_the_window_takes_jobs_back() {
    let mut lab = Lab::new("reserved-in-the-window");
    let all = lab.slurm.submit(1, 4, 8, 60, 59);
    lab.seconds(2);
    let next = lab.slurm.submit(2, 4, 8, 60, 5);
    while !committed(&lab.state(next)) {
        lab.seconds(1);
    }
    let count = lab.slurm.commits.len();
    lab.slurm.closed = vec![reserved(&["n02"], 70, 60)];
    lab.slurm.node("n04", NodeState::Up);
    lab.seconds(1);
    assert!(!committed(&lab.state(next)));
    lab.seconds(160);
    assert_eq!((lab.outcome(all), lab.outcome(next)), ("completed".into(), "completed".into()));
    let start_s = lab.slurm.job(next).unwrap().start_s;
    assert!(start_s >= Some(T + 130), "{start_s:?}");
    assert_eq!(lab.slurm.commits.len(), count + 1);
}

/// A reservation that moves opens its old time, though it is as long as before: what was declined is
/// tried again.
#[test]
fn a_reservation_that_moves_opens_its_old_time() {
    let mut lab = Lab::new("reservation-moves");
    lab.slurm.closed = vec![reserved(&["n01", "n02", "n03", "n04"], 0, 600)];
    lab.seconds(1);
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.slurm.alter(job, |job| job.words = "pbs deadline=5m".into());
    lab.seconds(2);
    assert!(lab.slurm.told[&job].starts_with("declined:"), "{:?}", lab.slurm.told);
    lab.slurm.closed = vec![reserved(&["n01", "n02", "n03", "n04"], 1000, 600)];
    lab.slurm.node("n04", NodeState::Up);
    lab.seconds(20);
    assert_eq!(lab.outcome(job), "completed");
}

/// Slurm shows nodes as reserved some seconds after the end of the reservation, which is gone by
/// then. They are not taken for nodes that an operator has drained.
#[test]
fn a_node_is_in_use_when_its_reservation_ends() {
    let mut lab = Lab::new("reservation-ends");
    lab.slurm.closed = vec![reserved(&["n01"], 0, 60)];
    lab.slurm.node("n01", NodeState::Reserved);
    lab.seconds(59);
    lab.slurm.closed.clear();
    for _ in 0..8 {
        lab.slurm.node("n01", NodeState::Reserved);
        lab.seconds(1);
        assert_eq!(lab.manager().nodes_out().count(), 0, "{:?}", lab.steer.news());
    }
    // Without any reservation that is known, nothing new is planned there.
    lab.slurm.node("n01", NodeState::Reserved);
    lab.seconds(30);
    assert_eq!(lab.manager().nodes_out().count(), 1);
}
