// SPDX-License-Identifier: GPL-2.0
//! Performance of the service of a cluster: submissions of many clients, each call beside many
//! planned requests, and the end of a large request beside them.
//!
//! The cluster has 616 nodes with 16 cores. The ledger is in the directory of `PBS_BENCH_DIR`, or in
//! that of temporary files. Times are wall-clock times, because the service waits for the disk; the
//! clients are on the same machine.

#[path = "../../pbs-cluster-sim/benches/rows/mod.rs"]
mod rows;

use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use pbs_cluster_api::{Client, Submission};
use pbs_manager::ledger::Ledger;
use rows::{Bar, Rows};

const CLIENTS: usize = 30;
/// Requests that are planned beside those that are measured.
const BESIDE: u64 = 100_000;

/// A running service with a ledger of its own.
struct Served {
    directory: PathBuf,
    child: Child,
}

impl Served {
    fn new(name: &str) -> Self {
        let parent = std::env::var_os("PBS_BENCH_DIR").map(PathBuf::from);
        let parent = parent.unwrap_or_else(std::env::temp_dir);
        let directory = parent.join(format!("pbs-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let site = "name = 'bench'\n[[nodes]]\nname = 'n%03d'\ncount = 616\nhas = 'ncpus=16'\n";
        let ledger = directory.join("cluster.db");
        Ledger::create(&ledger, site, pbs_uapi::clock::unix_s()).expect("a ledger");
        let child = Command::new(env!("CARGO_BIN_EXE_pbs-clusterd"))
            .arg("--socket")
            .arg(directory.join("cluster.sock"))
            .arg("--ledger")
            .arg(ledger)
            .args(["--user-requests", "1000000", "--user-bytes", "4000000000"])
            .spawn();
        let this = Self { directory, child: child.expect("the service") };
        while Client::connect(&this.directory.join("cluster.sock")).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        this
    }

    fn client(&self) -> Client {
        Client::connect(&self.directory.join("cluster.sock")).expect("it listens")
    }

    /// Waits until all requests have looked for a better place.
    fn settle(&self) -> Duration {
        let (mut client, begun) = (self.client(), Instant::now());
        while client.status().expect("it answers").is_settling {
            thread::sleep(Duration::from_millis(10));
        }
        begun.elapsed()
    }

    /// Plans many requests behind a large one; returns its number.
    fn fill(&self) -> u64 {
        let mut client = self.client();
        let large = client.submit(&wanted("616:ncpus=16", 3600)).expect("it is planned")[0].id;
        for _ in 0..BESIDE / 1000 {
            let array = Submission { array: Some((0..1000).collect()), ..wanted("ncpus=16", 7200) };
            client.submit(&array).expect("they are planned");
        }
        self.settle();
        large
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A service that has failed was told of before.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn wanted(rset: &str, duration_s: u64) -> Submission {
    Submission { rset: rset.into(), duration_s: Some(duration_s), ..Submission::default() }
}

/// Times of calls of a kind.
fn times(count: usize, mut call: impl FnMut()) -> Vec<Duration> {
    let of = |_| {
        let begun = Instant::now();
        call();
        begun.elapsed()
    };
    (0..count).map(of).collect()
}

/// Returns the time within which that part of the calls was answered, in milliseconds.
fn within_ms(times: &mut [Duration], permille: usize) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times[(times.len() * permille / 1000).min(last)].as_secs_f64() * 1e3
}

/// Submissions of all clients at once, each with one call at a time.
fn by_clients(served: &Served, each: usize) -> (f64, Vec<Duration>) {
    let begun = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = served.client();
            thread::spawn(move || {
                let submission = wanted("ncpus=2", 120);
                times(each, || drop(client.submit(&submission).expect("it is planned")))
            })
        })
        .collect();
    let all = clients.into_iter().flat_map(|client| client.join().expect("a client"));
    let all: Vec<Duration> = all.collect();
    (all.len() as f64 / begun.elapsed().as_secs_f64(), all)
}

fn submissions(rows: &Rows, name: &str, served: &Served, each: usize, what: &str) {
    let (per_second, mut all) = by_clients(served, each);
    let what = format!("durable submissions by {CLIENTS} clients {what}");
    let bar = Bar::AtLeast(1_000.0);
    rows.tell(&format!("{name}-submissions"), per_second, "per second", bar, &what);
    let (half, most) = (within_ms(&mut all, 500), within_ms(&mut all, 990));
    rows.tell(&format!("{name}-median"), half, "ms", Bar::None, "half of the answers");
    rows.tell(&format!("{name}-p99"), most, "ms", Bar::AtMost(50.0), "99 % of the answers");
}

fn beside(rows: &Rows) {
    let served = Served::new("beside");
    let large = served.fill();
    let mut client = served.client();
    let mut one = Vec::new();
    let mut all =
        times(200, || one.extend(client.submit(&wanted("ncpus=1", 600)).expect("planned")));
    let (bar, what) = (Bar::AtMost(50.0), "99 % of submissions beside 100,000 requests");
    rows.tell("beside-submit", within_ms(&mut all, 990), "ms", bar, what);
    let id = one[0].id;
    let mut all = times(200, || drop(client.show(id).expect("it is there")));
    let what = "99 % of looks at a request beside 100,000";
    rows.tell("beside-show", within_ms(&mut all, 990), "ms", bar, what);
    submissions(rows, "beside", &served, 200, "beside 100,000 requests");
    served.settle();

    let begun = Instant::now();
    client.kill(&[large]).expect("it ends");
    let took_ms = begun.elapsed().as_secs_f64() * 1e3;
    let what = "until the end of a large request is answered, beside 100,000";
    rows.tell("kill-answer", took_ms, "ms", bar, what);
    let mut all = Vec::new();
    while client.status().expect("it answers").is_settling {
        all.extend(times(1, || drop(client.submit(&wanted("ncpus=1", 600)).expect("planned"))));
        thread::sleep(Duration::from_millis(20));
    }
    let what = "99 % of submissions while all of those move up";
    rows.tell("kill-beside", within_ms(&mut all, 990), "ms", bar, what);
    let settled_s = begun.elapsed().as_secs_f64();
    let what = "until all have moved up, with a submission every 20 ms";
    rows.tell("kill-settled", settled_s, "s", Bar::None, what);
}

fn main() {
    let Some(rows) = Rows::from_arguments() else {
        return;
    };
    if rows.wants("submissions") {
        let served = Served::new("submissions");
        submissions(&rows, "clients", &served, 500, "to an empty cluster");
    }
    if rows.wants("beside") {
        beside(&rows);
    }
}
