// SPDX-License-Identifier: GPL-2.0
//! The report's diagrams (figures 5, 6, 7 and 12), drawn in text.  Their numbers can't be read:
//! these are our own.

mod driver;

use driver::{ask, next, with, Driver};
use pbs_profile::view::{Cap, Step};
use pbs_rms::{AppId, Kind, RequestId, FOREVER};
use Kind::{NonPreemptible, PreAllocation, Preemptible};

/// A line for each request: from when to when, and a bar for each of its nodes.
fn drawn(rms: &Driver, app: AppId) -> String {
    let session = rms.rms.session(app).expect("it is there");
    let line = |request: &pbs_rms::Request| {
        let name = match request.ask.kind {
            PreAllocation => "PA",
            NonPreemptible => "nP",
            Preemptible => " P",
        };
        let begin_ns = request.started_ns.or(request.scheduled_ns);
        let time = begin_ns.map_or("never".into(), |ns| match request.ask.duration_ns {
            FOREVER => format!("{ns}.."),
            duration_ns => format!("{ns}..{}", ns + duration_ns),
        });
        let bars = "|".repeat(request.ask.nodes as usize);
        format!("{name} {time:>8} {bars}\n")
    };
    session.requests.iter().map(line).collect()
}

/// Lists the start times of some requests, by name.
fn times(rms: &Driver, app: AppId, ids: &[(&str, RequestId)]) -> String {
    let session = rms.rms.session(app).expect("it is there");
    let time = |&(name, id): &(&str, RequestId)| {
        let request = session.requests.iter().find(|r| r.id == id);
        let request = request.expect("it is there");
        let at = request.started_ns.or(request.scheduled_ns);
        format!("{name} {}\n", at.map_or("never".into(), |ns| ns.to_string()))
    };
    ids.iter().map(time).collect()
}

/// A view, a line for each step.
fn steps(cap: &Cap) -> String {
    let line = |step: Step| match step.duration_ns {
        FOREVER => format!("for ever {}\n", step.nodes),
        ns => format!("{ns:>8} {}\n", step.nodes),
    };
    cap.steps().map(line).collect()
}

/// Half of the machine is free at once, and all at 10.
fn busy() -> (Driver, AppId) {
    let mut rms = Driver::new(8);
    let blocker = rms.connect();
    rms.request(blocker, ask(NonPreemptible, 4, 10));
    let app = rms.connect();
    rms.pass(0);
    (rms, app)
}

#[test]
fn the_three_constraints_are_as_in_figure_5() {
    // The second one would fit at once, if it was free; with the first or after it, it does
    // not, and they stay together.
    let draw = |how: fn(RequestId, pbs_rms::Ask) -> pbs_rms::Ask| {
        let (mut rms, app) = busy();
        let first = rms.request(app, ask(NonPreemptible, 5, 20));
        rms.request(app, how(first, ask(NonPreemptible, 3, 30)));
        rms.pass(0);
        drawn(&rms, app)
    };
    assert_eq!(
        draw(|_, free| free),
        "nP   10..30 |||||\n\
         nP    0..30 |||\n"
    );
    assert_eq!(
        draw(with),
        "nP   10..30 |||||\n\
         nP   10..40 |||\n"
    );
    assert_eq!(
        draw(next),
        "nP   10..30 |||||\n\
         nP   30..60 |||\n"
    );
}

#[test]
fn updates_are_performed_as_in_figure_6() {
    // (a): what there is before; (b): at once; (c): announced.
    let draw = |announce_ns: Option<u64>| {
        let mut rms = Driver::new(8);
        let app = rms.connect();
        let all = rms.request(app, ask(PreAllocation, 6, FOREVER));
        let used = rms.request(app, with(all, ask(NonPreemptible, 2, FOREVER)));
        rms.pass(0);
        if let Some(announce_ns) = announce_ns {
            rms.update(20, app, used, 4, announce_ns, &[]).expect("it is inside");
            rms.pass(20);
        }
        let now = drawn(&rms, app);
        rms.pass(50);
        (now, drawn(&rms, app))
    };
    let a = "PA      0.. ||||||\n\
             nP      0.. ||\n";
    assert_eq!(draw(None), (a.into(), a.into()));
    let b = "PA      0.. ||||||\n\
             nP     20.. ||||\n";
    assert_eq!(draw(Some(0)), (b.into(), b.into()));
    let c = "PA      0.. ||||||\n\
             nP   20..50 ||\n\
             nP     50.. ||||\n";
    let then = "PA      0.. ||||||\n\
                nP     50.. ||||\n";
    assert_eq!(draw(Some(30)), (c.into(), then.into()));
}

#[test]
fn views_of_a_cluster_are_as_in_figure_7() {
    let mut rms = Driver::new(10);
    let (app, other) = (rms.connect(), rms.connect());
    let first = rms.request(app, ask(PreAllocation, 7, 100));
    let inside = rms.request(app, with(first, ask(NonPreemptible, 2, 40)));
    rms.request(app, next(inside, ask(NonPreemptible, 5, 60)));
    rms.pass(0);
    let views = rms.views(other);
    assert_eq!(
        steps(&views.non_preemptible),
        "     100 3\n\
         for ever 10\n"
    );
    assert_eq!(
        steps(&views.preemptible),
        "      40 8\n\
         \x20     60 5\n\
         for ever 10\n"
    );
    // Who has it sees what it has as well.
    assert_eq!(steps(&rms.views(app).non_preemptible), "for ever 10\n");
}

#[test]
fn trees_of_requests_are_as_in_figure_12() {
    // Of each type trees of their own: the roots are those that hang on nothing, or on another
    // type.
    //
    //   PA: a - b (NEXT)
    //   nP: c (with a) - d (NEXT), e (with c); d - f (with d)
    //    P: g (with d)
    let (mut rms, app) = busy();
    let a = rms.request(app, ask(PreAllocation, 6, 60));
    let b = rms.request(app, next(a, ask(PreAllocation, 8, 40)));
    let c = rms.request(app, with(a, ask(NonPreemptible, 3, 20)));
    let d = rms.request(app, next(c, ask(NonPreemptible, 4, 30)));
    let e = rms.request(app, with(c, ask(NonPreemptible, 2, 10)));
    let f = rms.request(app, with(d, ask(NonPreemptible, 1, 5)));
    let g = rms.request(app, with(d, ask(Preemptible, 3, 30)));
    let all = [("a", a), ("b", b), ("c", c), ("d", d), ("e", e), ("f", f), ("g", g)];
    rms.pass(0);
    // a waits for 6 nodes until 10, and all goes with it.
    let golden = "a 10\nb 70\nc 10\nd 30\ne 10\nf 30\ng 30\n";
    assert_eq!(times(&rms, app, &all), golden);
    rms.pass(10);
    assert_eq!(times(&rms, app, &all), golden);
    // What hangs on one that is taken back goes with it, of all types.
    rms.done(12, app, d);
    let left = rms.rms.session(app).expect("it is there").requests.clone();
    let left: Vec<RequestId> = left.iter().map(|request| request.id).collect();
    assert_eq!(left, [a, b, c, e]);
}
