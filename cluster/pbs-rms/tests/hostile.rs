// SPDX-License-Identifier: GPL-2.0
//! What applications might do to each other, or to the manager.

mod driver;

use driver::{ask, next, policy, with, Driver, GIVE_BACK_LATE};
use pbs_rms::{Kind, Limits, Policy, Refusal, Rms, Update, FOREVER};
use Kind::{NonPreemptible, PreAllocation, Preemptible};

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
    rms.update(12, sweep, spare, 8, 0, &[0, 1])
        .expect("they are its own");
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
fn a_lower_limit_keeps_nobody_from_giving_back() {
    let mut rms = Driver::new(10);
    let app = rms.connect();
    let first = rms.request(app, ask(NonPreemptible, 5, 100));
    let second = rms.request(app, ask(NonPreemptible, 4, FOREVER));
    rms.pass(0);
    let kept = rms.rms.session(app).expect("it is there").clone();
    let limits = Limits {
        nodes: 3,
        ..Limits::default()
    };
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
        rms.request(other, ask(Preemptible, 10, duration_ns));
        rms.pass(now_ns + 1);
        rms.views(other);
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
    rms.views(other);
    let _ = rms.rms.disconnect(app, FOREVER);
    rms.pass(FOREVER);
}
