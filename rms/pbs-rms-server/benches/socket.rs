// SPDX-License-Identifier: GPL-2.0
//! Throughput of the manager over its socket, with a pass after each message: applications request
//! a node, wait until it is theirs, and give it back.
//!
//! Times are wall-clock times, with the applications on the same machine. The applications write
//! their calls by hand, therefore only the service is measured.

#[path = "../../../cluster/pbs-cluster-sim/benches/rows/mod.rs"]
mod rows;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use pbs_rms::Policy;
use pbs_rms_server::{serve, Hub, Managed, Settings};
use rows::{Bar, Rows};

/// Duration of the measurement.
const TIME: Duration = Duration::from_secs(5);

/// A connection that speaks varlink.
struct Wire {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Wire {
    fn new(path: &Path) -> Self {
        Self { stream: UnixStream::connect(path).expect("it serves"), read: Vec::new() }
    }

    fn call(&mut self, method: &str, parameters: &str, more: bool) {
        let more = if more { r#","more":true"# } else { "" };
        let call = format!(
            "{{\"method\":\"org.sched-pbs.Rms.{method}\",\"parameters\":{parameters}{more}}}\0"
        );
        self.stream.write_all(call.as_bytes()).expect("it reads");
    }

    /// The next answer.
    fn answer(&mut self) -> String {
        let mut buffer = [0; 1 << 14];
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == 0) {
                let rest = self.read.split_off(end + 1);
                let answer = std::mem::replace(&mut self.read, rest);
                return String::from_utf8_lossy(&answer[..end]).into_owned();
            }
            let bytes = self.stream.read(&mut buffer).expect("it writes");
            assert!(bytes > 0, "it is there");
            self.read.extend(&buffer[..bytes]);
        }
    }

    fn ask(&mut self, method: &str, parameters: &str) -> String {
        self.call(method, parameters, false);
        self.answer()
    }
}

/// The number that comes after a name.
fn number(answer: &str, name: &str) -> Option<u64> {
    let rest = answer.split(&format!("\"{name}\":")).nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// One application: how many messages it sent, and how long each start took.
fn application(path: &Path) -> (u64, Vec<f64>) {
    let mut calls = Wire::new(path);
    let session = number(&calls.ask("Connect", r#"{"name":"load"}"#), "session");
    let session = session.expect("a session");
    let mut monitor = Wire::new(path);
    monitor.call("Monitor", &format!("{{\"session\":{session}}}"), true);
    let (mut messages, mut took_ms) = (0, Vec::new());
    let begin = Instant::now();
    let asked = r#"{"cluster":0,"nodes":1,"kind":"non-preemptible"}"#;
    while begin.elapsed() < TIME {
        let asked_at = Instant::now();
        let request = format!("{{\"session\":{session},\"asked\":{asked}}}");
        let request = number(&calls.ask("Request", &request), "request").expect("room");
        loop {
            let notice = monitor.answer();
            let is_start = notice.contains("\"started\"");
            if is_start && number(&notice, "request") == Some(request) {
                break;
            }
        }
        took_ms.push(asked_at.elapsed().as_secs_f64() * 1e3);
        let done = format!("{{\"session\":{session},\"request\":{request},\"released\":[]}}");
        calls.ask("Done", &done);
        messages += 2;
    }
    (messages, took_ms)
}

fn measure(rows: &Rows, applications: usize, keep: Option<PathBuf>) {
    let directory = std::env::temp_dir().join(format!("rms-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a place for it");
    let path = directory.join("rms.sock");
    let listener = pbs_socket::listen(&path).expect("nobody listens there");
    let is_kept = keep.is_some();
    thread::spawn(move || {
        let settings = Settings {
            clusters: vec![Managed::new("bench", 16_384)],
            policy: Policy { interval_ns: 0, ..Policy::default() },
            absence_grace_ns: 60_000_000_000,
            most_sessions: 64,
            longest_ns: u64::MAX,
        };
        let hub = Hub::open(settings, keep.as_deref()).expect("a hub");
        serve(listener, hub)
    });
    let begin = Instant::now();
    let threads: Vec<_> = (0..applications)
        .map(|_| {
            let path = path.clone();
            thread::spawn(move || application(&path))
        })
        .collect();
    let all: Vec<(u64, Vec<f64>)> =
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect();
    let seconds = begin.elapsed().as_secs_f64();
    let messages: u64 = all.iter().map(|one| one.0).sum();
    let mut took_ms: Vec<f64> = all.into_iter().flat_map(|one| one.1).collect();
    took_ms.sort_by(f64::total_cmp);
    let at = |part: f64| took_ms[(part * (took_ms.len() - 1) as f64) as usize];
    let kept = if is_kept { "-kept" } else { "" };
    let tell = |row: &str, value, unit, bar, what: &str| {
        rows.tell(&format!("socket-{applications}{kept}-{row}"), value, unit, bar, what);
    };
    let (bar, what) = (Bar::AtLeast(20_000.0), "over the socket, a pass after each");
    let rate = messages as f64 / seconds;
    tell("messages", rate, "per second", bar, what);
    let what = "from a request to its start, median";
    tell("median", at(0.5), "ms", Bar::None, what);
    let (bar, what) = (Bar::AtMost(2.0), "the same, 99 of 100");
    tell("p99", at(0.99), "ms", bar, what);
    let _ = std::fs::remove_dir_all(&directory);
}

fn main() {
    let Some(rows) = Rows::from_arguments() else {
        return;
    };
    if !rows.wants("socket") {
        return;
    }
    for applications in [1, 4, 16] {
        measure(&rows, applications, None);
    }
    let kept = std::env::temp_dir().join(format!("rms-bench-{}.kept", std::process::id()));
    measure(&rows, 16, Some(kept.clone()));
    let _ = std::fs::remove_file(kept);
}
