// SPDX-License-Identifier: GPL-2.0
//! The planner ends no job but at its limit, and no request disturbs the jobs of others.

mod common;

use std::time::Duration;

use common::*;
use pbs_manager::ledger::{NodeState as Out, State};
use pbs_slurm::steer::{By, Hold, JobState, Key, NodeState, Settings, Steer};

/// A job on each node for a minute; the next begins behind them.
fn full(lab: &mut Lab) -> Key {
    let first = lab.slurm.submit(1, 4, 8, 60, 58);
    lab.turn();
    lab.turn();
    first
}

/// Nobody was ended by the planner, no node is out, and no request was declined.
fn no_harm(lab: &mut Lab) {
    assert!(!lab.slurm.ends.iter().any(|end| end.3 == By::Planner), "{:?}", lab.slurm.ends);
    let out: Vec<_> = lab.manager().nodes_out().map(|row| row.why.clone()).collect();
    assert!(out.is_empty(), "{out:?}");
    let told: Vec<_> = lab.slurm.told.values().filter(|told| told.contains("declined")).collect();
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn a_commitment_is_not_an_alteration_of_its_user() {
    // Shown cores and nodes change when the number of nodes is set: of -N2-4, of --mincpus=2 -N2,
    // of -n3 -c2 on two nodes.
    for (name, cpus, min_cpus, tasks, cpus_per_task) in
        [("range", 1, 1, 2, 1), ("mincpus", 2, 2, 2, 1), ("tasks", 4, 1, 2, 2)]
    {
        let mut lab = Lab::new(&format!("commitment-{name}"));
        full(&mut lab);
        let job = lab.slurm.submit(2, 2, cpus, 60, 5);
        lab.slurm.alter(job, |job| {
            (job.max_nodes, job.min_cpus) = (Some(4), min_cpus);
            (job.tasks, job.cpus_per_task) = (tasks, cpus_per_task);
        });
        let neighbours: Vec<Key> = (3..7).map(|job| lab.slurm.submit(job, 1, 1, 60, 40)).collect();
        let mut was_committed = false;
        for _ in 0..58 {
            lab.seconds(1);
            was_committed |= committed(&lab.state(job));
            assert!(!was_committed || !matches!(lab.state(job), JobState::Pending(Hold::Admin)));
        }
        assert!(was_committed, "{name}");
        // A planner that is started anew takes it for the same, too.
        lab.restart();
        lab.seconds(80);
        assert_eq!(lab.outcome(job), "completed", "{name}");
        for job in neighbours {
            assert_eq!(lab.outcome(job), "completed", "{name}");
        }
        no_harm(&mut lab);
    }
}

#[test]
fn a_limit_changed_before_the_start_is_planned_anew() {
    let mut lab = Lab::new("limit-changed");
    let neighbour = lab.slurm.submit(1, 1, 1, 120, 100);
    lab.seconds(2);
    let job = lab.slurm.submit(2, 4, 4, 120, 30);
    lab.turn();
    // It has its nodes in the plan, and has not begun.
    assert_eq!(lab.row(job).state, State::Running);
    lab.slurm.alter(job, |job| job.limit_s = Some(60));
    lab.turn();
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.row(job).duration_s, 60 + 4 + 2);
    lab.seconds(110);
    assert_eq!(
        (lab.outcome(job), lab.outcome(neighbour)),
        ("completed".into(), "completed".into())
    );
    no_harm(&mut lab);
}

/// A user waits for the moment of the release and asks for a week. The others keep their times.
#[test]
fn a_limit_raised_at_the_release_is_not_valid() {
    let mut lab = Lab::new("limit-at-release");
    let job = lab.slurm.submit(1, 4, 8, 60, 1000);
    let neighbour = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.slurm.raised_at_commit = Some((job, 7 * 86_400));
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.slurm.job(job).unwrap().limit_s, Some(60));
    lab.seconds(80);
    assert_eq!(lab.outcome(job), "aborted at its end");
    assert_eq!(lab.outcome(neighbour), "completed");
}

#[test]
fn a_limit_changed_without_a_planner_is_planned() {
    let mut lab = Lab::new("limit-without-planner");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    let job = lab.slurm.submit(2, 4, 4, 60, 30);
    lab.turn();
    lab.slurm.alter(job, |job| job.limit_s = Some(600));
    lab.restart();
    lab.turn();
    assert_eq!(lab.row(job).limit_s(), 600);
    lab.seconds(75);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.slurm.job(job).unwrap().limit_s, Some(600));
}

#[test]
fn a_declined_alteration_ends_nothing() {
    let mut lab = Lab::new("declined-alteration");
    let neighbour = lab.slurm.submit(1, 1, 1, 120, 100);
    lab.seconds(2);
    let job = lab.slurm.submit(9, 4, 4, 60, 30);
    lab.turn();
    assert_eq!(lab.row(job).state, State::Running);
    lab.slurm.alter(job, |job| {
        (job.nodes_wanted, job.cpus, job.max_nodes) = (9, 9, Some(9));
    });
    lab.turn();
    lab.seconds(30);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&job].contains("declined: 9 ncpus"), "{:?}", lab.slurm.told);
    lab.seconds(80);
    assert_eq!(lab.outcome(neighbour), "completed");
    assert_eq!(lab.slurm.ends.len(), 1);
    assert_eq!(lab.manager().nodes_out().count(), 0);
    // It is planned once it can be.
    lab.slurm.alter(job, |job| {
        (job.nodes_wanted, job.cpus, job.max_nodes) = (2, 2, Some(2));
    });
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
}

#[test]
fn a_late_node_gets_nothing_new_and_its_jobs_run_on() {
    let mut lab = Lab::new("late-node");
    let job = lab.slurm.submit(1, 1, 1, 120, 100);
    let neighbour = lab.slurm.submit(2, 1, 1, 120, 60);
    lab.seconds(3);
    let node = lab.row(job).nodes[0].node.clone();
    assert_eq!(lab.row(neighbour).nodes[0].node, node);
    // Its user cancels it, and it ignores that until it is killed.
    lab.slurm.lingers(job, 30);
    lab.slurm.cancel(job);
    lab.seconds(5);
    let out: Vec<_> = lab.manager().nodes_out().cloned().collect();
    assert_eq!((out.len(), &*out[0].name, out[0].state), (1, &*node, Out::Offline));
    assert!(out[0].is_late() && out[0].why.contains("not free of request"), "{out:?}");
    assert_eq!(lab.state(neighbour), JobState::Running);
    let all = lab.slurm.submit(3, 4, 4, 60, 5);
    lab.seconds(5);
    assert_eq!(lab.state(all), JobState::Pending(Hold::Admin));
    // Neither does a planner that is started anew take it for failed.
    lab.restart();
    lab.seconds(10);
    assert_eq!((lab.state(neighbour), lab.manager().nodes_out().count()), (JobState::Running, 1));
    lab.seconds(20);
    assert_eq!(lab.outcome(job), "cancelled");
    assert_eq!(lab.manager().nodes_out().count(), 0);
    assert_eq!(lab.outcome(all), "completed");
    lab.seconds(20);
    assert_eq!(lab.outcome(neighbour), "completed");
    no_harm(&mut lab);
}

#[test]
fn a_job_that_a_crash_rolled_back_is_planned_again() {
    let mut lab = Lab::new("rolled-back");
    full(&mut lab);
    let job = lab.slurm.submit(2, 2, 1, 60, 30);
    lab.slurm.alter(job, |job| (job.max_nodes, job.tasks) = (Some(4), 2));
    lab.turn();
    lab.turn();
    let saved = lab.slurm.save();
    lab.seconds(60);
    assert_eq!(lab.state(job), JobState::Running);
    lab.slurm.crash_to(&saved);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    lab.seconds(200);
    assert_eq!(lab.state(job), JobState::Over("completed".into()));
    no_harm(&mut lab);
}

#[test]
fn the_plan_follows_a_job_that_runs_elsewhere() {
    let mut lab = Lab::new("runs-elsewhere");
    let job = lab.slurm.submit(1, 1, 2, 60, 40);
    let other = lab.slurm.submit(2, 1, 2, 60, 40);
    lab.turn();
    let planned = lab.row(other).nodes[0].node.clone();
    // It was faster than the hold, and runs where the other is to start.
    lab.slurm.alter(job, |job| {
        job.state = JobState::Running;
        (job.nodes, job.required) = (vec![planned.clone()], vec![planned.clone()]);
        (job.start_s, job.end_s) = (Some(T), Some(T + 60));
    });
    lab.seconds(8);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.row(job).nodes[0].node, planned);
    assert_eq!(lab.state(other), JobState::Running);
    assert_ne!(lab.row(other).nodes[0].node, planned);
    lab.seconds(60);
    assert_eq!((lab.outcome(job), lab.outcome(other)), ("completed".into(), "completed".into()));
    no_harm(&mut lab);
}

#[test]
fn a_job_beside_its_plan_without_room_runs_to_its_end() {
    let mut lab = Lab::new("without-room");
    let runs = lab.slurm.submit(1, 1, 2, 60, 50);
    lab.seconds(3);
    let node = lab.row(runs).nodes[0].node.clone();
    let job = lab.slurm.submit(2, 1, 2, 60, 40);
    lab.turn();
    lab.slurm.alter(job, |job| {
        job.state = JobState::Running;
        (job.nodes, job.required) = (vec![node.clone()], vec![node.clone()]);
        (job.start_s, job.end_s) = (Some(T + 3), Some(T + 63));
    });
    lab.seconds(4);
    assert!(lab.manager().nodes_out().all(|out| out.is_late() && out.name == node));
    assert_eq!(lab.manager().nodes_out().count(), 1);
    lab.seconds(60);
    assert_eq!((lab.outcome(runs), lab.outcome(job)), ("completed".into(), "completed".into()));
    no_harm(&mut lab);
}

#[test]
fn a_down_node_ends_no_job_that_runs_on() {
    let mut lab = Lab::new("down-runs-on");
    let job = lab.slurm.submit(1, 2, 4, 60, 50);
    lab.seconds(3);
    // Submitted with --no-kill, it does without the node.
    let node = lab.row(job).nodes[0].node.clone();
    lab.slurm.node(&node, NodeState::Down);
    lab.seconds(20);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.row(job).state, State::Running);
    lab.seconds(40);
    assert_eq!(lab.outcome(job), "completed");
}

/// A user gives nodes of a running job back. The others are not taken from those who plan them.
#[test]
fn a_job_that_was_made_smaller_makes_no_node_late() {
    let mut lab = Lab::new("made-smaller");
    let job = lab.slurm.submit(1, 2, 4, 600, 500);
    lab.seconds(3);
    lab.slurm.alter(job, |job| {
        job.nodes.truncate(1);
        (job.nodes_wanted, job.cpus) = (1, 2);
    });
    lab.seconds(20);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.row(job).state, State::Running);
    no_harm(&mut lab);
}

/// However often declined jobs are to be tried again, new jobs and each of the declined ones have
/// their turns.
#[test]
fn declined_jobs_keep_no_new_job_waiting() {
    let mut lab = Lab::new("declined-many");
    let first = lab.slurm.submit(1, 1, 1, 60, 50);
    for number in 2..302 {
        let job = lab.slurm.submit(number, 1, 1, 60, 10);
        lab.slurm.alter(job, |job| job.words = "pbs nonsense".into());
    }
    for _ in 0..6 {
        lab.turn();
    }
    let declined = |lab: &Lab| lab.slurm.told.values().filter(|it| it.contains("declined")).count();
    assert_eq!(declined(&lab), 300);
    let new = lab.slurm.submit(400, 1, 1, 60, 10);
    for step in 0..4 {
        // All declined jobs are to be tried again.
        lab.slurm.alter(first, |job| job.words = format!("pbs notify={step}m"));
        lab.turn();
    }
    assert_eq!(lab.rows(new).len(), 1);
    assert_eq!(declined(&lab), 300);
}

/// Declined jobs fill the batch system. Their users are told, and unless an operator wants it they
/// are not cancelled.
#[test]
fn a_job_that_was_declined_long_ago_is_cancelled_only_if_wanted() {
    let day = Duration::from_secs(86_400);
    for cancel_declined in [None, Some(30 * day)] {
        let mut lab = Lab::new(&format!("declined-long-{}", cancel_declined.is_some()));
        let settings = Settings { cancel_declined, ..settings() };
        lab.steer = Steer::new(lab.manager.as_ref().unwrap(), settings);
        let (declined, held) =
            (lab.slurm.submit(1, 9, 9, 60, 10), lab.slurm.submit(2, 1, 1, 60, 10));
        lab.slurm.alter(held, |job| job.words = "pbs pbs-held".into());
        lab.turn();
        assert!(lab.slurm.told[&declined].starts_with("declined"), "{:?}", lab.slurm.told);
        let reminded = |lab: &Lab| lab.slurm.told[&declined].contains("cancel it with scancel 1");
        lab.now_s += 6 * 86_400;
        lab.seconds(1);
        assert!(!reminded(&lab));
        lab.now_s += 86_400;
        lab.seconds(1);
        assert!(reminded(&lab), "{:?}", lab.slurm.told);
        assert_eq!(lab.state(declined), JobState::Pending(Hold::Admin));
        // A job that ends, for one, has it tried again, and its user is told no less.
        lab.now_s += 24 * 86_400;
        lab.seconds(2);
        let is_cancelled = lab.state(declined) == JobState::Over("cancelled".into());
        assert_eq!(is_cancelled, cancel_declined.is_some());
        assert!(reminded(&lab) || is_cancelled, "{:?}", lab.slurm.told);
        // A hold of its user is none of the planner's.
        assert_eq!(lab.state(held), JobState::Pending(Hold::Admin));
        assert!(lab.slurm.told[&held].starts_with("held by its user"), "{:?}", lab.slurm.told);
    }
}

#[test]
fn a_request_without_a_place_in_its_time_is_held() {
    let mut lab = Lab::new("no-place-in-time");
    let job = lab.slurm.submit(1, 4, 4, 60, 10);
    let begin_s = T + 30;
    lab.slurm.alter(job, |job| {
        (job.words, job.start_s) = ("pbs deadline=2m".into(), Some(begin_s));
    });
    lab.turn();
    assert!(lab.slurm.told[&job].starts_with("planned"), "{:?}", lab.slurm.told);
    lab.slurm.node("n02", NodeState::Drained);
    lab.seconds(5);
    // What was planned is not shown any more.
    assert!(lab.slurm.told[&job].starts_with("waits"), "{:?}", lab.slurm.told);
    assert_eq!(lab.slurm.job(job).unwrap().start_s, Some(begin_s));
    lab.seconds(150);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&job].starts_with("declined"), "{:?}", lab.slurm.told);
    // Its user gives it more time.
    lab.slurm.node("n02", NodeState::Up);
    lab.slurm.alter(job, |job| job.words = "pbs deadline=1h".into());
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
}

#[test]
fn a_job_has_its_whole_limit() {
    let mut lab = Lab::new("whole-limit");
    let first = lab.slurm.submit(1, 4, 8, 60, 1000);
    let next = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.seconds(30);
    // An operator gives it another minute.
    lab.slurm.alter(first, |job| {
        (job.limit_s, job.end_s) = (Some(120), job.start_s.map(|start_s| start_s + 120));
    });
    lab.seconds(80);
    assert_eq!(
        (lab.state(first), lab.state(next)),
        (JobState::Running, JobState::Pending(Hold::Admin))
    );
    lab.seconds(30);
    assert_eq!(lab.outcome(first), "aborted at its end");
    let ends: Vec<_> = lab.slurm.ends.iter().filter(|end| end.1 == first).collect();
    assert!(ends.len() == 1 && ends[0].0 >= ends[0].2, "{ends:?}");
    assert!(
        lab.slurm.told[&first].starts_with("ended by the planner: aborted"),
        "{:?}",
        lab.slurm.told
    );
    assert_eq!(lab.outcome(next), "completed");
}

#[test]
fn a_declined_job_is_tried_again_when_something_is_free() {
    let mut lab = Lab::new("tried-again");
    let long = lab.slurm.submit(1, 4, 8, 3600, 3000);
    lab.seconds(2);
    let late = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.slurm.alter(late, |job| job.words = "pbs deadline=5m".into());
    lab.seconds(5);
    assert!(lab.slurm.told[&late].starts_with("declined"), "{:?}", lab.slurm.told);
    let news = lab.steer.news();
    assert_eq!(news.iter().filter(|news| news.contains("declined")).count(), 1, "{news:?}");
    lab.slurm.cancel(long);
    lab.seconds(5);
    assert_eq!(lab.state(late), JobState::Running);
}

#[test]
fn a_hold_is_kept_until_it_is_released() {
    let mut lab = Lab::new("hold-kept");
    full(&mut lab);
    // As job_submit.lua writes it down: at the submission, and of a job that is about to start.
    let held = lab.slurm.submit(2, 1, 1, 60, 10);
    lab.slurm.alter(held, |job| job.words = "pbs pbs-held".into());
    let later = lab.slurm.submit(3, 1, 1, 60, 10);
    lab.turn();
    lab.seconds(57);
    assert!(committed(&lab.state(later)));
    lab.slurm.alter(later, |job| job.words = "mine pbs-held-by-operator".into());
    lab.seconds(30);
    for job in [held, later] {
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
        assert!(lab.slurm.told[&job].starts_with("held by"), "{:?}", lab.slurm.told);
    }
    lab.restart();
    lab.seconds(20);
    assert_eq!(lab.state(held), JobState::Pending(Hold::Admin));
    for job in [held, later] {
        lab.slurm.alter(job, |job| job.words = "pbs".into());
    }
    lab.seconds(20);
    for job in [held, later] {
        assert_eq!(lab.state(job), JobState::Over("completed".into()));
    }
    no_harm(&mut lab);
}

#[test]
fn a_job_that_follows_one_of_several_waits_for_slurm_to_see_it() {
    let mut lab = Lab::new("follows-either");
    let job = lab.slurm.submit(3, 1, 1, 60, 5);
    let after = "afterok:1(unfulfilled)?afterok:2(unfulfilled)";
    lab.slurm.alter(job, |job| job.after = after.into());
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&job].starts_with("waits until one"), "{:?}", lab.slurm.told);
    // One has ended as needed.
    lab.slurm.alter(job, |job| job.after.clear());
    lab.seconds(10);
    assert_eq!(lab.state(job), JobState::Over("completed".into()));
}

/// A planner that is killed before it could clear a planned start does not take it for a wish.
#[test]
fn a_planned_start_is_no_wish_after_a_restart() {
    let mut lab = Lab::new("start-no-wish");
    let first = full(&mut lab);
    let job = lab.slurm.submit(2, 1, 1, 60, 5);
    lab.seconds(2);
    let planned_s = lab.slurm.job(job).unwrap().start_s.unwrap();
    assert!(planned_s > T + 60);
    lab.slurm.is_mute = true;
    lab.slurm.alter(job, |job| (job.cpus, job.min_cpus) = (99, 99));
    lab.seconds(1);
    assert!(lab.row(job).outcome.is_some());
    assert_eq!(lab.slurm.job(job).unwrap().start_s, Some(planned_s));
    lab.restart();
    lab.slurm.is_mute = false;
    lab.slurm.alter(job, |job| (job.cpus, job.min_cpus) = (1, 1));
    lab.slurm.cancel(first);
    lab.seconds(20);
    assert!(lab.now_s < planned_s);
    assert_eq!(lab.rows(job).last().unwrap().outcome.as_deref(), Some("completed"));
}

/// A planner reads the last of the requests that have ended, however much the others take.
#[test]
fn the_last_planned_start_is_no_wish_after_a_restart() {
    let mut lab = Lab::new("last-start-no-wish");
    let first = full(&mut lab);
    // More than is read at once.
    for number in 0..600 {
        let other = lab.slurm.submit(2000 + number, 1, 1, 60, 5);
        lab.slurm.alter(other, |job| job.name = "x".repeat(4000));
        lab.turn();
        lab.slurm.cancel(other);
    }
    let last = lab.slurm.submit(5000, 1, 1, 60, 5);
    lab.seconds(2);
    let last_s = lab.slurm.job(last).unwrap().start_s.unwrap();
    assert!(last_s > T + 60);
    lab.slurm.is_mute = true;
    lab.slurm.alter(last, |job| (job.cpus, job.min_cpus) = (99, 99));
    lab.seconds(1);
    lab.restart();
    lab.slurm.is_mute = false;
    lab.slurm.alter(last, |job| (job.cpus, job.min_cpus) = (1, 1));
    lab.slurm.cancel(first);
    lab.seconds(20);
    assert!(lab.now_s < last_s);
    assert_eq!(lab.rows(last).last().unwrap().outcome.as_deref(), Some("completed"));
}

/// Slurm gives a job that is sent back a start in two minutes. That is no wish of its user, even if
/// the job had ended before, as with `scontrol requeue`.
#[test]
fn a_start_that_slurm_gave_a_job_that_had_ended_is_no_wish() {
    for is_restarted in [false, true] {
        let mut lab = Lab::new(&format!("requeued-after-its-end-{is_restarted}"));
        let job = lab.slurm.submit(1, 1, 1, 60, 5);
        lab.seconds(15);
        assert_eq!(lab.outcome(job), "completed");
        if is_restarted {
            lab.restart();
        }
        let again = lab.slurm.requeue(job);
        lab.seconds(20);
        assert_eq!(lab.outcome(again), "completed");
    }
}

/// A start that Slurm gave a job is no wish of its user either while the nodes of the job are still
/// being freed, before it is sent back or after.
#[test]
fn a_start_that_slurm_gave_a_job_whose_nodes_are_being_freed_is_no_wish() {
    for ends_before in [false, true] {
        let mut lab = Lab::new(&format!("requeued-while-completing-{ends_before}"));
        let job = lab.slurm.submit(1, 1, 1, 60, 5);
        lab.seconds(3);
        assert_eq!(lab.state(job), JobState::Running);
        if ends_before {
            lab.slurm.alter(job, |job| job.state = JobState::Completing(Some("failed".into())));
            lab.seconds(20);
        }
        let again = lab.slurm.requeue(job);
        if !ends_before {
            lab.slurm.alter(again, |job| job.state = JobState::Completing(None));
            lab.seconds(20);
            lab.slurm.alter(again, |job| job.state = JobState::Pending(Hold::No));
        }
        lab.seconds(30);
        assert_eq!(lab.outcome(again), "completed", "ends before: {ends_before}");
    }
}

/// A later start that its user gives a job after it was sent back is a wish.
#[test]
fn a_start_that_a_user_gave_a_job_after_its_end_is_a_wish() {
    let mut lab = Lab::new("wish-after-the-end");
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.seconds(15);
    assert_eq!(lab.outcome(job), "completed");
    let again = lab.slurm.requeue(job);
    let wish_s = lab.now_s + 1000;
    lab.slurm.alter(again, |job| job.start_s = Some(wish_s));
    lab.seconds(20);
    assert!(lab.rows(again).last().unwrap().start_s >= Some(wish_s));
}

/// A number that is used again, as after a crash, is of a new job: the start that its user gave the
/// one before is none of its own.
#[test]
fn a_number_that_is_used_again_has_no_start_of_the_job_before() {
    let mut lab = Lab::new("number-again");
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    let later_s = lab.now_s + 3000;
    lab.slurm.alter(job, |job| job.start_s = Some(later_s));
    lab.seconds(3);
    assert_eq!(lab.row(job).start_s, Some(later_s));
    lab.slurm.cancel(job);
    lab.seconds(3);
    let again = lab.slurm.requeue(job);
    lab.slurm.alter(again, |job| job.start_s = None);
    lab.seconds(20);
    assert_eq!(lab.outcome(again), "completed");
}

/// A user changes the number of nodes while there is no planner: the next one plans that number.
#[test]
fn nodes_changed_without_a_planner_are_planned() {
    let mut lab = Lab::new("nodes-without-planner");
    full(&mut lab);
    let job = lab.slurm.submit(2, 4, 4, 60, 5);
    lab.turn();
    lab.alone(2);
    lab.slurm.alter(job, |job| (job.nodes_wanted, job.max_nodes, job.cpus) = (2, Some(2), 2));
    lab.restart();
    lab.seconds(80);
    assert_eq!(lab.outcome(job), "completed");
    assert_eq!(lab.slurm.job(job).unwrap().nodes.len(), 2);
}

/// A hold that its user or an operator sets while there is no planner is one for the next planner,
/// and so is a request that cannot be planned.
#[test]
fn what_is_held_without_a_planner_stays_held() {
    for (case, is_committed) in [("waits", false), ("committed", true)] {
        for change in ["pbs pbs-held", "pbs-held-by-operator", "foreign"] {
            let mut lab = Lab::new(&format!("held-without-planner-{case}-{change}"));
            full(&mut lab);
            let job = lab.slurm.submit(2, 1, 1, 60, 5);
            lab.turn();
            lab.seconds(if is_committed { 57 } else { 2 });
            assert_eq!(committed(&lab.state(job)), is_committed);
            lab.slurm.alter(job, |job| match change {
                "foreign" => job.foreign = Some("--contiguous: leave it out".into()),
                held => job.words = held.into(),
            });
            lab.restart();
            lab.seconds(90);
            assert_eq!(lab.state(job), JobState::Pending(Hold::Admin), "{case} {change}");
            let told = &lab.slurm.told[&job];
            assert!(told.starts_with("held by") || told.contains("--contiguous"), "{told}");
            lab.slurm.alter(job, |job| (job.words, job.foreign) = ("pbs".into(), None));
            lab.seconds(20);
            assert_eq!(lab.state(job), JobState::Over("completed".into()), "{case} {change}");
        }
    }
}

/// A flood of declined jobs: their users are told a few at a time, and what starts and holds jobs
/// does not wait behind thousands of such orders.
#[test]
fn users_of_declined_jobs_are_told_a_few_at_a_time() {
    let mut lab = Lab::new("declined-flood");
    let declined: Vec<Key> = (1..=40).map(|job| lab.slurm.submit(job, 1, 1, 60, 5)).collect();
    for &job in &declined {
        lab.slurm.want_contiguous(job);
    }
    let planned = lab.slurm.submit(41, 1, 1, 60, 5);
    for turns in 1..=12 {
        lab.slurm.room = Some(4);
        lab.now_s += 1;
        lab.slurm.tick();
        lab.turn();
        let told = declined.iter().filter(|job| lab.slurm.told.contains_key(job)).count();
        assert!(told <= 4 * turns, "{told} in {turns} turns");
    }
    assert_eq!(lab.outcome(planned), "completed");
    let untold = declined.iter().filter(|job| !lab.slurm.told.contains_key(job));
    assert_eq!(untold.count(), 0);
    for &job in &declined {
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    }
}

/// Users are told that their jobs are declined, though Slurm took no orders at first.
#[test]
fn users_are_told_once_slurm_takes_orders_again() {
    let mut lab = Lab::new("declined-while-mute");
    let job = lab.slurm.submit(1, 1, 1, 60, 5);
    lab.slurm.want_contiguous(job);
    lab.slurm.alter(job, |job| job.state = JobState::Pending(Hold::Admin));
    lab.slurm.is_mute = true;
    lab.seconds(5);
    assert!(!lab.slurm.told.contains_key(&job));
    lab.slurm.is_mute = false;
    lab.seconds(15);
    assert!(lab.slurm.told[&job].contains("--contiguous"), "{:?}", lab.slurm.told);
}

/// A job that Slurm or an operator sends back and holds stays held, whether there is a planner then
/// or not, and also while its hold can't be written down.
#[test]
fn a_job_that_is_sent_back_and_held_stays_held() {
    for case in ["planner", "without-planner", "mute", "of-its-user"] {
        let mut lab = Lab::new(&format!("sent-back-and-held-{case}"));
        let job = lab.slurm.submit(1, 1, 1, 60, 5);
        lab.slurm.alter(job, |job| job.words = "pbs deadline=1h".into());
        lab.seconds(3);
        assert_eq!(lab.state(job), JobState::Running);
        lab.slurm.is_mute = case == "mute";
        let job = lab.slurm.requeue_held(job);
        match case {
            "without-planner" => {
                lab.alone(20);
                lab.restart();
            }
            "of-its-user" => {
                lab.slurm.alter(job, |job| job.words = "pbs deadline=1h pbs-held".into());
            }
            _ => {}
        }
        lab.seconds(30);
        assert_ne!(lab.state(job), JobState::Running, "{case}");
        lab.slurm.is_mute = false;
        lab.seconds(30);
        lab.restart();
        lab.seconds(10);
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin), "{case}");
        assert!(lab.slurm.told[&job].starts_with("held by"), "{:?}", lab.slurm.told);
        let words = lab.slurm.job(job).unwrap().words.clone();
        let by = if case == "of-its-user" { "" } else { "-by-operator" };
        assert_eq!(words, format!("pbs deadline=1h pbs-held{by}"), "{case}");
        // As job_submit.lua releases it; Slurm may have set a start when it sent the job back.
        lab.slurm.alter(job, |job| job.words = "pbs deadline=1h".into());
        lab.seconds(150);
        assert_eq!(lab.state(job), JobState::Over("completed".into()), "{case}");
        no_harm(&mut lab);
    }
}
