// SPDX-License-Identifier: GPL-2.0
//! The three levels of validation: what each accepts, refuses and says.

mod common;

use std::fmt::Write;

use common::nets::{machine, random_job, Random};
use common::{random_machine, whole_ns};
use pbs_job::{job_from_toml, Job};
use pbs_planner::{
    admit, earliest_deadline, reserve, validate, Balancing, Declined, Level, Options,
    ProcessReservation, Rejection, Request, Run, RunId, Shortage, Store, TaskReservation,
    Validation, WantType,
};

const S: u64 = 1_000_000_000;

/// A process of a job: its memory, its runtime in seconds, its tasks.
type Process<'a> = (u64, Option<u64>, &'a [u64]);

/// A process that forks all the others at its beginning and joins them at its
/// end.
fn family(parent: Process<'_>, children: &[Process<'_>]) -> Job {
    let mut text = format!("name = \"job\"\ndeadline_ns = {}\n", 1_000 * S);
    for (id, (memory_bytes, runtime_s, tasks)) in (0..).zip([&[parent], children].concat()) {
        let _ = write!(text, "[[process]]\nid = {id}\nmemory_bytes = {memory_bytes}\n");
        if let Some(runtime_s) = runtime_s {
            let _ = writeln!(text, "runtime_ns = {}", runtime_s * S);
        }
        text.push_str("tasks = [");
        let all = 1..if id == 0 { children.len() + 1 } else { 1 };
        for child in all.clone() {
            let _ = write!(text, "{{ action = \"fork\", child = {child} }}, ");
        }
        for insns in tasks {
            let _ = write!(text, "{insns}, ");
        }
        for child in all {
            let _ = write!(text, "{{ action = \"join\", child = {child} }}, ");
        }
        text.push_str("]\n");
    }
    job_from_toml(&text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

/// A store with what others have reserved of cores: core, start and end in
/// seconds, memory.
fn store(
    nodes: &[(u64, &[u64])],
    balancing: Balancing,
    others: &[(usize, u64, u64, u64)],
) -> Store {
    let mut store = Store::new(machine(S, nodes), balancing);
    let sites = store.sites().to_vec();
    let mut booking = store.book();
    for (number, &(core, start_s, end_s, memory_bytes)) in (1_000..).zip(others) {
        let (start_ns, end_ns) = (start_s * S, end_s * S);
        let process = ProcessReservation {
            process: 0,
            node: sites[core].node,
            core,
            start_ns,
            end_ns,
            memory_bytes,
            resources: Vec::new(),
        };
        let task = TaskReservation { task: 0, process: 0, core, start_ns, end_ns, memory_bytes };
        let run = Run { processes: vec![process], tasks: vec![task], ..Run::default() };
        booking.reserve(RunId(number), run).unwrap();
    }
    booking.commit();
    store
}

/// Returns the store's decision on the job between these times, in seconds. The store stays
/// unchanged.
fn ask(
    store: &Store,
    job: &Job,
    start_s: u64,
    deadline_s: u64,
    validation: &Validation,
) -> Result<(), Rejection> {
    let request = Request {
        start_ns: start_s * S,
        deadline_ns: deadline_s * S,
        ..Request::new(RunId(1), job)
    };
    let mut changed = store.clone();
    let answer = validate(&mut changed, &request, validation);
    assert!(changed == *store, "the validation leaves a trace");
    answer
}

fn rejection(level: Level, process: Option<usize>, shortage: Shortage) -> Result<(), Rejection> {
    Err(Rejection { level, process, shortage })
}

fn late(
    level: Level,
    process: Option<usize>,
    end_s: u64,
    deadline_s: u64,
) -> Result<(), Rejection> {
    let shortage = Shortage::Time { end_ns: end_s * S, deadline_ns: deadline_s * S };
    rejection(level, process, shortage)
}

#[test]
fn level_1_knows_what_the_user_says_of_the_runtime() {
    let store = store(&[(100, &[1])], Balancing::Dynamic, &[]);
    let mut job = family((10, None, &[5]), &[]);
    job.runtime_ns = Some(22 * S);
    let default = Validation::default();
    assert_eq!(ask(&store, &job, 3, 25, &default), Ok(()));
    let refused = late(Level::General, None, 25, 24);
    assert_eq!(ask(&store, &job, 3, 24, &default), refused);
    assert_eq!(refused.unwrap_err().shortage.missing(), u128::from(S));
}

#[test]
fn level_1_knows_the_critical_path_on_the_fastest_core() {
    // The parent waits for its slower child.
    let job = family((1, None, &[3, 3]), &[(1, None, &[10]), (1, None, &[4])]);
    let store = store(&[(100, &[1, 1, 1]), (100, &[2])], Balancing::Dynamic, &[]);
    let default = Validation::default();
    assert_eq!(ask(&store, &job, 0, 4, &default), late(Level::General, None, 5, 4));
}

#[test]
fn level_1_knows_the_memory_of_the_machine() {
    let store = store(&[(100, &[1]), (50, &[1])], Balancing::Dynamic, &[]);
    let default = Validation::default();
    let mut job = family((10, None, &[5]), &[]);
    job.memory_bytes = Some(150);
    assert_eq!(ask(&store, &job, 0, 100, &default), Ok(()));
    job.memory_bytes = Some(151);
    let lack = |needed_bytes| Shortage::Memory { needed_bytes, available_bytes: 150 };
    assert_eq!(ask(&store, &job, 0, 100, &default), rejection(Level::General, None, lack(151)));
    // A child has its memory beside its parent's, whatever the user says of
    // the whole; of two children the second may wait for the first.
    let children: &[Process<'_>] = &[(50, None, &[1]), (50, None, &[1])];
    assert_eq!(ask(&store, &family((100, None, &[1]), children), 0, 100, &default), Ok(()));
    let job = family((100, None, &[1]), &[(50, None, &[1]), (51, None, &[1])]);
    assert_eq!(ask(&store, &job, 0, 100, &default), rejection(Level::General, Some(2), lack(151)));
}

#[test]
fn level_2_compares_what_is_left_with_what_is_wanted() {
    // Until 10 s there are 400 byte-seconds left, of 1000.
    let store = store(&[(100, &[1, 1])], Balancing::Dynamic, &[(0, 0, 10, 60)]);
    let mut job = family((40, None, &[10]), &[]);
    job.runtime_ns = Some(10 * S);
    job.memory_bytes = Some(50);
    let default = Validation::default();
    // 500 are wanted; 80 % of that is just there.
    assert_eq!(ask(&store, &job, 0, 10, &default), Ok(()));
    let more = Validation { min_mem_percentage: 81, ..default };
    let refused = ask(&store, &job, 0, 10, &more);
    let second = u128::from(S);
    assert_eq!(
        refused,
        rejection(
            Level::Job,
            None,
            Shortage::MemoryTime { want: 500 * second, left: 400 * second, min_mem_percentage: 81 }
        )
    );
    assert_eq!(refused.unwrap_err().shortage.missing(), 5 * second);
    // Version 1 takes what the processes want, which is 400.
    let processes =
        Validation { cal_want_type: WantType::Processes, min_mem_percentage: 100, ..default };
    assert_eq!(ask(&store, &job, 0, 10, &processes), Ok(()));
    // Its sum does not begin at -1: one byte more for one unit is too much.
    let more = family((41, Some(10), &[10]), &[]);
    let refused = ask(&store, &more, 0, 10, &processes);
    assert!(matches!(refused, Err(Rejection { level: Level::Job, .. })), "{refused:?}");
    // Without totals version 0 is version 1.
    job.memory_bytes = None;
    let totals = Validation { cal_want_type: WantType::Totals, ..processes };
    assert_eq!(ask(&store, &job, 0, 10, &totals), Ok(()));
}

/// The thesis's example of full overlap (5.1.3, table 4).
fn overlap() -> Store {
    let others = [(0, 0, 4, 300), (0, 6, 8, 400), (0, 14, 16, 700)];
    store(&[(1_000, &[1])], Balancing::Static, &others)
}

#[test]
fn level_3_lets_processes_overlap_fully() {
    let job = family((500, Some(6), &[2, 4]), &[]);
    let default = Validation::default();
    // From 4 to 6 and from 8 to 12, with its memory from 4 to 12.
    assert_eq!(ask(&overlap(), &job, 2, 12, &default), Ok(()));
    assert_eq!(ask(&overlap(), &job, 2, 11, &default), late(Level::Process, Some(0), 12, 11));
    // With more memory it cannot hold it while another has 0.4 GB, and not
    // from 8 to 14 beside one with 0.7 GB either, if it needs longer than that.
    let greedy = family((601, Some(6), &[6]), &[]);
    assert_eq!(ask(&overlap(), &greedy, 2, 13, &default), late(Level::Process, Some(0), 14, 13));
    let longer = family((601, Some(7), &[7]), &[]);
    assert_eq!(ask(&overlap(), &longer, 2, 22, &default), late(Level::Process, Some(0), 23, 22));
}

#[test]
fn level_3_adds_up_memory_that_is_held_at_the_same_time() {
    let default = Validation::default();
    let job = family((50, Some(10), &[10]), &[]);
    let nodes: &[(u64, &[u64])] = &[(100, &[1, 1, 1])];
    // Two others overlap the time frame, but not each other (7.1, item 4).
    let apart = store(nodes, Balancing::Dynamic, &[(0, 0, 5, 50), (1, 5, 10, 50)]);
    assert_eq!(ask(&apart, &job, 0, 10, &default), Ok(()));
    // They overlap for a second (item 2).
    let both = store(nodes, Balancing::Dynamic, &[(0, 0, 6, 50), (1, 5, 10, 50)]);
    assert_eq!(ask(&both, &job, 0, 15, &default), late(Level::Process, Some(0), 16, 15));
    assert_eq!(ask(&both, &job, 0, 16, &default), Ok(()));
}

#[test]
fn level_3_needs_one_place_for_a_process() {
    let job = family((60, None, &[1]), &[]);
    let default = Validation::default();
    let nodes: &[(u64, &[u64])] = &[(80, &[1, 1]), (50, &[1])];
    let dynamic = store(nodes, Balancing::Dynamic, &[]);
    assert_eq!(ask(&dynamic, &job, 0, 100, &default), Ok(()));
    let fixed = store(nodes, Balancing::Static, &[]);
    let lack = Shortage::Memory { needed_bytes: 60, available_bytes: 50 };
    let refused = ask(&fixed, &job, 0, 100, &default);
    assert_eq!(refused, rejection(Level::Process, Some(0), lack));
    assert_eq!(refused.unwrap_err().shortage.missing(), 10);
}

#[test]
fn level_3_uses_idle_time_once() {
    let store = store(&[(100, &[1])], Balancing::Dynamic, &[]);
    let job = family((10, Some(20), &[1]), &[(10, Some(13), &[1]), (10, Some(2), &[1])]);
    let some = Validation { process_idle_permille: 100, ..Validation::default() };
    // The first child has two seconds of its parent's time, the second has a
    // tenth of the first's own eleven.
    assert_eq!(ask(&store, &job, 0, 32, &some), Ok(()));
    let shortage = Shortage::Time { end_ns: 31_900_000_000, deadline_ns: 31 * S };
    assert_eq!(ask(&store, &job, 0, 31, &some), rejection(Level::Process, Some(2), shortage));
    assert_eq!(
        ask(&store, &job, 0, 34, &Validation::default()),
        late(Level::Process, Some(2), 35, 34)
    );
    // Memory must be free beside the parent's, so there is nothing to use.
    let greedy = family((60, Some(20), &[1]), &[(40, Some(13), &[1])]);
    assert_eq!(ask(&store, &greedy, 0, 31, &some), Ok(()));
    let shortage =
        ask(&store, &family((60, Some(20), &[1]), &[(41, Some(13), &[1])]), 0, 99, &some);
    assert!(matches!(shortage, Err(Rejection { level: Level::General, .. })));
}

#[test]
fn level_3_lets_children_begin_after_their_parent() {
    let store = store(&[(100, &[1, 1, 1, 1])], Balancing::Dynamic, &[]);
    let child: Process<'_> = (10, Some(13), &[1]);
    let job = family((10, Some(20), &[1]), &[child, child, child]);
    let slow = Validation { fork_time_ns: 3 * S, init_time_ns: 5 * S, ..Validation::default() };
    // 5, 8 and 11 after the parent: each counts from the parent, not from the
    // child before.
    assert_eq!(ask(&store, &job, 1, 25, &slow), Ok(()));
    assert_eq!(ask(&store, &job, 1, 24, &slow), late(Level::Process, Some(3), 25, 24));
}

#[test]
fn level_3_takes_the_core_that_is_done_first() {
    let default = Validation::default();
    let job = family((10, None, &[12]), &[]);
    // The fast core is busy at first.
    let nodes: &[(u64, &[u64])] = &[(100, &[2, 3])];
    let early = store(nodes, Balancing::Dynamic, &[(1, 0, 2, 10)]);
    assert_eq!(ask(&early, &job, 0, 5, &default), late(Level::Process, Some(0), 6, 5));
    let late_free = store(nodes, Balancing::Dynamic, &[(1, 0, 1, 10)]);
    assert_eq!(ask(&late_free, &job, 0, 5, &default), Ok(()));
}

#[test]
fn what_is_past_can_not_be_had() {
    let mut store = store(&[(100, &[1])], Balancing::Dynamic, &[]);
    store.forget_before(50 * S);
    let job = family((10, None, &[5]), &[]);
    let default = Validation::default();
    assert_eq!(ask(&store, &job, 0, 55, &default), Ok(()));
    assert_eq!(ask(&store, &job, 0, 20, &default), late(Level::General, None, 55, 20));
}

fn earliest(store: &Store, job: &Job, start_s: u64, validation: &Validation) -> Option<u64> {
    let mut changed = store.clone();
    let request = Request::new(RunId(1), job).not_before(start_s * S);
    let found = earliest_deadline(&mut changed, &request, validation, &Options::default());
    assert!(changed == *store, "the search leaves a trace");
    found.deadline_ns
}

#[test]
fn the_earliest_deadline_is_told() {
    let default = Validation::default();
    // A task can't be interrupted, two tasks can.
    let whole = family((500, Some(6), &[6]), &[]);
    assert_eq!(earliest(&overlap(), &whole, 2, &default), Some(14 * S));
    let parts = family((500, Some(6), &[2, 4]), &[]);
    assert_eq!(earliest(&overlap(), &parts, 2, &default), Some(12 * S));
    // Level 1 asks for more than there is to do.
    let mut long = parts.clone();
    long.runtime_ns = Some(30 * S);
    assert_eq!(earliest(&overlap(), &long, 2, &default), Some(32 * S));
    // Level 2: 6 s times 0.9 GB are wanted, and 80 % of that.
    let mut wide = parts.clone();
    wide.runtime_ns = Some(30 * S);
    wide.memory_bytes = Some(1_000);
    let all = Validation { min_mem_percentage: 100, estimates_refuse: true, ..default };
    // 30 GB s; of 2 to 32 s others have 0.6 + 0.8 + 1.4.
    assert_eq!(earliest(&overlap(), &wide, 2, &all), Some(34_800_000_000));
    // No deadline makes memory.
    let greedy = family((1_001, None, &[6]), &[]);
    assert_eq!(earliest(&overlap(), &greedy, 2, &default), None);
}

#[test]
fn a_declined_job_says_why() {
    let job = family((500, Some(6), &[6]), &[]);
    let mut store = overlap();
    let before = store.clone();
    let mut request = Request::new(RunId(1), &job).not_before(2 * S);
    request.deadline_ns = 11 * S;
    let refuses = Validation { estimates_refuse: true, ..Validation::default() };
    let declined = |store: &mut Store, request: &Request<'_>| {
        let answer = admit(store, request, &refuses, &Options::default());
        answer.unwrap_err()
    };
    let early = declined(&mut store, &request);
    assert_eq!(
        early.describe(&job, 0),
        "level 3 (process check): process 0 would end after 12 s at the earliest, 1 s later than \
         the deadline, which is after 11 s"
    );
    // The test mapping is content with 12, but the task is not interrupted.
    request.deadline_ns = 13 * S;
    let refused = declined(&mut store, &request);
    assert!(matches!(refused, Declined::Reservation(_)));
    assert!(store == before, "a declined job leaves a trace");
    let text = refused.describe(&job, 0);
    assert!(text.starts_with("reservation: task "), "{text}");
    request.deadline_ns = 14 * S;
    let planned = admit(&mut store, &request, &Validation::default(), &Options::default());
    assert_eq!(planned.unwrap().end_ns, 14 * S);
    assert_eq!(store.runs().count(), before.runs().count() + 1);
}

/// Levels 1 and 2 refuse nothing that can be planned, if the user says nothing
/// wrong; and the deadline that is told is accepted.
#[test]
fn validation_and_plans_agree() {
    let (mut planned, mut refused, mut too_strict, mut told) = (0, 0, 0, 0);
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let balancing = random.of(&[Balancing::Static, Balancing::Dynamic]);
        let mut store = Store::new(random_machine(random), balancing);
        let validation = Validation {
            min_mem_percentage: 100,
            process_idle_permille: random.of(&[0, 100]),
            ..Validation::default()
        };
        for number in 0..1 + random.below(6) {
            let job = random_job(random, 6, 5, 250);
            let start_ns = random.below(20) * S;
            let mut request = Request::new(RunId(number), &job).not_before(start_ns);
            request.deadline_ns = start_ns + whole_ns(&job) / (1 + random.below(6));
            let options = Options { local_search_tries: 500, ..Options::default() };
            let valid = validate(&mut store, &request, &validation);
            let mut tried = store.clone();
            let plan = reserve(&mut tried, &request, &options);
            match (&valid, &plan) {
                (Err(rejection), Ok(_)) => {
                    assert_eq!(rejection.level, Level::Process, "seed {seed}: {rejection:?}");
                    too_strict += 1;
                }
                (Ok(()), Ok(_)) => planned += 1,
                (_, Err(_)) => refused += 1,
            }
            let before = store.clone();
            if admit(&mut store, &request, &validation, &options).is_ok() {
                continue;
            }
            assert!(store == before, "seed {seed}: a declined job leaves a trace");
            let deadline = earliest_deadline(&mut store, &request, &validation, &options);
            assert!(store == before, "seed {seed}: the search leaves a trace");
            let Some(deadline_ns) = deadline.deadline_ns else {
                continue;
            };
            assert!(deadline_ns > request.deadline_ns, "seed {seed}");
            told += 1;
            request.deadline_ns = deadline_ns;
            let planned = admit(&mut store, &request, &validation, &options);
            let planned = planned.unwrap_or_else(|declined| {
                panic!("seed {seed}: {}", declined.describe(&job, 0));
            });
            assert!(planned.end_ns <= deadline_ns, "seed {seed}");
        }
    }
    println!(
        "{planned} planned, {refused} refused, {too_strict} refused by level 3 alone, {told} told"
    );
    assert!(planned > 40 && refused > 20 && told > 20);
    assert!(too_strict * 20 < planned, "{too_strict} of {planned}");
}
