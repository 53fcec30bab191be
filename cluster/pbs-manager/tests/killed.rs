// SPDX-License-Identifier: GPL-2.0
//! A planner that is killed at any point is found as it was after its last answer, or one
//! operation later.
//!
//! `PBS_KILLS` says how often a process is killed.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::*;
use pbs_gen::{Random, Stream};
use pbs_manager::ledger::{Access, Row};
use pbs_manager::{Manager, Simulated};

const OPERATIONS: usize = 150;
const CHILD: &str = "PBS_LEDGER_OF_CHILD";

/// Calls `after` before the first operation and after each operation.
fn run(path: &Path, mut after: impl FnMut(&Manager<Simulated>)) {
    let mut manager = Manager::create(path, SITE, T, Simulated::default()).unwrap();
    let mut random = Random::new(7, Stream::Scenario);
    after(&manager);
    for _ in 0..OPERATIONS {
        operate(&mut manager, &mut random);
        after(&manager);
    }
}

fn reopened(path: &Path) -> Vec<Row> {
    let (manager, recovered) = Manager::open(path, Access::Write, Simulated::default()).unwrap();
    assert_eq!((recovered.moved.len(), recovered.lost.len()), (0, 0));
    manager.open_rows()
}

/// The process that is killed.
#[test]
#[ignore = "a part of other tests"]
fn child() {
    let path = std::env::var(CHILD).expect("a test runs this child");
    let mut said = 0;
    run(Path::new(&path), |_| {
        // The words of the test harness are in front of it.
        let mut out = std::io::stdout().lock();
        writeln!(out, "\ndone {said}").unwrap();
        out.flush().unwrap();
        said += 1;
    });
}

#[test]
fn a_killed_planner_recovers_its_state() {
    let kills = std::env::var("PBS_KILLS").map_or(40, |kills| kills.parse().unwrap());
    let directory = directory("killed");
    let mut states = Vec::new();
    run(&directory.join("whole"), |manager| states.push(manager.open_rows()));
    let mut random = Random::new(8, Stream::Scenario);
    for round in 0..kills {
        let path = directory.join(format!("ledger{round}"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let done = lines.map_while(Result::ok).filter_map(|line| {
            let number = line.strip_prefix("done ")?;
            number.parse::<usize>().ok()
        });
        let until = random.index(OPERATIONS);
        let mut last = done.take_while(|&done| done < until).last().map_or(0, |done| done + 1);
        std::thread::sleep(Duration::from_micros(random.below(2000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = reopened(&path);
        // What it did between its last word and its end nobody knows.
        while last < states.len() && states[last] != found {
            last += 1;
        }
        assert!(last < states.len(), "round {round}: after {until}: {found:#?}");
        assert!(last <= until + 40, "{last} instead of {until}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// The log may be torn where the power was lost: an older state is found, and whole.
#[test]
fn a_torn_log_yields_an_older_state() {
    let directory = directory("torn");
    let (path, copy) = (directory.join("ledger"), directory.join("copy"));
    let log = |of: &Path| of.with_file_name(format!("{}-wal", of.file_name().unwrap().display()));
    let mut states: Vec<Vec<Row>> = Vec::new();
    let mut random = Random::new(9, Stream::Scenario);
    let mut older = 0;
    run(&path, |manager| {
        states.push(manager.open_rows());
        for torn in [false, true] {
            std::fs::copy(&path, &copy).unwrap();
            let mut bytes = std::fs::read(log(&path)).unwrap();
            // What was refused has written nothing.
            if torn && bytes.is_empty() {
                continue;
            }
            if torn {
                bytes.truncate(bytes.len() - 1 - random.index(bytes.len().min(9000)));
            }
            std::fs::write(log(&copy), bytes).unwrap();
            let found = reopened(&copy);
            let at = states.iter().rposition(|state| *state == found);
            match (torn, at) {
                (false, at) => assert_eq!(at, Some(states.len() - 1)),
                (true, Some(at)) => older += usize::from(at + 1 < states.len()),
                (true, None) => panic!("after {}: {found:#?}", states.len()),
            }
            std::fs::remove_file(&copy).unwrap();
        }
    });
    assert!(older > OPERATIONS / 4, "{older}");
    std::fs::remove_dir_all(directory).unwrap();
}
