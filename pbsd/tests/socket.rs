// SPDX-License-Identifier: GPL-2.0
//! The socket, with a node that only answers: what it says of itself, and that nobody who
//! misbehaves keeps others waiting.

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::{ask, connect, read, serve, STATUS};
use pbs_node_api::{Client, Failure, Notice, Refusal};
use pbsd::session::Told;

/// The description that the service returns is the file that people read.
#[test]
fn it_describes_itself_as_the_file_does() {
    let served = serve("describes");
    let mut stream = connect(&served.path);
    let call = r#"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"org.sched-pbs.Node"}}"#;
    let answer: serde_json::Value = serde_json::from_str(&ask(&mut stream, call)).unwrap();
    let said = answer["parameters"]["description"].as_str().unwrap();
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../node/pbs-node-api/org.sched-pbs.Node.varlink");
    if std::env::var_os("PBS_WRITE_INTERFACE").is_some() {
        std::fs::write(file, format!("{}\n", said.trim_end())).unwrap();
    }
    let written = std::fs::read_to_string(file).unwrap();
    assert_eq!(
        said.trim_end(),
        written.trim_end(),
        "PBS_WRITE_INTERFACE=1 cargo test -p pbsd writes it anew"
    );
    let info = ask(&mut stream, r#"{"method":"org.varlink.service.GetInfo"}"#);
    assert!(info.contains("org.sched-pbs.Node") && info.contains("pbsd"), "{info}");
}

/// Refusals and notices come over the socket as they are.
#[test]
fn clients_hear_what_was_said() {
    let served = serve("hears");
    let mut client = Client::connect(&served.path).unwrap();
    assert_eq!(client.status().unwrap().state, "running");
    let refused = client.plan().unwrap_err();
    assert!(
        matches!(&refused, Failure::Refused(Refusal::NotPermitted { what }) if what == "the plan"),
        "{refused:?}"
    );
    // A node that does not answer is no reason to wait for ever.
    let refused = client.drain(true).unwrap_err();
    assert!(matches!(refused, Failure::Refused(Refusal::Failed { .. })), "{refused:?}");

    let notices = served.notices.clone();
    let own = served.path.metadata().unwrap().uid();
    let speaks = thread::spawn(move || {
        while notices.receiver_count() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        for (job, uid, brief) in
            [(3, Some(own), None), (4, Some(own + 1), None), (5, Some(own + 1), Some("brief"))]
        {
            let notice = Notice {
                job: Some(job),
                kind: "over".into(),
                text: "whole".into(),
                ..Notice::default()
            };
            notices.send(Told { notice, uid, brief: brief.map(Into::into) }).unwrap();
        }
    });
    let mut heard = Vec::new();
    // Root is an operator, who gets all of it.
    let all = if own == 0 { 3 } else { 2 };
    client
        .watch(None, |notice| {
            heard.push((notice.job, notice.text));
            heard.len() < all
        })
        .unwrap();
    speaks.join().unwrap();
    let heard: Vec<_> = heard.iter().map(|(job, text)| (job.unwrap(), &**text)).collect();
    if own == 0 {
        assert_eq!(heard, [(3, "whole"), (4, "whole"), (5, "whole")]);
    } else {
        assert_eq!(heard, [(3, "whole"), (5, "brief")]);
    }
}

/// A client that watches and does not read is notified that it has missed something, and costs
/// others nothing.
#[test]
fn who_lags_is_told() {
    let served = serve("lags");
    let mut stream = connect(&served.path);
    let call = r#"{"method":"org.sched-pbs.Node.Watch","more":true}"#;
    stream.write_all(call.as_bytes()).unwrap();
    stream.write_all(&[0]).unwrap();
    while served.notices.receiver_count() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    for job in 0..20_000 {
        let notice = Notice { job: Some(job), text: "x".repeat(1000), ..Notice::default() };
        let brief = Some(notice.text.clone());
        let _ = served.notices.send(Told { notice, uid: None, brief });
    }
    let mut last = String::new();
    for _ in 0..20_000 {
        let next = read(&mut stream);
        if next.is_empty() {
            break;
        }
        last = next;
        if last.contains("Lagged") {
            break;
        }
    }
    assert!(last.contains("org.sched-pbs.Node.Lagged"), "{last}");
}

/// Clients send garbage, without end, by halves, or never read. A client that behaves is answered
/// all the while, and the service does not grow.
#[test]
fn nobody_keeps_others_waiting() {
    let served = serve("flood");
    let mut bad: Vec<UnixStream> = Vec::new();
    // Half-sent.
    for _ in 0..20 {
        let mut half = connect(&served.path);
        half.write_all(&STATUS.as_bytes()[..10]).unwrap();
        bad.push(half);
    }
    // Never read.
    for _ in 0..5 {
        let mut deaf = connect(&served.path);
        for _ in 0..3 {
            let list = r#"{"method":"org.sched-pbs.Node.List","parameters":{"filter":{}}}"#;
            deaf.write_all(list.as_bytes()).unwrap();
            deaf.write_all(&[0]).unwrap();
        }
        bad.push(deaf);
    }
    // Garbage, and what no parser likes: closed, or told off.
    let deep = format!("{{\"method\":{}", "[".repeat(100_000));
    let call = |parameters: &str| {
        format!(r#"{{"method":"org.sched-pbs.Node.Show","parameters":{parameters}}}"#)
    };
    for text in [
        "\u{1}\u{2}\u{3}".to_string(),
        deep,
        "[]".into(),
        "{}".into(),
        call("5"),
        call(r#"{"job":{"number":-1}}"#),
        call(r#"{"job":{"number":99999999999999999999999999}}"#),
        call(r#"{"job":{"number":1e400}}"#),
        r#"{"method":"org.sched-pbs.Node.Nothing"}"#.into(),
        r#"{"method":"org.sched-pbs.Node.Status","upgrade":true}"#.into(),
        r#"{"method":"org.sched-pbs.Node.Submit","parameters":{"jobs":"all"}}"#.into(),
    ] {
        let mut stream = connect(&served.path);
        let answer = ask(&mut stream, &text);
        let is_told = answer.is_empty() || answer.contains("\"error\"");
        assert!(is_told, "{}: {answer}", &text[..text.len().min(80)]);
    }
    let mut good = Client::connect(&served.path).unwrap();
    for _ in 0..100 {
        good.status().unwrap();
    }
    // Several at once are answered in turn.
    let mut eager = connect(&served.path);
    eager.write_all(format!("{STATUS}\0{STATUS}\0{STATUS}\0").as_bytes()).unwrap();
    for _ in 0..3 {
        assert!(read(&mut eager).contains("running"));
    }
    // What came by halves is hung up on.
    let since = Instant::now();
    let mut byte = [0];
    let heard = bad[0].read(&mut byte);
    assert!(matches!(heard, Ok(0) | Err(_)), "{heard:?}");
    assert!(since.elapsed() < Duration::from_secs(60));
    good.status().unwrap();
}

/// Another user has so many connections and no more; root gets in all the same.
#[test]
fn nobody_takes_all_connections() {
    // SAFETY: it only answers.
    #[allow(unsafe_code)]
    if unsafe { libc::geteuid() } != 0 {
        pbs_text::skipped("it needs root, to connect as other users");
        return;
    }
    let served = serve("many");
    // SAFETY: the child only makes calls, and ends without what this process does at its
    // end.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: gives up root in this process alone, which has one thread.
        #[allow(unsafe_code)]
        let became = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) } == 0;
        let streams: Vec<_> =
            (0..200).filter_map(|_| UnixStream::connect(&served.path).ok()).collect();
        let answered = streams.iter().filter(|stream| {
            let mut stream: &UnixStream = stream;
            let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
            let sent = stream.write_all(format!("{STATUS}\0").as_bytes());
            let mut byte = [0];
            sent.is_ok() && stream.read(&mut byte).unwrap_or(0) == 1
        });
        let count = answered.count();
        // SAFETY: ends the child at once.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(!became || count != 64))
        };
    }
    let mut status = 0;
    // SAFETY: waits for that child; `status` is valid for writing.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(child, &mut status, 0)
    };
    assert_eq!(status, 0, "another user had other than 64 connections");
    Client::connect(&served.path).unwrap().status().unwrap();
}

/// Some who send calls without end, and want no answers, keep nobody waiting: little is
/// taken of theirs before another is answered.
#[test]
fn who_never_stops_keeps_nobody_waiting() {
    static SENT_BYTES: AtomicUsize = AtomicUsize::new(0);
    let served = serve("endless");
    let call = r#"{"method":"org.varlink.service.Nothing","oneway":true}"#;
    let calls = format!("{call}\0").repeat(4000);
    for _ in 0..4 {
        let mut stream = connect(&served.path);
        let calls = calls.clone();
        thread::spawn(move || {
            while stream.write_all(calls.as_bytes()).is_ok() {
                SENT_BYTES.fetch_add(calls.len(), SeqCst);
            }
        });
    }
    // All are under way.
    while SENT_BYTES.load(SeqCst) < 4 * calls.len() {
        thread::sleep(Duration::from_millis(1));
    }
    let mut good = connect(&served.path);
    let before = SENT_BYTES.load(SeqCst);
    for answer in 1..=50 {
        assert!(ask(&mut good, STATUS).contains("running"));
        let taken = SENT_BYTES.load(SeqCst) - before;
        assert!(taken < 16 << 20, "{taken} bytes of others before answer {answer}");
    }
}

/// A client that watched and has gone takes no connection any more.
#[test]
fn who_has_gone_does_not_count() {
    let served = serve("gone");
    let watch = r#"{"method":"org.sched-pbs.Node.Watch","more":true}"#;
    for round in 1..=3 {
        let mut streams: Vec<_> = (0..40).map(|_| connect(&served.path)).collect();
        for stream in &mut streams {
            stream.write_all(format!("{watch}\0").as_bytes()).unwrap();
        }
        while served.notices.receiver_count() < 40 {
            thread::sleep(Duration::from_millis(1));
        }
        drop(streams);
        for _ in 0..5_000 {
            if served.notices.receiver_count() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(served.notices.receiver_count(), 0, "round {round}");
    }
}
