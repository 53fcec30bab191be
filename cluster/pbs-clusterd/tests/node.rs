// SPDX-License-Identifier: GPL-2.0
//! The service with the engine of this node: a service of the node that a test plays gets the jobs
//! of requests, from their owners.

mod common;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{become_user, is_root, serve, site, wanted, Served, DAEMON};
use pbs_cluster_api::{Client, Failure, Refusal, Submission};
use pbs_manager::ledger::{Row, State};
use pbs_node_api::{Filter, Job};
use pbs_socket::{Accounts, Caller};
use serde_json::{json, Value};

/// A call of the engine.
#[derive(Debug)]
struct Asked {
    uid: u32,
    method: String,
    parameters: Value,
}

/// The service of a node, as a test plays it.
struct Node {
    socket: PathBuf,
    asked: Receiver<Asked>,
    jobs: Arc<Mutex<Vec<Job>>>,
    /// Whether submissions are not answered.
    is_deaf: Arc<AtomicBool>,
    /// Whether submissions are refused because there is too much to do.
    is_busy: Arc<AtomicBool>,
}

fn node(name: &str) -> Node {
    let socket =
        std::env::temp_dir().join(format!("pbs-clusterd-node-{name}-{}", std::process::id()));
    // One of an earlier process with the same number.
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    // Jobs are those of several users.
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&socket, everybody).unwrap();
    let (sender, asked) = channel();
    let (jobs, is_deaf) = (Arc::<Mutex<Vec<Job>>>::default(), Arc::<AtomicBool>::default());
    let is_busy = Arc::<AtomicBool>::default();
    let (of_thread, deaf, busy) = (Arc::clone(&jobs), Arc::clone(&is_deaf), Arc::clone(&is_busy));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (sender, jobs) = (sender.clone(), of_thread.clone());
            let (deaf, busy) = (deaf.clone(), busy.clone());
            thread::spawn(move || answer(stream.unwrap(), &sender, &jobs, &deaf, &busy));
        }
    });
    Node { socket, asked, jobs, is_deaf, is_busy }
}

/// Answers the calls of a connection.
fn answer(
    mut stream: UnixStream,
    asked: &Sender<Asked>,
    jobs: &Mutex<Vec<Job>>,
    is_deaf: &AtomicBool,
    is_busy: &AtomicBool,
) {
    let uid = Caller::of(stream.as_fd(), None, &Accounts::default()).unwrap().uid;
    loop {
        let (mut call, mut byte) = (Vec::new(), [0]);
        while stream.read(&mut byte).unwrap_or(0) == 1 && byte[0] != 0 {
            call.push(byte[0]);
        }
        let Ok(call) = serde_json::from_slice::<Value>(&call) else {
            return;
        };
        let method = call["method"].as_str().unwrap().rsplit('.').next().unwrap().to_string();
        let parameters = call["parameters"].clone();
        let answer = match method.as_str() {
            "Submit" if is_busy.load(Ordering::Relaxed) => {
                json!({ "error": "org.sched-pbs.Node.Busy" })
            }
            "Submit" => {
                let job = &parameters["jobs"][0];
                let index = &job["array"]["first"];
                let index = index.as_u64().map_or_else(String::new, |index| format!("[{index}]"));
                let mut jobs = jobs.lock().unwrap();
                let job = Job {
                    number: jobs.len() as u64 + 1,
                    name: format!("{}{index}", job["name"].as_str().unwrap()),
                    uid: Some(uid),
                    state: "running".into(),
                    ..Job::default()
                };
                jobs.push(job.clone());
                json!({ "jobs": [job] })
            }
            "List" => {
                let filter: Filter = serde_json::from_value(parameters["filter"].clone()).unwrap();
                let jobs = jobs.lock().unwrap();
                let found = jobs.iter().filter(|job| {
                    let is_over = job.state == "over";
                    filter.name.as_ref().is_none_or(|name| job.name == *name)
                        && filter.uid.is_none_or(|uid| job.uid == Some(uid))
                        && (!is_over || filter.last.is_some_and(|last| last > 0))
                });
                json!({ "jobs": found.collect::<Vec<_>>() })
            }
            "Show" => {
                let jobs = jobs.lock().unwrap();
                let shown = jobs.iter().find(|job| parameters["job"]["number"] == job.number);
                json!({ "job": shown.unwrap(), "request": null, "processes": [], "programs": [] })
            }
            "Notify" => json!({ "processes": 1 }),
            _ => Value::Null,
        };
        let is_answered = method != "Submit" || !is_deaf.load(Ordering::Relaxed);
        if !matches!(&*method, "List" | "Show") {
            // A test that has ended listens no more.
            let _ = asked.send(Asked { uid, method, parameters });
        }
        if !is_answered {
            thread::sleep(Duration::from_secs(600));
        }
        let answer = match answer {
            // A cancelled job is over already.
            Value::Null => json!({
                "error": "org.sched-pbs.Node.NotInState", "parameters": { "what": "it is over" }
            }),
            error if error["error"].is_string() => error,
            answer => json!({ "parameters": answer }),
        };
        // The engine may have gone.
        let _ = stream.write_all(format!("{answer}\0").as_bytes());
    }
}

impl Node {
    /// The next call; a service that does not come has failed.
    fn next(&self) -> Asked {
        self.asked.recv_timeout(Duration::from_secs(180)).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The system removes what is left of temporary files.
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A service over that node, with a job file in its directory.
fn serve_over(name: &str, node: &Node) -> (Served, String) {
    let socket = node.socket.to_str().unwrap();
    let served = serve(name, &site(1), &["--engine", "node", "--node-socket", socket]);
    let file = served.directory.join("job.toml");
    std::fs::write(&file, "name = 'sort'\ndeadline_ns = 1\n").unwrap();
    (served, file.to_str().unwrap().into())
}

/// A request whose command is that job file.
fn job(file: &str, rset: &str, duration_s: u64) -> Submission {
    Submission { command: Some(vec![file.into()]), ..wanted(rset, duration_s) }
}

/// The threads of a process that act as that user.
fn threads_as(process: u32, uid: u32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let threads = threads.map(|thread| thread.unwrap());
    let acts_as = |thread: &std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
        ids.split_whitespace().nth(1) == Some(&uid.to_string())
    };
    let threads = threads.filter(acts_as);
    threads.map(|thread| thread.file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// Whether that user may send a signal to a thread; the error otherwise.
fn signalled_by(uid: u32, thread: i32) -> Result<(), i32> {
    let sent = thread::spawn(move || {
        become_user(uid);
        // SAFETY: signal 0 only asks for the permission.
        #[allow(unsafe_code)]
        let sent = unsafe { libc::kill(thread, 0) };
        (sent == 0).then_some(()).ok_or_else(std::io::Error::last_os_error)
    });
    sent.join().unwrap().map_err(|error| error.raw_os_error().unwrap())
}

fn until_ended(client: &mut Client, id: u64) -> Row {
    for _ in 0..18_000 {
        let row = client.show(id).unwrap().request.0;
        if row.state == State::Ended {
            return row;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("request {id} does not end");
}

/// Each job is submitted by the owner of its request, with index and threads, and ends the request.
#[test]
fn jobs_are_those_of_the_owners_of_requests() {
    if !is_root() {
        return pbs_text::skipped("only root can have requests of several users");
    }
    let node = node("owners");
    let (served, file) = serve_over("owners", &node);
    let mut client = served.client_of(DAEMON);
    let array = Submission { array: Some(vec![3, 5]), ..job(&file, "ncpus=2:ompthreads=2", 600) };
    let rows = client.submit(&array).unwrap();
    let mut indices = Vec::new();
    for _ in 0..2 {
        let asked = node.next();
        assert_eq!((asked.method.as_str(), asked.uid), ("Submit", DAEMON));
        let job = &asked.parameters["jobs"][0];
        assert_eq!(job["directory"], served.directory.to_str().unwrap());
        assert!(job["request"].as_str().unwrap().contains("name = 'sort'"), "{job}");
        let environment = job["environment"].as_array().unwrap();
        for (name, value) in [("OMP_NUM_THREADS", "2"), ("USER", "daemon")] {
            assert!(environment.contains(&json!({ "name": name, "value": value })), "{job}");
        }
        assert_eq!(job["array"]["first"], job["array"]["last"]);
        indices.push(job["array"]["first"].as_u64().unwrap());
    }
    assert_eq!(indices, [3, 5]);
    // The thread that acts as the owner can't be signalled by the owner.
    let threads = threads_as(served.child.id(), DAEMON);
    assert_eq!(threads.len(), 1);
    assert_eq!(signalled_by(DAEMON, threads[0]), Err(libc::EPERM));
    // A service that was started anew finds the jobs again.
    let mut served = served;
    served.restart();
    let mut client = served.client_of(DAEMON);
    for job in &mut *node.jobs.lock().unwrap() {
        (job.state, job.outcome) = ("over".into(), Some("complete".into()));
    }
    for row in rows {
        assert_eq!(until_ended(&mut client, row.id).outcome.as_deref(), Some("completed"));
    }
    assert_eq!(node.jobs.lock().unwrap().len(), 2);
}

/// Requests for another user, and job files without their whole path, are refused.
#[test]
fn only_jobs_of_the_caller_are_taken() {
    if !is_root() {
        return pbs_text::skipped("only root can submit for others");
    }
    let node = node("others");
    let (served, file) = serve_over("others", &node);
    let refused = |submission: &Submission| match served.client().submit(submission) {
        Err(Failure::Refused(Refusal::NotInState { what })) => what,
        other => panic!("{other:?}"),
    };
    let of_other = Submission { user: Some("daemon".into()), ..job(&file, "ncpus=1", 60) };
    assert!(refused(&of_other).starts_with("only daemon can submit what runs as daemon"));
    assert!(refused(&job("job.toml", "ncpus=1", 60)).contains("the whole path"));
    assert!(refused(&wanted("ncpus=1", 60)).contains("one job file"));
    let notice = Submission {
        notify_s: Some(1),
        notify_signal: Some("KILL".into()),
        ..job(&file, "ncpus=1", 60)
    };
    assert!(refused(&notice).starts_with("KILL is no signal for a notice"));
    // What can't be read ends the request.
    let absent = Path::new(&file).with_file_name("absent.toml");
    let mut client = served.client();
    let id = client.submit(&job(absent.to_str().unwrap(), "ncpus=1", 60)).unwrap()[0].id;
    let outcome = until_ended(&mut client, id).outcome.unwrap();
    assert!(outcome.starts_with("refused: ") && outcome.contains("absent.toml"), "{outcome}");
}

/// Programs are notified by their signal, and a request that is ended ends its job.
#[test]
fn notices_and_ends_reach_the_job() {
    let node = node("notices");
    let (served, file) = serve_over("notices", &node);
    let notice = Submission {
        notify_s: Some(3599),
        notify_signal: Some("USR1".into()),
        ..job(&file, "ncpus=1", 3600)
    };
    let mut client = served.client();
    let id = client.submit(&notice).unwrap()[0].id;
    assert_eq!(node.next().method, "Submit");
    let asked = node.next();
    assert_eq!(asked.method, "Notify");
    assert_eq!(asked.parameters["signal"], "USR1");
    assert_eq!(asked.parameters["job"]["number"], 1);
    client.kill(&[id]).unwrap();
    let asked = node.next();
    assert_eq!((asked.method.as_str(), &asked.parameters["job"]["number"]), ("Cancel", &json!(1)));
}

/// A job whose request has ended while the service was away is cancelled by the next service.
#[test]
fn a_job_that_the_ledger_does_not_run_is_cancelled() {
    let node = node("orphan");
    let (mut served, file) = serve_over("orphan", &node);
    let id = served.client().submit(&job(&file, "ncpus=1", 3600)).unwrap()[0].id;
    assert_eq!(node.next().method, "Submit");
    served.kill();
    // Jobs of a request that has ended, of the user's own, and of another ledger of the user.
    let own = node.jobs.lock().unwrap()[0].clone();
    for name in ["clusterd-77-1000", "sort", "cluster-77-1000"] {
        let mut jobs = node.jobs.lock().unwrap();
        let number = jobs.len() as u64 + 1;
        jobs.push(Job { number, name: name.into(), ..own.clone() });
    }
    served.restart();
    let asked = node.next();
    assert_eq!((asked.method.as_str(), &asked.parameters["job"]["number"]), ("Cancel", &json!(2)));
    served.client().kill(&[id]).unwrap();
    let asked = node.next();
    assert_eq!((asked.method.as_str(), &asked.parameters["job"]["number"]), ("Cancel", &json!(1)));
}

/// A request is handed over again to a service that had too much to do.
#[test]
fn a_busy_node_is_asked_again() {
    let node = node("busy");
    node.is_busy.store(true, Ordering::Relaxed);
    let (served, file) = serve_over("busy", &node);
    let mut client = served.client();
    let id = client.submit(&job(&file, "ncpus=1", 3600)).unwrap()[0].id;
    for _ in 0..2 {
        assert_eq!(node.next().method, "Submit");
    }
    node.is_busy.store(false, Ordering::Relaxed);
    while node.jobs.lock().unwrap().is_empty() {
        assert_eq!(node.next().method, "Submit");
    }
    assert_eq!(client.show(id).unwrap().request.0.state, State::Running);
}

/// While the node answers nothing, the cluster answers all.
#[test]
fn a_node_that_does_not_answer_delays_nobody() {
    let node = node("deaf");
    node.is_deaf.store(true, Ordering::Relaxed);
    let (served, file) = serve_over("deaf", &node);
    let mut client = served.client();
    let first = client.submit(&job(&file, "ncpus=1", 600)).unwrap().remove(0);
    assert_eq!(node.next().method, "Submit");
    let second = client.submit(&job(&file, "ncpus=16", 600)).unwrap().remove(0);
    assert_eq!(second.start_s, first.end_s);
    assert_eq!(client.kill(&[first.id, second.id]).unwrap().len(), 2);
    assert_eq!(client.status().unwrap().requests, 0);
}
