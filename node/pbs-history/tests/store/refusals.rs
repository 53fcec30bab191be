// SPDX-License-Identifier: GPL-2.0
//! Places where nothing can be written.
//!
//! Some of it can only be tried by a process of its own: with limits, or as
//! somebody who is not root. That process is this test program again, with
//! `PBS_HISTORY_TEST` naming the file; it prints what it was answered.

use std::fs;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use pbs_history::{Error, Options, State, Store, Takeover};

use crate::common::{begin, process, record, scratch, task};

const FILE: &str = "PBS_HISTORY_TEST";
const NOBODY: u32 = 65534;

/// Fills the file until something stops it; runs in the other process.
#[test]
#[ignore = "a part of other tests"]
fn fill() {
    let path = std::env::var_os(FILE).expect("a test runs this child");
    let mut store = match Store::open(Path::new(&path), Options::DEFAULT) {
        Ok(store) => store,
        Err(error) => return println!("ANSWER {error}"),
    };
    let tasks: Vec<_> = (0..5000).map(|number| task(number, 1, 1)).collect();
    for _ in 0..20 {
        let done = store
            .begin_run(&pbs_history::NewRun {
                job: "fill",
                kind: pbs_history::Kind::Plan,
                submitted_unix_ns: 0,
                request: "",
                reservation: "",
                order: None,
            })
            .and_then(|id| {
                let run = [process(1, tasks.clone())];
                store.finish_run(id, 1, pbs_history::Outcome::Complete, &run)
            });
        if let Err(error) = done {
            return println!("ANSWER {error}");
        }
    }
    println!("ANSWER nothing stopped it");
}

/// The answer of the other process.
fn answer(mut command: Command, path: &Path) -> String {
    command.args(["refusals::fill", "--exact", "--ignored", "--nocapture"]).env(FILE, path);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found = text.split("ANSWER ").nth(1);
    let found = found.unwrap_or_else(|| panic!("{text}{:?}", output.stderr));
    found.lines().next().unwrap().into()
}

/// A history with one run, and what is in it.
fn sound(directory: &Path) -> (std::path::PathBuf, Vec<pbs_history::RunFigures>) {
    let path = directory.join("history.db");
    let mut store = Store::open(&path, Options::DEFAULT).unwrap();
    record(&mut store, "sort", &[process(1, vec![task(0, 1, 2)])]);
    let figures = store.figures("sort").unwrap();
    (path, figures)
}

#[test]
fn a_disk_that_is_full_leaves_what_was_there() {
    let (path, figures) = sound(&scratch("full"));
    // 400 KiB a file; the signal that comes with it is ignored by the shell and
    // so by the program.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap());
    let answer = answer(command, &path);
    assert!(answer.contains("nothing was recorded"), "{answer}");
    assert!(answer.contains("room"), "{answer}");
    let store = Store::open(&path, Options::DEFAULT).unwrap();
    assert_eq!(store.figures("sort").unwrap(), figures);
    for run in store.figures("fill").unwrap() {
        assert_eq!(run.processes[0].tasks.len(), 5000);
    }
}

/// The test program as somebody who may not write there; root may everywhere.
fn as_nobody() -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(&own);
    if own.metadata().unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn a_file_that_may_not_be_written_is_read() {
    let directory = scratch("read-only-file");
    let (path, figures) = sound(&directory);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    let before = fs::read(&path).unwrap();
    let answer = answer(as_nobody(), &path);
    assert!(answer.contains("must be writable for you"), "{answer}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let store = Store::open_read_only(&path, Options::DEFAULT).unwrap();
    assert_eq!(store.figures("sort").unwrap(), figures);
}

#[test]
fn a_directory_that_may_not_be_written_is_told() {
    let directory = scratch("read-only-directory");
    let (path, _) = sound(&directory);
    if directory.metadata().unwrap().uid() == 0 {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = fs::read(&path).unwrap();
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o555)).unwrap();
    // The file may be written, but no journal beside it.
    let there = answer(as_nobody(), &path);
    let absent = answer(as_nobody(), &directory.join("other.db"));
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o755)).unwrap();
    for answer in [there, absent] {
        assert!(answer.contains("must be writable for you"), "{answer}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!directory.join("other.db").exists());
}

#[test]
fn places_that_are_not_there_are_named() {
    let directory = scratch("places");
    let missing = directory.join("none").join("history.db");
    let error = Store::open(&missing, Options::DEFAULT).unwrap_err();
    assert!(error.to_string().contains("make it first"), "{error}");
    let error = Store::open_read_only(&missing, Options::DEFAULT).unwrap_err();
    assert_eq!(error, Error::Missing(missing));
    let error = Store::open(&directory, Options::DEFAULT).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
    let absent = directory.join("history.db");
    let error = Store::open_read_only(&absent, Options::DEFAULT).unwrap_err();
    assert_eq!(error, Error::Missing(absent.clone()));
    assert!(!absent.exists());
}

#[test]
fn who_only_looks_cannot_write() {
    let directory = scratch("looking");
    let (path, _) = sound(&directory);
    let mut store = Store::open_read_only(&path, Options::DEFAULT).unwrap();
    let error = store.claim_planner().unwrap_err();
    assert_eq!(error, Error::ReadOnly(path.clone()));
    let mut writer = Store::open(&path, Options::DEFAULT).unwrap();
    let id = begin(&mut writer, "sort");
    assert_eq!(
        store.update_run(id, State::Running, &Takeover::default(), &[]),
        Err(Error::ReadOnly(path))
    );
}
