// SPDX-License-Identifier: GPL-2.0
//! Figure 8: how an application that evolves and a malleable one go on with their manager, step
//! by step.

mod driver;

use driver::{ask, with, Driver};
use pbs_rms::{AppId, Event, Kind, Notice, FOREVER};

/// Messages up to now, one per line, as the figure numbers them.
#[derive(Default)]
struct Trace {
    lines: Vec<String>,
    nea: Option<AppId>,
}

impl Trace {
    fn note(&mut self, step: &str, what: &str) {
        self.lines.push(format!("{step:>2} {what}"));
    }

    /// Records the notices of the manager; those that the figure leaves out have no number.
    fn told(&mut self, rms: &Driver, steps: &[&str], notices: &[Notice]) {
        assert_eq!(steps.len(), notices.len(), "{notices:?}");
        for (step, notice) in steps.iter().zip(notices) {
            let whom = ["M", "NEA"][usize::from(Some(notice.app) == self.nea)];
            let what = match &notice.event {
                Event::Views { .. } => {
                    let views = rms.views(notice.app);
                    let now = |view: &pbs_profile::view::Cap| view.at(rms.now_ns);
                    let both = (now(&views.non_preemptible), now(&views.preemptible));
                    format!("views, now {} and {}", both.0, both.1)
                }
                Event::Started { nodes, .. } => format!("startNotify {nodes:?}"),
                other => format!("{other:?}"),
            };
            self.note(step, &format!("{whom} < {what}"));
        }
    }
}

/// The trace of all 15 steps.  Views are non-preemptible and preemptible nodes; what the figure
/// does not draw is what else follows from them: a pre-allocation starts without nodes, and
/// the first application sees that as well.
const GOLDEN: &str = "\
\x201 NEA > connect
 2 NEA < views, now 8 and 8
 3 NEA > request pre-allocation 6
 4 NEA > request non-preemptible 2
   NEA < views, now 8 and 6
   NEA < startNotify []
 5 NEA < startNotify [0, 1]
 6 M > connect
 7 M < views, now 2 and 6
 8 M > request preemptible 6
   NEA < views, now 8 and 3
 9 M < startNotify [2, 3, 4, 5, 6, 7]
10 NEA > request non-preemptible 4, NEXT
11 NEA > done
   NEA < views, now 8 and 2
12 M < views, now 2 and 4
13 M > request preemptible 4, NEXT
14 M > done, released [6, 7]
15 NEA < startNotify [0, 1, 6, 7]
   M < startNotify [2, 3, 4, 5]
";

#[test]
fn the_message_trace_is_that_of_figure_8() {
    // Both updates as the figure has them, in two messages, and as one.
    for is_one_message in [false, true] {
        let mut rms = Driver::new(8);
        let mut trace = Trace::default();
        let nea = rms.connect();
        trace.nea = Some(nea);
        trace.note("1", "NEA > connect");
        let told = rms.pass(0);
        trace.told(&rms, &["2"], &told);

        let all = rms.request(nea, ask(Kind::PreAllocation, 6, FOREVER));
        trace.note("3", "NEA > request pre-allocation 6");
        let used = rms.request(nea, with(all, ask(Kind::NonPreemptible, 2, FOREVER)));
        trace.note("4", "NEA > request non-preemptible 2");
        let told = rms.pass(1);
        trace.told(&rms, &["", "", "5"], &told);

        rms.now_ns = 2;
        let malleable = rms.connect();
        trace.note("6", "M > connect");
        let told = rms.pass(2);
        trace.told(&rms, &["7"], &told);
        let spare = rms.request(malleable, ask(Kind::Preemptible, 6, FOREVER));
        trace.note("8", "M > request preemptible 6");
        let told = rms.pass(3);
        trace.told(&rms, &["", "9"], &told);

        if is_one_message {
            let more = rms.update(4, nea, used, 4, 0, &[]);
            more.expect("it is pre-allocated");
        } else {
            let more = driver::next(used, ask(Kind::NonPreemptible, 4, FOREVER));
            rms.request(nea, more);
            rms.done(4, nea, used);
        }
        trace.note("10", "NEA > request non-preemptible 4, NEXT");
        trace.note("11", "NEA > done");
        let told = rms.pass(4);
        trace.told(&rms, &["", "12"], &told);

        if is_one_message {
            let less = rms.update(5, malleable, spare, 4, 0, &[6, 7]);
            less.expect("all are its own");
        } else {
            let less = driver::next(spare, ask(Kind::Preemptible, 4, FOREVER));
            rms.request(malleable, less);
            let done = rms.rms.done(malleable, spare, &[6, 7], 5);
            done.expect("all are its own");
        }
        trace.note("13", "M > request preemptible 4, NEXT");
        trace.note("14", "M > done, released [6, 7]");
        let told = rms.pass(5);
        // What the views say besides follows from what was released.
        let starts: Vec<Notice> = told
            .into_iter()
            .filter(|notice| !matches!(notice.event, Event::Views { .. }))
            .collect();
        trace.told(&rms, &["15", ""], &starts);
        assert_eq!(trace.lines.join("\n") + "\n", GOLDEN);
    }
}
