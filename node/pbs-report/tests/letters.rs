// SPDX-License-Identifier: GPL-2.0
//! All pictures have letters that can be read where a page shows them 880 pixels wide, and a
//! sentence on their axes.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{job, opened, report, SIGNALS};
use pbs_plan::from_toml;
use pbs_report::{
    bars, curves, lanes, net_picture, placements_page, placements_picture, schedule_picture, Bar,
    BarColour, Bars, Curve, Deadline, Lane, Net, NetTask, Page, Panel, PlacedProcess, PlacedTask,
    Placements, Plot, Schedule, ScheduleCore, ScheduleNode, ScheduleResource, ScheduleTask,
    Selection, Stay,
};
use roxmltree::{Document, Node};

/// Width of pictures on the page that introduces the project.
const SHOWN: f64 = 880.0;
/// The smallest letters there, in pixels.
const LEAST: f64 = 11.0;

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    let text = node.attribute(name).unwrap_or_else(|| panic!("no {name}: {node:?}"));
    text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
}

fn texts<'a>(document: &'a Document<'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
}

/// Checks the letters of a picture, and its sentence.
fn check(name: &str, svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
    let root = document.root_element();
    let width: f64 = root.attribute("viewBox").unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    let mut words = String::new();
    for text in texts(&document) {
        let pixels = number(&text, "font-size") * SHOWN / width;
        assert!(pixels >= LEAST, "{name}: {pixels} pixels: {:?}", text.text());
        words.extend([text.text().unwrap_or_default(), " "]);
    }
    assert!(words.contains("Left to right: "), "{name}: {words}");
    assert!(words.contains("Rows: ") || words.contains("Bottom to top: "), "{name}: {words}");
}

fn placements() -> Placements {
    let task = PlacedTask { rows: vec![0, 1], end_ns: 50, ..PlacedTask::default() };
    Placements {
        title: "schedules".into(),
        processes: vec![PlacedProcess { name: "p".into(), deadline_ns: Some(60), arrival_ns: 10 }],
        threads: vec!["CPU 0".into()],
        accelerators: vec!["gpu".into()],
        panels: vec![Panel {
            title: "one".into(),
            tasks: vec![task],
            marks: vec![(20, "decided".into())],
        }],
    }
}

/// A picture of each kind that others draw.
fn drawn() -> Vec<(&'static str, String)> {
    let task = ScheduleTask {
        process: 0,
        task: "t".into(),
        start_ns: 0,
        end_ns: 90,
        after: Vec::new(),
        is_critical: true,
        insns: 1,
        memory_bytes: 1,
    };
    let schedule = Schedule {
        title: "plan".into(),
        processes: vec!["p".into()],
        deadlines: vec![(100, "near".into()), (1_000_000, "far".into())],
        nodes: vec![ScheduleNode {
            name: "node".into(),
            memory_bytes: 2,
            reserved_bytes: vec![(0, 1), (90, 0)],
            cores: vec![ScheduleCore { name: "core".into(), tasks: vec![task] }],
        }],
        resources: vec![ScheduleResource {
            name: "matlab".into(),
            count: 2,
            held: vec![(0, 1), (90, 0)],
        }],
    };
    let plot = Plot {
        title: "plot".into(),
        across: "seconds".into(),
        up: "percent".into(),
        curves: vec![Curve { name: "one".into(), points: vec![(0.0, 1.0), (2.0, 3.0)] }],
        ..Plot::default()
    };
    let stay =
        Stay { from: 0, until: 9, takes: 1, of: 0, name: "job".into(), title: "a job".into() };
    let lane = Lane { name: "n1".into(), note: "down".into(), has: 2, stays: vec![stay] };
    let bar = Bar { label: "a".into(), value: 3.0, text: "3".into(), colour: BarColour::Subject };
    let group = Bars { title: "group".into(), bars: vec![bar], limit: Some((2.0, "limit".into())) };
    vec![
        ("schedule", schedule_picture(&schedule)),
        ("curves", curves("title", "what", &[plot])),
        ("net", net_picture(&Net { tasks: vec![NetTask::default()], ..Net::default() })),
        ("lanes", lanes("title", "what", (0, 10), &[(5, "noon".into())], &[lane])),
        ("bars", bars("title", "Left to right: a. Rows: b.", "what", &[group])),
        ("placements", placements_picture(&placements())),
    ]
}

#[test]
fn letters_of_all_pictures_can_be_read_and_axes_are_explained() {
    for (name, svg) in drawn() {
        check(name, &svg);
    }
    let page = Page::new(opened(from_toml(SIGNALS).unwrap()), Selection::default());
    let charts = page.charts();
    assert!(charts.len() > 10, "{charts:?}");
    for name in charts {
        check(&name, &page.chart(&name).unwrap());
    }
}

#[test]
fn letters_of_the_documents_pictures_can_be_read() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/images");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pictures: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "svg")).collect();
    assert!(pictures.len() >= 4, "{pictures:?}");
    for path in pictures {
        check(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
    }
}

/// A page makes its pictures no narrower than that, also in a narrow window, where they can be
/// moved sideways.
#[test]
fn pages_keep_letters_large_enough() {
    let html = placements_page(&placements(), &[], "", &[]);
    let rule = html.split("svg.picture {").nth(1).unwrap();
    let least = rule.split("min-width: ").nth(1).unwrap().split("px").next().unwrap();
    assert!(least.parse::<f64>().unwrap() >= SHOWN, "{least}");
}

/// Kept and missed deadlines differ in shape, in colour and in the key.
#[test]
fn kept_and_missed_deadlines_have_marks_of_different_shapes() {
    let mut report = report(&job());
    let begun_ns = report.cpus[0].installed_ns.unwrap();
    let deadline = |name: &str, kept: bool| Deadline {
        process: None,
        name: name.into(),
        deadline_ns: begun_ns + 400_000_000,
        ended_ns: Some(begun_ns + if kept { 300_000_000 } else { 500_000_000 }),
        kept,
    };
    report.deadlines = vec![deadline("good", true)];
    let marks = |svg: &str| {
        let document = Document::parse(svg).unwrap();
        let of = |class: &str| {
            let own = document.descendants().filter(|node| node.attribute("class") == Some(class));
            own.map(|node| node.tag_name().name().to_string()).collect::<Vec<_>>()
        };
        (of("due-kept"), of("due-missed"))
    };
    let kept = pbs_report::gantt::gantt(&report);
    // One in the picture, one in the key.
    assert_eq!(marks(&kept), (vec!["circle".into(); 2], Vec::new()));
    assert!(kept.contains(">deadline, kept<") && !kept.contains(">deadline, missed<"));
    report.deadlines.push(deadline("bad", false));
    let both = pbs_report::gantt::gantt(&report);
    assert_eq!(marks(&both), (vec!["circle".into(); 2], vec!["rect".into(); 2]));
    assert!(both.contains(">deadline, kept<") && both.contains(">deadline, missed<"));
}
