// SPDX-License-Identifier: GPL-2.0
//! Delays that the requests of one user cause to others: how long each holds the node.
//!
//! `cargo test -p pbs-node --lib measured -- --ignored --nocapture` prints them. No time is asserted: the
//! steps of work of each answer are bounded, and these are counted.

use std::path::Path;
use std::time::Instant;

use pbs_history::{Kind, Last, RunId};
use pbs_launch::Owner;

use crate::admission::{Allowance, Trial};
use crate::candidate::Candidate;
use crate::clock::monotonic_ns;
use crate::jobs::Jobs;
use crate::orders::{Order, Terms};
use crate::{model, Error, Listener, Settings, Submission};

struct Nobody;

impl Listener for Nobody {}

/// A job whose processes do tasks of some instructions one after the other; with `is_net`, tasks
/// of neighbouring processes wait for each other.
fn job(name: &str, deadline_ns: u64, processes: usize, tasks: usize, is_net: bool) -> Submission {
    let mut text = format!("name = \"{name}\"\ndeadline_ns = {deadline_ns}\n");
    for process in 0..processes {
        text += &format!(
            "[[process]]\nid = {}\nmemory_bytes = 4096\nattaches = \"itself\"\ntasks = [\n",
            process + 1
        );
        for task in 0..tasks {
            let id = process * tasks + task + 1;
            text += &if is_net && process > 0 {
                format!("{{ id = {id}, insns = 10_000, after = [{}] }},\n", id - tasks)
            } else {
                format!("{{ id = {id}, insns = 10_000 }},\n")
            };
        }
        text += "]\n";
    }
    Submission::from_text(text, name.into()).unwrap()
}

fn order(submission: Submission, hold: bool) -> Order {
    Order::new(submission, Terms { hold, ..Terms::new(Owner::new(1000, 1000)) })
}

/// Prints how long it took.
fn measured<T>(what: &str, do_it: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = do_it();
    println!("{:8.1} ms  {what}", begun.elapsed().as_secs_f64() * 1000.0);
    result
}

/// A job of one process whose tasks are given by their lengths alone.
fn wide(tasks: usize) -> Submission {
    let tasks = "1,".repeat(tasks);
    let text = format!(
        "name = \"wide\"\ndeadline_ns = \"1h\"\n[[process]]\nid = 1\nmemory_bytes = 0\n\
         attaches = \"itself\"\ntasks = [{tasks}]\n"
    );
    Submission::from_text(text, "wide".into()).unwrap()
}

#[test]
#[ignore = "prints times"]
fn reading_is_measured() {
    for tasks in [1000, 10_000, 20_000, 90_000] {
        let read = measured(&format!("read {tasks} lengths"), || wide(tasks));
        assert_eq!(read.job.tasks.len(), tasks + 2);
    }
    for tasks in [1000, 5000, 10_000, 20_000] {
        let read =
            measured(&format!("read {tasks} tables"), || job("long", 1 << 50, 1, tasks, false));
        assert_eq!(read.job.tasks.len(), tasks + 2);
    }
}

fn submit(jobs: &mut Jobs, orders: Vec<Order>) -> Result<Vec<RunId>, Error> {
    jobs.order(orders, &mut Nobody)
}

const HOUR_NS: u64 = 3_600_000_000_000;

/// Prints the time that an explanation takes.
fn explain(jobs: &mut Jobs, what: &str, submission: Submission) -> Result<(), String> {
    let order = order(submission, false);
    let explained = measured(&format!("explain {what}"), || jobs.would_order(&order));
    println!("             admitted: {}", explained.is_ok());
    explained.map(drop).map_err(|error| error.to_string())
}

/// All jobs of a request together take the work that is allowed for one, whether they are admitted
/// or declined. Work is counted, so the test has no clock.
#[test]
fn the_jobs_of_a_request_share_its_work() {
    let directory = std::env::temp_dir().join(format!("pbs-shared-{}", std::process::id()));
    let mut jobs = model::open(Path::new(&directory));
    jobs.max_work = 2_000_000;
    let take = |jobs: &Jobs, trial: &mut Trial, submission: Submission| {
        let order = order(submission, false);
        jobs.take(
            trial,
            Candidate {
                submission: order.submission,
                id: None,
                submitted_ns: trial.now_ns(),
                terms: Some(order.terms),
                kind: Kind::Plan,
            },
        )
    };
    // With eight times the work, one that is declined takes more than a request may.
    let late = || job("late", 150_000_000, 300, 10, false);
    let done = |jobs: &Jobs, steps: u64| {
        let mut trial = jobs.trial_within(monotonic_ns(), Allowance::new(steps, 1));
        let declined = take(jobs, &mut trial, late());
        assert!(matches!(declined, Err(Error::Declined(_))), "{declined:?}");
        steps - trial.steps_left().unwrap()
    };
    let more = done(&jobs, 8 * jobs.max_work);
    let bounded = done(&jobs, jobs.max_work);
    assert!(more > 2 * jobs.max_work, "{more}");
    assert!(bounded < jobs.max_work, "{bounded}");
    // A job that needs little gets it in spite of the others, and what it leaves is theirs.
    let mut trial = jobs.trial_within(monotonic_ns(), Allowance::new(jobs.max_work, 40));
    for _ in 0..40 {
        take(&jobs, &mut trial, job("short", HOUR_NS, 1, 1, false)).unwrap();
    }
    assert!(trial.steps_left().unwrap() > jobs.max_work / 2);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Jobs that should have begun are planned anew before each request, with half of its work. If that
/// does not suffice, the request has its answer beside what is reserved for them.
#[test]
fn planning_anew_takes_the_work_of_the_request() {
    let directory = std::env::temp_dir().join(format!("pbs-renewed-{}", std::process::id()));
    let mut jobs = model::open(Path::new(&directory));
    let orders = (0..8).map(|_| order(job("wide", HOUR_NS, 20, 5, false), false));
    submit(&mut jobs, orders.collect()).unwrap();
    let short = || order(job("short", HOUR_NS, 1, 1, false), false);
    let left = |jobs: &Jobs, steps: u64| {
        let trial = jobs.trial_within(monotonic_ns(), Allowance::new(steps, 1));
        trial.steps_left().unwrap()
    };
    assert!(left(&jobs, jobs.max_work) > jobs.max_work / 2);
    jobs.max_work = 2_000;
    assert_eq!(left(&jobs, jobs.max_work), jobs.max_work / 2);
    let before = jobs.runs[0].run;
    let planned_ns = jobs.controller.planned_start_ns(before);
    jobs.would_order(&short()).unwrap();
    let id = submit(&mut jobs, vec![short()]).unwrap()[0];
    assert_eq!(jobs.standing_of(id).unwrap().state, "planned");
    assert_eq!(jobs.controller.planned_start_ns(before), planned_ns);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
#[ignore = "prints times"]
fn requests_are_measured() {
    let directory = std::env::temp_dir().join(format!("pbs-delays-{}", std::process::id()));
    let mut jobs = model::open(Path::new(&directory));
    jobs.max_work = Settings::REQUEST_WORK;
    let short = |ns| job("short", ns, 1, 1, false);
    for (what, processes, tasks, is_net) in [
        ("1 process of 20,000 tasks", 1, 20_000, false),
        ("100 processes of 200 tasks", 100, 200, false),
        ("a net of 20 processes of 500 tasks", 20, 500, true),
        ("a net of 100 processes of 20 tasks", 100, 20, true),
        ("900 processes of 10 tasks", 900, 10, false),
        ("100 processes of 900 tasks", 100, 900, false),
    ] {
        for ms in [300, 1000, 2000, 3_600_000] {
            let what = format!("{what} in {ms} ms");
            let long = job("long", ms * 1_000_000, processes, tasks, is_net);
            let explained = explain(&mut jobs, &what, long);
            assert!(explained.is_err() || ms > 300 || processes * tasks < 10_000);
        }
    }
    for count in [1, 100, 400] {
        let orders: Vec<_> = (0..count).map(|_| order(short(HOUR_NS), true)).collect();
        measured(&format!("submit {count} held jobs"), || submit(&mut jobs, orders).unwrap());
    }
    let last = Last { count: 10_000, ..Last::default() };
    measured("list", || jobs.standing(&last).unwrap().len());
    for count in [1, 1, 100, 300] {
        let orders: Vec<_> = (0..count).map(|_| order(short(HOUR_NS), false)).collect();
        measured(&format!("submit {count} short jobs"), || submit(&mut jobs, orders).unwrap());
    }
    explain(&mut jobs, "a short job", short(HOUR_NS)).unwrap();
    explain(&mut jobs, "a short job in 200 ms", short(200_000_000)).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A long job is planned; others are submitted beside it.
#[test]
#[ignore = "prints times"]
fn submissions_beside_a_long_job_are_measured() {
    let directory = std::env::temp_dir().join(format!("pbs-delays-beside-{}", std::process::id()));
    let mut jobs = model::open(Path::new(&directory));
    let short = || order(job("short", HOUR_NS, 1, 1, false), false);
    let start = |jobs: &mut Jobs, what: &str| {
        let plan = measured(&format!("  {what}: take the plan"), || jobs.take_plan().unwrap());
        let bytes = measured(&format!("  {what}: encode"), || pbs_plan::wire::encode(&plan).bytes);
        println!("             {} bytes", bytes.len());
        measured(&format!("  {what}: follow and release"), || jobs.let_go(&plan, 10));
    };
    measured("submit a short job", || submit(&mut jobs, vec![short()]).unwrap());
    start(&mut jobs, "short");
    let long = order(job("long", HOUR_NS, 1, 20_000, false), false);
    measured("submit a job of 20,000 tasks", || submit(&mut jobs, vec![long]).unwrap());
    start(&mut jobs, "long");
    for _ in 0..3 {
        measured("submit a short job", || submit(&mut jobs, vec![short()]).unwrap());
        start(&mut jobs, "short");
    }
    assert_eq!(jobs.runs.len(), 5);
    std::fs::remove_dir_all(&directory).unwrap();
}
