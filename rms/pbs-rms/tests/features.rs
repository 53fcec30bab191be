// SPDX-License-Identifier: GPL-2.0
//! Features of the report and of its future work that no other test covers.

mod driver;

use driver::{ask, next, policy, starts, with, Driver};
use pbs_rms::{Event, Kind, Policy, Prices, Refusal, FOREVER};
use Kind::{NonPreemptible, PreAllocation, Preemptible};

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn accounts_are_by_type_and_count_idle_time_apart() {
    let prices =
        Prices { pre_allocation: 1_000_000, non_preemptible: 3_600_000, preemptible: 360_000 };
    let policy = Policy { prices, ..policy() };
    let mut rms = Driver::with(policy, &[10]);
    let (app, sweep) = (rms.connect(), rms.connect());
    let all = rms.request(app, ask(PreAllocation, 8, FOREVER));
    let used = rms.request(app, with(all, ask(NonPreemptible, 3, FOREVER)));
    rms.pass(0);
    rms.request(sweep, ask(Preemptible, 2, FOREVER));
    rms.pass(0);
    let at = 100 * SECOND_NS;
    rms.update(at, app, used, 5, 0, &[]).expect("it is pre-allocated");
    rms.pass(at);
    let until = 200 * SECOND_NS;
    rms.rms.waste(sweep, 7 * u128::from(SECOND_NS)).expect("it is there");
    let account = |rms: &Driver, app| {
        let session = rms.rms.session(app).expect("it is there");
        session.account_at(until)
    };
    let mesh = account(&rms, app);
    let seconds = |node_ns: u128| node_ns / u128::from(SECOND_NS);
    assert_eq!(seconds(mesh.pre_allocated_node_ns), 1600);
    assert_eq!(seconds(mesh.non_preemptible_node_ns), 300 + 500);
    assert_eq!(seconds(mesh.idle_node_ns), 500 + 300);
    // 800 node seconds at 3.6 an hour, and 800 at 1.
    assert_eq!(mesh.cost_micro(&prices), 800_000 + 222_222);
    let swept = account(&rms, sweep);
    assert_eq!(seconds(swept.preemptible_node_ns), 400);
    assert_eq!(seconds(swept.wasted_node_ns), 7);
    assert_eq!(swept.overstayed_node_ns, 0);
    // 400 node seconds at 0.36 an hour; what is wasted is paid.
    assert_eq!(swept.cost_micro(&prices), 40_000);
}

#[test]
fn unrequested_nodes_are_reported_idle() {
    let mut rms = Driver::new(6);
    let app = rms.connect();
    rms.request(app, ask(NonPreemptible, 2, FOREVER));
    let sweep = rms.connect();
    rms.pass(0);
    assert_eq!(rms.rms.idle(0), [2, 3, 4, 5]);
    let spare = rms.request(sweep, ask(Preemptible, 4, FOREVER));
    rms.pass(0);
    assert!(rms.rms.idle(0).is_empty());
    rms.done(5, sweep, spare);
    rms.pass(5);
    assert_eq!(rms.rms.idle(0), [2, 3, 4, 5]);
    // Nobody has the last one, but one waits for it and another.
    rms.request(sweep, ask(Preemptible, 3, FOREVER));
    rms.pass(6);
    assert_eq!(rms.rms.idle(0), [5]);
    let used = rms.rms.session(app).expect("it is there").requests[0].id;
    rms.update(7, app, used, 4, 0, &[]).expect("there is room");
    rms.pass(7);
    assert!(rms.rms.idle(0).is_empty());
}

#[test]
fn a_request_waits_for_its_parent_of_another_type() {
    let mut rms = Driver::new(10);
    let (blocker, app) = (rms.connect(), rms.connect());
    rms.request(blocker, ask(NonPreemptible, 6, 50));
    rms.pass(0);
    let all = rms.request(app, ask(PreAllocation, 8, FOREVER));
    let used = rms.request(app, with(all, ask(NonPreemptible, 2, FOREVER)));
    let spare = rms.request(app, with(used, ask(Preemptible, 5, FOREVER)));
    // There would be room for the second alone: it is not moved.
    rms.pass(1);
    assert_eq!(rms.scheduled(app, all), Some(50));
    assert_eq!(rms.scheduled(app, used), Some(50));
    let told = rms.pass(50);
    assert_eq!(starts(&told), [all, used, spare]);
    assert_eq!(rms.nodes(app, spare).len(), 5);
    // What is firmer hangs on nothing that is not.
    let firm = with(spare, ask(NonPreemptible, 1, FOREVER));
    assert_eq!(rms.rms.request(app, firm, 50), Err(Refusal::NotFirmer(spare)));
    let other = next(all, ask(NonPreemptible, 1, 5));
    assert_eq!(rms.rms.request(app, other, 50), Err(Refusal::OtherNodes(all)));
}

#[test]
fn the_end_of_a_duration_kills() {
    let mut rms = Driver::new(4);
    let app = rms.connect();
    let short = rms.request(app, ask(NonPreemptible, 3, 10));
    let far = rms.request(app, ask(NonPreemptible, 4, 10));
    rms.pass(0);
    assert_eq!(rms.rms.next_pass_ns(), Some(10));
    let told = rms.pass(10);
    let ended = Event::Ended { request: short, killed: vec![0, 1, 2] };
    assert_eq!(told[0].event, ended);
    assert_eq!(starts(&told), [far]);
    assert_eq!(rms.rms.done(app, short, &[], 10), Err(Refusal::UnknownRequest(short)));
}

#[test]
fn clusters_are_separate_and_can_be_requested_together() {
    let mut rms = Driver::with(policy(), &[4, 8]);
    let app = rms.connect();
    let on = |cluster, request: pbs_rms::Ask| pbs_rms::Ask { cluster, ..request };
    rms.request(app, on(1, ask(NonPreemptible, 6, 30)));
    rms.pass(0);
    let first = rms.request(app, ask(NonPreemptible, 4, 10));
    let second = rms.request(app, with(first, on(1, ask(NonPreemptible, 4, 10))));
    rms.pass(1);
    // Each alone could be had; both only when the second can.
    assert_eq!(rms.scheduled(app, first), Some(30));
    assert_eq!(rms.scheduled(app, second), Some(30));
    let views = |cluster| rms.rms.views(app, cluster).map(|views| views.non_preemptible.at(1));
    assert_eq!((views(0), views(1), views(2)), (Some(4), Some(8), None));
}

#[test]
fn a_successor_without_room_may_find_some_later() {
    let mut rms = Driver::new(10);
    let (app, other) = (rms.connect(), rms.connect());
    let first = rms.request(app, ask(NonPreemptible, 4, 100));
    let beside = rms.request(other, ask(NonPreemptible, 5, 200));
    rms.pass(0);
    let more = rms.request(app, next(first, ask(NonPreemptible, 6, 50)));
    rms.pass(1);
    assert_eq!(rms.scheduled(app, more), None);
    rms.done(50, other, beside);
    let told = rms.pass(100);
    assert_eq!(starts(&told), [more]);
    assert_eq!(rms.nodes(app, more).len(), 6);
    // And one that finds none is refused, with what hangs on it.
    rms.request(other, ask(NonPreemptible, 4, 500));
    rms.pass(101);
    let too_many = rms.request(app, next(more, ask(NonPreemptible, 8, 50)));
    rms.pass(102);
    let told = rms.pass(150);
    let refused = Event::Refused { request: too_many };
    assert!(told.iter().any(|notice| notice.event == refused));
}
