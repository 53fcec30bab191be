// SPDX-License-Identifier: GPL-2.0
//! Planned jobs start where and when they are planned, and no others do: features and traps by
//! their numbers, in virtual time.

mod common;

use std::time::Duration;

use common::*;
use pbs_manager::ledger::{Row, State};
use pbs_slurm::steer::{Hold, JobState, Key, NodeState, Settings, Steer, GONE, LOST, UNSEEN};

#[test]
fn a_job_is_held_at_first_sight_and_runs_where_planned() {
    let mut lab = Lab::new("job-held");
    // All nodes for a minute, then one after it.
    let wide = lab.slurm.submit(1, 4, 8, 60, 20);
    lab.turn();
    let narrow = lab.slurm.submit(2, 1, 2, 60, 20);
    lab.turn();
    assert_eq!(lab.state(narrow), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&narrow].contains(" on n0"));
    lab.seconds(3);
    assert_eq!(lab.state(wide), JobState::Running);
    assert_eq!(lab.state(narrow), JobState::Pending(Hold::Admin));
    // It ends early, and who waits moves up.
    lab.seconds(22);
    assert_eq!(lab.state(narrow), JobState::Running);
    let planned = lab.row(narrow).nodes[0].node.clone();
    assert_eq!(lab.slurm.job(narrow).unwrap().nodes, [planned]);
    lab.seconds(30);
    assert_eq!(lab.outcome(wide), "completed");
    assert_eq!(lab.outcome(narrow), "completed");
}

#[test]
fn a_job_is_released_a_window_before_its_start() {
    let mut lab = Lab::new("job-released");
    let first = lab.slurm.submit(1, 4, 8, 60, 1000);
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.turn();
    lab.turn();
    let start_s = lab.row(second).start_s.unwrap();
    // What it takes to start and to clean is booked besides the time that it asked for.
    assert_eq!(start_s, T + 4 + 60 + 2);
    while lab.now_s + WINDOW_S < start_s {
        assert_eq!(lab.state(second), JobState::Pending(Hold::Admin));
        lab.seconds(1);
    }
    assert!(committed(&lab.state(second)));
    assert_eq!(lab.slurm.commits.last().unwrap().0, start_s - WINDOW_S);
    lab.seconds(WINDOW_S + 1);
    assert_eq!(lab.state(second), JobState::Running);
    // The first had more to do than it had time.
    assert_eq!(lab.outcome(first), "aborted at its end");
}

#[test]
fn a_job_released_by_its_user_stays_held() {
    let mut lab = Lab::new("job-released-by");
    let first = lab.slurm.submit(1, 4, 8, 60, 50);
    lab.turn();
    lab.seconds(2);
    let job = lab.slurm.submit(2, 1, 1, 60, 10);
    lab.slurm.alter(job, |job| job.state = JobState::Pending(Hold::No));
    lab.turn();
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    lab.seconds(3);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    // Also later.
    lab.slurm.alter(job, |job| job.state = JobState::Pending(Hold::No));
    lab.turn();
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert_eq!(lab.state(first), JobState::Running);
}

#[test]
fn a_reused_job_number_is_another_job() {
    let mut lab = Lab::new("reused-job");
    let lost = lab.slurm.submit(1, 1, 1, 60, 10);
    lab.turn();
    lab.slurm.crash(&[lost]);
    lab.now_s += 1;
    lab.slurm.tick();
    let other = lab.slurm.submit(1, 2, 2, 60, 10);
    assert_ne!(lost, other);
    lab.turn();
    lab.turn();
    assert!(lab.outcome(lost).starts_with("sent back") || lab.outcome(lost).starts_with("lost"));
    assert_eq!(lab.row(other).nodes.len(), 2);
    lab.seconds(20);
    assert_eq!(lab.outcome(other), "completed");
}

#[test]
fn a_vanished_job_is_reported_as_lost() {
    let mut lab = Lab::new("vanished-job");
    let runs = lab.slurm.submit(1, 1, 1, 60, 30);
    lab.seconds(3);
    let waits = lab.slurm.submit(2, 4, 8, 60, 30);
    lab.turn();
    lab.slurm.crash(&[runs, waits]);
    lab.turn();
    assert!(lab.outcome(runs).starts_with("ended unseen"));
    assert!(lab.outcome(waits).starts_with("lost"));
    assert!(lab.steer.news().iter().any(|news| news.contains("submit it again")));
}

/// Slurm forgets jobs that have ended, and a planner that was away for longer finds them gone. Nobody
/// knows then if one that never began was lost or cancelled, and nobody is asked to submit it again.
#[test]
fn a_job_that_ended_without_a_planner_is_not_lost() {
    let mut lab = Lab::new("ended-unseen");
    let runs = lab.slurm.submit(1, 1, 1, 600, 90);
    lab.seconds(3);
    let soon = lab.slurm.submit(2, 1, 1, 600, 90);
    let begin_s = lab.now_s + WINDOW_S;
    lab.slurm.alter(soon, |job| job.start_s = Some(begin_s));
    let late = lab.slurm.submit(3, 4, 8, 60, 30);
    lab.turn();
    assert!(committed(&lab.state(soon)) && !committed(&lab.state(late)));
    lab.alone(200);
    for key in [runs, soon] {
        assert_eq!(lab.state(key), JobState::Over("completed".into()));
    }
    lab.slurm.crash(&[runs, soon, late]);
    lab.restart();
    lab.turn();
    for key in [runs, soon] {
        assert_eq!(lab.outcome(key), UNSEEN);
    }
    assert_eq!(lab.outcome(late), GONE);
    let news = lab.steer.news();
    assert!(!news.iter().any(|news| news.contains("submit it again")), "{news:?}");
}

/// A planner without an answer for longer than Slurm remembers ended jobs does not know either what
/// has become of a job that is gone; after a shorter time it does.
#[test]
fn a_job_that_is_gone_after_a_long_silence_is_not_known_to_be_lost() {
    for (name, silence_s, is_ahead, outcome) in [
        ("short-silence", 100, false, LOST),
        ("long-silence", 400, false, GONE),
        ("silence-and-order", 400, true, GONE),
    ] {
        let mut lab = Lab::new(name);
        lab.slurm.submit(1, 4, 8, 6000, 6000);
        lab.turn();
        let waits = lab.slurm.submit(2, 4, 8, 60, 30);
        lab.turn();
        lab.alone(silence_s);
        lab.slurm.crash(&[waits]);
        if is_ahead {
            // An order for it waits, and it is missed in the look after that.
            lab.slurm.ahead.insert(waits);
            lab.turn();
            lab.slurm.ahead.clear();
            lab.seconds(1);
        }
        lab.turn();
        assert_eq!(lab.outcome(waits), outcome, "{name}");
    }
}

/// A job whose user wants a start, or that needs disk space that Slurm does not count, starts at its
/// planned time and not once the nodes are free before.
#[test]
fn a_job_with_a_reason_for_its_start_does_not_begin_before_it() {
    let site = SITE.replace("mem=1g", "mem=1g:tmp-disk=100m");
    for (name, has_begin, words, tmp_bytes) in [
        ("own-begin", true, "", 0),
        ("own-start", false, "pbs start=1764000068", 0),
        ("own-disk", false, "", 50 << 20),
    ] {
        let mut lab = Lab::of_site(name, &site, &["n01", "n02", "n03", "n04"]);
        lab.slurm.submit(1, 4, 8, 60, 64);
        lab.turn();
        let begin_s = T + 68;
        let job = lab.slurm.submit(2, 1, 2, 60, 10);
        lab.slurm.alter(job, |job| {
            job.start_s = has_begin.then_some(begin_s);
            job.words = words.into();
            job.demands.tmp_bytes = tmp_bytes;
        });
        lab.turn();
        while !committed(&lab.state(job)) {
            lab.seconds(1);
        }
        // The cores are in use by another, which ends early. The plan follows, unless the user
        // wants that start.
        let start_s = lab.row(job).start_s;
        assert_eq!(lab.slurm.job(job).unwrap().start_s, start_s, "{name}");
        assert!(tmp_bytes > 0 || start_s == Some(begin_s), "{name}: {start_s:?}");
        while lab.state(job) != JobState::Running {
            lab.seconds(1);
        }
        let planned_s = lab.row(job).start_s;
        assert!(tmp_bytes > 0 || planned_s == start_s, "{name}: {planned_s:?}");
        assert!(Some(lab.now_s) >= planned_s, "{name}: {}", lab.now_s);
    }
}

/// A job whose row can't be read is set aside and told once. One that runs keeps its nodes, one that
/// is new is held, and all others are planned as ever.
#[test]
fn a_row_that_cannot_be_read_is_set_aside() {
    let mut lab = Lab::new("garbled-row");
    let runs = lab.slurm.submit(1, 2, 4, 60, 30);
    lab.seconds(3);
    assert_eq!(lab.state(runs), JobState::Running);
    let odd = lab.slurm.submit(2, 1, 1, 60, 10);
    lab.slurm.alter(odd, |job| job.state = JobState::Pending(Hold::No));
    lab.slurm.garbled.extend([runs, odd]);
    let other = lab.slurm.submit(3, 2, 4, 60, 10);
    lab.steer.news();
    lab.seconds(5);
    assert_eq!(lab.state(other), JobState::Running);
    assert_eq!(lab.state(odd), JobState::Pending(Hold::Admin));
    let both = |job: Key| lab.slurm.job(job).unwrap().nodes.clone();
    assert!(both(other).iter().all(|node| !both(runs).contains(node)));
    let news = lab.steer.news();
    let told: Vec<_> = news.iter().filter(|news| news.contains("is set aside")).collect();
    assert_eq!(told.len(), 2, "{news:?}");
    assert!(told[0].starts_with("job 1 is set aside: its row in squeue can't be read"));
    // The next planner knows only what the row shows.
    lab.slurm.told.clear();
    lab.restart();
    lab.seconds(3);
    assert!(!lab.slurm.told.contains_key(&runs), "{:?}", lab.slurm.told);
    assert!(lab.slurm.told[&odd].starts_with("set aside: "), "{:?}", lab.slurm.told);
    // It can be read again.
    lab.slurm.garbled.clear();
    lab.seconds(60);
    assert_eq!(lab.outcome(runs), "completed");
    assert_eq!(lab.outcome(odd), "completed");
}

#[test]
fn jobs_of_a_drained_node_are_planned_elsewhere() {
    let mut lab = Lab::new("jobs-drained");
    let first = lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 1, 2, 60, 10);
    lab.turn();
    lab.seconds(58);
    assert!(committed(&lab.state(job)));
    let node = lab.row(job).nodes[0].node.clone();
    lab.slurm.node(&node, NodeState::Drained);
    lab.seconds(8);
    let other = lab.row(job).nodes[0].node.clone();
    assert_ne!(node, other);
    assert_eq!(lab.slurm.job(job).unwrap().nodes, [other]);
    assert_eq!(lab.outcome(first), "aborted at its end");
    // In use again, others may have it.
    lab.slurm.node(&node, NodeState::Up);
    lab.turn();
    assert_eq!(lab.manager().nodes_out().count(), 0);
}

/// Start and nodes that a user sees are those of the plan, or none, as soon as a node is lost.
#[test]
fn what_is_shown_of_a_lost_node_is_cleared_at_once() {
    for is_restarted in [false, true] {
        let mut lab = Lab::new(if is_restarted { "cleared-anew" } else { "cleared" });
        lab.slurm.submit(1, 4, 8, 60, 1000);
        lab.turn();
        let near = lab.slurm.submit(2, 1, 2, 60, 10);
        let far = lab.slurm.submit(3, 4, 8, 120, 10);
        lab.turn();
        lab.seconds(58);
        assert!(committed(&lab.state(near)) && lab.state(far) == JobState::Pending(Hold::Admin));
        assert!(lab.slurm.job(far).unwrap().start_s.is_some());
        let node = lab.row(near).nodes[0].node.clone();
        lab.slurm.node(&node, NodeState::Drained);
        if is_restarted {
            lab.restart();
        }
        lab.turn();
        lab.turn();
        // One has the same start on another node, and the other has no place.
        let other = lab.row(near).nodes[0].node.clone();
        assert_ne!(node, other);
        let told = &lab.slurm.told[&near];
        assert!(
            told.starts_with("planned for ") && told.ends_with(&format!(" on {other}")),
            "{told}"
        );
        assert_eq!(lab.row(far).state, State::Waiting);
        assert_eq!(lab.slurm.told[&far], "waits: it has no place in the plan");
        assert_eq!(lab.slurm.job(far).unwrap().start_s, None);
        lab.slurm.node(&node, NodeState::Up);
        lab.turn();
        lab.turn();
        assert!(lab.slurm.told[&far].ends_with(" on n[01-04]"), "{}", lab.slurm.told[&far]);
    }
}

/// A committed job without a place shows no start any more.
#[test]
fn a_job_that_is_taken_back_shows_no_start() {
    let mut lab = Lab::new("taken-back");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.turn();
    lab.seconds(58);
    assert!(committed(&lab.state(job)));
    lab.slurm.node("n03", NodeState::Drained);
    lab.turn();
    lab.turn();
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert_eq!(lab.slurm.job(job).unwrap().start_s, None);
    assert_eq!(lab.slurm.told[&job], "waits: it has no place in the plan");
}

#[test]
fn a_revoked_job_does_not_start_on_a_resumed_node() {
    let mut lab = Lab::new("revoked-job");
    let all = lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.turn();
    lab.seconds(58);
    assert!(committed(&lab.state(job)));
    lab.slurm.node("n03", NodeState::Drained);
    // It has no place any more, and is not let go.
    lab.seconds(10);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert_eq!(lab.row(job).state, State::Waiting);
    lab.slurm.node("n03", NodeState::Up);
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
    assert_eq!(lab.outcome(all), "aborted at its end");
}

#[test]
fn a_job_whose_nodes_are_taken_is_held_again() {
    let mut lab = Lab::new("job-whose");
    let first = lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.turn();
    lab.seconds(58);
    assert!(committed(&lab.state(second)));
    // Its end is not heeded: nothing stops it.
    lab.slurm.outlives(first);
    lab.seconds(8);
    assert_eq!(lab.state(second), JobState::Pending(Hold::Admin));
    assert_eq!(lab.state(first), JobState::Running);
    let row = lab.row(second);
    assert!(row.state != State::Running, "{row:?}");
    lab.slurm.may_end(first);
    lab.seconds(10);
    assert_eq!(lab.state(second), JobState::Running);
}

#[test]
fn a_requeued_job_does_not_start_by_itself() {
    let mut lab = Lab::new("requeued-job");
    let job = lab.slurm.submit(1, 1, 1, 60, 30);
    lab.seconds(3);
    assert_eq!(lab.state(job), JobState::Running);
    let again = lab.slurm.requeue(job);
    lab.turn();
    assert!(!committed(&lab.state(again)) || lab.slurm.commits.last().unwrap().1 == again);
    assert!(lab.outcome(job).starts_with("sent back"));
    lab.seconds(40);
    assert_eq!(lab.outcome(again), "completed");
    // A launch that failed: the same job waits again.
    let job = lab.slurm.submit(2, 1, 1, 60, 30);
    lab.seconds(3);
    assert_eq!(lab.state(job), JobState::Running);
    let before = lab.slurm.commits.len();
    lab.slurm.launch_failed(job);
    lab.turn();
    lab.seconds(3);
    // It runs, and it was planned for that.
    assert_eq!(lab.state(job), JobState::Running);
    assert!(lab.slurm.commits.len() > before);
}

#[test]
fn a_job_altered_in_the_window_is_planned_anew() {
    let mut lab = Lab::new("job-altered");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 1, 2, 60, 10);
    lab.turn();
    lab.seconds(58);
    assert!(committed(&lab.state(job)));
    lab.slurm.alter(job, |job| {
        (job.nodes_wanted, job.cpus, job.max_nodes) = (3, 6, Some(3));
    });
    lab.seconds(8);
    let runs = lab.slurm.job(job).unwrap().clone();
    assert_eq!(runs.state, JobState::Running);
    assert_eq!(runs.nodes.len(), 3);
    let row = lab.row(job);
    let planned: Vec<String> = row.nodes.iter().map(|part| part.node.clone()).collect();
    assert_eq!(runs.nodes, planned);
}

/// A user alters hundreds of jobs at once. What is due does not wait for all of them: they are
/// planned anew in several turns, which follow at once.
#[test]
fn many_alterations_take_several_turns() {
    let mut lab = Lab::new("many-alterations");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let jobs: Vec<_> = (2..122).map(|number| lab.slurm.submit(number, 1, 2, 60, 10)).collect();
    lab.turn();
    let before_s = lab.row(jobs[0]).duration_s;
    for &job in &jobs {
        lab.slurm.alter(job, |job| job.limit_s = Some(120));
    }
    let mut altered = Vec::new();
    while altered.last() != Some(&jobs.len()) && altered.len() < 10 {
        lab.turn();
        let rows = jobs.iter().map(|&job| lab.row(job));
        altered.push(rows.filter(|row| row.duration_s == before_s + 60).count());
        let now = Duration::from_secs(lab.now_s);
        let is_behind = lab.steer.next(lab.manager.as_ref().unwrap(), now) == now;
        assert_eq!(is_behind, altered.last() != Some(&jobs.len()), "{altered:?}");
    }
    assert_eq!(altered, [50, 100, 120]);
}

/// Jobs that are altered before each turn do not keep another from being planned anew.
#[test]
fn who_alters_without_end_keeps_nobody_back() {
    let mut lab = Lab::new("altered-without-end");
    let restless: Vec<_> = (2..82).map(|number| lab.slurm.submit(number, 1, 2, 60, 10)).collect();
    let once = lab.slurm.submit(82, 1, 2, 60, 10);
    lab.turn();
    let before_s = lab.row(once).duration_s;
    lab.slurm.alter(once, |job| job.limit_s = Some(120));
    for turn in 0..2 {
        for &job in &restless {
            lab.slurm.alter(job, |job| job.limit_s = Some(120 + 60 * turn));
        }
        lab.turn();
    }
    assert_eq!(lab.row(once).duration_s, before_s + 60);
}

#[test]
fn an_alteration_beyond_the_limits_is_held_and_reported() {
    let mut lab = Lab::new("alteration-beyond");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 1, 2, 60, 10);
    lab.turn();
    lab.seconds(58);
    lab.slurm.alter(job, |job| {
        (job.nodes_wanted, job.cpus, job.max_nodes) = (5, 10, Some(5));
    });
    lab.seconds(8);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&job].contains("declined"), "{:?}", lab.slurm.told[&job]);
    // And what is wanted again is planned again.
    lab.slurm.alter(job, |job| {
        (job.nodes_wanted, job.cpus, job.max_nodes) = (1, 2, Some(1));
    });
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
}

#[test]
fn an_unplannable_job_is_held_and_reported() {
    let mut lab = Lab::new("unplannable-job");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 1, 1, 60, 10);
    lab.seconds(58);
    assert!(committed(&lab.state(job)));
    let foreign = Some("--tmp=1M: it is not planned; leave it out".to_string());
    lab.slurm.alter(job, |job| job.foreign = foreign);
    lab.seconds(20);
    assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    assert!(lab.slurm.told[&job].starts_with("declined: --tmp=1M: "), "{:?}", lab.slurm.told[&job]);
    lab.slurm.alter(job, |job| job.foreign = None);
    lab.seconds(5);
    assert_eq!(lab.state(job), JobState::Running);
}

#[test]
fn as_many_jobs_share_a_node_as_it_has_cores() {
    let mut lab = Lab::new("as-many-jobs");
    let keys: Vec<Key> = (1..=9).map(|job| lab.slurm.submit(job, 1, 1, 60, 10)).collect();
    lab.seconds(3);
    let running = keys.iter().filter(|&&key| lab.state(key) == JobState::Running);
    assert_eq!(running.count(), 8);
    lab.seconds(16);
    for key in keys {
        assert_ne!(lab.state(key), JobState::Pending(Hold::Admin));
    }
}

#[test]
fn a_job_cancelled_in_the_window_is_over() {
    let mut lab = Lab::new("job-cancelled");
    lab.slurm.submit(1, 4, 8, 60, 1000);
    lab.turn();
    let job = lab.slurm.submit(2, 4, 8, 60, 10);
    let after = lab.slurm.submit(3, 4, 8, 60, 10);
    lab.turn();
    lab.seconds(58);
    assert!(committed(&lab.state(job)));
    lab.slurm.alter(job, |job| job.state = JobState::Over("cancelled".into()));
    lab.seconds(6);
    assert_eq!(lab.outcome(job), "cancelled");
    // Others move up.
    assert_eq!(lab.state(after), JobState::Running);
}

#[test]
fn minutes_are_whole_and_past_starts_are_now() {
    let mut lab = Lab::new("minutes-whole");
    let job = lab.slurm.submit(1, 1, 1, 61, 10);
    lab.turn();
    assert_eq!(lab.row(job).duration_s, 120 + 4 + 2);
    // It was let go at once, without a time.
    assert_eq!(lab.slurm.commits[0].0, T);
    assert_eq!(lab.slurm.job(job).unwrap().start_s, Some(T));
    lab.seconds(1);
    assert_eq!(lab.state(job), JobState::Running);
}

#[test]
fn a_dead_planner_starts_nothing_and_resumes_its_plan() {
    let mut lab = Lab::new("dead-planner");
    let first = lab.slurm.submit(1, 4, 8, 60, 1000);
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    let third = lab.slurm.submit(3, 4, 8, 60, 10);
    lab.seconds(58);
    assert!(committed(&lab.state(second)));
    lab.slurm.outlives(first);
    // The planner is dead: what was let go may start, and nothing else does.
    lab.alone(600);
    assert_eq!(lab.state(third), JobState::Pending(Hold::Admin));
    lab.slurm.may_end(first);
    lab.alone(1);
    lab.restart();
    lab.turn();
    lab.seconds(100);
    assert_eq!(lab.outcome(second), "completed");
    assert_eq!(lab.outcome(third), "completed");
    assert_eq!(lab.rows(second).len(), 1);
}

#[test]
fn time_stands_still_while_slurm_is_silent() {
    let mut lab = Lab::new("time-stands");
    let first = lab.slurm.submit(1, 4, 8, 60, 50);
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.seconds(3);
    assert_eq!(lab.state(first), JobState::Running);
    lab.slurm.is_away = true;
    lab.seconds(200);
    lab.slurm.is_away = false;
    lab.seconds(30);
    assert_eq!(lab.outcome(first), "completed");
    assert_eq!(lab.outcome(second), "completed");
}

#[test]
fn a_job_predicted_late_gets_the_free_time_after_it() {
    let mut lab = Lab::new("job-predicted");
    let job = lab.slurm.submit(1, 1, 1, 600, 640);
    lab.seconds(3);
    let end = lab.now_s + 640;
    lab.slurm.alter(job, |job| job.words = format!("pbs end={end}"));
    lab.turn();
    lab.turn();
    assert!(lab.slurm.job(job).unwrap().limit_s > Some(600));
    lab.seconds(660);
    assert_eq!(lab.outcome(job), "completed");
}

#[test]
fn a_late_job_in_the_way_of_others_is_aborted() {
    let mut lab = Lab::new("late-job");
    let job = lab.slurm.submit(1, 4, 8, 600, 700);
    let next = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.seconds(3);
    let end = lab.now_s + 700;
    lab.slurm.alter(job, |job| job.words = format!("pbs end={end}"));
    lab.seconds(1);
    assert_eq!(lab.slurm.job(job).unwrap().limit_s, Some(600));
    lab.seconds(620);
    assert_eq!(lab.outcome(job), "aborted at its end");
    lab.seconds(20);
    assert_eq!(lab.outcome(next), "completed");
}

#[test]
fn a_deadline_is_kept_or_declined() {
    let mut lab = Lab::new("deadline-kept");
    lab.slurm.submit(1, 4, 8, 600, 1000);
    lab.turn();
    let late = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.slurm.alter(late, |job| job.words = "pbs deadline=5m".into());
    lab.turn();
    assert!(lab.slurm.told[&late].starts_with("declined"));
    lab.slurm.alter(late, |job| job.words = "pbs deadline=15m".into());
    lab.turn();
    assert!(lab.slurm.told[&late].starts_with("planned"), "{:?}", lab.slurm.told[&late]);
}

#[test]
fn a_down_node_ends_its_jobs() {
    let mut lab = Lab::new("down-node");
    let job = lab.slurm.submit(1, 1, 2, 60, 50);
    lab.seconds(3);
    let node = lab.row(job).nodes[0].node.clone();
    lab.slurm.alter(job, |job| job.state = JobState::Over("node failed".into()));
    lab.slurm.node(&node, NodeState::Down);
    lab.turn();
    lab.turn();
    assert_eq!(lab.outcome(job), "node failed");
    let all = lab.slurm.submit(2, 4, 4, 60, 10);
    lab.seconds(5);
    assert_eq!(lab.state(all), JobState::Pending(Hold::Admin));
    lab.slurm.node(&node, NodeState::Up);
    lab.seconds(5);
    assert_eq!(lab.state(all), JobState::Running);
}

#[test]
fn a_job_follows_the_end_of_another_at_once() {
    let mut lab = Lab::new("job-follows");
    lab.slurm.submit(1, 4, 8, 60, 58);
    let second = lab.slurm.submit(2, 4, 8, 60, 10);
    lab.turn();
    lab.turn();
    let planned_s = lab.row(second).start_s.unwrap();
    // It will end within the window, and the other is let go without a time before that.
    lab.seconds(57);
    assert!(committed(&lab.state(second)));
    assert!(lab.slurm.job(second).unwrap().start_s.unwrap() <= lab.now_s);
    lab.seconds(3);
    let started_s = lab.slurm.job(second).unwrap().start_s.unwrap();
    assert_eq!(lab.state(second), JobState::Running);
    assert!(started_s < planned_s, "{started_s} {planned_s}");
    lab.seconds(20);
    assert_eq!(lab.outcome(second), "completed");
}

/// Anything, at any time: what runs was let go for just that, and all that there is ends.
fn anything(seed: u64, seconds: u64) {
    let mut random = pbs_gen::Random::new(seed, pbs_gen::Stream::Scenario);
    let mut lab = Lab::new(&format!("any{seed}"));
    let mut keys: Vec<Key> = Vec::new();
    let names = ["n01", "n02", "n03", "n04"];
    let mut away = 0;
    let mut dead = 0;
    for second in 0..seconds {
        let pick = |random: &mut pbs_gen::Random, most: u64| random.below(most);
        let key = match keys.len() {
            0 => None,
            count => Some(keys[usize::try_from(pick(&mut random, count as u64)).unwrap()]),
        };
        match (pick(&mut random, 40), key) {
            (0..=5, _) => {
                let nodes = 1 + pick(&mut random, 4);
                let cpus = nodes * (1 + pick(&mut random, 2));
                let limit_s = 60 * (1 + pick(&mut random, 3));
                let run_s = 1 + pick(&mut random, limit_s + 20);
                let job = u32::try_from(keys.len() + 1).unwrap();
                keys.push(lab.slurm.submit(job, nodes, cpus, limit_s, run_s));
            }
            (6, Some(key)) => lab.slurm.alter(key, |job| {
                if let JobState::Pending(_) = job.state {
                    job.nodes_wanted = 1 + job.nodes_wanted % 4;
                    job.cpus = job.nodes_wanted;
                    job.max_nodes = Some(job.nodes_wanted);
                }
            }),
            (7, Some(key)) => lab.slurm.alter(key, |job| {
                if let JobState::Pending(_) = job.state {
                    job.state = JobState::Pending(Hold::No);
                }
            }),
            (8, Some(key)) => lab.slurm.alter(key, |job| {
                if !matches!(job.state, JobState::Over(_)) {
                    job.state = JobState::Over("cancelled".into());
                }
            }),
            (9, Some(key)) => {
                if lab.slurm.job(key).is_some_and(|job| job.state == JobState::Running) {
                    let again = lab.slurm.requeue(key);
                    keys.retain(|&of| of != key);
                    keys.push(again);
                }
            }
            (10, Some(key)) => {
                if lab.slurm.job(key).is_some_and(|job| job.state == JobState::Running) {
                    lab.slurm.launch_failed(key);
                }
            }
            (11, _) => {
                let node = names[usize::try_from(pick(&mut random, 4)).unwrap()];
                lab.slurm.node(node, NodeState::Drained);
            }
            (12..=14, _) => {
                for node in names {
                    lab.slurm.node(node, NodeState::Up);
                }
            }
            (15, _) if dead == 0 => {
                lab.restart();
                dead = pick(&mut random, 20);
            }
            (16, _) if away == 0 => away = pick(&mut random, 20),
            _ => {}
        }
        lab.now_s += 1;
        lab.slurm.tick();
        for &key in &keys {
            let Some(job) = lab.slurm.job(key).filter(|job| job.state == JobState::Running) else {
                continue;
            };
            let of_job = |commit: &&(u64, Key, Vec<String>)| commit.1.job == key.job;
            let last = lab.slurm.commits.iter().rev().find(of_job);
            let nodes = last.map(|(_, _, nodes)| nodes);
            assert_eq!(nodes, Some(&job.nodes), "{seed}, {second}: job {key}");
        }
        dead = dead.saturating_sub(1);
        away = away.saturating_sub(1);
        lab.slurm.is_away = away > 0;
        if dead == 0 {
            lab.turn();
        }
    }
    lab.slurm.is_away = false;
    for node in names {
        lab.slurm.node(node, NodeState::Up);
    }
    for _ in 0..80 * keys.len() {
        lab.seconds(3);
        let is_over = |&key: &Key| matches!(lab.slurm.job(key).unwrap().state, JobState::Over(_));
        if keys.iter().all(is_over) {
            break;
        }
    }
    lab.seconds(5);
    for &key in &keys {
        let state = lab.state(key);
        assert!(matches!(state, JobState::Over(_)), "{seed}: job {key} is {state:?}");
        let rows = lab.rows(key);
        assert!(rows.len() <= 2, "{seed}: job {key}: {rows:?}");
        assert!(rows.iter().all(|row| row.state == State::Ended), "{seed}: {rows:?}");
        let is_lost = |row: &Row| row.outcome.as_ref().is_some_and(|of| of.starts_with("lost"));
        assert!(!rows.iter().any(is_lost), "{seed}: {rows:?}");
    }
}

/// `PBS_SEEDS=100` for more of it.
#[test]
fn whatever_happens_nothing_starts_unplanned_and_all_ends() {
    let seeds = std::env::var("PBS_SEEDS").ok();
    for seed in 0..seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(4) {
        anything(seed, 120);
    }
}

#[test]
fn a_due_job_does_not_wait_for_hundreds_of_new_ones() {
    let mut lab = Lab::new("due-job-does");
    let first = lab.slurm.submit(1, 1, 2, 60, 20);
    for job in 2..=450 {
        lab.slurm.submit(job, 1, 2, 60, 20);
    }
    for (turns, planned) in [(1, 200), (2, 400), (3, 450)] {
        lab.turn();
        assert_eq!(lab.manager().open_rows().len(), planned);
        // The others come at once; after all of them time is waited for again.
        let now = Duration::from_secs(lab.now_s);
        let manager = lab.manager.as_ref().unwrap();
        assert_eq!(lab.steer.next(manager, now) == now, turns < 3);
        // The first is let go meanwhile.
        assert!(!matches!(lab.state(first), JobState::Pending(Hold::User | Hold::Admin)));
    }
    lab.seconds(2);
    assert_eq!(lab.state(first), JobState::Running);
}

#[test]
fn a_released_job_stays_where_it_starts() {
    let mut lab = Lab::new("released-job");
    // The first takes n01 and n02, the second the others and ends with the same second.
    let first = lab.slurm.submit(1, 2, 4, 120, 60);
    lab.turn();
    let second = lab.slurm.submit(2, 2, 4, 60, 60);
    lab.turn();
    let third = lab.slurm.submit(3, 2, 4, 60, 30);
    lab.turn();
    assert_eq!(lab.row(third).nodes[0].node, lab.row(second).nodes[0].node);
    lab.seconds(58);
    assert!(committed(&lab.state(third)));
    lab.seconds(10);
    // Better nodes were free when it began, and it is not sent there.
    assert_eq!(lab.state(third), JobState::Running);
    assert_eq!(lab.rows(third).len(), 1);
    lab.seconds(40);
    for job in [first, second, third] {
        assert_eq!(lab.outcome(job), "completed");
    }
}

#[test]
fn a_job_started_during_an_outage_keeps_its_booked_time() {
    let mut lab = Lab::new("job-started");
    let first = lab.slurm.submit(1, 4, 8, 60, 1000);
    let second = lab.slurm.submit(2, 4, 8, 60, 50);
    lab.seconds(58);
    assert!(committed(&lab.state(second)));
    lab.slurm.outlives(first);
    lab.alone(600);
    lab.slurm.may_end(first);
    lab.alone(1);
    lab.restart();
    lab.seconds(5);
    assert_eq!(lab.state(second), JobState::Running);
    let row = lab.row(second);
    let started_s = lab.slurm.job(second).unwrap().start_s.unwrap();
    // Its limit and the time to clean, and some seconds until it was heard of.
    let booked_s = row.end_s.unwrap() - started_s;
    assert!((62..=66).contains(&booked_s), "{booked_s}: {row:?}");
    lab.seconds(60);
    assert_eq!(lab.outcome(second), "completed");
}

#[test]
fn no_job_is_waited_for_longer_than_booked() {
    let patient = Settings { grace: Duration::from_secs(100), ..settings() };
    let mut lab = Lab::new("no-job-waited");
    lab.steer = Steer::new(lab.manager.as_ref().unwrap(), patient);
    lab.slurm.is_stuck = true;
    let job = lab.slurm.submit(1, 4, 8, 60, 50);
    lab.turn();
    assert!(committed(&lab.state(job)));
    // The site books four seconds for it: when they have passed it is held, and let go anew.
    lab.seconds(6);
    assert_eq!(lab.slurm.commits.last().unwrap().0, T + 4);
    lab.slurm.is_stuck = false;
    lab.seconds(60);
    // It had all of its time.
    assert_eq!(lab.outcome(job), "completed");
}

/// The job of a request that somebody ended in the planner stays held, also under the next planner.
/// The job is not cancelled, because it had not begun.
#[test]
fn a_waiting_job_that_is_ended_in_the_planner_is_not_planned_again() {
    for is_seen_first in [false, true] {
        let mut lab = Lab::new(if is_seen_first { "ended-seen" } else { "ended-waiting" });
        let all = lab.slurm.submit(1, 4, 8, 60, 20);
        lab.seconds(3);
        let job = lab.slurm.submit(2, 1, 1, 60, 10);
        lab.turn();
        lab.turn();
        let id = lab.row(job).id;
        let anna = pbs_manager::Caller { user: "anna".into(), is_operator: false };
        lab.manager().kill(&anna, id).unwrap();
        if is_seen_first {
            // A hint: Slurm is looked at before the order is carried out.
            lab.slurm.alter(job, |_| {});
        }
        lab.turn();
        lab.turn();
        assert!(lab.slurm.told[&job].starts_with("not planned any more: killed by anna"));
        lab.restart();
        // All nodes become free meanwhile.
        lab.seconds(40);
        assert_eq!(lab.outcome(all), "completed");
        assert_eq!(lab.outcome(job), "killed by anna");
        assert_eq!(lab.state(job), JobState::Pending(Hold::Admin));
    }
}
