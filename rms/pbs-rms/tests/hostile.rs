// SPDX-License-Identifier: GPL-2.0
//! Attacks of applications on each other, or on the manager.

mod driver;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use driver::{ask, next, policy, with, Driver, GIVE_BACK_LATE};
use pbs_rms::{AppId, Ask, Kind, Limits, NodeChoice, Policy, Refusal, Rms, Update, FOREVER};
use Kind::{NonPreemptible, PreAllocation, Preemptible};

/// Runs `what`, which a manager should complete in far less time than the limit here.
fn soon(what: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || {
        what();
        let _ = sender.send(());
    });
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(()) => thread.join().expect("it has ended"),
        Err(_) => panic!("it takes too long, or has failed"),
    }
}

#[test]
fn what_has_been_given_back_is_not_waited_for() {
    let mut rms = Driver::new(10);
    let (sweep, rigid) = (rms.connect(), rms.connect());
    let spare = rms.request(sweep, ask(Preemptible, 10, FOREVER));
    rms.pass(0);
    rms.request(rigid, ask(NonPreemptible, 10, 1000));
    // The sweep is to give back all. It does, and now waits for nodes like others.
    rms.pass(10);
    rms.done(12, sweep, spare);
    rms.request(sweep, ask(NonPreemptible, 4, FOREVER));
    rms.pass(13);
    assert_eq!(rms.rms.next_pass_ns(), Some(1010));
    rms.pass(500);
    let session = rms.rms.session(sweep).expect("it has done nothing wrong");
    assert_eq!(session.account_at(500).overstayed_node_ns, 2 * 10);
}

#[test]
fn part_of_what_was_to_be_given_back_is_less_to_wait_for() {
    let mut rms = Driver::new(10);
    let (sweep, rigid) = (rms.connect(), rms.connect());
    let spare = rms.request(sweep, ask(Preemptible, 10, FOREVER));
    rms.pass(0);
    rms.request(rigid, ask(NonPreemptible, 6, 1000));
    rms.pass(10);
    rms.update(12, sweep, spare, 8, 0, &[0, 1]).expect("they are its own");
    let session = rms.rms.session(sweep).expect("it has some time yet");
    assert_eq!(session.account_at(13).overstayed_node_ns, 2 * 6 + 4);
    // Of the time that it has it has lost nothing, and gained nothing.
    assert_eq!(rms.rms.next_pass_ns(), Some(12));
    rms.pass(12);
    assert_eq!(rms.rms.next_pass_ns(), Some(10 + GIVE_BACK_LATE));
    rms.pass(10 + GIVE_BACK_LATE);
    assert!(rms.rms.session(sweep).is_none());
}

#[test]
fn who_gives_back_each_node_in_time_is_not_ended() {
    let mut rms = Driver::new(20);
    let (sweep, grows) = (rms.connect(), rms.connect());
    let mut spare = rms.request(sweep, ask(Preemptible, 20, FOREVER));
    rms.pass(0);
    let mut used = rms.request(grows, ask(NonPreemptible, 1, FOREVER));
    rms.pass(1);
    // Each time the last node has not been given back yet, and one more is wanted.
    for now_ns in 2..18 {
        used = rms.update(now_ns, grows, used, now_ns, 0, &[]).expect("there is room");
        rms.pass(now_ns);
        let last = rms.nodes(sweep, spare)[0];
        let nodes = 21 - now_ns;
        spare = rms.update(now_ns, sweep, spare, nodes, 0, &[last]).expect("it is its own");
        rms.pass(now_ns);
        assert!(rms.rms.session(sweep).is_some(), "it is ended at {now_ns}");
    }
    // Of the node that it keeps, the time counts.
    assert_eq!(rms.rms.next_pass_ns(), Some(17 + GIVE_BACK_LATE));
    rms.pass(17 + GIVE_BACK_LATE);
    assert!(rms.rms.session(sweep).is_none());
}

#[test]
fn a_lower_limit_keeps_nobody_from_giving_back() {
    let mut rms = Driver::new(10);
    let app = rms.connect();
    let first = rms.request(app, ask(NonPreemptible, 5, 100));
    let second = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    let kept = rms.rms.session(app).expect("it is there").clone();
    let limits = Limits { nodes: 3, ..Limits::default() };
    let stricter = Policy { limits, ..policy() };
    let restored = Rms::restore(stricter, rms.rms.counters(), [(app, kept)], 10);
    rms.rms = restored.expect("it was right before");
    rms.pass(10);
    let more = rms.update(20, app, second, 5, 0, &[]);
    assert_eq!(more, Err(Refusal::TooMany { nodes: 5, most: 3 }));
    // One ends because its time is over, and one because it is done.
    rms.pass(100);
    assert_eq!(rms.rms.session(app).map(|s| s.requests.len()), Some(1));
    assert_eq!(rms.rms.next_pass_ns(), None);
    assert_eq!(rms.rms.idle(0).len(), 6);
    rms.done(110, app, second);
    assert_eq!(rms.rms.idle(0).len(), 10);
    assert!(rms.rms.done(app, first, &[], 110).is_err());
}

#[test]
fn no_limit_keeps_a_session_from_having_fewer_nodes() {
    let limits = Limits { requests: 3, ..Limits::default() };
    let mut rms = Driver::with(Policy { limits, ..policy() }, &[10]);
    let app = rms.connect();
    let first = rms.request(app, ask(NonPreemptible, 5, FOREVER));
    rms.request(app, ask(Preemptible, 1, FOREVER));
    let waits = rms.request(app, ask(NonPreemptible, 10, FOREVER));
    rms.pass(0);
    // As many as before, of which one is another one; an announced update is one more.
    let refused = rms.update(1, app, first, 4, 10, &[]);
    assert_eq!(refused, Err(Refusal::TooManyRequests(3)));
    let first = rms.update(1, app, first, 4, 0, &[4]).expect("it is less");
    rms.pass(1);
    assert_eq!(rms.nodes(app, first), [0, 1, 2, 3]);
    // Under a lower limit, five are still less than ten.
    let kept = rms.rms.session(app).expect("it is there").clone();
    let limits = Limits { nodes: 3, ..limits };
    let restored =
        Rms::restore(Policy { limits, ..policy() }, rms.rms.counters(), [(app, kept)], 2);
    rms.rms = restored.expect("it was right before");
    assert_eq!(rms.update(2, app, waits, 5, 0, &[]), Ok(waits));
    // What has not started has nothing to announce or to release.
    let refused = Err(Refusal::NotStarted(waits));
    rms.rms.done(app, first, &[], 2).expect("it is there");
    assert_eq!(rms.update(2, app, waits, 4, 10, &[]), refused);
    assert_eq!(rms.update(2, app, waits, 4, 0, &[1]), refused);
    let empty = rms.update(2, app, waits, 0, 0, &[]);
    assert_eq!(empty, Err(Refusal::Empty));
}

#[test]
fn giving_back_a_great_many_nodes_takes_no_time() {
    const NODES: u32 = 600_000;
    soon(|| {
        let mut rms = Driver::new(u64::from(NODES));
        let app = rms.connect();
        let all = rms.request(app, ask(Preemptible, u64::from(NODES), FOREVER));
        rms.pass(0);
        let mut named: Vec<u32> = (1..NODES).rev().collect();
        let one = rms.update(1, app, all, 1, 0, &named).expect("all are held");
        rms.pass(1);
        assert_eq!(rms.nodes(app, one), [0]);
        let all = rms.update(2, app, one, u64::from(NODES), 0, &[]);
        let all = all.expect("there is room");
        rms.pass(2);
        named.push(NODES);
        let refused = rms.rms.done(app, all, &named, 3);
        assert_eq!(refused, Err(Refusal::NotHeld(NODES)));
        *named.last_mut().expect("many") = 1;
        let twice = rms.update(3, app, all, 1, 50, &named);
        assert!(twice.is_err());
    });
}

#[test]
fn neighbours_are_found_among_a_great_many_pieces() {
    const NODES: u32 = 400_000;
    soon(|| {
        let policy = Policy {
            choice: NodeChoice::Contiguous,
            limits: Limits { preferred: NODES as usize, ..Limits::default() },
            ..policy()
        };
        let mut rms = Driver::with(policy, &[NODES]);
        let (comb, app) = (rms.connect(), rms.connect());
        let half = u64::from(NODES / 2);
        let preferred = (0..NODES).step_by(2).collect();
        let every_second = ask(NonPreemptible, half, FOREVER);
        rms.request(comb, Ask { preferred, ..every_second });
        rms.pass(0);
        let pieces = rms.request(app, ask(NonPreemptible, half, FOREVER));
        rms.pass(1);
        assert_eq!(rms.nodes(app, pieces).len() as u64, half);
    });
}

#[test]
fn a_session_prefers_no_more_nodes_than_may_be() {
    let limits = Limits { preferred: 5, ..Limits::default() };
    let mut rms = Driver::with(Policy { limits, ..policy() }, &[10]);
    let app = rms.connect();
    let ask = |preferred: &[u32]| Ask {
        preferred: preferred.to_vec(),
        ..ask(NonPreemptible, 4, FOREVER)
    };
    let first = rms.request(app, ask(&[1, 2, 3]));
    let refused = rms.rms.request(app, ask(&[4, 5, 6]), 0);
    assert_eq!(refused, Err(Refusal::TooManyPreferred(5)));
    rms.request(app, ask(&[4, 5]));
    rms.pass(0);
    // What takes the place of a request prefers what that did.
    let more = rms.update(1, app, first, 5, 0, &[]).expect("room");
    rms.pass(1);
    rms.update(2, app, more, 6, 10, &[]).expect("room");
    rms.pass(12);
    assert_eq!(rms.rms.session(app).map(|s| s.requests.len()), Some(2));
}

#[test]
fn many_who_wait_for_what_may_be_preempted_cost_little() {
    // Each of 64 sessions has 120 requests that end at different times, and waits with as
    // many that fit now, but not when somebody else is to have all.
    soon(|| {
        let mut rms = Driver::new(16_384);
        let apps: Vec<AppId> = (0..64).map(|_| rms.connect()).collect();
        for (place, &app) in apps.iter().enumerate() {
            for time in 0..120 {
                let end_ns = 1_000 + 64 * time + place as u64;
                rms.request(app, ask(Preemptible, 1, end_ns));
            }
        }
        rms.pass(0);
        let rigid = rms.connect();
        let one = rms.request(rigid, ask(NonPreemptible, 1, 100_000));
        rms.pass(0);
        rms.request(rigid, next(one, ask(NonPreemptible, 16_384, 10)));
        for &app in &apps {
            for time in 0..120 {
                rms.request(app, ask(Preemptible, 1, 200_000 + time));
            }
        }
        for now_ns in 1..5 {
            rms.pass(now_ns);
        }
        let session = rms.rms.session(apps[0]).expect("it is there");
        let waiting = session.requests.iter().filter(|r| r.started_ns.is_none());
        assert_eq!(waiting.count(), 120);
    });
}

#[test]
fn who_waits_for_preemptible_nodes_keeps_none_from_others() {
    let mut rms = Driver::new(10);
    let (sweep, waits, late) = (rms.connect(), rms.connect(), rms.connect());
    let spare = rms.request(sweep, ask(Preemptible, 10, FOREVER));
    rms.pass(0);
    // Its equal part is five: it would wait for ever, and its part would be idle.
    let far = rms.request(waits, ask(Preemptible, 10, 100));
    rms.pass(1);
    assert_eq!(rms.views(sweep).preemptible.at(1), 10);
    rms.pass(1 + GIVE_BACK_LATE);
    assert_eq!(rms.nodes(sweep, spare).len(), 10);
    // Without an end it starts with the nodes that there are, perhaps fewer than requested.
    let endless = rms.request(late, ask(Preemptible, 10, FOREVER));
    rms.pass(10);
    assert_eq!(rms.views(sweep).preemptible.at(10), 5);
    rms.update(11, sweep, spare, 5, 0, &[0, 1, 2, 3, 4]).expect("they are its own");
    let told = rms.pass(11);
    assert!(driver::starts(&told).contains(&endless));
    assert_eq!(rms.nodes(late, endless).len(), 5);
    // What asks for no more than an equal part gets it.
    rms.done(12, waits, far);
    let small = rms.request(waits, ask(Preemptible, 3, 100));
    rms.pass(12);
    assert_eq!(rms.rms.next_pass_ns(), Some(12));
    rms.pass(12);
    assert_eq!(rms.views(sweep).preemptible.at(12), 4);
    rms.done(13, late, endless);
    let told = rms.pass(13);
    assert!(driver::starts(&told).contains(&small));
    // Two of them are not given the same nodes.
    let mut rms = Driver::new(12);
    let apps = [rms.connect(), rms.connect()];
    let both = [10, 9].map(|nodes| (nodes, ask(Preemptible, nodes, 100)));
    let [a, b] = [0, 1].map(|place| rms.request(apps[place], both[place].1.clone()));
    let told = rms.pass(0);
    assert_eq!((driver::starts(&told), rms.nodes(apps[0], a).len()), (vec![a], 10));
    let told = rms.pass(100);
    assert_eq!((driver::starts(&told), rms.nodes(apps[1], b).len()), (vec![b], 9));
}

#[test]
fn a_tree_that_fits_nowhere_is_searched_for_in_several_passes() {
    let mut rms = Driver::new(10);
    let (walls, app) = (rms.connect(), rms.connect());
    let chain = |rms: &mut Driver, app, steps: &[(u64, u64)]| {
        let first = rms.request(app, ask(NonPreemptible, steps[0].0, steps[0].1));
        steps[1..].iter().fold(first, |before, step| {
            rms.request(app, next(before, ask(NonPreemptible, step.0, step.1)))
        });
        first
    };
    // Seven nodes are free for ten at each multiple of 20, and four between.
    let steps: Vec<_> = (0..250).map(|at| ([3, 6][at % 2], 10)).collect();
    chain(&mut rms, walls, &steps);
    rms.pass(0);
    // Two parts that want seven nodes, 208 apart, and many between them that fit everywhere.
    let between = (0..198).map(|at| (1 + at % 2, 1));
    let steps: Vec<_> = [(7, 10)].into_iter().chain(between).chain([(7, 10)]).collect();
    let first = chain(&mut rms, app, &steps);
    let other = rms.request(app, ask(NonPreemptible, 1, 5));
    let told = rms.pass(0);
    // It keeps nobody waiting.
    assert_eq!(driver::starts(&told), [other]);
    assert_eq!(rms.scheduled(app, first), None);
    let mut passes = 1;
    while rms.scheduled(app, first).is_none() {
        assert_eq!(rms.rms.next_pass_ns(), Some(rms.now_ns));
        passes += 1;
        rms.pass(passes);
    }
    assert_eq!(rms.scheduled(app, first), Some(2300));
    assert!((2..10).contains(&passes), "{passes}");
    // The search for an earlier place leaves it where it is.
    while passes < 20 {
        passes += 1;
        rms.pass(passes);
        assert_eq!(rms.scheduled(app, first), Some(2300));
    }
    let told = rms.pass(2300);
    assert!(driver::starts(&told).contains(&first));
}

#[test]
fn numbers_without_measure_stay_in_their_bounds() {
    let mut rms = Driver::new(10);
    let (app, other) = (rms.connect(), rms.connect());
    let now_ns = FOREVER / 2;
    rms.pass(now_ns);
    for duration_ns in [FOREVER, FOREVER - 1, FOREVER - now_ns, FOREVER - now_ns - 1] {
        let marked = rms.request(app, ask(PreAllocation, 4, duration_ns));
        let used = rms.request(app, with(marked, ask(NonPreemptible, 4, duration_ns)));
        let after = rms.request(app, next(used, ask(NonPreemptible, 4, duration_ns)));
        rms.request(app, next(after, ask(NonPreemptible, 4, duration_ns)));
        let _ = rms.rms.request(other, ask(Preemptible, 10, duration_ns), now_ns);
        rms.pass(now_ns + 1);
        let _ = rms.rms.views(other, 0);
        let update = Update {
            of: used,
            nodes: 3,
            duration_ns,
            announce_ns: duration_ns,
            released: Vec::new(),
        };
        let _ = rms.rms.update(app, &update, now_ns + 2);
        let _ = rms.rms.waste(app, u128::MAX);
        rms.pass(now_ns + 3);
    }
    rms.pass(FOREVER - 1);
    rms.pass(FOREVER);
    let _ = rms.rms.views(other, 0);
    let _ = rms.rms.disconnect(app, FOREVER);
    rms.pass(FOREVER);
}

#[test]
fn who_asks_for_next_to_no_time_pays_for_what_he_has() {
    const INTERVAL_NS: u64 = 1000;
    let policy = Policy { interval_ns: INTERVAL_NS, ..policy() };
    let mut rms = Driver::with(policy, &[10]);
    let app = rms.connect();
    for pass in 0..20 {
        rms.now_ns = pass * INTERVAL_NS;
        rms.request(app, ask(NonPreemptible, 6, 1));
        rms.request(app, ask(Preemptible, 4, 1));
        rms.pass(pass * INTERVAL_NS);
        assert_eq!(rms.rms.idle(0).len(), 0);
    }
    rms.pass(20 * INTERVAL_NS);
    let session = rms.rms.session(app).expect("it is there");
    let had_ns = u128::from(20 * INTERVAL_NS);
    assert_eq!(session.account.all_non_preemptible_node_ns(), 6 * had_ns);
    assert_eq!(session.account.all_preemptible_node_ns(), 4 * had_ns);
    // That the manager was not there for long is nobody's fault.
    rms.request(app, ask(NonPreemptible, 6, 1));
    rms.pass(20 * INTERVAL_NS);
    rms.pass(90 * INTERVAL_NS);
    let session = rms.rms.session(app).expect("it is there");
    let had_ns = had_ns + u128::from(INTERVAL_NS) + 1;
    assert_eq!(session.account.all_non_preemptible_node_ns(), 6 * had_ns);
}

#[test]
fn nobody_is_ended_for_what_could_not_be_given_back() {
    let mut rms = Driver::new(10);
    let (sweep, rigid) = (rms.connect(), rms.connect());
    let spare = rms.request(sweep, ask(Preemptible, 10, FOREVER));
    rms.pass(0);
    rms.request(rigid, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    // It had hardly been told when the manager crashed, for longer than the grace.
    let kept = rms.rms.sessions().map(|(app, it)| (app, it.clone()));
    let kept: Vec<_> = kept.collect();
    let restored = Rms::restore(policy(), rms.rms.counters(), kept, 100);
    rms.rms = restored.expect("it was right before");
    rms.pass(100);
    assert_eq!(rms.nodes(sweep, spare).len(), 10);
    rms.pass(100 + GIVE_BACK_LATE);
    assert!(rms.rms.session(sweep).is_none());
}

/// A request hangs on a younger one since an update, and is refused when that one ends.
#[test]
fn a_request_that_ends_behind_its_older_dependents_harms_nobody() {
    let mut rms = Driver::new(10);
    let (blocker, app) = (rms.connect(), rms.connect());
    rms.request(blocker, ask(NonPreemptible, 5, FOREVER));
    let all = rms.request(app, ask(PreAllocation, 4, 100));
    rms.request(app, with(all, ask(NonPreemptible, 6, 100)));
    rms.pass(0);
    let update = Update { of: all, nodes: 4, duration_ns: 90, announce_ns: 0, released: vec![] };
    let heir = rms.rms.update(app, &update, 10).expect("it keeps its nodes");
    rms.request(app, next(heir, ask(PreAllocation, 10, 100)));
    for at in [11, 100, 200, 1000, 2000] {
        rms.pass(at);
    }
    let session = rms.rms.session(blocker).expect("it has done nothing");
    assert_eq!(session.requests.len(), 1);
}
