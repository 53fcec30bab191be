// SPDX-License-Identifier: GPL-2.0
//! Several processes with one file.

use std::process::{Command, Stdio};
use std::time::Duration;

use pbs_history::{Error, Options, State, Store, Takeover};
use rusqlite::Connection;

use crate::common::{begin, process, record, scratch, task};

#[test]
fn what_one_records_the_other_sees() {
    let path = scratch("two").join("history.db");
    let mut one = Store::open(&path, Options::DEFAULT).unwrap();
    let mut two = Store::open(&path, Options::DEFAULT).unwrap();
    let looker = Store::open_read_only(&path, Options::DEFAULT).unwrap();
    let run = [process(1, vec![task(0, 1, 1)])];
    let first = record(&mut one, "sort", &run);
    let second = record(&mut two, "sort", &run);
    assert_ne!(first, second);
    let ids: Vec<_> = looker.runs(None).unwrap().iter().map(|r| r.id).collect();
    assert_eq!(ids, [first, second]);
}

#[test]
fn there_is_one_planner() {
    let path = scratch("planner").join("history.db");
    let mut one = Store::open(&path, Options::DEFAULT).unwrap();
    let mut two = Store::open(&path, Options::DEFAULT).unwrap();
    one.claim_planner().unwrap();
    one.claim_planner().unwrap();
    let error = two.claim_planner().unwrap_err();
    assert_eq!(error, Error::Planner(path.clone(), std::process::id()));
    assert!(error.to_string().contains("only one planner may"));
    // To look, and to submit, one need not be the planner.
    begin(&mut two, "sort");
    drop(one);
    two.claim_planner().unwrap();
}

#[test]
fn a_planner_that_died_is_followed_by_another() {
    let path = scratch("died").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let started = stat.split(' ').nth(21).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let sql =
        format!("INSERT INTO planner VALUES (1, {}, {started}, '{}')", child.id(), boot.trim());
    Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    let error = store.claim_planner().unwrap_err();
    assert_eq!(error, Error::Planner(path, child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    store.claim_planner().unwrap();
}

#[test]
fn who_waits_too_long_is_told() {
    let path = scratch("busy").join("history.db");
    let options = Options { wait: Duration::ZERO, ..Options::DEFAULT };
    let mut store = Store::open(&path, options).unwrap();
    let id = begin(&mut store, "sort");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.update_run(id, State::Running, &Takeover::default(), &[]).unwrap_err();
    assert_eq!(error, Error::Busy(path.clone()));
    assert!(error.to_string().contains("try again"));
    // Looking is possible meanwhile.
    assert_eq!(store.runs(None).unwrap().len(), 1);
    Store::open_read_only(&path, options).unwrap();
    other.execute_batch("ROLLBACK").unwrap();
    store.update_run(id, State::Running, &Takeover::default(), &[]).unwrap();
}

/// A planner that is killed while it writes leaves a run or none.
#[test]
fn a_killed_writer_leaves_whole_runs() {
    let path = scratch("killed").join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    let run = [process(1, vec![task(0, 1, 1)])];
    record(&mut store, "sort", &run);
    // A transaction whose process went away: its journal is still there.
    let directory = path.parent().unwrap();
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; \
             DELETE FROM process; DELETE FROM run; \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) \
             INSERT INTO run SELECT i, 'torn', 'plan', 'planned', i, NULL, NULL, 0, 0 FROM n;",
        )
        .unwrap();
    let torn = directory.join("torn.db");
    std::fs::copy(&path, &torn).unwrap();
    let journal = directory.join("history.db-journal");
    std::fs::copy(&journal, directory.join("torn.db-journal")).unwrap();
    assert_ne!(std::fs::read(&torn).unwrap().len(), 0);
    drop(writer);

    let after = Store::open(&torn, Options::DEFAULT).unwrap();
    assert_eq!(after.figures("sort").unwrap(), store.figures("sort").unwrap());
    assert_eq!(after.runs(None).unwrap().len(), 1);
}
