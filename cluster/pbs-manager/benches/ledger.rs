// SPDX-License-Identifier: GPL-2.0
//! Performance of a persistent cluster: submissions, an array, recovery, memory.
//!
//! The cluster is OCuLUS as included in pbs-site, with limits and pools. The jobs are those of
//! Keller's example 3, best effort, of its users. The ledger is in the directory of
//! `PBS_BENCH_DIR`, or in that of temporary files. Times are wall-clock times, because the
//! benchmark waits for the disk.

#[path = "../../pbs-cluster-sim/benches/rows/mod.rs"]
mod rows;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Sender};
use std::time::Instant;

use pbs_cluster_sim::workload;
use pbs_manager::ledger::Access;
use pbs_manager::{Caller, Manager, Simulated, Wish};
use pbs_site::Site;
use rows::{Bar, Rows};

const T: u64 = 1_800_000_000;
const CLIENTS: usize = 30;

fn site() -> String {
    Site::oculus().to_toml()
}

fn path(name: &str) -> PathBuf {
    let directory = std::env::var_os("PBS_BENCH_DIR").map(PathBuf::from);
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    let path = directory.join(format!("pbs-bench-{name}-{}.db", std::process::id()));
    remove(&path);
    path
}

fn remove(path: &Path) {
    for end in ["", "-wal", "-shm", "-lock"] {
        let mut name = path.as_os_str().to_os_string();
        name.push(end);
        let _ = std::fs::remove_file(name);
    }
}

/// Jobs as they are asked for, with who asks.
fn wishes(count: usize) -> Vec<(Caller, Wish)> {
    let jobs = workload::oculus(20 * count, workload::MEAN_DAY, 1);
    // Arrays are alike: a few of each.
    let jobs = jobs.iter().step_by(20).enumerate();
    let wishes = jobs.map(|(place, job)| {
        let text = match job.cores {
            cores @ 1..=15 => format!("ncpus={cores}:mem=2g"),
            cores => format!("{}:ncpus=16:mem=30g", cores / 16),
        };
        let number = place % 200;
        let (user, group) = (format!("u{}", number + 1), format!("G{}", number % 70 + 1));
        let wish = Wish {
            duration_s: job.requested_s.min(59 * 86_400),
            ..Wish::new(text.parse().expect("a request"), &user, &group)
        };
        let caller = Caller { user: user.into(), is_operator: false };
        (caller, wish)
    });
    wishes.take(count).collect()
}

/// Submits with a number of threads, each with one question at a time. The planner answers all
/// waiting questions together.
fn by_clients(manager: &mut Manager<Simulated>, wishes: Vec<(Caller, Wish)>) -> (usize, f64) {
    type Question = ((Caller, Wish), Sender<bool>);
    let (ask, asked) = channel::<Question>();
    let parts: Vec<Vec<_>> =
        wishes.chunks(wishes.len().div_ceil(CLIENTS)).map(<[_]>::to_vec).collect();
    let begin = Instant::now();
    let mut planned = 0;
    std::thread::scope(|scope| {
        for part in parts {
            let ask = ask.clone();
            scope.spawn(move || {
                let (answer, answered) = channel();
                for wish in part {
                    if ask.send((wish, answer.clone())).is_err() || answered.recv().is_err() {
                        return;
                    }
                }
            });
        }
        drop(ask);
        while let Ok(first) = asked.recv() {
            let all: Vec<Question> = std::iter::once(first).chain(asked.try_iter()).collect();
            let (wishes, answers): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let done = manager.submit_all(&wishes).expect("the disk is well");
            for (done, answer) in done.iter().zip(answers) {
                planned += usize::from(done.is_ok());
                let _ = answer.send(done.is_ok());
            }
        }
    });
    (planned, begin.elapsed().as_secs_f64())
}

/// The most memory that this process had, in MiB.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Keller's measurement (6): clients that submit two cores for two minutes in a loop, and
/// all of that runs.
fn two_cores(count: usize) -> Vec<(Caller, Wish)> {
    let of = |(caller, wish): (Caller, Wish)| {
        let wish = Wish { rset: "ncpus=2".parse().expect("a request"), duration_s: 120, ..wish };
        (caller, wish)
    };
    wishes(count).into_iter().map(of).collect()
}

fn create(path: &Path) -> Manager<Simulated> {
    Manager::create(path, &site(), T, Simulated::default()).expect("a ledger")
}

fn clients(rows: &Rows) {
    let file = path("clients");
    let mut manager = create(&file);
    let (planned, took_s) = by_clients(&mut manager, wishes(15_000));
    let (bar, what) =
        (Bar::AtLeast(1_000.0), "durable submissions by 30 clients, jobs as in example 3");
    rows.tell("clients-submissions", 15_000.0 / took_s, "per second", bar, what);
    let what = "of 15,000 planned";
    rows.tell("clients-planned", planned as f64, "jobs", Bar::None, what);
    let what = "memory of the process with those requests and their answers";
    rows.tell("clients-memory", peak_mib(), "MiB", Bar::AtMost(150.0), what);
    drop(manager);
    remove(&file);
}

fn two_core_clients(rows: &Rows) {
    let file = path("two-cores");
    let mut manager = create(&file);
    let begin = Instant::now();
    let mut planned = 0;
    // They run meanwhile: half a minute of the cluster goes by for each thousand.
    for part in two_cores(15_000).chunks(1_000) {
        planned += by_clients(&mut manager, part.to_vec()).0;
        manager.advance(manager.clock_s() + 30).expect("time goes on");
    }
    let per_second = 15_000.0 / begin.elapsed().as_secs_f64();
    let (bar, what) = (
        Bar::AtLeast(1_000.0),
        "durable submissions by 30 clients, two cores for two minutes, which run",
    );
    rows.tell("two-cores-submissions", per_second, "per second", bar, what);
    let what = "of 15,000 planned";
    rows.tell("two-cores-planned", planned as f64, "jobs", Bar::AtLeast(15_000.0), what);
    drop(manager);
    remove(&file);
}

fn array(rows: &Rows) {
    let file = path("array");
    let mut manager = create(&file);
    let (caller, wish) = wishes(1).remove(0);
    let array = Wish {
        array: Some((0..=4_899).collect()),
        rset: "ncpus=1:mem=2g".parse().expect("a request"),
        duration_s: 3600,
        ..wish
    };
    let begin = Instant::now();
    for user in 1..=2 {
        let of =
            Wish { user: format!("u{user}").into(), group: format!("G{user}"), ..array.clone() };
        let caller = Caller { user: of.user.clone(), ..caller.clone() };
        let done = manager.submit(&caller, &of);
        assert!(done.is_ok(), "{done:?}");
    }
    let took_s = begin.elapsed().as_secs_f64();
    let what = "for two durable arrays of 4,900, the most that a user may have";
    rows.tell("arrays-seconds", took_s, "s", Bar::AtMost(0.5), what);
    let what = "others wait for an array, which is planned as a whole";
    rows.tell("arrays-wait", took_s / 2.0 * 1e3, "ms", Bar::AtMost(30.0), what);
    drop(manager);
    remove(&file);
}

fn recovery(rows: &Rows) {
    let file = path("recovery");
    let mut manager = create(&file);
    for part in wishes(5_000).chunks(500) {
        manager.submit_all(part).expect("the disk is well");
    }
    let before = manager.open_rows();
    drop(manager);
    let begin = Instant::now();
    let opened = Manager::open(&file, Access::Write, Simulated::default());
    let (manager, _) = opened.expect("a ledger");
    let took_s = begin.elapsed().as_secs_f64();
    assert_eq!(manager.open_rows(), before, "it is as it was");
    let (count, what) = (before.len() as f64, "requests, each checked against its nodes");
    rows.tell("recovered", count, "requests", Bar::None, what);
    rows.tell("recovery-seconds", took_s, "s", Bar::AtMost(0.5), "to recover them");
    drop(manager);
    remove(&file);
}

fn one_by_one(rows: &Rows) {
    let file = path("one");
    let mut manager = create(&file);
    let begin = Instant::now();
    for (caller, wish) in &wishes(500) {
        let _ = manager.submit(caller, wish);
    }
    let per_second = 500.0 / begin.elapsed().as_secs_f64();
    let what = "durable submissions, one after the other";
    rows.tell("one-by-one", per_second, "per second", Bar::None, what);
    drop(manager);
    remove(&file);
}

fn main() {
    let Some(rows) = Rows::from_arguments() else {
        return;
    };
    // The first, for the memory is that of the process.
    if rows.wants("clients") {
        clients(&rows);
    }
    if rows.wants("two-cores") {
        two_core_clients(&rows);
    }
    if rows.wants("arrays") {
        array(&rows);
    }
    if rows.wants("recovery") {
        recovery(&rows);
    }
    if rows.wants("one-by-one") {
        one_by_one(&rows);
    }
}
