// SPDX-License-Identifier: GPL-2.0
//! Jobs in reservations of the batch system: they are left to it, and disturb no planned job.

mod common;

use common::*;
use pbs_slurm::steer::{By, Closing, Hold, JobState, Key};

/// Reserves nodes from so many seconds after the beginning, for so long.
fn reserved(name: &str, nodes: &[&str], from_s: u64, for_s: u64) -> Closing {
    Closing {
        name: name.into(),
        why: format!("reservation {name}"),
        nodes: nodes.iter().map(|&node| node.into()).collect(),
        times: std::iter::once(T + from_s..T + from_s + for_s).collect(),
        overrun_s: Some(0),
        ..Closing::default()
    }
}

/// A lab with reservations.
fn lab(name: &str, closed: Vec<Closing>) -> Lab {
    let mut lab = Lab::new(name);
    lab.slurm.closed = closed;
    lab.seconds(1);
    lab
}

/// A job of whole nodes in a reservation.
fn submit(lab: &mut Lab, job: u32, nodes: u64, limit_s: u64, run_s: u64, of: &str) -> Key {
    let key = lab.slurm.submit(job, nodes, 2 * nodes, limit_s, run_s);
    lab.slurm.alter(key, |job| job.reservation = of.into());
    key
}

/// A user changes a job, as job_submit.lua allows it: the job is held meanwhile.
fn change(lab: &mut Lab, key: Key, of: &str) {
    lab.slurm.alter(key, |job| {
        if job.state == JobState::Pending(Hold::No) {
            job.state = JobState::Pending(Hold::User);
        }
        job.reservation = of.into();
    });
}

fn start_s(lab: &Lab, key: Key) -> u64 {
    lab.slurm.job(key).unwrap().start_s.unwrap()
}

#[test]
fn a_job_in_a_reservation_is_left_to_the_batch_system() {
    let mut lab = lab("left", vec![reserved("maint", &["n01", "n02"], 20, 200)]);
    let left = submit(&mut lab, 1, 2, 60, 30, "maint");
    let others: Vec<Key> = (2..8).map(|job| lab.slurm.submit(job, 1, 2, 60, 40)).collect();
    lab.seconds(2);
    assert_eq!(lab.state(left), JobState::Pending(Hold::No));
    assert_eq!(lab.slurm.told[&left], "left to Slurm in reservation maint");
    let planned: Vec<_> = others.iter().map(|&job| lab.row(job).start_s).collect();
    // A planner that is started anew leaves it alone, too.
    lab.restart();
    lab.seconds(20);
    assert_eq!(lab.state(left), JobState::Running);
    assert_eq!((start_s(&lab, left), lab.slurm.left.len()), (T + 20, 1));
    lab.seconds(200);
    for (&job, planned_s) in others.iter().zip(planned) {
        assert_eq!(lab.outcome(job), "completed");
        assert!(lab.row(job).start_s <= planned_s, "{job}");
    }
    assert_eq!(lab.state(left), JobState::Over("completed".into()));
    assert!(lab.rows(left).is_empty());
    assert!(!lab.slurm.commits.iter().any(|commit| commit.1 == left));
    assert!(!lab.slurm.ends.iter().any(|end| end.3 == By::Planner));
}

/// A job may run on when its reservation has ended. Nobody is planned on its nodes then, and
/// nobody's start moves when it begins.
#[test]
fn nodes_are_not_free_before_a_job_of_an_ended_reservation_is_over() {
    let closed = reserved("maint", &["n01", "n02"], 10, 50);
    let mut lab = lab("overrun", vec![Closing { overrun_s: Some(120), ..closed }]);
    let left = submit(&mut lab, 1, 2, 600, 150, "maint");
    let all = lab.slurm.submit(2, 4, 8, 60, 30);
    lab.seconds(5);
    let planned_s = lab.row(all).start_s.unwrap();
    while lab.state(left) != JobState::Running {
        lab.seconds(1);
    }
    lab.seconds(100);
    assert_eq!(lab.state(left), JobState::Running);
    while lab.state(left) == JobState::Running {
        lab.seconds(1);
    }
    // The batch system has the reservation as long as jobs of it run.
    lab.slurm.closed.clear();
    lab.seconds(60);
    assert_eq!(lab.outcome(all), "completed");
    let over_s = lab.slurm.job(left).unwrap().end_s.unwrap();
    assert!((over_s..=planned_s).contains(&start_s(&lab, all)), "{over_s} {planned_s}");
    assert_eq!(lab.slurm.commits.len(), 1, "{:?}", lab.slurm.commits);
    assert_eq!(lab.manager().nodes_out().count(), 0);
}

/// A job that could use other nodes, or what others share, stays held, and its user reads why.
#[test]
fn a_job_that_could_leave_its_reservation_stays_held() {
    let flex = Closing {
        loose: Some("its jobs may use nodes outside of it (FLEX)".into()),
        ..reserved("flex", &["n01"], 0, 300)
    };
    let mut lab = lab("loose", vec![flex, reserved("maint", &["n02"], 0, 300)]);
    let one = submit(&mut lab, 1, 1, 60, 5, "flex");
    let listed = submit(&mut lab, 2, 1, 60, 5, "maint,flex");
    let licensed = submit(&mut lab, 3, 1, 60, 5, "maint");
    lab.slurm.alter(licensed, |job| job.demands.licenses = vec![("matlab".into(), 1)]);
    lab.seconds(30);
    for (job, why) in [(one, "FLEX"), (listed, "FLEX"), (licensed, "licences")] {
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin), "{why}");
        let told = &lab.slurm.told[&job];
        assert!(told.starts_with("declined: --reservation=") && told.contains(why), "{told}");
    }
    assert!(lab.slurm.left.is_empty());
    // An operator takes the flag away, and the user the licence.
    lab.slurm.closed[0].loose = None;
    lab.slurm.alter(licensed, |job| job.demands.licenses.clear());
    lab.seconds(60);
    for job in [one, listed, licensed] {
        assert_eq!(lab.state(job), JobState::Over("completed".into()), "{:?}", lab.slurm.told);
    }
}

/// A reservation that becomes one whose jobs may leave it: those that wait are held.
#[test]
fn a_job_is_held_when_its_reservation_lets_it_go_elsewhere() {
    let mut lab = lab("becomes-loose", vec![reserved("maint", &["n01"], 100, 300)]);
    let left = submit(&mut lab, 1, 1, 60, 5, "maint");
    lab.seconds(2);
    assert_eq!(lab.state(left), JobState::Pending(Hold::No));
    lab.slurm.closed[0].loose = Some("its jobs may use nodes outside of it (FLEX)".into());
    lab.slurm.is_stuck = true;
    lab.seconds(11);
    assert_eq!(lab.state(left), JobState::Pending(Hold::Admin));
}

#[test]
fn a_job_enters_and_leaves_a_reservation() {
    let mut lab = lab("changed", vec![reserved("maint", &["n01"], 300, 300)]);
    let all = lab.slurm.submit(1, 4, 8, 60, 58);
    let job = lab.slurm.submit(2, 1, 2, 60, 10);
    lab.seconds(5);
    assert_eq!((lab.state(all), lab.rows(job).len()), (JobState::Running, 1));
    change(&mut lab, job, "maint");
    lab.seconds(2);
    assert_eq!(lab.slurm.told[&job], "left to Slurm in reservation maint");
    assert_eq!(lab.outcome(job), "left to Slurm in reservation maint");
    assert_eq!(lab.state(job), JobState::Pending(Hold::No));
    let begin_s = lab.slurm.job(job).unwrap().start_s;
    assert_eq!(begin_s, None, "a planned start is no wish");
    // And out of it again, at the worst moment: it is not released without its reservation.
    change(&mut lab, job, "");
    lab.seconds(1);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert_eq!(lab.rows(job).len(), 2);
    lab.seconds(90);
    assert_eq!(lab.outcome(all), "completed");
    assert!(lab.rows(job).iter().any(|row| row.outcome.as_deref() == Some("completed")));
    let last = submit(&mut lab, 3, 1, 60, 10, "maint");
    lab.slurm.moved_at_leave = Some((last, String::new()));
    lab.seconds(1);
    assert!(!lab.slurm.left.contains(&last));
    lab.seconds(60);
    assert_eq!(lab.outcome(last), "completed");
}

/// A job that was let go is planned on nodes outside of its new reservation. It is held, and left
/// to the batch system without them.
#[test]
fn a_job_that_was_let_go_enters_a_reservation() {
    let mut lab = lab("let-go", vec![reserved("maint", &["n01"], 100, 300)]);
    let all = lab.slurm.submit(1, 4, 8, 60, 58);
    let job = lab.slurm.submit(2, 2, 4, 60, 10);
    while !committed(&lab.state(job)) {
        lab.seconds(1);
    }
    lab.slurm.alter(job, |job| {
        (job.nodes_wanted, job.max_nodes, job.cpus) = (1, Some(1), 2);
        job.reservation = "maint".into();
    });
    lab.seconds(3);
    let seen = lab.slurm.job(job).unwrap();
    assert_eq!((&seen.state, seen.required.len()), (&JobState::Pending(Hold::No), 0));
    lab.seconds(120);
    assert_eq!(lab.outcome(all), "completed");
    let seen = lab.slurm.job(job).unwrap();
    assert_eq!(
        (&seen.state, &seen.nodes[..]),
        (&JobState::Over("completed".into()), &["n01".into()][..])
    );
}

/// The user of a job wanted it in a reservation, and not elsewhere.
#[test]
fn a_job_whose_reservation_ends_waits_for_its_user() {
    let closed = vec![reserved("maint", &["n01"], 5, 60)];
    let mut lab = lab("ended", closed);
    let first = submit(&mut lab, 1, 1, 600, 600, "maint");
    let next = submit(&mut lab, 2, 1, 60, 5, "maint");
    // This one is held by the planner when its reservation ends, which clears the reservation.
    let refused = submit(&mut lab, 3, 1, 60, 5, "maint");
    lab.slurm.alter(refused, |job| job.demands.licenses = vec![("matlab".into(), 1)]);
    lab.seconds(60);
    assert_eq!(lab.state(first), JobState::Running);
    lab.seconds(30);
    assert!(matches!(lab.state(first), JobState::Over(_)), "the batch system ends it");
    lab.slurm.licenses.insert("matlab".into(), 1);
    for job in [next, refused] {
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
        let told = &lab.slurm.told[&job];
        assert!(
            told.starts_with("held, since its reservation has ended; scontrol release"),
            "{told}"
        );
        assert!(lab.rows(job).is_empty());
        // As job_submit.lua releases it.
        lab.slurm.alter(job, |job| {
            job.words = "pbs".into();
            job.demands.licenses.clear();
        });
    }
    lab.seconds(60);
    for job in [next, refused] {
        assert_eq!(lab.outcome(job), "completed");
    }
}

/// Jobs of a reservation that returns are not ended by Slurm. One that would not be over waits for
/// the next time, and nobody is planned where it runs.
#[test]
fn a_job_has_to_be_over_by_the_end_of_a_reservation_that_returns() {
    let mut daily = reserved("daily", &["n01", "n02"], 20, 200);
    daily.times.push(T + 400..T + 600);
    let mut lab = lab("returns", vec![Closing { overrun_s: None, ..daily }]);
    let first = submit(&mut lab, 1, 2, 120, 110, "daily");
    let next = submit(&mut lab, 2, 2, 120, 60, "daily");
    let never = submit(&mut lab, 3, 2, 600, 5, "daily");
    lab.seconds(30);
    assert_eq!(lab.state(first), JobState::Running);
    assert_eq!(lab.state(next), JobState::Pending(Hold::No));
    lab.seconds(95);
    assert_eq!(lab.state(next), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&next].contains("it waits for the next time"), "{:?}", lab.slurm.told);
    let all = lab.slurm.submit(4, 4, 8, 60, 30);
    lab.seconds(400);
    assert_eq!(lab.state(next), JobState::Over("completed".into()));
    assert_eq!(start_s(&lab, next), T + 400);
    assert_eq!(lab.state(never), JobState::Pending(Hold::Admin));
    assert!(start_s(&lab, all) >= T + 220, "{}", start_s(&lab, all));
    assert!(lab.outcome(all) == "completed" && lab.rows(next).is_empty());
}

#[test]
fn the_user_of_a_job_in_a_reservation_holds_it() {
    let mut lab = lab("held", vec![reserved("maint", &["n01"], 20, 300)]);
    let left = submit(&mut lab, 1, 1, 60, 5, "maint");
    lab.seconds(3);
    // As job_submit.lua writes it down.
    lab.slurm.alter(left, |job| {
        job.words = "pbs pbs-held".into();
        job.state = JobState::Pending(Hold::User);
    });
    lab.seconds(40);
    assert_eq!(lab.state(left), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&left].starts_with("held by its user"), "{:?}", lab.slurm.told);
    lab.slurm.alter(left, |job| job.words = "pbs".into());
    lab.seconds(10);
    assert_eq!(lab.state(left), JobState::Over("completed".into()));
    assert!(lab.rows(left).is_empty());
}

/// The batch system tries jobs of reservations before all others, and not any number in a round.
/// The batch system clears the reservation of all its waiting jobs at once, more than are marked in
/// a look.
#[test]
fn many_jobs_of_a_deleted_reservation_are_held_for_that() {
    let mut lab = lab("deleted", vec![reserved("maint", &["n01"], 3000, 3000)]);
    let all: Vec<Key> = (1..=120).map(|job| submit(&mut lab, job, 1, 60, 1, "maint")).collect();
    lab.seconds(5);
    lab.slurm.closed.clear();
    for &key in &all {
        lab.slurm.alter(key, |job| {
            job.reservation = String::new();
            job.state = JobState::Pending(Hold::Admin);
        });
    }
    lab.seconds(30);
    for key in all {
        let job = lab.slurm.job(key).unwrap();
        assert!(job.words.contains("pbs-held-reservation-ended"), "{job:?}");
        assert_eq!(job.state, JobState::Pending(Hold::Admin));
    }
}

#[test]
fn many_jobs_of_a_reservation_wait_in_turns() {
    let mut lab = lab("turns", vec![reserved("maint", &["n01"], 30, 3000)]);
    let all: Vec<Key> = (1..=60).map(|job| submit(&mut lab, job, 1, 60, 1, "maint")).collect();
    let most_waiting = |lab: &Lab| {
        let waiting = all.iter().filter(|&&job| lab.state(job) == JobState::Pending(Hold::No));
        let waiting = waiting.count();
        assert!(waiting <= 10, "{waiting}");
        waiting
    };
    lab.seconds(5);
    assert_eq!(most_waiting(&lab), 10);
    // They keep no place of another user.
    let other = submit(&mut lab, 61, 1, 60, 1, "maint");
    lab.slurm.alter(other, |job| job.user = "bert".into());
    lab.seconds(2);
    assert_eq!(lab.state(other), JobState::Pending(Hold::No));
    let told = &lab.slurm.told[&all[30]];
    assert_eq!(told, "left to Slurm in reservation maint, behind other jobs that wait for it");
    for _ in 0..200 {
        lab.seconds(1);
        most_waiting(&lab);
    }
    for job in all {
        assert_eq!(lab.state(job), JobState::Over("completed".into()));
    }
}
