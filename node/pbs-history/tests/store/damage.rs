// SPDX-License-Identifier: GPL-2.0
//! Files that are damaged, or are something else.

use std::fs;
use std::path::{Path, PathBuf};

use pbs_history::{Error, Options, Order, Outcome, RunEnd, RunFigures, RunUsage, Store};
use pbs_random::Random;
use rusqlite::Connection;

use crate::common::lengths::Lengths;
use crate::common::{begin, process, record, scratch, task};
use crate::measured;

/// A history of some runs.
fn sound(name: &str) -> PathBuf {
    let path = scratch(name).join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    for number in 0..6 {
        let tasks = (0..200).map(|t| task(t, 1000 + number, 2000)).collect();
        let id = begin(&mut store, "sort");
        let usage = RunUsage { group_cpu_ns: Some(7_000 + number), ..RunUsage::default() };
        let figures = [process(1, tasks)];
        let end = RunEnd { figures: &figures, usage, ..RunEnd::new(2_000, Outcome::Complete) };
        store.end_run(id, &end).unwrap();
    }
    drop(store);
    measured::fill(&path);
    path
}

/// Everything that a planner reads.
fn read_all(path: &Path) -> Result<String, Error> {
    let store = Store::open(path, Options::DEFAULT)?;
    let figures = store.figures("sort")?;
    let runs = store.runs(None)?;
    let jobs = store.jobs()?;
    let measured = measured::read(&store)?;
    Ok(format!("{figures:?} {runs:?} {jobs:?} {measured}"))
}

/// The error that opening for writing and for reading ends with, and that the
/// file is as it was.
fn refused(path: &Path) -> Error {
    let before = fs::read(path).unwrap();
    let error = read_all(path).unwrap_err();
    let looking = Store::open_read_only(path, Options::DEFAULT).map(drop);
    if let Err(other) = looking {
        assert_eq!(other, error);
    }
    assert_eq!(fs::read(path).unwrap(), before, "{error}");
    error
}

#[test]
fn something_else_is_left_alone() {
    let directory = scratch("else");
    let text = directory.join("notes.txt");
    fs::write(&text, "not a database, and longer than a header of one\n".repeat(40)).unwrap();
    assert_eq!(refused(&text), Error::NotHistory(text.clone()));
    assert!(refused(&text).to_string().contains("name another file"));
    fs::write(&text, "short").unwrap();
    assert_eq!(refused(&text), Error::NotHistory(text));

    let other = directory.join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)").unwrap();
    drop(connection);
    assert_eq!(refused(&other), Error::NotHistory(other));
}

/// A reader does not read the whole file, while nobody could write. Damage is found in what is
/// read.
#[test]
fn a_reader_does_not_look_through_the_file() {
    let path = sound("looking");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 4096;
    bytes[last..].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let refused = Store::open(&path, Options::DEFAULT).map(drop);
    assert!(matches!(refused, Err(Error::Damaged(..))), "{refused:?}");
    let looking = Store::open_read_only(&path, Options::DEFAULT).unwrap();
    assert_eq!(looking.open_runs().unwrap(), []);
}

#[test]
fn an_empty_file_is_a_history_without_runs() {
    let path = scratch("empty").join("history.db");
    fs::write(&path, "").unwrap();
    let missing = Store::open_read_only(&path, Options::DEFAULT).unwrap_err();
    assert_eq!(missing, Error::Missing(path.clone()));
    let store = Store::open(&path, Options::DEFAULT).unwrap();
    assert_eq!(store.runs(None).unwrap(), []);
}

#[test]
fn a_newer_history_is_refused() {
    let path = sound("newer");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 6).unwrap();
    drop(connection);
    assert_eq!(refused(&path), Error::Newer(path.clone(), 6, 5));
    assert!(refused(&path).to_string().contains("use that pbsctl"));
}

/// Data of an earlier pbsctl are preserved, and missing tables are added. A reader changes nothing.
#[test]
fn a_history_of_an_earlier_version_is_completed() {
    for (version, sql, has_them) in [
        (1, "DROP TABLE in_force; DROP TABLE orders; DROP TABLE ran", false),
        (2, "DROP TABLE in_force; DROP TABLE orders", true),
        (3, "", true),
        (4, "", true),
    ] {
        let path = sound("older");
        let measured = match version {
            4 => {
                "DROP TABLE used; DELETE FROM variant_run; DELETE FROM transfer; \
                 DELETE FROM corun; DELETE FROM cost"
            }
            _ => {
                "DROP TABLE used; DROP TABLE variant_run; DROP TABLE transfer; DROP TABLE corun; \
                 DROP TABLE cost"
            }
        };
        let sql = format!("{measured}; {sql}; PRAGMA user_version = {version}");
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        let before = fs::read(&path).unwrap();
        let looking = Store::open_read_only(&path, Options::DEFAULT).unwrap();
        let figures = looking.figures("sort").unwrap();
        assert_eq!(figures.len(), 6);
        let has_times = |run: &RunFigures| run.processes[0].rate_insns_per_ms().is_some();
        assert!(figures.iter().all(|run| has_times(run) == has_them));
        assert_eq!(looking.order(figures[0].run.id).unwrap(), None);
        assert_eq!(measured::read(&looking).unwrap(), "([], []) ([], [], [])");
        drop(looking);
        assert_eq!(fs::read(&path).unwrap(), before);
        let mut store = Store::open(&path, Options::DEFAULT).unwrap();
        let written: i64 = Connection::open(&path)
            .unwrap()
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(written, 5);
        assert_eq!(store.figures("sort").unwrap(), figures);
        record(&mut store, "sort", &[process(1, vec![task(0, 1, 500)])]);
        let order = Order { uid: 7, text: "held".into() };
        let id = store.figures("sort").unwrap()[6].run.id;
        store.set_order(id, &order).unwrap();
        drop(store);
        measured::fill(&path);
        let store = Store::open(&path, Options::DEFAULT).unwrap();
        assert_eq!(store.coruns().unwrap().len(), 2);
        assert_eq!(store.order(id).unwrap(), Some(order));
        let figures = store.figures("sort").unwrap();
        assert_eq!(figures[6].processes[0].rate_insns_per_ms(), Some(500));
    }
}

#[test]
fn tables_that_are_not_ours_are_damage() {
    for sql in [
        "DROP TABLE planner",
        "DROP TABLE ran",
        "DROP TABLE orders",
        "DROP TABLE corun",
        "DROP TABLE used",
        "PRAGMA user_version = 4",
        "PRAGMA user_version = 3",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 1",
        "ALTER TABLE run ADD COLUMN colour TEXT",
        "CREATE TABLE more (a)",
        "DROP INDEX run_job",
    ] {
        let path = sound("tables");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let error = refused(&path);
        assert!(matches!(error, Error::Damaged(..)), "{sql}: {error}");
        assert!(error.to_string().contains("nothing was changed"));
    }
}

#[test]
fn figures_that_were_changed_are_damage() {
    for sql in [
        "UPDATE process SET digest = digest + 1 WHERE run = 3",
        "UPDATE process SET fingerprint = 5 WHERE run = 3",
        "UPDATE process SET tasks = zeroblob(40) WHERE run = 3",
        "UPDATE process SET tasks = substr(tasks, 1, 100) WHERE run = 3",
        "UPDATE process SET outcome = 'fine' WHERE run = 3",
        "UPDATE run SET state = 'done' WHERE id = 3",
        "UPDATE run SET submitted_unix_ns = -1 WHERE id = 3",
        "UPDATE run SET job = 'other' WHERE id = 3",
        "DELETE FROM process WHERE run = 3",
        "UPDATE ran SET ran_ns = 5 WHERE run = 3",
        "UPDATE ran SET ran_ns = -5 WHERE run = 3",
        "UPDATE used SET group_cpu_ns = 5 WHERE run = 3",
        "UPDATE used SET group_cpu_ns = NULL WHERE run = 3",
        "UPDATE used SET group_peak_bytes = 0 WHERE run = 3",
        "PRAGMA foreign_keys = OFF; UPDATE process SET run = 9 WHERE run = 3",
    ] {
        let path = sound("changed-figures");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let error = refused(&path);
        assert!(matches!(error, Error::Damaged(..)), "{sql}: {error}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let path = sound("cut");
    let whole = fs::read(&path).unwrap();
    for length in [1, 50, 99, 100, 1000, 4096, 10_000, whole.len() - 4096] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refused(&path);
        assert!(matches!(error, Error::Damaged(..) | Error::NotHistory(..)), "{length}: {error}");
    }
}

/// Damage anywhere is told, or is where it does no harm; never is anything
/// else read than was written, and never does the planner fall over.
#[test]
fn no_damage_changes_what_is_read() {
    let path = sound("flips");
    let whole = fs::read(&path).unwrap();
    let sound = read_all(&path).unwrap();
    let mut random = Lengths(Random::new(7));
    let (mut told, mut harmless) = (0, 0);
    for number in 0..300 {
        let mut damaged = whole.clone();
        let at = (random.share() * whole.len() as f64) as usize;
        let at = at.min(whole.len() - 1);
        // A byte, or a sector that was not written.
        if number % 3 == 0 {
            let at = at / 512 * 512;
            damaged[at..at + 512].fill(0);
        } else {
            damaged[at] ^= 1 << (number % 8);
        }
        if damaged == whole {
            continue;
        }
        fs::write(&path, &damaged).unwrap();
        match read_all(&path) {
            Ok(read) => {
                assert!(read == sound, "byte {at}");
                harmless += 1;
            }
            Err(_) => {
                told += 1;
                assert!(fs::read(&path).unwrap() == damaged, "byte {at}");
            }
        }
    }
    assert!(told > harmless, "{told} told, {harmless} harmless");
}
