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

use pbs_cluster_api::{Alteration, Client, Filter, Submission};
use pbs_clusterd::limits::LISTED;
use pbs_manager::ledger::Ledger;
use rows::{Bar, Rows};

const CLIENTS: usize = 30;
/// Requests that are planned beside those that are measured.
const BESIDE: u64 = 100_000;
/// Requests of the whole cluster that are planned before those, and end one after the other.
const LARGE: usize = 5;
/// Bar of every answer beside many requests.
const ANSWER: Bar = Bar::AtMost(50.0);

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

    /// Plans many requests behind large ones; returns the numbers of the large ones.
    fn fill(&self) -> Vec<u64> {
        let mut client = self.client();
        let large = (0..LARGE)
            .map(|_| client.submit(&wanted("616:ncpus=16", 3600)).expect("it is planned")[0].id)
            .collect();
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

/// Bars of submissions of all clients: those a second, and the time within which 99 % are answered.
struct Bars {
    per_second: f64,
    p99_ms: f64,
}

fn submissions(rows: &Rows, name: &str, served: &Served, each: usize, what: &str, bars: &Bars) {
    let (per_second, mut all) = by_clients(served, each);
    let what = format!("durable submissions by {CLIENTS} clients {what}");
    let bar = Bar::AtLeast(bars.per_second);
    rows.tell(&format!("{name}-submissions"), per_second, "per second", bar, &what);
    let (half, most) = (within_ms(&mut all, 500), within_ms(&mut all, 990));
    rows.tell(&format!("{name}-median"), half, "ms", Bar::None, "half of the answers");
    rows.tell(&format!("{name}-p99"), most, "ms", Bar::AtMost(bars.p99_ms), "99 % of the answers");
}

/// Each call of the interface that a user makes, beside many requests.
fn calls(rows: &Rows, client: &mut Client) {
    let tell = |name: &str, all: &mut [Duration], what: &str| {
        let what = format!("99 % of {what} beside 100,000 requests");
        rows.tell(&format!("beside-{name}"), within_ms(all, 990), "ms", ANSWER, &what);
    };
    let mut own = Vec::new();
    let mut all =
        times(200, || own.extend(client.submit(&wanted("ncpus=1", 600)).expect("it is planned")));
    tell("submit", &mut all, "submissions");
    let mut ids = own.iter().map(|row| row.id).cycle();
    let mut next = || ids.next().expect("some were submitted");
    let mut all = times(200, || drop(client.show(next()).expect("it is there")));
    tell("show", &mut all, "looks at a request");
    let mut all = times(200, || drop(client.why(next()).expect("it is there")));
    tell("why", &mut all, "questions for the causes of a start");
    // Requests in the middle and at the end of the plan, too.
    let mut others = (1..=20).map(|part| part * BESIDE / 20).cycle();
    let mut all = times(200, || {
        drop(client.why(others.next().expect("there are some")).expect("it is there"));
    });
    tell("why-later", &mut all, "questions for the causes of later starts");
    let change = Alteration { duration_s: Some(900), ..Alteration::default() };
    let mut all = times(200, || drop(client.alter(next(), &change).expect("it is planned")));
    tell("alter", &mut all, "alterations");
    let mut all = times(200, || drop(client.kill(&[next()]).expect("it ends")));
    tell("kill-small", &mut all, "ends of small requests");
    let begun = Instant::now();
    let (_, all) = client.list(&Filter::default()).expect("it answers");
    let parts = all.len().div_ceil(LISTED.rows) as f64;
    let took_ms = begun.elapsed().as_secs_f64() * 1e3;
    let what = format!("the list of all {} requests (info, plan), by its parts", all.len());
    rows.tell("beside-list-part", took_ms / parts, "ms", ANSWER, &what);
    rows.tell("beside-list", took_ms, "ms", Bar::None, "the whole list, in parts of 1,000");
}

fn beside(rows: &Rows) {
    let served = Served::new("beside");
    let large = served.fill();
    let mut client = served.client();
    calls(rows, &mut client);
    let bars = Bars { per_second: 1_000.0, p99_ms: 50.0 };
    submissions(rows, "beside", &served, 200, "beside 100,000 requests", &bars);
    served.settle();

    let (mut answers, mut beside, mut settled) = (Vec::new(), Vec::new(), Vec::new());
    for id in large.into_iter().rev() {
        let begun = Instant::now();
        answers.extend(times(1, || drop(client.kill(&[id]).expect("it ends"))));
        while client.status().expect("it answers").is_settling {
            let one = || drop(client.submit(&wanted("ncpus=1", 600)).expect("it is planned"));
            beside.extend(times(1, one));
            thread::sleep(Duration::from_millis(20));
        }
        settled.push(begun.elapsed());
    }
    let what = format!("until the end of a large request is answered, the longest of {LARGE}");
    rows.tell("kill-answer", within_ms(&mut answers, 1000), "ms", ANSWER, &what);
    let what = "99 % of submissions while all of those move up";
    rows.tell("kill-beside", within_ms(&mut beside, 990), "ms", ANSWER, what);
    let what =
        format!("until all have moved up, with a submission every 20 ms, the longest of {LARGE}");
    rows.tell("kill-settled", within_ms(&mut settled, 1000) / 1e3, "s", Bar::None, &what);
}

fn main() {
    let Some(rows) = Rows::from_arguments() else {
        return;
    };
    if rows.wants("submissions") {
        let served = Served::new("submissions");
        let bars = Bars { per_second: 10_000.0, p99_ms: 10.0 };
        submissions(&rows, "service", &served, 2_000, "to an empty cluster", &bars);
    }
    if rows.wants("beside") {
        beside(&rows);
    }
}
