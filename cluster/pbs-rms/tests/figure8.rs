// SPDX-License-Identifier: GPL-2.0
//! Figure 8: how an application that evolves and a malleable one go on with their manager, step
//! by step.

mod driver;

use driver::{ask, with, Driver};
use pbs_rms::{AppId, Event, Kind, Notice, FOREVER};

/// What was said to whom, as the figure has it.
fn said(notices: &[Notice], nea: AppId) -> Vec<String> {
    let all = notices.iter().map(|notice| {
        let whom = if notice.app == nea { "NEA" } else { "M" };
        match &notice.event {
            Event::Views { .. } => format!("{whom}: views"),
            Event::Started { nodes, .. } => format!("{whom}: startNotify {nodes:?}"),
            other => format!("{whom}: {other:?}"),
        }
    });
    all.collect()
}

#[test]
fn the_figure_step_by_step() {
    let mut rms = Driver::new(8);
    // 1, 2
    let nea = rms.connect();
    assert_eq!(said(&rms.pass(0), nea), ["NEA: views"]);
    // 3, 4, 5
    let all = rms.request(nea, ask(Kind::PreAllocation, 6, FOREVER));
    let used = rms.request(nea, with(all, ask(Kind::NonPreemptible, 2, FOREVER)));
    let told = said(&rms.pass(1), nea);
    assert_eq!(
        told,
        [
            "NEA: views",
            "NEA: startNotify []",
            "NEA: startNotify [0, 1]"
        ]
    );
    // 6, 7
    rms.now_ns = 2;
    let malleable = rms.connect();
    assert_eq!(said(&rms.pass(2), nea), ["M: views"]);
    assert_eq!(rms.views(malleable).preemptible.at(2), 6);
    // 8, 9; what the malleable one wants, the NEA can't have for its own preemptible requests.
    let spare = rms.request(malleable, ask(Kind::Preemptible, 6, FOREVER));
    let told = said(&rms.pass(3), nea);
    assert_eq!(told, ["NEA: views", "M: startNotify [2, 3, 4, 5, 6, 7]"]);
    // 10, 11, 12: and it gets nothing yet.
    let more = rms.update(4, nea, used, 4, 0, &[]);
    more.expect("it is pre-allocated");
    assert_eq!(said(&rms.pass(4), nea), ["NEA: views", "M: views"]);
    assert_eq!(rms.views(malleable).preemptible.at(4), 4);
    // 13, 14, 15
    let less = rms.update(5, malleable, spare, 4, 0, &[6, 7]);
    less.expect("all are its own");
    let told = said(&rms.pass(5), nea);
    let both = [
        "NEA: startNotify [0, 1, 6, 7]",
        "M: startNotify [2, 3, 4, 5]",
    ];
    assert_eq!(told[told.len() - 2..], both);
}
