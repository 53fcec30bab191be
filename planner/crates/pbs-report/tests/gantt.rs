// SPDX-License-Identifier: GPL-2.0
//! The picture holds what it should, where it should.

mod common;

use common::{facts, job, report, simulate};
use pbs_plan::from_toml;
use pbs_report::gantt::gantt;
use pbs_report::Report;

/// Values of an attribute of all elements of that name.
fn attributes(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let start = format!("<{element} ");
    let key = format!(" {attribute}=\"");
    svg.lines()
        .filter(|line| line.starts_with(&start))
        .filter_map(|line| line.split_once(&key)?.1.split('"').next()?.parse().ok())
        .collect()
}

#[test]
fn all_is_within_the_picture() {
    let svg = gantt(&report(&job()));
    let starts = attributes(&svg, "rect", "x");
    let widths = attributes(&svg, "rect", "width");
    assert!(starts.len() > 20);
    for (x, width) in starts.iter().zip(&widths) {
        assert!(*x >= 0.0 && x + width <= 1400.0, "{x} + {width}");
    }
    let height: f64 = attributes(&svg, "svg", "height")[0];
    for y in attributes(&svg, "text", "y") {
        assert!((0.0..height).contains(&y), "{y} of {height}");
    }
}

#[test]
fn names_are_escaped_and_elements_closed() {
    let svg = gantt(&report(&job()));
    assert!(svg.contains("a &lt;very&gt; long &amp; &quot;odd&quot; name"));
    assert!(!svg.contains("<very>"));
    for element in ["svg", "text", "title", "pattern", "defs"] {
        let opened = svg.matches(&format!("<{element}")).count();
        assert_eq!(
            opened,
            svg.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
}

#[test]
fn large_deviations_are_written() {
    let svg = gantt(&report(&job()));
    assert!(svg.contains(">sort 0: +30 %, preempted</text>"), "{svg}");
    assert!(svg.contains(">hash 1: −40 %</text>"), "{svg}");
    // 0.4 % is not.
    assert!(!svg.contains("name 0: +0"), "{svg}");
}

#[test]
fn the_legend_names_what_is_there() {
    let plain = gantt(&report(&job()));
    assert!(
        plain.contains(">idle slot</text>") && plain.contains(">t1 reached, task preempted</text>")
    );
    assert!(!plain.contains(">process absent</text>"));
    let plan = job();
    let events = simulate(&plan, &[2], 600_000_000);
    let absent = gantt(&Report::new(&plan, &events, &facts()));
    assert!(absent.contains(">process absent</text>"));
}

#[test]
fn a_run_without_events_is_still_a_picture() {
    let plan = job();
    let svg = gantt(&Report::new(&plan, &[], &facts()));
    assert!(svg.contains("0 of 9 tasks ended"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn each_cpu_has_its_tracks() {
    let text = "[[process]]\nid = 1\ntasks = [500_000]\n[[process]]\nid = 2\ntasks = [700_000]\n\
                [[cpu]]\ncpu = 0\nslots = [1]\n[[cpu]]\ncpu = 3\nslots = [2]\n";
    let svg = gantt(&report(&from_toml(text).unwrap()));
    assert!(svg.contains(">CPU 0</text>") && svg.contains(">CPU 3</text>"));
    assert_eq!(svg.matches(">planned</text>").count(), 2);
}

#[test]
fn a_task_is_called_by_its_name_where_that_fits() {
    let text = "[[process]]\nid = 1\nname = \"p\"\ntasks = [\
                { name = \"wide\", planned_insns = 100_000_000 }, \
                { name = \"narrow one\", planned_insns = 3_000_000 }, 100_000_000]\n\
                [[cpu]]\ncpu = 0\nslots = [1, 1, 1]\n";
    let svg = gantt(&report(&from_toml(text).unwrap()));
    let line = |text: &str| svg.lines().find(|line| line.contains(text));
    assert!(!line(">wide</text>").unwrap().contains("rotate"));
    assert!(line(">narrow one</text>").unwrap().contains("rotate(-90 "));
    assert!(line(">p 2</text>").is_some());
}
