// SPDX-License-Identifier: GPL-2.0
//! Texts that users are shown about their jobs.

mod common;

use std::time::Duration;

use common::*;
use pbs_slurm::steer::{Hold, JobState, Key, Settings, Steer, LOST};

/// The start is a date in the time zone of the site, before and after the release of the job, and
/// nodes are a list as Slurm writes them.
#[test]
fn a_user_is_told_the_planned_start_as_a_date() {
    let site = format!("time_zone = 'Europe/Berlin'{SITE}");
    let mut lab = Lab::of_site("told-date", &site, &["n01", "n02", "n03", "n04"]);
    let job = lab.slurm.submit(1, 3, 6, 60, 5);
    let start_s = T + 60;
    lab.slurm.alter(job, |job| job.start_s = Some(start_s));
    lab.turn();
    let told = "planned for 2025-11-24T17:01:00+01:00 on n[01-03]";
    assert_eq!((lab.row(job).start_s, &*lab.slurm.told[&job]), (Some(start_s), told));
    lab.slurm.told.clear();
    while !committed(&lab.state(job)) {
        lab.seconds(1);
    }
    assert_eq!(lab.slurm.told[&job], told);
}

/// A user who lost a job in a crash of Slurm reads that in the comments of the jobs that are left,
/// and in that of the job that takes its place; others do not.
#[test]
fn users_read_of_lost_jobs_at_their_other_jobs() {
    let mut lab = Lab::new("told-lost");
    let runs = lab.slurm.submit(1, 4, 8, 60, 50);
    lab.seconds(3);
    assert_eq!(lab.state(runs), JobState::Running);
    let [left, lost, other] = [2, 3, 4].map(|job| lab.slurm.submit(job, 4, 8, 60, 5));
    let declined = lab.slurm.submit(5, 9, 9, 60, 5);
    lab.slurm.alter(other, |job| job.user = "bert".into());
    lab.turn();
    lab.slurm.crash(&[lost]);
    lab.turn();
    lab.turn();
    assert_eq!(lab.outcome(lost), LOST);
    let note =
        "; lost in a crash of slurmctld by 2025-11-24T16:00:03+00:00, to be submitted again: \
                job 3 (job3)";
    let has_note = |lab: &Lab, key: Key| lab.slurm.told[&key].ends_with(note);
    let told = |lab: &Lab| [left, declined, other].map(|key| has_note(lab, key));
    assert_eq!(told(&lab), [true, true, false], "{:?}", lab.slurm.told);
    assert!(lab.slurm.told[&left].starts_with("planned for 2025-"));
    let again = lab.slurm.submit(6, 4, 8, 60, 5);
    lab.slurm.told.clear();
    lab.restart();
    lab.turn();
    lab.turn();
    assert!(has_note(&lab, again) && !has_note(&lab, other), "{:?}", lab.slurm.told);
    while !committed(&lab.state(left)) {
        lab.seconds(1);
    }
    assert!(has_note(&lab, left), "{:?}", lab.slurm.told);
}

/// A job whose row can't be read says so to its user, and keeps the start that its user wants.
#[test]
fn users_read_that_a_row_cannot_be_read() {
    let mut lab = Lab::new("told-unread");
    let runs = lab.slurm.submit(1, 1, 1, 60, 30);
    lab.seconds(3);
    let odd = lab.slurm.submit(2, 1, 1, 60, 10);
    lab.slurm.alter(odd, |job| job.start_s = Some(T + 100));
    lab.slurm.garbled.extend([runs, odd]);
    lab.slurm.told.clear();
    lab.slurm.is_mute = true;
    lab.seconds(2);
    assert!(lab.slurm.told.is_empty());
    lab.slurm.is_mute = false;
    lab.seconds(2);
    let told = &lab.slurm.told[&odd];
    assert!(told.starts_with("set aside: the planner can't read the row"), "{told}");
    assert_eq!(lab.slurm.told.len(), 1, "{:?}", lab.slurm.told);
    lab.slurm.garbled.clear();
    lab.seconds(12);
    assert!(lab.slurm.told[&odd].starts_with("planned for "), "{:?}", lab.slurm.told);
    assert_eq!(lab.row(odd).start_s, Some(T + 100));
}

/// A job whose details have been missing for a minute says so to its user, until they are there.
#[test]
fn users_read_that_details_are_missing() {
    let mut lab = Lab::new("told-unclear");
    let known = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.slurm.alter(known, |job| job.start_s = Some(T + 200));
    lab.turn();
    let planned = lab.slurm.told[&known].clone();
    let new = lab.slurm.submit(2, 1, 1, 60, 5);
    for key in [known, new] {
        lab.slurm.alter(key, |job| job.is_unclear = true);
    }
    lab.seconds(50);
    assert_eq!((lab.slurm.told.len(), &lab.slurm.told[&known]), (1, &planned));
    lab.seconds(20);
    for key in [known, new] {
        let told = &lab.slurm.told[&key];
        assert!(told.starts_with("waits: the planner does not know all"), "{told}");
        lab.slurm.alter(key, |job| job.is_unclear = false);
    }
    lab.seconds(3);
    assert_eq!(lab.slurm.told[&known], planned);
    assert!(lab.slurm.told[&new].starts_with("planned for "), "{:?}", lab.slurm.told);
}

/// A job of which too little is known is not let go, and its explanation stays though its start
/// passes.
#[test]
fn an_explanation_is_not_replaced_by_a_plan() {
    for is_unread in [true, false] {
        let mut lab = Lab::new(if is_unread { "unread-stays" } else { "unclear-stays" });
        let job = lab.slurm.submit(1, 1, 1, 60, 5);
        lab.slurm.alter(job, |job| job.start_s = Some(T + 100));
        lab.turn();
        let why = if is_unread {
            lab.slurm.garbled.insert(job);
            "set aside: "
        } else {
            lab.slurm.alter(job, |job| job.is_unclear = true);
            "waits: the planner does not know all"
        };
        lab.seconds(150);
        assert_eq!(
            (lab.state(job), &*lab.slurm.commits),
            (JobState::Pending(Hold::Admin), &[][..])
        );
        assert!(lab.slurm.told[&job].starts_with(why), "{:?}", lab.slurm.told);
        lab.slurm.garbled.clear();
        lab.slurm.alter(job, |job| job.is_unclear = false);
        lab.seconds(60);
        assert_eq!(lab.rows(job).pop().unwrap().outcome.unwrap(), "completed");
    }
}

/// The note on lost jobs is there whole though the reason before it is long, also in the reminder
/// of a declined job, and goes after a day.
#[test]
fn the_note_on_lost_jobs_has_its_room_and_its_day() {
    let mut lab = Lab::new("told-lost-long");
    let short = Settings { remind_declined: Duration::from_secs(60), ..settings() };
    lab.steer = Steer::new(lab.manager.as_ref().unwrap(), short);
    lab.slurm.submit(1, 4, 8, 60, 50);
    let [declined, lost] = [2, 3].map(|job| lab.slurm.submit(job, 4, 8, 60, 5));
    lab.slurm.alter(declined, |job| job.foreign = Some("can't ".repeat(50)));
    lab.turn();
    lab.slurm.crash(&[lost]);
    lab.turn();
    lab.turn();
    assert_eq!(lab.outcome(lost), LOST);
    let has_note = |told: &str| {
        let is_short = told.replace("can't", "cannot").len() <= 300;
        is_short && told.ends_with(", to be submitted again: job 3 (job3)")
    };
    assert!(has_note(&lab.slurm.told[&declined]), "{:?}", lab.slurm.told);
    lab.slurm.alter(declined, |job| job.foreign = Some("--contiguous: leave it out".into()));
    lab.seconds(70);
    let told = &lab.slurm.told[&declined];
    assert!(told.contains("it has been held for ") && has_note(told), "{told}");
    lab.now_s += 86_400;
    lab.turn();
    lab.turn();
    let told = &lab.slurm.told[&declined];
    let is_reminder = told.contains("it has been held for ");
    assert!(told.starts_with("declined: ") && is_reminder && !told.contains("lost"), "{told}");
}

/// A job of which too little is known when its start comes leaves the plan, so that others get its
/// nodes, also after the planner was restarted. It is planned again when enough is known.
#[test]
fn an_unknown_job_keeps_no_nodes_from_others() {
    for (is_unread, is_restarted) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut lab = Lab::new(&format!("aside-{is_unread}-{is_restarted}"));
        let job = lab.slurm.submit(1, 4, 8, 60, 5);
        lab.slurm.alter(job, |job| job.start_s = Some(T + 20));
        lab.turn();
        assert_eq!(lab.row(job).start_s, Some(T + 20));
        if is_unread {
            lab.slurm.garbled.insert(job);
        } else {
            lab.slurm.alter(job, |job| job.is_unclear = true);
        }
        if is_restarted {
            lab.seconds(3);
            lab.restart();
        }
        // It has no place before the other one.
        let other = lab.slurm.submit(2, 4, 8, 60, 5);
        lab.seconds(60);
        assert_eq!(lab.outcome(other), "completed", "{is_unread} {is_restarted}");
        assert!(lab.rows(job).pop().unwrap().outcome.is_some());
        assert!(lab.slurm.commits.iter().all(|of| of.1 != job));
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
        // Nothing is repeated while it stays so.
        let rows = lab.rows(job).len();
        lab.seconds(60);
        assert_eq!(lab.rows(job).len(), rows);
        lab.slurm.garbled.clear();
        lab.slurm.alter(job, |job| job.is_unclear = false);
        lab.seconds(60);
        assert_eq!(lab.rows(job).pop().unwrap().outcome.unwrap(), "completed");
    }
}

/// A user whose plan moves up again and again is told once in ten seconds, and in the end of the
/// plan that counts. A later start is told at once.
#[test]
fn an_earlier_plan_is_told_once_in_a_while() {
    let mut lab = Lab::new("told-earlier");
    let jobs: Vec<Key> = (1..=5).map(|job| lab.slurm.submit(job, 4, 8, 60, 600)).collect();
    let last = lab.slurm.submit(6, 4, 8, 60, 5);
    lab.seconds(12);
    let shown = |lab: &Lab| lab.slurm.job(last).unwrap().start_s;
    let first = shown(&lab);
    assert_eq!(first, lab.row(last).start_s);
    lab.slurm.cancel(jobs[1]);
    lab.seconds(1);
    let second = shown(&lab);
    assert!(second < first && second == lab.row(last).start_s);
    lab.slurm.cancel(jobs[2]);
    lab.seconds(1);
    assert_eq!(shown(&lab), second);
    assert!(lab.row(last).start_s < second);
    lab.seconds(12);
    assert_eq!(shown(&lab), lab.row(last).start_s);
    // Its user wants a later one.
    let later_s = lab.now_s + 500;
    lab.slurm.alter(last, |job| job.words = format!("pbs start={later_s}"));
    lab.seconds(2);
    assert_eq!((shown(&lab), lab.row(last).start_s), (Some(later_s), Some(later_s)));
}
