// SPDX-License-Identifier: GPL-2.0
//! Processes that wait for one long task begin when their work can, and spread over all cores.

mod common;

use common::checker::check;
use common::nets::{machine, Fan};
use common::question_and_answer;
use pbs_job::{Action, Job};
use pbs_planner::{reserve, Balancing, Options, Request, RunId, Store, Strategy};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
const RUN: RunId = RunId(0);

/// 16 cores and 256 GiB.
fn node() -> Store {
    Store::new(machine(1, &[(256 * GIB, &[S; 16])]), Balancing::Dynamic)
}

fn assert_valid(store: &Store, job: &Job) {
    let (question, answer) = question_and_answer(store, &[(RUN, job, 0, u64::MAX)]);
    assert_eq!(check(&question, &answer), Ok(()));
}

/// Each rule alone: the root takes 100 s, the others 10 s each on all cores, and the last 1 s.
#[test]
fn every_rule_spreads_what_waits_for_one_task() {
    let rules = Strategy::ALL.into_iter().filter(|rule| *rule != Strategy::LocalSearch);
    for rule in rules {
        for (processes, end_s) in [(16, 111), (64, 141), (400, 351)] {
            let job = Fan::of(processes, GIB).job();
            let mut store = node();
            let options = Options { strategies: vec![rule], ..Options::default() };
            let planned = reserve(&mut store, &Request::new(RUN, &job), &options).unwrap();
            assert_eq!(planned.end_ns, end_s * S, "{rule}, {processes} processes");
            assert_valid(&store, &job);
        }
    }
}

/// A process holds no memory while it only waits, but one that has begun does, and so does one
/// that others wait for.
#[test]
fn a_process_begins_with_its_work() {
    let starts = |job: &Job| -> Vec<u64> {
        let mut store = node();
        reserve(&mut store, &Request::new(RUN, job), &Options::default()).unwrap();
        assert_valid(&store, job);
        let processes = &store.run(RUN).unwrap().processes;
        let parts = 2..job.processes.len() - 1;
        parts.map(|process| processes[process].start_ns / S).collect()
    };
    assert_eq!(starts(&Fan::of(8, GIB).job()), [100; 8]);
    let ahead = Fan { ahead_insns: S, ..Fan::of(8, GIB) };
    assert_eq!(starts(&ahead.job()), [0; 8]);
    // Another waits for the first task of the first part.
    let mut job = Fan::of(8, GIB).job();
    let begin = job.processes[2].tasks[0];
    assert!(matches!(job.tasks[begin].action, Action::ForkEnd));
    let waiting = job.processes[3].tasks[1];
    job.tasks[begin].before.push(waiting);
    job.tasks[waiting].after.push(begin);
    let starts = starts(&job);
    assert_eq!((starts[0], &starts[1..]), (0, &[100; 7][..]));
}

/// A task: its name, its seconds, and the tasks that it waits for.
type Part = (String, u64, Vec<String>);

fn part(name: impl Into<String>, s: u64, after: &[&str]) -> Part {
    (name.into(), s, after.iter().map(ToString::to_string).collect())
}

/// Tasks of the same length, in that number, which all wait for another.
fn wide(name: &str, count: u64, s: u64, after: &str) -> Vec<Part> {
    (0..count).map(|place| part(format!("{name}{place}"), s, &[after])).collect()
}

/// A task that waits for all of those.
fn join(name: &str, s: u64, parts: &[Part]) -> Part {
    (name.into(), s, parts.iter().map(|(name, ..)| name.clone()).collect())
}

/// A job with a process for each task, on cores that retire an instruction in a nanosecond.
fn net(parts: &[Part]) -> Job {
    let mut text = String::from("name = \"net\"\ndeadline_ns = \"10h\"\n");
    for (id, (name, s, after)) in (1..).zip(parts) {
        let insns = s * S;
        text += &format!(
            "[[process]]\nid = {id}\nname = \"{name}\"\nmemory_bytes = 1\nattaches = \"itself\"\n\
             tasks = [{{ name = \"{name}\", insns = {insns}, after = {after:?} }}]\n"
        );
    }
    pbs_job::job_from_toml(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Nets whose tasks wait for others end when the best plan of them does: the ends are those of
/// their critical paths, or of whole rounds on all cores.
#[test]
fn nets_that_wait_end_when_they_can() {
    let two_forks = {
        let mut parts = vec![part("a", 30, &[]), part("b", 60, &[])];
        parts.extend(wide("x", 16, 8, "a"));
        parts.extend(wide("y", 16, 8, "b"));
        parts.push(join("end", 1, &parts));
        parts
    };
    // The longest branch comes last in the file.
    let late_branch = {
        let mut parts = vec![part("root", 10, &[])];
        parts.extend(wide("w", 12, 6, "root"));
        let mut before = "root".to_string();
        for place in 0..6 {
            let name = format!("c{place}");
            parts.push(part(&name, 12, &[&before]));
            before = name;
        }
        parts.push(join("end", 1, &parts));
        parts
    };
    let zero_in_the_middle = {
        let mut parts = vec![part("root", 20, &[]), part("z", 0, &["root"])];
        let first = wide("w", 40, 7, "z");
        parts.extend(first.clone());
        parts.push(join("z2", 0, &first));
        parts.extend(wide("v", 40, 5, "z2"));
        parts
    };
    let chain_of_zeros = {
        let mut parts = vec![part("z0", 10, &[])];
        for place in 1..20 {
            parts.push(part(format!("z{place}"), 0, &[&format!("z{}", place - 1)]));
        }
        parts.extend(wide("w", 16, 9, "z19"));
        parts
    };
    let diamonds = {
        let mut parts: Vec<Part> = Vec::new();
        let mut before: Vec<Part> = Vec::new();
        for stage in 0..4 {
            let fork = format!("s{stage}");
            parts.push(join(&fork, 3, &before));
            let lengths = [4, 7, 10, 4, 7, 10, 4, 7].into_iter().enumerate();
            let middle = lengths.map(|(place, s)| part(format!("d{stage}_{place}"), s, &[&fork]));
            before = middle.collect();
            parts.extend(before.clone());
        }
        parts.push(join("end", 1, &before));
        parts
    };
    for (parts, cores, end_s) in [
        (&two_forks, 16, 69),
        (&late_branch, 4, 83),
        (&zero_in_the_middle, 16, 56),
        (&zero_in_the_middle, 32, 44),
        (&chain_of_zeros, 16, 19),
        (&chain_of_zeros, 1, 154),
        (&diamonds, 4, 69),
    ] {
        let job = net(parts);
        let mut store = Store::new(machine(1, &[(256 * GIB, &vec![S; cores])]), Balancing::Dynamic);
        let planned = reserve(&mut store, &Request::new(RUN, &job), &Options::default()).unwrap();
        // A task of length 0 counts as one instruction.
        let most_ns = end_s * S + 1000;
        let what = format!("{} tasks on {cores} cores", parts.len());
        assert!((end_s * S..=most_ns).contains(&planned.end_ns), "{what}: {}", planned.end_ns);
        assert_valid(&store, &job);
    }
}
