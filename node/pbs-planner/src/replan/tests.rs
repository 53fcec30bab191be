// SPDX-License-Identifier: GPL-2.0
//! Work of tries that are refused, beside reservations of many parts.

use pbs_gen::nets::machine;
use pbs_job::{job_from_toml, Job};

use super::*;
use crate::budget::tally;
use crate::reserve::Lack;
use crate::store::{Balancing, TaskReservation};

const S: u64 = 1_000_000_000;

fn job(tasks: usize, deadline_s: u64) -> Job {
    let tasks = "1_000_000_000, ".repeat(tasks);
    let text = format!(
        "name = \"j\"\ndeadline_ns = {}\n\
         [[process]]\nid = 1\nmemory_bytes = 0\ntasks = [{tasks}]\n",
        deadline_s * S
    );
    job_from_toml(&text).expect("a valid job")
}

/// One core on which a long job has each second of two, and the others some of the others each.
fn busy(jobs: &[Job]) -> Store {
    let mut store = Store::new(machine(1, &[(1000, &[S])]), Balancing::Dynamic);
    for (id, job) in jobs.iter().enumerate() {
        let (mut run, mut place) = (Run::default(), 0);
        for (task, of) in job.tasks.iter().enumerate() {
            let is_long = job.tasks.len() > 100;
            let start_ns = if is_long { 2 * place } else { 20 * id as u64 + 2 * place + 1 } * S;
            let length_ns = if of.insns > 0 { S } else { 0 };
            place += length_ns / S;
            run.tasks.push(TaskReservation {
                task,
                process: of.process,
                core: 0,
                start_ns,
                end_ns: start_ns + length_ns,
                memory_bytes: 0,
            });
        }
        let mut booking = store.book();
        booking.reserve(RunId(id as u64), run).expect("the core is free");
        booking.commit();
    }
    store
}

/// The first job cannot keep its deadline, whoever makes room for it.
#[test]
fn refused_tries_take_running_jobs_out_once() {
    let mut jobs = vec![job(3, 2), job(3000, 100_000)];
    jobs.extend((0..16).map(|_| job(1, 200_000)));
    let requests = jobs.iter().enumerate();
    let requests = requests.map(|(run, job)| Request::new(RunId(run as u64), job));
    let requests: Vec<Request<'_>> = requests.collect();
    let mut store = busy(&jobs);
    let before = store.clone();
    let (running, later) = requests.split_at(2);
    let work = Budget::new(10_000_000);
    tally::take();
    let refused = Replan::at(0).run_within(&mut store, running, later, &work);
    let done = tally::take();
    assert_eq!(refused.map_err(|not| not.run), Err(RunId(0)));
    assert!(store == before);
    assert!(done <= work.done(), "{done} in {} steps", work.done());
    // What the long job has is given back once, and taken again.
    assert!(done < 3 * 3000, "{done}");
}

/// Work that does not suffice to take the jobs out is the reason of the refusal.
#[test]
fn a_try_without_work_says_so() {
    let jobs = vec![job(3, 100_000), job(3000, 100_000)];
    let requests = jobs.iter().enumerate();
    let requests = requests.map(|(run, job)| Request::new(RunId(run as u64), job));
    let requests: Vec<Request<'_>> = requests.collect();
    let mut store = busy(&jobs);
    let work = Budget::new(100_000);
    let refused = Replan::at(0).run_within(&mut store, &requests, &[], &work);
    let refused = refused.expect_err("there is too little work");
    assert_eq!(refused.refused.best.lack, Lack::Work);
    assert!(refused.refused.cut_short.is_some() && work.is_spent());
}
