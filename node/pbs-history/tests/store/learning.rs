// SPDX-License-Identifier: GPL-2.0
//! Plans that are made from what was recorded.

use pbs_history::{
    Fingerprint, JobHistory, Kind, NewRun, Options, Outcome, ProcessRun, RunEnd, RunUsage, Source,
    Store, TaskKey, TaskRun, User,
};
use pbs_random::Random;

use crate::common::lengths::Lengths;
use crate::common::{begin, fingerprint, process, record, scratch, task};

fn key(task: u32) -> TaskKey {
    TaskKey { process: 1, fingerprint: fingerprint(), task }
}

/// A job whose users guess, run by run planned from the file.
#[test]
fn after_some_runs_the_error_of_the_plan_is_less() {
    let path = scratch("learning").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let mut random = Lengths(Random::new(1));
    let lengths: Vec<_> = (0..50).map(|_| 1e6 + 1e9 * random.share()).collect();
    let users: Vec<_> = lengths.iter().map(|&real| random.about(real, 0.5)).collect();
    for _ in 0..10 {
        let history = store.history("sort").unwrap();
        let tasks = lengths.iter().zip(&users).enumerate();
        let tasks = tasks.map(|(number, (&real, &user))| {
            let number = number as u32;
            let user = User { insns: Some(user), peak_memory_bytes: None };
            let planned = history.predict(key(number), user).unwrap().insns;
            task(number, planned, random.about(real, 0.05))
        });
        let tasks = tasks.collect();
        record(&mut store, "sort", &[process(1, tasks)]);
    }
    let errors = store.history("sort").unwrap();
    let errors: Vec<_> = errors.errors().map(|(_, e)| e.permille().unwrap()).collect();
    assert_eq!(errors.len(), 10);
    // Users are out by 40 % on average, runs of the same length by 4 %.
    assert!(errors[0] > 300, "{errors:?}");
    assert!(errors[1] < 100, "{errors:?}");
    let late: u64 = errors[5..].iter().sum::<u64>() / 5;
    assert!(late < errors[1] && late < 55, "{errors:?}");
}

#[test]
fn a_prediction_says_where_it_is_from() {
    let path = scratch("source").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let user = User { insns: Some(1000), peak_memory_bytes: Some(77) };
    let first = store.history("sort").unwrap().predict(key(0), user).unwrap();
    assert_eq!((first.source, first.runs), (Source::User, 0));
    assert_eq!((first.insns, first.peak_memory_bytes), (1000, Some(77)));
    assert_eq!(first.more_memory_permille, 1000);
    let nobody = store.history("sort").unwrap();
    assert_eq!(nobody.predict(key(0), User::default()), None);

    let id = store
        .begin_run(&NewRun {
            job: "sort",
            kind: Kind::Profile,
            submitted_unix_ns: 0,
            request: "",
            reservation: "",
            order: None,
        })
        .unwrap();
    let run = [process(1, vec![task(0, 1000, 2000)])];
    store.finish_run(id, 1, Outcome::Complete, &run).unwrap();
    let second = store.history("sort").unwrap().predict(key(0), user).unwrap();
    assert_eq!((second.source, second.runs), (Source::Profile, 1));
    // Glaß 2024, 4.1: measured figures take the place of the user's.
    assert_eq!(second.peak_memory_bytes, Some(1 << 20));
    assert_eq!(second.more_memory_permille, 500);

    record(&mut store, "sort", &[process(1, vec![task(0, 2000, 2000)])]);
    let history = store.history("sort").unwrap();
    let third = history.predict(key(0), User::default()).unwrap();
    assert_eq!((third.source, third.runs), (Source::History, 2));
    assert_eq!(third.insns, 2000);
    assert_eq!(history.last(key(0)), Some((2000, 2000)));
    // Of another job nothing is known.
    assert_eq!(store.history("sor").unwrap().runs(), 0);
}

#[test]
fn a_changed_process_begins_anew() {
    let mut history = JobHistory::default();
    let path = scratch("changed").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let old = process(1, vec![task(0, 10, 1_000_000)]);
    let id = record(&mut store, "sort", std::slice::from_ref(&old));
    history.add(id, Kind::Plan, &[old]);
    let changed = TaskKey { fingerprint: Fingerprint::of(["sort", "--parallel=8"]), ..key(0) };
    let user = User { insns: Some(5000), peak_memory_bytes: None };
    let found = history.predict(changed, user).unwrap();
    assert_eq!((found.source, found.insns), (Source::User, 5000));
    assert_eq!(history.runs_of_others(1, changed.fingerprint), 1);
    assert_eq!(history.runs_of_others(1, fingerprint()), 0);
    assert_eq!(history.process_memory_bytes(1, changed.fingerprint), None);
}

#[test]
fn what_did_not_end_tells_of_memory_alone() {
    let path = scratch("ended").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    record(&mut store, "sort", &[process(1, vec![task(0, 10, 5000)])]);
    let killed = ProcessRun {
        outcome: Outcome::Killed,
        ..process(
            1,
            vec![
                TaskRun {
                    outcome: Outcome::Killed,
                    peak_memory_bytes: 9 << 20,
                    ..task(0, 10, 90_000)
                },
                TaskRun { outcome: Outcome::Absent, peak_memory_bytes: 0, ..task(1, 10, 0) },
            ],
        )
    };
    record(&mut store, "sort", &[killed]);
    let history = store.history("sort").unwrap();
    let found = history.predict(key(0), User::default()).unwrap();
    assert_eq!((found.runs, found.insns), (1, 5000));
    assert_eq!(found.peak_memory_bytes, Some(9 << 20));
    assert_eq!(history.process_memory_bytes(1, fingerprint()), Some(9 << 20));
    assert_eq!(history.predict(key(1), User::default()), None);
    // 10 were planned, and 5000 retired; what did not end is not compared.
    let errors: Vec<_> = history.errors().map(|(_, error)| error.permille()).collect();
    assert_eq!(errors, [Some(499_000), None]);
}

/// A rate is that of what came to its end and was measured, of the same command.
#[test]
fn the_rate_of_a_process_is_learned() {
    let path = scratch("rate").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let ran = |ran_ns, retired_insns, outcome| ProcessRun {
        ran_ns,
        outcome,
        ..process(1, vec![task(0, 10, retired_insns), task(1, 10, retired_insns)])
    };
    record(&mut store, "sort", &[ran(0, 1_000, Outcome::Complete)]);
    record(&mut store, "sort", &[ran(1, 1_000, Outcome::Killed)]);
    let rate = |store: &Store, process| {
        let history = store.history("sort").unwrap();
        history.rate(process, fingerprint())
    };
    assert_eq!(rate(&store, 1), None);
    // Two tasks in four milliseconds.
    let whole = ran(4_000_000, 1_000_000, Outcome::Complete);
    assert_eq!(whole.rate_insns_per_ms(), Some(500_000));
    record(&mut store, "sort", &[whole]);
    let first = rate(&store, 1).unwrap();
    assert_eq!((first.rate_insns_per_ms, first.runs), (500_000, 1));
    assert!(first.low_insns_per_ms < 400_000 && first.high_insns_per_ms > 600_000);
    for _ in 0..12 {
        record(&mut store, "sort", &[ran(4_000_000, 1_000_000, Outcome::Complete)]);
    }
    let many = rate(&store, 1).unwrap();
    assert_eq!((many.rate_insns_per_ms, many.runs), (500_000, 13));
    assert!(many.low_insns_per_ms > 480_000 && many.high_insns_per_ms < 520_000);
    // Twice as slow, and again: so it is.
    for _ in 0..2 {
        record(&mut store, "sort", &[ran(8_000_000, 1_000_000, Outcome::Complete)]);
    }
    assert_eq!(rate(&store, 1).unwrap().rate_insns_per_ms, 250_000);
    assert_eq!(rate(&store, 2), None);
    let history = store.history("sort").unwrap();
    assert_eq!(history.rate(1, Fingerprint::of(["other"])), None);
}

/// The memory of a whole run counts if its programs have started others, and only for the same
/// programs.
#[test]
fn memory_of_what_programs_start_is_predicted() {
    let mut store = Store::open(&scratch("group").join("history.db"), Options::DEFAULT).unwrap();
    let mut end = |others_ns: u64, group_peak_bytes: Option<u64>| {
        let id = begin(&mut store, "sort");
        let usage = RunUsage {
            group_cpu_ns: Some(1_000_000 + others_ns),
            programs_cpu_ns: Some(1_000_000),
            group_peak_bytes,
        };
        let figures = [process(1, vec![task(0, 1, 2)])];
        let end = RunEnd { figures: &figures, usage, ..RunEnd::new(2, Outcome::Complete) };
        store.end_run(id, &end).unwrap();
        let history = store.history("sort").unwrap();
        let of =
            |programs: &[(u32, Fingerprint)]| history.group_memory_bytes(programs.iter().copied());
        assert_eq!(of(&[(1, fingerprint()), (2, fingerprint())]), None);
        assert_eq!(of(&[(1, Fingerprint(5))]), None);
        of(&[(1, fingerprint())])
    };
    // File cache of a run without other processes counts for nothing.
    assert_eq!(end(1_000, Some(90 << 20)), None);
    assert_eq!(end(500_000_000, None), None);
    assert_eq!(end(500_000_000, Some(40 << 20)), Some(40 << 20));
    assert_eq!(end(500_000_000, Some(30 << 20)), Some(40 << 20));
}
