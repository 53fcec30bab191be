// SPDX-License-Identifier: GPL-2.0
//! Work of the demand test beside jobs of many tasks.

use pbs_gen::nets::machine;
use pbs_job::{job_from_toml, Job};

use super::*;
use crate::budget::tally;
use crate::store::{Balancing, Capacity, RunId};

const S: u64 = 1_000_000_000;

/// A job of one process, with that many tasks of a second each.
fn job(cpus: &str, tasks: usize) -> Job {
    let tasks = "1_000_000_000, ".repeat(tasks);
    let text = format!(
        "name = \"j\"\ndeadline_ns = 1\ncpus = [{cpus}]\n\
         [[process]]\nid = 1\nmemory_bytes = 0\ntasks = [{tasks}]\n"
    );
    job_from_toml(&text).expect("a valid job")
}

/// Nine cores; jobs of 1,000 tasks are on the first of them.
struct Busy {
    store: Store,
    jobs: Vec<Job>,
}

impl Busy {
    fn new() -> Self {
        let mut machine = machine(1, &[(1000, &[S; 9])]);
        for (cpu, core) in (0..).zip(&mut machine.nodes[0].cores) {
            core.cpu = Some(cpu);
        }
        let store = Store::new(machine, Balancing::Dynamic);
        let mut busy = Self { store, jobs: vec![job("0", 1000); 3] };
        for request in requests(&busy.jobs) {
            let options = Options::default();
            crate::reserve(&mut busy.store, &request, &options).expect("the core is free");
        }
        busy
    }

    fn earliest(&mut self, asked: &Job, work: &Budget) -> EarliestDeadline {
        let others = requests(&self.jobs);
        let request = Request::new(RunId(10), asked);
        let options = Options { local_search_tries: 20, ..Options::default() };
        let (validation, test) = (Validation::default(), test());
        let store = &mut self.store;
        let test = Some(&test);
        earliest_deadline_beside_within(store, &request, &others, &validation, &options, test, work)
    }
}

fn requests(jobs: &[Job]) -> Vec<Request<'_>> {
    let requests = jobs.iter().enumerate();
    let requests = requests.map(|(run, job)| Request {
        deadline_ns: 10_000 * S,
        ..Request::new(RunId(run as u64), job)
    });
    requests.collect()
}

fn test() -> DemandTest {
    DemandTest::new(1000, Capacity::WHOLE, true)
}

/// A job that has its place on other cores: none of the jobs beside it moves, and each is looked
/// at once.
#[test]
fn others_are_built_once_for_a_question() {
    let mut busy = Busy::new();
    let work = Budget::new(10_000_000);
    tally::take();
    let found = busy.earliest(&job("1, 2, 3, 4, 5, 6, 7, 8", 2), &work);
    let done = tally::take();
    assert_eq!(found, EarliestDeadline { deadline_ns: Some(2 * S), is_cut: false });
    assert!(done <= work.done(), "{done} in {} steps", work.done());
    // Each task of the others is looked at twice, and hardly more.
    assert!(done < 3 * 3000, "{done}");
}

/// Jobs on the core in question are all placed again for each deadline.
#[test]
fn work_is_counted_where_others_move() {
    let mut busy = Busy::new();
    let work = Budget::new(100_000_000);
    let before = busy.store.clone();
    tally::take();
    let found = busy.earliest(&job("0", 2), &work);
    let done = tally::take();
    assert_eq!(found, EarliestDeadline { deadline_ns: Some(2 * S), is_cut: false });
    assert!(done <= work.done(), "{done} in {} steps", work.done());
    assert!(busy.store == before);
}

/// Too little work to look at the others: the answer is that of the search, and says so.
#[test]
fn a_question_without_work_has_the_answer_of_the_search() {
    let mut busy = Busy::new();
    let work = Budget::new(10_000);
    let found = busy.earliest(&job("0", 2), &work);
    assert_eq!(found, EarliestDeadline { deadline_ns: Some(3002 * S), is_cut: true });
    let (asked, others) = (job("0", 2), requests(&busy.jobs));
    let request = Request { deadline_ns: 2 * S, ..Request::new(RunId(10), &asked) };
    let (validation, options) = (Validation::default(), Options::default());
    let (store, work) = (&mut busy.store, Budget::new(10_000));
    let test = Some(&test());
    let declined =
        admit_beside_within(store, &request, &others, &validation, &options, test, &work);
    assert!(declined.is_err() && work.is_cut());
}
