// SPDX-License-Identifier: GPL-2.0
//! Reactions of the applications of Klein and Pérez (2011, 4) to events.

use pbs_rms_apps::{
    Application, Choice, Execution, How, Kind, Label, Malleable, Moldable, Nea, Predictable,
    Request, Rigid, Shape, Step, View, Views, Wish, FOREVER, SECOND_NS,
};

const S: u64 = SECOND_NS;

fn view(from_s: u64, steps: &[(u64, u64)]) -> View {
    let steps = steps.iter().map(|&(duration_s, nodes)| match duration_s {
        FOREVER => Step::new(FOREVER, nodes),
        _ => Step::new(duration_s * S, nodes),
    });
    View::new(from_s * S, &steps.collect::<Vec<_>>())
}

/// The application has new views, both alike.
fn see(of: &mut dyn Application, now_s: u64, steps: &[(u64, u64)]) -> Vec<Wish> {
    let view = view(now_s, steps);
    let views = Views { non_preemptible: &view, preemptible: &view };
    of.views(now_s * S, views)
}

fn request(label: u32, kind: Kind, nodes: u64, duration_ns: u64, how: How) -> Wish {
    Wish::Request(Request { label: Label(label), kind, nodes, duration_ns, how })
}

fn done(label: u32, released: u64) -> Wish {
    Wish::Done { label: Label(label), released }
}

fn update(label: u32, nodes: u64, duration_ns: u64) -> Wish {
    Wish::Update { label: Label(label), nodes, duration_ns, announce_ns: 0 }
}

#[test]
fn a_rigid_application_asks_once_and_ignores_its_views() {
    let mut rigid = Rigid::new(3, 10 * S);
    let asked = rigid.connect(0);
    assert_eq!(asked, [request(0, Kind::NonPreemptible, 3, 10 * S, How::Free)]);
    assert_eq!(see(&mut rigid, 1, &[(FOREVER, 1)]), []);
    assert_eq!(rigid.next_ns(), None);
    assert_eq!(rigid.started(1000 * S, Label(0), 3), []);
    assert_eq!(rigid.next_ns(), Some(1010 * S));
    assert_eq!(rigid.wake(1009 * S), []);
    assert_eq!(rigid.wake(1010 * S), [done(0, 3)]);
    assert!(rigid.has_ended() && rigid.next_ns().is_none());
}

fn moldable() -> Moldable {
    let of = |nodes, duration_s| Choice { nodes, duration_ns: duration_s * S };
    Moldable::new(vec![of(8, 10), of(4, 18), of(2, 35)])
}

#[test]
fn a_moldable_application_takes_the_shape_that_ends_first() {
    let mut app = moldable();
    assert_eq!(app.connect(0), []);
    // All 8 would end at 110, 4 at 38 and 2 at 35.
    let first = see(&mut app, 0, &[(20, 2), (80, 4), (FOREVER, 8)]);
    assert_eq!(first, [request(0, Kind::NonPreemptible, 2, 35 * S, How::Free)]);
    // The same view says nothing new.
    assert_eq!(see(&mut app, 0, &[(20, 2), (80, 4), (FOREVER, 8)]), []);
}

#[test]
fn a_moldable_application_chooses_anew_until_it_has_started() {
    let mut app = moldable();
    see(&mut app, 0, &[(20, 2), (80, 4), (FOREVER, 8)]);
    // Somebody left: 8 would end at 15, 4 at 23.
    let again = see(&mut app, 5, &[(FOREVER, 8)]);
    let better = request(1, Kind::NonPreemptible, 8, 10 * S, How::Free);
    assert_eq!(again, [done(0, 0), better]);
    app.started(5 * S, Label(1), 8);
    assert_eq!(see(&mut app, 6, &[(FOREVER, 2)]), []);
    assert_eq!(app.next_ns(), Some(15 * S));
    assert_eq!(app.wake(15 * S), [done(1, 8)]);
    assert!(app.has_ended());
}

#[test]
fn a_moldable_application_waits_where_nothing_fits() {
    let mut app = moldable();
    assert_eq!(see(&mut app, 0, &[(FOREVER, 1)]), []);
    assert!(Moldable::new(Vec::new()).has_ended());
    // 4 nodes for 18 s and 8 for 10 s from 8 s on end together: the fewer nodes.
    let equal = see(&mut app, 0, &[(8, 4), (10, 8)]);
    assert_eq!(equal, [request(0, Kind::NonPreemptible, 4, 18 * S, How::Free)]);
}

#[test]
fn a_malleable_application_takes_32_of_36_nodes() {
    let mut app = Malleable::new(2, Shape::PowerOfTwo(1024), 100 * S);
    let least = request(0, Kind::NonPreemptible, 2, 100 * S, How::Free);
    assert_eq!(app.connect(0), [least]);
    let extra = |nodes| request(1, Kind::Preemptible, nodes, 100 * S, How::Coalloc(Label(0)));
    assert_eq!(see(&mut app, 0, &[(FOREVER, 36)]), [extra(32)]);
    app.started(0, Label(0), 2);
    app.started(0, Label(1), 32);
    assert_eq!(app.nodes(), 34);
    // 33 are as good, 31 are not, and of none nothing is left.
    assert_eq!(see(&mut app, 10, &[(FOREVER, 33)]), []);
    assert_eq!(see(&mut app, 20, &[(FOREVER, 31)]), [update(1, 16, 80 * S)]);
    assert_eq!(app.nodes(), 18);
    assert_eq!(see(&mut app, 30, &[(FOREVER, 0)]), [done(1, 0)]);
    assert_eq!(app.nodes(), 2);
    // r_min started long ago, so it can't start with that.
    let free = request(1, Kind::Preemptible, 8, 60 * S, How::Free);
    assert_eq!(see(&mut app, 40, &[(FOREVER, 8)]), [free]);
    app.started(40 * S, Label(1), 8);
    assert_eq!(app.wake(100 * S), [done(1, 8), done(0, 2)]);
    assert_eq!((app.nodes(), app.has_ended()), (0, true));
}

#[test]
fn a_malleable_application_answers_an_announced_drop() {
    let mut app = Malleable::new(1, Shape::UpTo(10), 1_000 * S);
    app.connect(0);
    app.started(0, Label(0), 1);
    see(&mut app, 0, &[(100, 20), (FOREVER, 4)]);
    app.started(0, Label(1), 10);
    assert_eq!(app.next_ns(), Some(100 * S));
    assert_eq!(app.wake(100 * S), [update(1, 4, 900 * S)]);
}

#[test]
fn malleable_shapes_fit_their_views() {
    let powers = [0, 1, 2, 3, 4, 36, 63, 64, 100].map(|n| Shape::PowerOfTwo(64).fit(n));
    assert_eq!(powers, [0, 1, 2, 2, 4, 32, 32, 64, 64]);
    assert_eq!(Shape::PowerOfTwo(48).fit(100), 32);
    assert_eq!([3, 9].map(|n| Shape::UpTo(5).fit(n)), [3, 5]);
}

#[test]
fn a_predictable_application_is_a_chain() {
    let phases = [(100, 4), (50, 6), (50, 2)].map(|(s, nodes)| Step::new(s * S, nodes));
    let mut app = Predictable::new(phases.to_vec());
    let of = |label, nodes, s: u64, how| request(label, Kind::NonPreemptible, nodes, s * S, how);
    let chain = [
        of(0, 4, 100, How::Free),
        of(1, 6, 50, How::Next(Label(0))),
        of(2, 2, 50, How::Next(Label(1))),
    ];
    assert_eq!(app.connect(0), chain);
    // It keeps its nodes where the next has more, and gives back exactly what it has less.
    for (label, from_s, ends_s, released) in [(0, 0, 100, 0), (1, 100, 150, 4), (2, 150, 200, 2)] {
        assert!(!app.has_ended());
        app.started(from_s * S, Label(label), 0);
        assert_eq!(app.next_ns(), Some(ends_s * S));
        assert_eq!(app.wake(ends_s * S), [done(label, released)]);
        assert_eq!(app.next_ns(), None);
    }
    assert!(app.has_ended());
    assert!(Predictable::new(vec![Step::new(0, 3), Step::new(3, 0)]).has_ended());
}

#[test]
fn sure_execution_never_outgrows_its_pre_allocation() {
    let mut app = Nea::new(Execution::Sure { most: 8 }, 3);
    let asked = [
        request(0, Kind::PreAllocation, 8, FOREVER, How::Free),
        request(1, Kind::NonPreemptible, 3, FOREVER, How::Free),
    ];
    assert_eq!(app.connect(0), asked);
    // Nothing can be updated that has not started.
    assert_eq!(app.need(5), []);
    assert_eq!(app.started(0, Label(0), 0), []);
    assert_eq!(app.started(0, Label(1), 3), [update(1, 5, FOREVER)]);
    // One at a time.
    assert_eq!(app.need(20), []);
    assert_eq!(app.started(1, Label(1), 5), [update(1, 8, FOREVER)]);
    app.started(2, Label(1), 8);
    assert_eq!((app.held(), app.checkpoints()), (8, 0));
    assert_eq!(app.end(), [done(1, 0), done(0, 0)]);
    assert!(app.has_ended() && app.need(1).is_empty());
}

#[test]
fn probable_execution_resubmits_with_more_nodes() {
    let mut app = Nea::new(Execution::Probable { guess: 10 }, 10);
    app.connect(0);
    app.started(0, Label(1), 10);
    assert_eq!(app.need(12), [update(1, 12, FOREVER)]);
    let again = [
        Wish::Checkpoint,
        done(1, 0),
        done(0, 0),
        request(2, Kind::PreAllocation, 20, FOREVER, How::Free),
        request(3, Kind::NonPreemptible, 12, FOREVER, How::Free),
    ];
    assert_eq!(app.refused(1, Label(1)), again);
    assert_eq!((app.held(), app.checkpoints(), app.pre_allocation()), (0, 1, 20));
    // What is said of the old request is of no account.
    assert_eq!(app.started(2, Label(1), 10), []);
    assert_eq!(app.started(90, Label(3), 12), []);
    assert_eq!(app.held(), 12);
    // Far more than twice as much.
    app.need(100);
    app.refused(100, Label(3));
    assert_eq!(app.pre_allocation(), 100);
}

#[test]
fn guaranteed_execution_is_not_checkpointed() {
    let mut app = Nea::new(Execution::Probable { guess: 10 }, 1);
    app.connect(0);
    app.started(0, Label(1), 1);
    assert_eq!(app.need(9), [update(1, 9, FOREVER)]);
    assert_eq!(app.refused(1, Label(1)), []);
    assert_eq!((app.held(), app.checkpoints()), (1, 0));
    // It may have got more than was pre-allocated: luck.
    assert_eq!(app.need(11), [update(1, 11, FOREVER)]);
    assert_eq!(app.started(2, Label(1), 11), []);
    assert_eq!(app.held(), 11);
}
