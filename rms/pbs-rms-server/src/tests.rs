// SPDX-License-Identifier: GPL-2.0
//! Attacks of users on each other, or on the service: here a test can be any user.

use std::fs;
use std::os::unix::fs::{chown, symlink, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use pbs_rms::Policy;
use pbs_rms_api::{Asked, Change, Refusal, Session};
use pbs_socket::Caller;

use crate::hub::NextNotice;
use crate::{Hub, Managed, Settings};

fn settings() -> Settings {
    Settings {
        clusters: vec![Managed::new("lab", 10)],
        policy: Policy { interval_ns: 0, ..Policy::default() },
        absence_grace_ns: 60_000_000_000,
        most_sessions: 8,
        longest_ns: u64::MAX,
    }
}

fn hub() -> Hub {
    Hub::open(settings(), None).expect("it needs nothing")
}

fn user(uid: u32) -> Caller {
    Caller { uid, gid: uid, groups: Vec::new(), is_operator: false, pid: 0, account: uid }
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("rms-hub-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("a place for files");
    directory
}

fn kept(journal: &Path) -> Hub {
    Hub::open(settings(), Some(journal)).expect("what was kept can be used")
}

fn connect(hub: &mut Hub, caller: &Caller) -> u64 {
    hub.connect(caller, "it").expect("a session").session
}

fn asked(kind: &str, nodes: u64, duration_ns: Option<u64>) -> Asked {
    Asked { kind: kind.into(), nodes, duration_ns, ..Asked::default() }
}

fn why<T>(answer: Result<T, Refusal>) -> String {
    match answer {
        Err(Refusal::Refused { why }) => why,
        Err(other) => format!("{other:?}"),
        Ok(_) => "it was not refused".into(),
    }
}

fn of(hub: &Hub, session: u64) -> Session {
    let all = hub.sessions();
    let found = all.into_iter().find(|it| it.session == session);
    found.expect("it is there")
}

#[test]
fn more_sessions_are_no_more_requests() {
    let mut hub = hub();
    let (ann, bob) = (user(1000), user(1001));
    let waits = asked("non-preemptible", 1, None);
    let mut taken = 0;
    for _ in 0..8 {
        let session = connect(&mut hub, &ann);
        while hub.request(&ann, session, waits.clone()).is_ok() {
            taken += 1;
        }
    }
    assert_eq!(taken, 1024);
    let many = hub.connect(&ann, "it");
    assert_eq!(many, Err(Refusal::TooManySessions { most: 8 }));
    let session = connect(&mut hub, &bob);
    hub.request(&bob, session, waits).expect("it is another's");
    hub.work().expect("nothing is kept");
    // What has started has not become more by an update, unless that is announced.
    let first = of(&hub, 1);
    let mut update = Change { request: first.requests[0].request, nodes: 1, ..Change::default() };
    update.request = hub.update(&ann, 1, update.clone()).expect("as many").request;
    hub.done(&ann, 1, first.requests[255].request, &[]).expect("it waits");
    hub.request(&ann, 1, asked("preemptible", 1, None)).expect("there was room for one");
    update.announce_ns = Some(5);
    assert!(why(hub.update(&ann, 2, update)).contains("1024 requests"));
}

#[test]
fn who_changes_much_waits_and_nobody_else_does() {
    let mut hub = hub();
    let (ann, bob) = (user(1000), user(1001));
    let (first, second) = (connect(&mut hub, &ann), connect(&mut hub, &bob));
    let waits = asked("non-preemptible", 1, None);
    let three = asked("non-preemptible", 3, None);
    let request = hub.request(&ann, first, three).expect("room");
    hub.spend(1000, crate::budget::BURST_BYTES + (60 << 20));
    assert!(why(hub.request(&ann, first, waits.clone())).contains("too many, or too large"));
    assert!(why(hub.connect(&ann, "it")).contains("too many, or too large"));
    let update = |nodes| Change { request, nodes, ..Change::default() };
    assert!(why(hub.update(&ann, first, update(4))).contains("too large; try again in 1"));
    // What waits gives nothing back.
    assert!(why(hub.update(&ann, first, update(2))).contains("too many, or too large"));
    hub.request(&bob, second, waits.clone()).expect("it is another's");
    let root = Caller { is_operator: true, ..ann.clone() };
    hub.request(&root, first, waits).expect("an operator's");
    // Nodes can be given back.
    hub.done(&ann, first, request, &[]).expect("its own");
    hub.disconnect(&ann, first).expect("its own");
}

#[test]
fn changes_are_counted_for_the_user_who_makes_them() {
    let directory = directory("budget");
    let mut hub = kept(&directory.join("kept"));
    let ann = user(1000);
    let session = connect(&mut hub, &ann);
    hub.request(&ann, session, asked("non-preemptible", 10, None)).expect("room");
    assert!(hub.spent_bytes(1000) > 0);
    assert_eq!(hub.spent_bytes(1001), 0);
    fs::remove_dir_all(&directory).expect("its own");
}

/// Changes of a pass count as well: an announced update makes it change the session.
#[test]
fn changes_of_a_pass_are_counted_for_the_users_of_the_sessions() {
    let directory = directory("pass-budget");
    let mut hub = kept(&directory.join("kept"));
    let (ann, bob) = (user(1000), user(1001));
    let (first, second) = (connect(&mut hub, &ann), connect(&mut hub, &bob));
    hub.request(&ann, first, asked("non-preemptible", 5, None)).expect("room");
    hub.request(&bob, second, asked("non-preemptible", 5, None)).expect("room");
    let before = [1000, 1001].map(|uid| hub.spent_bytes(uid));
    hub.work().expect("it can be kept");
    // Either session was stored once more, with its nodes.
    let after = [1000, 1001].map(|uid| hub.spent_bytes(uid));
    assert!(after[0] > before[0] && after[1] > before[1], "{before:?} {after:?}");
    fs::remove_dir_all(&directory).expect("its own");
}

#[test]
fn wasted_time_is_stored_before_it_is_answered() {
    let journal = directory("waste").join("kept");
    let mut hub = kept(&journal);
    let ann = user(1000);
    let session = connect(&mut hub, &ann);
    hub.waste(&ann, session, 7_000_000_000).expect("its own");
    drop(hub);
    let hub = kept(&journal);
    assert_eq!(hub.accounts(&ann)[0].wasted_node_s, 7);
}

/// All limits are those of an account, which may have thousands of subordinate users.
#[test]
fn a_subordinate_user_begins_no_session() {
    let mut hub = hub();
    let sub = Caller { account: 1000, ..user(100_001) };
    let refused = why(hub.connect(&sub, "it"));
    let owner = pbs_socket::user_name(1000);
    assert!(refused.contains(&format!("user 100001 is subordinate to {owner}")), "{refused}");
    assert!(refused.ends_with(&format!("connect as {owner}")), "{refused}");
    assert_eq!(hub.session_count(), 0);
    connect(&mut hub, &user(1000));
}

#[test]
fn a_pre_allocation_hides_no_more_nodes_than_it_has() {
    let limits = pbs_rms::Limits { nodes: 6, ..pbs_rms::Limits::default() };
    let policy = Policy { limits, ..settings().policy };
    let mut hub = Hub::open(Settings { policy, ..settings() }, None).expect("it needs nothing");
    let ann = user(1000);
    let (first, second) = (connect(&mut hub, &ann), connect(&mut hub, &ann));
    let hour = Some(3_600_000_000_000);
    let outer = hub.request(&ann, first, asked("pre-allocation", 1, hour)).expect("room");
    let inside = Asked { coalloc: Some(outer), ..asked("non-preemptible", 1, hour) };
    let inside = hub.request(&ann, first, inside).expect("room");
    hub.request(&ann, second, asked("non-preemptible", 3, hour)).expect("four in all");
    let large = Asked { coalloc: Some(outer), ..asked("non-preemptible", 6, hour) };
    assert!(why(hub.request(&ann, first, large)).contains("in all sessions"));
    let update = |nodes| Change { request: inside, nodes, ..Change::default() };
    assert!(why(hub.update(&ann, first, update(6))).contains("in all sessions"));
    let after = Asked { next: Some(inside), ..asked("non-preemptible", 4, hour) };
    assert!(why(hub.request(&ann, first, after)).contains("in all sessions"));
    hub.update(&ann, first, update(3)).expect("six in all");
}

#[test]
fn more_sessions_are_no_more_nodes() {
    let limits = pbs_rms::Limits { nodes: 6, ..pbs_rms::Limits::default() };
    let policy = Policy { limits, ..settings().policy };
    let mut hub = Hub::open(Settings { policy, ..settings() }, None).expect("it needs nothing");
    let (ann, bob) = (user(1000), user(1001));
    let (first, second) = (connect(&mut hub, &ann), connect(&mut hub, &ann));
    let hour = Some(3_600_000_000_000);
    let ask = |kind: &str, nodes| asked(kind, nodes, hour);
    let outer = hub.request(&ann, first, ask("pre-allocation", 4)).expect("room");
    // What is inside a pre-allocation, and what follows it, is no more than that.
    let inside = Asked { coalloc: Some(outer), ..ask("non-preemptible", 4) };
    let inside = hub.request(&ann, first, inside).expect("room");
    let next = Asked { next: Some(inside), ..ask("non-preemptible", 3) };
    hub.request(&ann, first, next).expect("room");
    let refused = why(hub.request(&ann, second, ask("non-preemptible", 3)));
    assert!(refused.contains("at most 6 nodes of a cluster, in all sessions"), "{refused}");
    let small = hub.request(&ann, second, ask("non-preemptible", 2)).expect("six in all");
    hub.work().expect("nothing is kept");
    let update = Change { request: small, nodes: 3, duration_ns: hour, ..Change::default() };
    assert!(why(hub.update(&ann, second, update.clone())).contains("in all sessions"));
    hub.update(&ann, second, Change { nodes: 2, ..update }).expect("no more than before");
    assert!(why(hub.request(&ann, first, ask("pre-allocation", 1))).contains("in all sessions"));
    // Preemptible nodes are divided otherwise, and others have their own.
    hub.request(&ann, second, ask("preemptible", 10)).expect("it is preemptible");
    let other = connect(&mut hub, &bob);
    hub.request(&bob, other, ask("non-preemptible", 6)).expect("it is another's");
    // A single session may ask for more, which comes one after the other.
    hub.request(&bob, other, ask("non-preemptible", 6)).expect("it waits");
    hub.disconnect(&ann, first).expect("its own");
    hub.request(&ann, second, ask("non-preemptible", 6)).expect("it is alone");
}

#[test]
fn nodes_are_not_kept_longer_than_an_operator_wants() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let settings = Settings { longest_ns: 8 * HOUR_NS, ..settings() };
    let mut hub = Hub::open(settings, None).expect("it needs nothing");
    let ann = user(1000);
    let session = connect(&mut hub, &ann);
    let of_hours = |hours: u64| asked("non-preemptible", 2, Some(hours * HOUR_NS));
    for too_long in
        [of_hours(9), asked("non-preemptible", 2, None), asked("pre-allocation", 2, None)]
    {
        let why = why(hub.request(&ann, session, too_long));
        assert!(why.contains("at most 8 h"), "{why}");
    }
    let first = hub.request(&ann, session, of_hours(5)).expect("it is short");
    // One after the other, with the same nodes.
    let next = |hours| Asked { next: Some(first), ..of_hours(hours) };
    assert!(why(hub.request(&ann, session, next(4))).contains("at most 3 h"));
    let second = hub.request(&ann, session, next(3)).expect("eight hours in all");
    let third = Asked { next: Some(second), ..of_hours(1) };
    assert!(why(hub.request(&ann, session, third)).contains("release the nodes"));
    hub.work().expect("nothing is kept");
    // An application that becomes smaller has used nothing of the time yet.
    let request = hub.request(&ann, session, of_hours(8)).expect("it is short enough");
    let mut update = Change { request, nodes: 1, ..Change::default() };
    assert!(why(hub.update(&ann, session, update.clone())).contains("at most"));
    update.duration_ns = Some(7 * HOUR_NS);
    hub.update(&ann, session, update).expect("it is shorter");
    // Nodes that are taken back when others need them may be asked for without an end.
    hub.request(&ann, session, asked("preemptible", 2, None)).expect("it is preemptible");
    let root = Caller { is_operator: true, ..user(0) };
    hub.request(&root, session, of_hours(100)).expect("an operator's");
}

#[test]
fn no_chain_keeps_nodes_longer_than_an_operator_wants() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let settings = || Settings { longest_ns: 8 * HOUR_NS, ..settings() };
    let journal = directory("longest").join("kept");
    let mut hub = Hub::open(settings(), Some(&journal)).expect("it needs nothing");
    let ann = user(1000);
    let session = connect(&mut hub, &ann);
    let ask = |ns| asked("non-preemptible", 2, Some(ns));
    let change = |request, hours: u64| Change {
        request,
        nodes: 2,
        duration_ns: Some(hours * HOUR_NS),
        ..Change::default()
    };
    // A chain of requests for next to no time, of which each waiting one is to last longer.
    let first = hub.request(&ann, session, ask(HOUR_NS)).expect("it is short");
    let second = Asked { next: Some(first), ..ask(1) };
    let second = hub.request(&ann, session, second).expect("it is short");
    let third = Asked { next: Some(second), ..ask(HOUR_NS) };
    let third = hub.request(&ann, session, third).expect("it is short");
    assert!(why(hub.update(&ann, session, change(second, 7))).contains("at most 6 h"));
    let made = hub.update(&ann, session, change(second, 5)).expect("seven hours in all");
    // It is the same request, and no other one has its nodes until then.
    assert_eq!((made.request, made.until), (second, None));
    assert!(why(hub.update(&ann, session, change(third, 3))).contains("at most 2 h"));
    hub.disconnect(&ann, session).expect("its own");

    // An announced update has a request that waits, and one that follows.
    let session = connect(&mut hub, &ann);
    let first = hub.request(&ann, session, ask(5 * HOUR_NS)).expect("it is short");
    hub.work().expect("it can be kept");
    let announced = Change { announce_ns: Some(4 * HOUR_NS), ..change(first, 3) };
    let made = hub.update(&ann, session, announced).expect("seven hours in all");
    assert!(made.until.is_some());
    let longer = |hub: &mut Hub| why(hub.update(&ann, session, change(made.request, 5)));
    assert!(longer(&mut hub).contains("nodes may be kept for at most 8 h"));
    // And after a crash.
    drop(hub);
    let mut hub = Hub::open(settings(), Some(&journal)).expect("what was kept can be used");
    assert!(longer(&mut hub).contains("nodes may be kept for at most 8 h"));
    // Updates one after the other: the manager knows since when it has the nodes.
    let third = ask(8 * HOUR_NS);
    let third = hub.request(&ann, session, third).expect("it is short");
    hub.work().expect("it can be kept");
    sleep(Duration::from_millis(2));
    let third = hub.update(&ann, session, change(third, 7)).expect("it is shorter").request;
    hub.work().expect("it can be kept");
    assert!(why(hub.update(&ann, session, change(third, 8))).contains("at most"));
    drop(hub);
    let mut hub = Hub::open(settings(), Some(&journal)).expect("what was kept can be used");
    assert!(why(hub.update(&ann, session, change(third, 8))).contains("at most"));
}

#[test]
fn nobody_s_account_is_forgotten_because_of_another_s() {
    let mut hub = hub();
    let (ann, bob) = (user(1000), user(1001));
    let lost = |hub: &mut Hub, caller: &Caller| {
        let session = connect(hub, caller);
        hub.waste(caller, session, 1_000_000_000).expect("its own");
        hub.disconnect(caller, session).expect("its own");
    };
    lost(&mut hub, &bob);
    for _ in 0..10_100 {
        lost(&mut hub, &ann);
    }
    for _ in 0..10 {
        // One that has had nothing takes no place.
        let session = connect(&mut hub, &ann);
        hub.disconnect(&ann, session).expect("its own");
    }
    assert_eq!(hub.accounts(&bob).len(), 1);
    let own = hub.accounts(&ann);
    assert!(own.len() <= 200 && own.iter().all(|account| account.uid == 1000));
    let sum: u64 = own.iter().map(|account| account.wasted_node_s).sum();
    assert_eq!(sum, 10_100);
    let root = Caller { is_operator: true, ..user(0) };
    assert_eq!(hub.accounts(&root).len(), own.len() + 1);
}

#[test]
fn names_move_nothing_in_a_table() {
    let mut hub = hub();
    let ann = user(1000);
    for name in
        ["", " ", "two\nlines", "\u{1b}[2J", "\u{202e}toor", "a\u{200b}", "\u{2028}", "\u{feff}a"]
    {
        let refused = hub.connect(&ann, name);
        assert!(why(refused).contains("printable"), "{name:?}");
    }
    hub.connect(&ann, "größer als 1 \"Netz\" \\ 網").expect("all can be read");
}

/// No integer is more than a client in any language can read.
fn check_integers(value: &serde_json::Value) {
    match value {
        serde_json::Value::Number(number) => assert!(number.is_i64(), "{number}"),
        serde_json::Value::Array(all) => all.iter().for_each(check_integers),
        serde_json::Value::Object(all) => all.values().for_each(check_integers),
        _ => {}
    }
}

#[test]
fn what_others_read_is_never_too_large_for_them() {
    let mut hub = hub();
    let (ann, bob) = (user(1000), user(1001));
    let session = connect(&mut hub, &ann);
    let other = connect(&mut hub, &bob);
    for duration_ns in [u64::MAX - 1, 1 << 63, (1 << 63) - 2, 1 << 62] {
        let mut asked = asked("non-preemptible", 1, Some(duration_ns));
        for nodes in 1..5 {
            asked.nodes = nodes % 2 + 1;
            asked.next = hub.request(&ann, session, asked.clone()).ok();
        }
        hub.work().expect("nothing is kept");
    }
    hub.waste(&ann, session, u64::MAX).expect("its own");
    let views = hub.views(&bob, other).expect("its own");
    for view in &views {
        let last = view.non_preemptible.steps.last();
        assert_eq!(last.map(|step| step.duration_ns), Some(None));
    }
    let all = (hub.sessions(), views, hub.accounts(&ann));
    check_integers(&serde_json::to_value(all).expect("plain values"));
}

#[test]
fn a_crash_at_any_byte_leaves_what_can_be_used() {
    let directory = directory("bytes");
    let journal = directory.join("kept");
    let mut hub = kept(&journal);
    let (ann, bob) = (user(1000), user(1001));
    // Ann is the first, and waits for Bob's nodes: what he loses and she gets is kept at once.
    let first = hub.connect(&ann, &"é網".repeat(40)).expect("a name").session;
    let second = connect(&mut hub, &bob);
    let short = asked("non-preemptible", 10, Some(20_000_000));
    hub.request(&bob, second, short).expect("room");
    hub.work().expect("it can be kept");
    hub.request(&ann, first, asked("non-preemptible", 10, None)).expect("room, later");
    hub.work().expect("it can be kept");
    while of(&hub, first).requests[0].held.is_empty() {
        sleep(Duration::from_millis(5));
        hub.work().expect("it can be kept");
    }
    hub.waste(&ann, first, u64::MAX).expect("its own");
    hub.waste(&ann, first, u64::MAX).expect("its own");
    let spare = asked("preemptible", 3, None);
    hub.request(&ann, first, spare).expect("room");
    let bytes = fs::read(&journal).expect("it is there");
    let lines = bytes.iter().enumerate().filter(|(_, &byte)| byte == b'\n');
    let ends: Vec<usize> = lines.map(|line| line.0).collect();
    let from = ends[ends.len() - 4];
    let copy = directory.join("copy");
    // Each is read and written anew, which takes a while.
    for cut in (from..=bytes.len()).step_by(13) {
        fs::write(&copy, &bytes[..cut]).expect("it can be");
        let hub = Hub::open(settings(), Some(&copy));
        let hub = hub.unwrap_or_else(|error| panic!("{cut} of {} bytes: {error}", bytes.len()));
        assert_eq!(hub.session_count(), 2);
    }
}

#[test]
fn what_is_kept_is_nobody_else_s_business() {
    let directory = directory("private");
    let journal = directory.join("kept");
    let precious = directory.join("precious");
    fs::write(&precious, "precious").expect("it can be");
    // Where a new one is written there may be a link.
    for beside in ["kept.new", "new"] {
        symlink(&precious, directory.join(beside)).expect("it can be");
    }
    fs::write(&journal, "").expect("it can be");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode();
    let mut hub = kept(&journal);
    connect(&mut hub, &user(1000));
    assert_eq!(mode(&journal) & 0o077, 0);
    assert_eq!(fs::read_to_string(&precious).expect("it is there"), "precious");
    drop(hub);
    // One that is a link remains one.
    let link = directory.join("link");
    symlink(&journal, &link).expect("it can be");
    assert_eq!(kept(&link).session_count(), 1);
    assert!(link.is_symlink() && !journal.is_symlink());

    assert!(Hub::open(settings(), Some(&directory)).is_err());
    let is_root = fs::metadata("/proc/self").expect("it is there").uid() == 0;
    if is_root {
        chown(&journal, Some(1000), None).expect("root may");
        let error = Hub::open(settings(), Some(&journal)).expect_err("it is another's");
        assert!(error.to_string().contains("belongs to user 1000"), "{error}");
    }
}

#[test]
fn what_can_t_be_kept_has_not_been_promised() {
    let journal = directory("full").join("kept");
    let mut hub = kept(&journal);
    let ann = user(1000);
    let session = connect(&mut hub, &ann);
    let before = fs::read(&journal).expect("it is there");
    hub.fail();
    let refused = hub.request(&ann, session, asked("preemptible", 1, None));
    assert!(why(refused).contains("can't be stored"));
    assert!(why(hub.connect(&ann, "it")).contains("can't be stored"));
    // What may have been cut off is the last that was written.
    assert_eq!(fs::read(&journal).expect("it is there"), before);
    assert!(hub.work().is_err());
}

#[test]
fn who_reads_slowly_is_not_remembered_everything() {
    const NODES: u64 = 200_000;
    let settings = Settings { clusters: vec![Managed::new("lab", NODES as u32)], ..settings() };
    let mut hub = Hub::open(settings, None).expect("it needs nothing");
    let ann = user(1000);
    let session = connect(&mut hub, &ann);
    let monitor = hub.monitor(&ann, session).expect("its own");
    let mut request = hub.request(&ann, session, asked("preemptible", NODES, None)).expect("room");
    for _ in 0..10 {
        // After a pass that took long it rests.
        while let Some(wait_ns @ 1..) = hub.wait_ns() {
            std::thread::sleep(std::time::Duration::from_nanos(wait_ns));
        }
        hub.work().expect("nothing is kept");
        let update = Change { request, nodes: NODES, ..Change::default() };
        request = hub.update(&ann, session, update).expect("as many").request;
    }
    assert!(matches!(hub.next(session, monitor), NextNotice::Lagged));
    hub.left(session, monitor);
    // Who monitors again is told how it is.
    let monitor = hub.monitor(&ann, session).expect("its own");
    hub.work().expect("nothing is kept");
    let told = std::iter::from_fn(|| match hub.next(session, monitor) {
        NextNotice::Notice(notice) => Some(notice),
        _ => None,
    });
    let nodes = told.filter_map(|notice| notice.nodes).last();
    assert_eq!(nodes.map(|nodes| nodes.len() as u64), Some(NODES));
}

#[test]
fn a_clock_that_was_set_back_makes_no_room() {
    let journal = directory("clock").join("kept");
    let mut hub = kept(&journal);
    let (ann, bob) = (user(1000), user(1001));
    let session = connect(&mut hub, &ann);
    hub.request(&ann, session, asked("non-preemptible", 10, None)).expect("room");
    hub.work().expect("it can be kept");
    let started = of(&hub, session).requests[0].started_unix_ns;
    let started_ns = started.expect("there was room");
    // As if it had started in an hour.
    let text = fs::read_to_string(&journal).expect("it is there");
    let later = (started_ns + 3_600_000_000_000).to_string();
    fs::write(&journal, text.replace(&started_ns.to_string(), &later)).expect("it can be");
    drop(hub);
    let mut hub = kept(&journal);
    let other = connect(&mut hub, &bob);
    hub.request(&bob, other, asked("non-preemptible", 10, Some(1_000_000))).expect("it may wait");
    hub.work().expect("it can be kept");
    assert_eq!(of(&hub, other).requests[0].started_unix_ns, None);
    // Nor does it make a session pay twice for the time up to which its account was complete.
    drop(hub);
    let journal = directory("accounted").join("kept");
    let mut hub = kept(&journal);
    connect(&mut hub, &ann);
    let text = fs::read_to_string(&journal).expect("it is there");
    let (before, after) = text.rsplit_once("\"accounted_ns\":").expect("it is kept");
    let end = after.find(|digit: char| !digit.is_ascii_digit()).expect("it ends");
    let later = after[..end].parse::<u64>().expect("a number") + 3_600_000_000_000;
    fs::write(&journal, format!("{before}\"accounted_ns\":{later}{}", &after[end..]))
        .expect("it can be");
    drop(hub);
    let mut hub = kept(&journal);
    let session = connect(&mut hub, &ann);
    let request = hub.request(&ann, session, asked("non-preemptible", 1, None)).expect("room");
    hub.work().expect("it can be kept");
    let held = of(&hub, session).requests.into_iter().find(|held| held.request == request);
    assert!(held.is_some_and(|held| held.started_unix_ns >= Some(later)));
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }

    /// A number, or something that is none.
    fn wild(&mut self, number: u64) -> u64 {
        let far = [0, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 32];
        match self.below(12) {
            0 => far[self.below(6) as usize],
            _ => number,
        }
    }

    /// Draws a duration, which often is shorter than the time of its message.
    fn duration_ns(&mut self) -> Option<u64> {
        let ns = [1, 1000, 100_000, 10_000_000][self.below(4) as usize];
        (self.below(3) > 0).then(|| self.wild(ns))
    }
}

/// Returns all state that must outlive a crash.
fn lasting(hub: &Hub) -> Vec<Session> {
    let mut all = hub.sessions();
    for session in &mut all {
        session.is_monitored = false;
        for request in &mut session.requests {
            request.scheduled_unix_ns = None;
        }
    }
    all
}

fn check_owners(hub: &Hub) {
    let all = hub.sessions();
    let requests = all.iter().flat_map(|session| &session.requests);
    let of = |request: &pbs_rms_api::Held| request.cluster;
    for cluster in 0..2 {
        let held = requests.clone().filter(|request| of(request) == cluster);
        let mut nodes: Vec<u32> = held.flat_map(|request| request.held.clone()).collect();
        let count = nodes.len();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), count, "a node has two owners");
    }
}

fn any_message(hub: &mut Hub, dice: &mut Dice) {
    let caller = user(1000 + dice.below(3) as u32);
    let all = hub.sessions();
    let Some(session) = all.get(dice.below(10) as usize) else {
        let _ = hub.connect(&caller, ["it", "", "é\u{202e}", "網"][dice.below(4) as usize]);
        return;
    };
    let place = dice.below(session.requests.len().max(1) as u64) as usize;
    let held = session.requests.get(place);
    let request = held.map_or(7, |held| held.request);
    let released: Vec<u32> = held.map_or_else(Vec::new, |held| held.held.clone());
    let count = dice.below(released.len() as u64 + 1) as usize;
    let released = released[..count].to_vec();
    // Mostly it is his own.
    let caller = match dice.below(8) {
        0 => caller,
        _ => user(session.uid),
    };
    let session = dice.wild(session.session);
    match dice.below(32) {
        0 => drop(hub.disconnect(&caller, session)),
        1 => drop(hub.waste(&caller, session, u64::MAX)),
        2 => drop(hub.views(&caller, session)),
        3 => drop(hub.accounts(&caller)),
        4..=6 => {
            if let Ok(monitor) = hub.monitor(&caller, session) {
                for _ in 0..dice.below(5) {
                    hub.next(session, monitor);
                }
                if dice.below(2) == 0 {
                    hub.left(session, monitor);
                }
            }
        }
        7..=12 => drop(hub.done(&caller, session, request, &released)),
        13..=18 => {
            let change = Change {
                request: dice.wild(request),
                nodes: dice.wild(dice.0 % 6 + 1),
                duration_ns: dice.duration_ns(),
                announce_ns: dice.duration_ns(),
                released: Some(released),
            };
            let _ = hub.update(&caller, session, change);
        }
        _ => {
            let kinds = ["pre-allocation", "non-preemptible", "preemptible", "what"];
            let other = Some(dice.wild(request));
            let relation = dice.below(3);
            let asked = Asked {
                cluster: dice.wild(dice.0 % 2),
                nodes: dice.wild(dice.0 % 6 + 1),
                duration_ns: dice.duration_ns(),
                kind: kinds[(dice.below(31) / 10) as usize].into(),
                coalloc: other.filter(|_| relation == 1),
                next: other.filter(|_| relation == 2),
                preferred: Some(vec![u32::MAX; dice.below(3) as usize]),
            };
            let _ = hub.request(&caller, session, asked);
        }
    }
}

#[test]
fn no_message_breaks_it_and_a_crash_changes_nothing() {
    let directory = directory("any");
    let settings = || Settings {
        clusters: vec![Managed::new("lab", 12), Managed::new("hall", 5)],
        policy: Policy { interval_ns: 0, release_grace_ns: 50_000, ..Policy::default() },
        ..settings()
    };
    let open = |path: &Path| Hub::open(settings(), Some(path)).expect("it can be used");
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let journal = directory.join(format!("kept-{seed}"));
        let mut hub = open(&journal);
        for message in 1..800 {
            any_message(&mut hub, &mut dice);
            if dice.below(3) == 0 {
                hub.work().expect("it can be kept");
                check_owners(&hub);
            }
            if message % 100 == 0 {
                let copy = directory.join("copy");
                fs::copy(&journal, &copy).expect("it is there");
                let next = open(&copy);
                assert_eq!(lasting(&next), lasting(&hub), "seed {seed}");
                check_integers(&serde_json::to_value(hub.sessions()).expect("plain values"));
            }
        }
    }
}
