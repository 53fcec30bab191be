// SPDX-License-Identifier: GPL-2.0
//! The service over its socket, as applications find it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::Duration;

use pbs_rms::Policy;
use pbs_rms_api::{Asked, Change, Client, Failure, Notice, Refusal};
use pbs_rms_server::{serve, Hub, Managed, Settings};

fn settings() -> Settings {
    Settings {
        clusters: vec![Managed::new("lab", 10)],
        policy: Policy { interval_ns: 0, release_grace_ns: 50_000_000, ..Policy::default() },
        absence_grace_ns: 300_000_000,
        most_sessions: 64,
        longest_ns: u64::MAX,
    }
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("rms-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a place for files");
    directory
}

fn start(name: &str) -> PathBuf {
    let path = directory(name).join("rms.sock");
    let listener = pbs_socket::listen(&path).expect("nobody listens there");
    thread::spawn(move || {
        let hub = Hub::open(settings(), None).expect("a hub");
        serve(listener, hub)
    });
    path
}

fn monitor(path: &Path, session: u64) -> Receiver<Notice> {
    let (sender, receiver) = channel();
    let client = Client::connect_to(path).expect("it serves");
    thread::spawn(move || client.monitor(session, |notice| sender.send(notice).is_ok()));
    receiver
}

/// The next notice of that kind.
fn next(notices: &Receiver<Notice>, kind: &str) -> Notice {
    loop {
        let notice = notices.recv_timeout(Duration::from_secs(10));
        let notice = notice.expect("it comes");
        if notice.kind == kind {
            return notice;
        }
    }
}

fn asked(kind: &str, nodes: u64) -> Asked {
    Asked { kind: kind.into(), nodes, ..Asked::default() }
}

#[test]
fn an_application_grows_and_a_sweep_makes_room() {
    let path = start("grows");
    let mut client = Client::connect_to(&path).expect("it serves");
    let connected = client.connect("mesh").expect("a session");
    assert_eq!(connected.clusters[0].nodes, 10);
    let mesh = connected.session;
    let heard = monitor(&path, mesh);
    let views = next(&heard, "views").views.expect("with it");
    assert_eq!(views.non_preemptible.steps[0].nodes, 10);
    let all = client.request(mesh, &asked("pre-allocation", 8)).expect("room");
    let mut used = asked("non-preemptible", 3);
    used.coalloc = Some(all);
    let used = client.request(mesh, &used).expect("room");
    while next(&heard, "started").request != Some(used) {}

    let sweep = client.connect("sweep").expect("a session").session;
    let told = monitor(&path, sweep);
    let spare = client.request(sweep, &asked("preemptible", 7)).expect("room");
    let nodes = next(&told, "started").nodes.expect("with them");
    assert_eq!(nodes, [3, 4, 5, 6, 7, 8, 9]);

    let update = Change { request: used, nodes: 6, ..Change::default() };
    let more = client.update(mesh, &update).expect("it is pre-allocated");
    assert_eq!(more.until, None);
    let more = more.request;
    // The sweep sees that, and gives back.
    let seen = || next(&told, "views").views.map(|views| views.preemptible.steps[0].nodes);
    while seen() != Some(4) {}
    let update =
        Change { request: spare, nodes: 4, released: Some(vec![7, 8, 9]), ..Change::default() };
    client.update(sweep, &update).expect("all are its own");
    let started = next(&heard, "started");
    assert_eq!(started.request, Some(more));
    assert_eq!(started.nodes, Some(vec![0, 1, 2, 7, 8, 9]));

    let sessions = client.sessions().expect("all");
    assert_eq!(sessions.len(), 2);
    assert!(sessions.iter().all(|session| session.is_monitored));
    client.disconnect(mesh).expect("it is there");
    next(&heard, "closed");
    let accounts = client.accounts().expect("own");
    assert_eq!(accounts.len(), 2);
    assert!(accounts[1].is_over && accounts[1].name == "mesh");
}

#[test]
fn a_session_that_keeps_its_nodes_is_ended() {
    let path = start("violation");
    let mut client = Client::connect_to(&path).expect("it serves");
    let sweep = client.connect("sweep").expect("a session").session;
    let told = monitor(&path, sweep);
    client.request(sweep, &asked("preemptible", 10)).expect("room");
    next(&told, "started");
    let rigid = client.connect("rigid").expect("a session").session;
    let heard = monitor(&path, rigid);
    client.request(rigid, &asked("non-preemptible", 4)).expect("room");
    let violation = next(&told, "violation");
    let why = violation.why.expect("it is said");
    assert!(
        why.contains("10 preemptible nodes of cluster lab") && why.ends_with("6 are permitted"),
        "{why}"
    );
    assert_eq!(violation.nodes.map(|nodes| nodes.len()), Some(10));
    next(&told, "closed");
    assert_eq!(next(&heard, "started").nodes.map(|nodes| nodes.len()), Some(4));
}

#[test]
fn an_announced_update_has_two_requests_and_both_are_notified() {
    let path = start("announced");
    let mut client = Client::connect_to(&path).expect("it serves");
    let session = client.connect("it").expect("a session").session;
    let heard = monitor(&path, session);
    let asked = asked("non-preemptible", 4);
    let used = client.request(session, &asked).expect("room");
    next(&heard, "started");
    let update = Change {
        request: used,
        nodes: 6,
        duration_ns: Some(30_000_000),
        announce_ns: Some(30_000_000),
        released: None,
    };
    let made = client.update(session, &update).expect("room");
    let until = made.until.expect("it is announced");
    let started = next(&heard, "started");
    assert_eq!((started.request, started.why), (Some(until), None));
    assert_eq!(started.nodes.map(|nodes| nodes.len()), Some(4));
    let ended = next(&heard, "ended");
    assert_eq!((ended.request, ended.nodes), (Some(until), Some(vec![])));
    let started = next(&heard, "started");
    assert_eq!(started.request, Some(made.request));
    assert_eq!(started.nodes.map(|nodes| nodes.len()), Some(6));
    // Nobody has asked for more time: all is taken.
    let ended = next(&heard, "ended");
    assert_eq!(ended.request, Some(made.request));
    assert_eq!(ended.nodes.map(|nodes| nodes.len()), Some(6));
    assert_eq!(ended.why.as_deref(), Some("its time has ended"));
}

#[test]
fn idle_nodes_are_reported_on_request() {
    let path = start("idle");
    let mut client = Client::connect_to(&path).expect("it serves");
    let session = client.connect("it").expect("a session").session;
    let heard = monitor(&path, session);
    let mut asked = asked("non-preemptible", 2);
    asked.preferred = Some(vec![3, 7]);
    client.request(session, &asked).expect("room");
    next(&heard, "started");
    let nodes = client.nodes().expect("all");
    assert_eq!((nodes.len(), nodes[0].name.as_str(), nodes[0].nodes), (1, "lab", 10));
    assert_eq!(nodes[0].idle, [0, 1, 2, 4, 5, 6, 8, 9]);
    client.disconnect(session).expect("it is there");
    assert_eq!(client.nodes().expect("all")[0].idle.len(), 10);
}

#[test]
fn a_session_without_a_monitor_ends() {
    let path = start("absent");
    let mut client = Client::connect_to(&path).expect("it serves");
    let session = client.connect("gone").expect("a session").session;
    client.request(session, &asked("non-preemptible", 4)).expect("room");
    thread::sleep(Duration::from_millis(600));
    let gone = client.request(session, &asked("non-preemptible", 4));
    let Err(Failure::Refused(Refusal::NoSuchSession { session: named })) = gone else {
        panic!("{gone:?}");
    };
    assert_eq!(named, session);
}

#[test]
fn an_impossible_request_is_refused_and_changes_nothing() {
    let path = start("refused");
    let mut client = Client::connect_to(&path).expect("it serves");
    let session = client.connect("it").expect("a session").session;
    let mut why = |asked: Asked| match client.request(session, &asked) {
        Err(Failure::Refused(Refusal::Refused { why })) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(asked("non-preemptible", 11)).contains("more than the 10"));
    assert!(why(asked("whatever", 1)).contains("kind is \"whatever\"; it must be"));
    let mut prefers = asked("preemptible", 1);
    prefers.preferred = Some(vec![1, 2, 3]);
    assert!(why(prefers).contains("3 nodes are preferred and 1 requested"));
    let mut both = asked("preemptible", 1);
    both.coalloc = Some(1);
    assert!(why(both.clone()).contains("this session has no request 1"));
    both.next = Some(1);
    assert!(why(both).contains("not on two"));
    let mut far = asked("preemptible", 1);
    far.cluster = 3;
    assert!(why(far).contains("no cluster 3; the only one is cluster 0"));
    assert!(client.sessions().expect("all")[0].requests.is_empty());
}

#[test]
fn a_crash_loses_nothing() {
    let journal = directory("crash").join("kept");
    let serve_once = |name: &str, journal: &Path| {
        let path = directory(name).join("rms.sock");
        let listener = pbs_socket::listen(&path).expect("nobody listens there");
        let journal = journal.to_path_buf();
        thread::spawn(move || {
            let hub = Hub::open(settings(), Some(&journal)).expect("a hub");
            serve(listener, hub)
        });
        path
    };
    let path = serve_once("crash-1", &journal);
    let mut client = Client::connect_to(&path).expect("it serves");
    let session = client.connect("survivor").expect("a session").session;
    let heard = monitor(&path, session);
    let request = client.request(session, &asked("non-preemptible", 4)).expect("room");
    next(&heard, "started");
    // Another one finds the file as if the first one had been killed now.
    let (copy, next_one) = (journal.with_extension("copy"), journal.with_extension("next"));
    std::fs::copy(&journal, &copy).expect("it is there");
    std::fs::copy(&journal, &next_one).expect("it is there");
    let open = Hub::open(settings(), Some(&copy)).expect("a hub");
    assert_eq!(open.session_count(), 1);
    drop(open);
    let path = serve_once("crash-2", &next_one);
    let heard = monitor(&path, session);
    let started = next(&heard, "started");
    assert_eq!(started.request, Some(request));
    assert_eq!(started.nodes, Some(vec![0, 1, 2, 3]));
    let mut client = Client::connect_to(&path).expect("it serves");
    let other = client.request(session, &asked("non-preemptible", 2)).expect("room");
    assert!(other > request);
    assert_eq!(next(&heard, "started").nodes, Some(vec![4, 5]));

    // A line that was cut off is not there; another one that is none of ours is told.
    let text = std::fs::read_to_string(&copy).expect("it is there");
    std::fs::write(&copy, &text[..text.len() - 5]).expect("it can be");
    assert!(Hub::open(settings(), Some(&copy)).is_ok());
    std::fs::write(&copy, format!("what\n{text}")).expect("it can be");
    let error = Hub::open(settings(), Some(&copy)).expect_err("it is not");
    assert!(error.to_string().contains(":1: this is not"), "{error}");
}

/// Sends a call by hand: the answer.
fn call(path: &Path, call: &str) -> serde_json::Value {
    let mut stream = UnixStream::connect(path).expect("it serves");
    stream.write_all(call.as_bytes()).expect("it reads");
    stream.write_all(&[0]).expect("it reads");
    let mut answer = Vec::new();
    let mut reader = BufReader::new(stream);
    reader.read_until(0, &mut answer).expect("it answers");
    answer.pop();
    serde_json::from_slice(&answer).expect("an answer")
}

#[test]
fn it_describes_itself_as_the_file_does() {
    let path = start("describes");
    let answer = call(
        &path,
        r#"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"org.sched-pbs.Rms"}}"#,
    );
    let said = answer["parameters"]["description"].as_str().expect("text").trim_end();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../pbs-rms-api/org.sched-pbs.Rms.varlink");
    if std::env::var_os("PBS_WRITE_INTERFACE").is_some() {
        std::fs::write(file, format!("{said}\n")).expect("it can be");
    }
    let written = std::fs::read_to_string(file).expect("it is there");
    assert_eq!(
        said,
        written.trim_end(),
        "PBS_WRITE_INTERFACE=1 cargo test -p pbs-rms-server writes it anew"
    );
    // Types, methods and errors have one space of names: clients in other languages find the
    // wrong one of two.
    let mut names: Vec<&str> = said
        .lines()
        .filter_map(|line| {
            let mut words = line.split([' ', '(']);
            let is_member = matches!(words.next(), Some("type" | "method" | "error"));
            words.next().filter(|_| is_member)
        })
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(all > 20 && names.len() == all, "{names:?}");
}
