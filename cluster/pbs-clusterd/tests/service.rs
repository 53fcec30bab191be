// SPDX-License-Identifier: GPL-2.0
//! The service: what was answered is on the disk, a change is answered before the plan is improved,
//! and nobody is asked for work that is not there.

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use common::{serve, site, wanted};
use pbs_cluster_api::{Alteration, Client, Failure, Filter, Object, Refusal, Submission};
use pbs_manager::ledger::{After, Outcome, State};

/// The description that the service returns is the file that people read.
#[test]
fn it_describes_itself_as_the_file_does() {
    let served = serve("describes", &site(1), &[]);
    let mut stream = UnixStream::connect(served.socket()).unwrap();
    let call = r#"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"org.sched-pbs.Cluster"}}"#;
    stream.write_all(format!("{call}\0").as_bytes()).unwrap();
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != 0 {
        answer.push(byte[0]);
    }
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let said = answer["parameters"]["description"].as_str().unwrap();
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../pbs-cluster-api/org.sched-pbs.Cluster.varlink");
    if std::env::var_os("PBS_WRITE_INTERFACE").is_some() {
        std::fs::write(file, format!("{}\n", said.trim_end())).unwrap();
    }
    let written = std::fs::read_to_string(file).unwrap();
    assert_eq!(
        said.trim_end(),
        written.trim_end(),
        "PBS_WRITE_INTERFACE=1 cargo test -p pbs-clusterd --test service writes it anew"
    );
}

/// Each operation that the command has is one of the service.
#[test]
fn a_request_is_planned_changed_and_ended() {
    let served = serve("life", &site(2), &[]);
    let mut client = served.client();
    let first = client.submit(&wanted("2:ncpus=16", 600)).unwrap().remove(0);
    let second = client.submit(&wanted("2:ncpus=16", 600)).unwrap().remove(0);
    assert_eq!(second.start_s, first.end_s);
    let reasons = client.why(second.id).unwrap();
    assert!(reasons.causes.iter().any(|cause| cause.what == "ncpus in use"), "{reasons:?}");
    let change = Alteration { duration_s: Some(60), ..Alteration::default() };
    let altered = client.alter(second.id, &change).unwrap().remove(0);
    assert_eq!(altered.duration_s, 60);
    let shown = client.show(first.id).unwrap();
    assert_eq!(shown.events[0].0.what, "submitted");
    let status = client.status().unwrap();
    assert_eq!((status.requests, status.nodes, status.time_zone.as_str()), (2, 2, "UTC"));
    let declined = client.submit(&wanted("3:ncpus=16", 60));
    assert!(
        matches!(&declined, Err(Failure::Refused(Refusal::Declined { why })) if why.contains("48"))
    );
    let provisional = Submission {
        when: Some(format!("provisional {}", status.clock_s + 3600)),
        ..wanted("ncpus=1", 60)
    };
    let id = client.submit(&provisional).unwrap()[0].id;
    assert_eq!(client.confirm(&[id]).unwrap()[0].when, "best-effort");
    let reserved = client.reserve(&wanted("ncpus=1", 60)).unwrap().remove(0);
    assert!(reserved.is_reservation);
    let not_running = client.resize(second.id, "rset=1:ncpus=16");
    assert!(matches!(not_running, Err(Failure::Refused(Refusal::NotInState { .. }))));
    let ended = client.kill(&[first.id, second.id]).unwrap();
    assert!(ended.iter().all(|row| row.state == State::Ended));
}

/// Requests of many clients that were answered are in the ledger when the service is killed at any
/// time, and the next service has them.
#[test]
fn what_was_answered_is_on_the_disk() {
    const CLIENTS: usize = 8;
    let mut served = serve("durable", &site(50), &[]);
    let (answered, answers) = channel();
    for _ in 0..CLIENTS {
        let (mut client, answered) = (served.client(), answered.clone());
        thread::spawn(move || {
            while let Ok(rows) = client.submit(&wanted("ncpus=1", 600)) {
                if answered.send(rows[0].id).is_err() {
                    return;
                }
            }
        });
    }
    drop(answered);
    let mut ids: BTreeSet<u64> = answers.iter().take(300).collect();
    served.kill();
    ids.extend(answers.iter());
    let stored: BTreeSet<u64> = served.ledger().rows().unwrap().iter().map(|row| row.id).collect();
    assert!(ids.is_subset(&stored), "{:?}", ids.difference(&stored));
    served.restart();
    let (_, rows) = served.client().list(&Filter::default()).unwrap();
    let known: BTreeSet<u64> = rows.iter().map(|row| row.id).collect();
    assert_eq!(known, stored);
}

/// The end of a large request is answered before all others have moved up; other calls are answered
/// meanwhile, and at last all have moved. The test may be slow to look, but not each time.
#[test]
fn the_plan_is_improved_between_calls() {
    const REQUESTS: u64 = 900;
    const LARGE: usize = 12;
    let served = serve("large", &site(20), &[]);
    let mut client = served.client();
    let large: Vec<_> =
        (0..LARGE).map(|_| client.submit(&wanted("20:ncpus=16", 36_000)).unwrap()[0].id).collect();
    let array = Submission { array: Some((0..REQUESTS).collect()), ..wanted("ncpus=16", 7200) };
    let behind = client.submit(&array).unwrap();
    for id in large.into_iter().rev() {
        // A service that was started looks at all requests once.
        while client.status().unwrap().is_settling {
            thread::sleep(Duration::from_millis(1));
        }
        client.kill(&[id]).unwrap();
    }
    while client.status().unwrap().is_settling {
        thread::sleep(Duration::from_millis(1));
    }
    let (_, rows) = client.list(&Filter::default()).unwrap();
    let before: std::collections::BTreeMap<u64, Option<u64>> =
        behind.iter().map(|row| (row.id, row.start_s)).collect();
    let moved = rows.iter().filter(|row| before.get(&row.id).is_some_and(|it| row.start_s < *it));
    assert_eq!(moved.count() as u64, REQUESTS);
    // As in memory, although nobody has asked for anything.
    let stored = served.ledger().open_rows().unwrap();
    let starts = |rows: &[pbs_manager::ledger::Row]| -> Vec<_> {
        rows.iter().map(|row| (row.id, row.start_s)).collect()
    };
    assert_eq!(starts(&stored), starts(&rows));
}

/// Events arrive at those who watch, of all requests or of one, once they are written.
#[test]
fn who_watches_hears_of_events() {
    let served = serve("watch", &site(1), &[]);
    let mut client = served.client();
    client.submit(&wanted("ncpus=16", 600)).unwrap();
    let second = client.submit(&wanted("ncpus=16", 600)).unwrap()[0].id;
    let socket = served.socket();
    let (ready, is_ready) = channel();
    let watching = thread::spawn(move || {
        let client = Client::connect(&socket).unwrap();
        ready.send(()).unwrap();
        let mut heard = Vec::new();
        client
            .watch(Some(second), |notice| {
                let Object(event) = notice.event;
                // Notices follow the answers: that of the submission may come after this call.
                if event.what != "submitted" {
                    heard.push((event.request, event.what));
                }
                heard.len() < 2
            })
            .unwrap();
        heard
    });
    is_ready.recv().unwrap();
    // Until the other end watches, nothing of it is told.
    let mut by = 0;
    while !watching.is_finished() {
        by += 1;
        client.submit(&wanted("ncpus=1", 60)).unwrap();
        let change = Alteration { duration_s: Some(600 + by), ..Alteration::default() };
        client.alter(second, &change).unwrap();
        thread::sleep(Duration::from_millis(10));
        assert!(by < 5000, "no notice arrives");
    }
    let altered = (Some(second), "altered".to_string());
    assert_eq!(watching.join().unwrap(), [altered.clone(), altered]);
}

/// The end of a request that has ended is reported at once.
#[test]
fn the_end_of_an_ended_request_is_reported_at_once() {
    let served = serve("ended", &site(1), &[]);
    let mut client = served.client();
    let id = client.submit(&wanted("ncpus=16", 600)).unwrap()[0].id;
    client.kill(&[id]).unwrap();
    let mut heard = Vec::new();
    let all = |notice: pbs_cluster_api::Notice| {
        let Object(event) = notice.event;
        heard.push((event.request, event.what));
        true
    };
    served.client().watch(Some(id), all).unwrap();
    assert_eq!(heard, [(Some(id), "ended".to_string())]);
}

/// A call that ends thousands of requests of one user does not end the watch of another request.
#[test]
fn the_watch_of_one_request_outlasts_a_flood_of_events() {
    let served = serve("flood", &site(1), &[]);
    let mut client = served.client();
    let first = client.submit(&wanted("ncpus=16", 600)).unwrap()[0].id;
    let watched = client.submit(&wanted("ncpus=16", 600)).unwrap()[0].id;
    let after = vec![Object(After { request: first, outcome: Outcome::Ok })];
    for _ in 0..5 {
        let array = Some((0..1000).collect());
        let flood = Submission { array, after: Some(after.clone()), ..wanted("ncpus=1", 60) };
        client.submit(&flood).unwrap();
    }
    let socket = served.socket();
    let (heard, hears) = channel();
    let watching = thread::spawn(move || {
        let client = Client::connect(&socket).unwrap();
        client.watch(Some(watched), |notice| {
            let Object(event) = notice.event;
            let is_end = event.what == "ended";
            heard.send(event.what).unwrap();
            !is_end
        })
    });
    // Until the other end watches, nothing of it is told.
    let mut by = 0;
    while hears.try_recv().is_err() {
        by += 1;
        let change = Alteration { duration_s: Some(600 + by), ..Alteration::default() };
        client.alter(watched, &change).unwrap();
        thread::sleep(Duration::from_millis(10));
        assert!(by < 5000, "no notice arrives");
    }
    client.kill(&[first]).unwrap();
    client.kill(&[watched]).unwrap();
    watching.join().unwrap().unwrap();
    assert_eq!(hears.iter().last().as_deref(), Some("ended"));
}

/// Defective parts of nodes are known to the next service, until the node is repaired.
#[test]
fn parts_of_a_node_are_out_of_use() {
    let mut served = serve("defect", &site(1), &[]);
    let changed = served.client().set_defect(&["n001"], "ncpus=4", "fan").unwrap();
    let parts: Vec<_> = changed.defects.iter().map(|defect| &*defect.0.parts).collect();
    assert_eq!((changed.nodes_out.len(), parts), (0, vec!["ncpus=4"]));
    served.restart();
    let mut client = served.client();
    assert_eq!(client.status().unwrap().defects.len(), 1);
    assert_eq!(client.submit(&wanted("ncpus=16", 60)).unwrap()[0].start_s, None);
    assert!(client.set_defect(&["n001"], "none", "").unwrap().defects.is_empty());
    assert!(client.show(1).unwrap().request.0.start_s.is_some());
}

/// Calls that wait when the service is stopped are answered.
#[test]
fn calls_that_wait_when_it_stops_are_answered() {
    let served = serve("stops", &site(1), &[]);
    let signal = |name: &str| {
        let pid = served.child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    let call = r#"{"method":"org.sched-pbs.Cluster.Status"}"#;
    let waiting: Vec<UnixStream> = (0..20)
        .map(|_| {
            let mut stream = UnixStream::connect(served.socket()).unwrap();
            stream.write_all(format!("{call}\0").as_bytes()).unwrap();
            stream
        })
        .collect();
    signal("-TERM");
    signal("-CONT");
    for mut stream in waiting {
        let mut answer = Vec::new();
        // The other end closes it.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let is_answer = answer.contains("clock_s") || answer.contains("the service is stopping");
        assert!(is_answer, "{answer:?}");
    }
}

/// A call that watches when the service is stopped receives a last answer.
#[test]
fn calls_that_watch_when_it_stops_are_answered() {
    let served = serve("stops-watching", &site(1), &[]);
    let mut stream = UnixStream::connect(served.socket()).unwrap();
    let call = r#"{"method":"org.sched-pbs.Cluster.Watch","more":true,"parameters":{}}"#;
    stream.write_all(format!("{call}\0").as_bytes()).unwrap();
    // The first notice shows that the call is waiting.
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut client = served.client();
    let mut notice = [0; 4096];
    for attempt in 0.. {
        assert!(attempt < 1200, "no notice arrived");
        client.submit(&wanted("ncpus=1", 600)).unwrap();
        if stream.read(&mut notice).is_ok_and(|bytes| bytes > 0) {
            break;
        }
    }
    let pid = served.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    stream.set_read_timeout(None).unwrap();
    let mut answers = Vec::new();
    // The other end closes it.
    let _ = stream.read_to_end(&mut answers);
    let answers = String::from_utf8(answers).unwrap();
    assert!(answers.contains("the service is stopping"), "{answers:?}");
}

/// A service without work sleeps: none of its threads runs.
#[test]
fn idle_costs_nothing() {
    let served = serve("idle", &site(1), &[]);
    let mut client = served.client();
    client.submit(&wanted("ncpus=1", 86_400)).unwrap();
    while client.status().unwrap().is_settling {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(200));
    let before = switches(served.child.id());
    thread::sleep(Duration::from_secs(2));
    let switches = switches(served.child.id()) - before;
    // A service that polls is awake a hundred times.
    assert!(switches <= 20, "{switches} times awake in two seconds");
}

/// Number of times that threads of a process have begun to wait.
fn switches(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |thread: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    threads.map(of).sum()
}
