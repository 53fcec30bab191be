// SPDX-License-Identifier: GPL-2.0
//! A socket that is served, with a node behind it that only answers.

#![allow(dead_code)] // No test needs all of it.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use pbs_launch::signals::wait_for;
use pbs_node_api::{Allocated, Deallocated, Job, Refusal, Status};
use pbs_socket::ConnectionLimits;
use pbsd::allocations::Allocations;
use pbsd::inbox::{inbox, Inbox, Request};
use pbsd::session::{self, Notices};
use tokio::sync::broadcast;

/// A socket, served, with a node behind it that answers.
pub(crate) struct Served {
    pub(crate) path: PathBuf,
    pub(crate) notices: Notices,
}

/// Serves it in a directory of that name.
pub(crate) fn serve(name: &str) -> Served {
    serve_by(name, answer)
}

/// Serves a node with allocations, whose jobs need only one of them.
pub(crate) fn serve_allocations(name: &str, mut allocations: Allocations) -> Served {
    serve_by(name, move |mut inbox| loop {
        wait_for([inbox.as_fd()], -1).unwrap();
        inbox.begin();
        while let Some((caller, request)) = inbox.take() {
            match request {
                Request::Allocate(step, answer) => {
                    let cpus = allocations.allocate(&caller, &step);
                    let _ = answer.send(cpus.map(|cpus| Allocated { cpus }));
                }
                Request::Deallocate(job, step, answer) => {
                    let over = allocations.deallocate(&caller, job, step);
                    let _ = answer.send(over.map(|_| Deallocated::default()));
                }
                Request::Submit(jobs, answer) => {
                    let numbers = jobs.iter().filter_map(|job| job.sent()?.allocation);
                    let may = numbers
                        .map(|number| {
                            allocations.may_have(&caller, number, &pbs_job::Job::default())
                        })
                        .collect::<Result<Vec<_>, _>>();
                    let _ = answer.send(may.map(|_| Vec::new()));
                }
                other => drop(other),
            }
        }
    })
}

fn serve_by(name: &str, answer: impl FnOnce(Inbox) + Send + 'static) -> Served {
    let directory = std::env::temp_dir().join(format!("pbsd-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let path = directory.join("pbs.sock");
    let listener = pbs_socket::listen(&path).unwrap();
    let (sender, inbox) = inbox().unwrap();
    let (notices, _) = broadcast::channel(8);
    let of_thread = notices.clone();
    thread::spawn(move || session::serve(listener, ConnectionLimits::DEFAULT, &sender, &of_thread));
    thread::spawn(move || answer(inbox));
    Served { path, notices }
}

/// Answers what is asked in the tests.
fn answer(mut inbox: Inbox) {
    loop {
        wait_for([inbox.as_fd()], -1).unwrap();
        inbox.begin();
        while let Some((caller, request)) = inbox.take() {
            match request {
                Request::Status(answer) => {
                    let status = Status { state: "running".into(), ..Status::default() };
                    let _ = answer.send(Ok(status));
                }
                // As much as does not fit into the buffers of a socket.
                Request::List(_, answer) => {
                    let job =
                        Job { name: "x".repeat(1000), uid: Some(caller.uid), ..Job::default() };
                    let _ = answer.send(Ok(vec![job; 5000]));
                }
                Request::Plan(answer) => {
                    let _ = answer.send(Err(Refusal::NotPermitted { what: "the plan".into() }));
                }
                // Nobody answers any more.
                other => drop(other),
            }
        }
    }
}

/// Sends the text, with its end, and reads one answer.
pub(crate) fn ask(stream: &mut UnixStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).unwrap();
    stream.write_all(&[0]).unwrap();
    read(stream)
}

/// Reads one answer; nothing, if it was hung up.
pub(crate) fn read(stream: &mut UnixStream) -> String {
    let mut answer = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap_or(0) == 1 && byte[0] != 0 {
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

/// A connection that does not wait for ever.
pub(crate) fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// A call that is always answered.
pub(crate) const STATUS: &str = r#"{"method":"org.sched-pbs.Node.Status"}"#;
