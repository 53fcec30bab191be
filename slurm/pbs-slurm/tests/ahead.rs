// SPDX-License-Identifier: GPL-2.0
//! Jobs that are next on their nodes start there as soon as these are free, in virtual time.

mod common;

use common::*;
use pbs_slurm::steer::JobState;

/// A lab whose planner commits what is next on its nodes.
fn ahead(name: &str, site: &str) -> Lab {
    Lab::of_site(name, site, &["n01", "n02", "n03", "n04"]).ahead()
}

/// The batch system starts the next job of a node without a turn of the planner, and the plan follows.
#[test]
fn what_is_next_on_its_nodes_starts_when_they_are_free() {
    let mut lab = ahead("next-starts", SITE);
    let first = lab.slurm.submit(1, 4, 8, 600, 30);
    lab.seconds(2);
    let next = lab.slurm.submit(2, 4, 8, 60, 20);
    let last = lab.slurm.submit(3, 4, 8, 60, 20);
    lab.seconds(2);
    assert!(committed(&lab.state(next)), "{:?}", lab.state(next));
    // It is not next.
    assert!(!committed(&lab.state(last)));
    let planned_s = lab.row(next).start_s.unwrap();
    assert!(planned_s > T + 600);
    // Nobody is there when the first ends.
    lab.alone(40);
    assert_eq!(lab.state(next), JobState::Running);
    assert!(!committed(&lab.state(last)) && lab.state(last) != JobState::Running);
    lab.turn();
    lab.seconds(1);
    assert_eq!(lab.outcome(first), "completed");
    let start_s = lab.row(next).start_s.unwrap();
    assert!(start_s < planned_s);
    let news = lab.steer.news();
    assert!(!news.iter().any(|news| news.contains("outside its plan")), "{news:?}");
    assert_eq!(lab.manager().nodes_out().count(), 0);
    lab.seconds(60);
    assert_eq!((lab.outcome(next), lab.outcome(last)), ("completed".into(), "completed".into()));
}

/// A job that another one overtakes in the plan is held again.
#[test]
fn what_is_not_next_any_more_is_held() {
    let mut lab = ahead("not-next", SITE);
    let long = lab.slurm.submit(1, 4, 4, 600, 500);
    let short = lab.slurm.submit(2, 4, 4, 120, 100);
    lab.seconds(2);
    assert_eq!((lab.state(long), lab.state(short)), (JobState::Running, JobState::Running));
    let wide = lab.slurm.submit(3, 4, 8, 60, 20);
    lab.seconds(2);
    assert!(committed(&lab.state(wide)));
    let between = lab.slurm.submit(4, 4, 4, 60, 20);
    lab.seconds(2);
    assert!(committed(&lab.state(between)) && !committed(&lab.state(wide)));
    lab.seconds(110);
    assert_eq!(lab.state(between), JobState::Running);
    assert!(committed(&lab.state(wide)));
}

/// Whatever else than nodes decides when a job starts keeps it until its time.
#[test]
fn other_conditions_keep_a_job_until_its_time() {
    let limited =
        format!("{SITE}\n[[limit]]\nfor = 'user:anna'\nresource = 'ncpus'\nitems = '8'\n");
    let cases: [(&str, &str); 2] = [("limited", &limited), ("begins-later", SITE)];
    for (name, site) in cases {
        let mut lab = ahead(name, site);
        lab.slurm.submit(1, 4, 8, 600, 300);
        lab.seconds(2);
        let next = lab.slurm.submit(2, 4, 8, 60, 20);
        if name == "begins-later" {
            let begin_s = lab.now_s + 400;
            lab.slurm.alter(next, |job| job.start_s = Some(begin_s));
        }
        lab.seconds(5);
        assert!(lab.row(next).start_s.is_some(), "{name}");
        assert!(!committed(&lab.state(next)), "{name}");
    }
}

/// A reservation between the jobs on a node keeps the next one until its time.
#[test]
fn a_reservation_keeps_what_is_next() {
    let mut lab = ahead("next-reserved", SITE);
    lab.slurm.submit(1, 4, 8, 120, 60);
    lab.seconds(2);
    let closing = pbs_slurm::steer::Closing {
        name: "maint".into(),
        why: "maint".into(),
        nodes: vec!["n02".into()],
        times: std::iter::once(T + 100..T + 200).collect(),
    };
    lab.slurm.closed = vec![closing];
    let next = lab.slurm.submit(2, 4, 8, 60, 20);
    lab.seconds(80);
    assert!(!committed(&lab.state(next)) && lab.state(next) != JobState::Running);
    lab.seconds(150);
    assert_eq!(lab.outcome(next), "completed");
    assert!(lab.slurm.job(next).unwrap().start_s >= Some(T + 200));
}

/// Short jobs of an array follow each other without the planner's time between.
#[test]
fn elements_follow_each_other() {
    let mut lab = ahead("elements-follow", SITE);
    let keys = lab.slurm.submit_array(1, 40, 5, 0);
    let mut left = 400;
    while lab.manager().open_rows().len() > 0 || left == 400 {
        lab.seconds(1);
        left -= 1;
        assert!(left > 0);
    }
    assert!(keys.iter().all(|&key| lab.outcome(key) == "completed"));
    // Five rounds of eight elements.
    let ends = keys.iter().filter_map(|&key| lab.slurm.job(key).and_then(|job| job.end_s));
    let last_s = ends.max().unwrap();
    assert!(last_s <= T + 5 * 6 + 5, "{}", last_s - T);
}
