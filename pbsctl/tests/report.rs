// SPDX-License-Identifier: GPL-2.0
//! `pbsctl report` as people and scripts use it.

mod common;

use common::{directory, pbsctl, scratch, LATE};

fn recording() -> String {
    let ran = pbsctl(&["--json", "sim", "-"], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran.stdout
}

#[test]
fn a_simulation_becomes_a_page() {
    let file = scratch("report.html");
    let name = file.to_str().unwrap();
    let ran = pbsctl(&["report", "-", "-o", name], &recording());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with(name), "{}", ran.stdout);
    let html = std::fs::read_to_string(&file).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"));
    // The greater of 50 million * 1.5 and 50 million + 20 million.
    assert!(html.contains("75,000,001 retired &gt; t2_task 75,000,000"));
    // What the simulator adds to a recording.
    assert!(html.contains("<b>1 of 2</b> deadlines kept"));
}

#[test]
fn json_has_the_numbers_behind_the_pictures() {
    let json = pbsctl(&["--json", "report", "-", "--task", "2:0"], &recording()).json();
    assert_eq!(json["plan_id"], 7);
    assert_eq!(json["source"], "simulation");
    assert_eq!(json["tasks"][0]["process"], 2);
    assert_eq!(json["tasks"][0]["ended"][1], 20_000_000);
    let failure = json["signals"].as_array().unwrap().iter();
    let mut failure = failure.filter(|signal| signal["cause"] == "task");
    assert_eq!(failure.next().unwrap()["threshold"], 75_000_000);
    assert_eq!(json["deviations"]["tasks"], 3);
}

#[test]
fn a_picture_can_be_had_alone() {
    let recording = recording();
    let ran = pbsctl(&["report", "-", "--chart", "process-0-1"], &recording);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("<svg ") && ran.stdout.ends_with("</svg>\n"));
    let ran = pbsctl(&["report", "-", "--chart", "process-0-9"], &recording);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.contains("write one of gantt, node-0, process-0-1, process-0-2"),
        "{}",
        ran.stderr
    );
}

/// A name that promises another format than that of the page or the picture is refused.
#[test]
fn a_page_is_written_as_html_and_a_picture_as_svg() {
    let recording = recording();
    // Without files of an earlier run.
    let directory = directory("report-formats", &[]);
    for (options, name, told) in [
        (&["--chart", "gantt"][..], "x.png", "the picture is written as SVG, and not as png; name"),
        (&[], "x.svg", "and not as svg; name a file that ends in .html, such as"),
        (&[], "x.svg", "x.html; --chart writes one of its pictures as SVG"),
        (&[], "x.pdf", "the page is written as HTML, and not as pdf"),
    ] {
        let file = directory.join(name);
        let ran =
            pbsctl(&[&["report", "-", "-o", file.to_str().unwrap()], options].concat(), &recording);
        assert_eq!(ran.status, 2, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{name}: {}", ran.stderr);
        assert!(!file.exists(), "{name}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let recording = recording();
    let other = recording.replacen("\"version\": 1", "\"version\": 9", 1);
    for (arguments, input, status, message) in [
        (&["report", "-"][..], recording.as_str(), 2, "the page needs a file; add --output"),
        (
            &["report", "-", "--task", "1:5", "--json"],
            &recording,
            2,
            "--task: process 1 has no task 5; there are 0",
        ),
        (
            &["report", "-", "--task", "five", "--json"],
            &recording,
            2,
            "--task: \"five\" is no task; write",
        ),
        (&["report", "-", "--json"], &other, 1, "standard input: the recording has version 9"),
        (
            &["report", "-", "--json"],
            LATE,
            1,
            "this is a plan, not a recording; simulate the plan first: \
             pbsctl --json sim - > run.json",
        ),
        (&["report", "-", "--json"], "1;0,9;;;0,4,12,11;", 1, "this is a plan, not"),
        (&["report", "-", "--json"], "", 1, "standard input: this is empty; write a recording"),
        (&["node", "trace", "-", "--json"], "", 1, "standard input: this is empty; write a"),
        (&["report", "-", "--json"], "nonsense", 1, "standard input: this is not JSON"),
        (
            &["report", "/nonexistent/run.json", "--json"],
            "",
            1,
            "/nonexistent/run.json: No such file",
        ),
    ] {
        let ran = pbsctl(arguments, input);
        assert_eq!(ran.status, status, "{arguments:?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    }
}
