// SPDX-License-Identifier: GPL-2.0
//! Helpers that the tests share.

#![allow(dead_code)]

#[path = "../../../pbs-random/tests/common/lengths.rs"]
pub(crate) mod lengths;

use std::fs;
use std::path::{Path, PathBuf};

use pbs_history::{Fingerprint, Kind, NewRun, Outcome, ProcessRun, RunId, Store, TaskRun};

/// An empty directory of that name.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("history").join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

pub(crate) fn task(task: u32, planned_insns: u64, retired_insns: u64) -> TaskRun {
    TaskRun {
        task,
        name: None,
        planned_insns,
        retired_insns,
        peak_memory_bytes: 1 << 20,
        preemptions: 0,
        outcome: Outcome::Complete,
    }
}

pub(crate) fn process(process: u32, tasks: Vec<TaskRun>) -> ProcessRun {
    ProcessRun {
        process,
        name: None,
        fingerprint: fingerprint(),
        outcome: Outcome::Complete,
        ran_ns: 1_000_000,
        tasks,
    }
}

pub(crate) fn fingerprint() -> Fingerprint {
    Fingerprint::of(["sort", "/data/a"])
}

pub(crate) fn begin(store: &mut Store, job: &str) -> RunId {
    store
        .begin_run(&NewRun {
            job,
            kind: Kind::Plan,
            submitted_unix_ns: 1_000,
            request: "[[process]]",
            reservation: "",
            order: None,
        })
        .unwrap()
}

/// A whole run of a job.
pub(crate) fn record(store: &mut Store, job: &str, processes: &[ProcessRun]) -> RunId {
    let id = begin(store, job);
    store.finish_run(id, 2_000, Outcome::Complete, processes).unwrap();
    id
}
