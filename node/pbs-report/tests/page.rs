// SPDX-License-Identifier: GPL-2.0
//! The page and its pictures hold what they should, and stand alone.

mod common;

use common::{facts, job, opened, SIGNALS};
use pbs_plan::{from_toml, Config};
use pbs_report::{Deadline, Opened, Page, Selection, Source};
use pbs_uapi::{Cause, Event, EventKind};
use roxmltree::Document;

fn page() -> Page {
    let plan = from_toml(SIGNALS).unwrap();
    Page::new(opened(plan), Selection::default())
}

fn empty() -> Page {
    let opened = Opened { events: Vec::new(), ..opened(job()) };
    Page::new(opened, Selection::default())
}

/// Every `<svg>` of a page.
fn pictures(html: &str) -> Vec<&str> {
    let starts = html.match_indices("<svg ").map(|(start, _)| &html[start..]);
    starts.map(|rest| &rest[..rest.find("</svg>").unwrap() + "</svg>".len()]).collect()
}

#[test]
fn every_picture_is_well_formed_and_says_what_it_is() {
    let html = page().html();
    let pictures = pictures(&html);
    // The plan, the node, three processes, nine tasks, preemptions, deviations.
    assert_eq!(pictures.len(), 1 + 1 + 3 + 9 + 1 + 1);
    for picture in pictures {
        let document = Document::parse(picture).unwrap_or_else(|e| panic!("{e}: {picture}"));
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        let labels = root.attribute("aria-labelledby").unwrap();
        for (id, element) in labels.split(' ').zip(["title", "desc"]) {
            let mut children = root.children();
            let label =
                children.find(|child| child.has_tag_name(("http://www.w3.org/2000/svg", element)));
            let label = label.unwrap();
            assert_eq!(label.attribute("id"), Some(id));
            assert!(!label.text().unwrap_or_default().is_empty(), "{id}");
        }
    }
}

#[test]
fn ids_are_unique_in_the_page() {
    let html = page().html();
    let mut ids: Vec<_> =
        html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let all = ids.len();
    assert!(all > 30);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn the_page_needs_nothing_else() {
    for html in [page().html(), empty().html()] {
        let rest = html.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "//", "<script", "<link", "@import", "src="] {
            assert!(!rest.contains(outside), "{outside}");
        }
        // Only to its own elements.
        for reference in rest.split("url(").skip(1) {
            assert!(reference.starts_with('#'), "{}", &reference[..20]);
        }
    }
}

#[test]
fn names_are_escaped() {
    let html = page().html();
    assert!(html.contains("a &lt;very&gt; long &amp; &quot;odd&quot; name"));
    assert!(!html.contains("<very>"));
}

#[test]
fn signals_stand_in_words() {
    let html = page().html();
    assert!(html.contains("<td>24,000,001 retired &gt; t2_task 24,000,000</td>"));
    assert!(html.contains("<td>9,000,000 retired &lt; tm2_task 24,000,000</td>"));
    assert!(html.contains("<b>9 of 9</b> tasks ended"));
    assert!(html.contains("<b>1</b> early (task 1)"));
    // Both stages of a process, and the greater is what it was compared with.
    let stages = html
        .split("<td>process lateness ")
        .skip(1)
        .map(|rest| rest.split("</td>").next().unwrap())
        .collect::<Vec<_>>();
    assert!(!stages.is_empty());
    for words in stages {
        let numbers = words.replace(", the greater of", "").replace(',', "");
        let numbers: Vec<i64> = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [.., limit, buffer, t2_process] = numbers[..] else { panic!("{words}") };
        assert_eq!(limit, buffer.max(t2_process), "{words}");
        assert!(t2_process >= 3_000_000, "{words}");
    }
}

/// The pictures of latenesses come before the signals, of which the first ten
/// are not folded away.
#[test]
fn most_signals_are_folded() {
    let mut recorded = opened(from_toml(SIGNALS).unwrap());
    let page = |opened: &Opened| Page::new(opened.clone(), Selection::default()).html();
    let place = |html: &str, text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    let is_info = |event: &Event| event.kind == EventKind::Info as u16;
    recorded.events.retain(|event| !is_info(event));
    let short = page(&recorded);
    let signals = short.matches(" retired &gt; t2_task 24,000,000</td>").count();
    assert!(!short.contains(" more of "));
    let is_late =
        |event: &&Event| (event.kind, event.reason) == (EventKind::Late as u16, Cause::Task as u16);
    let late = *recorded.events.iter().find(is_late).unwrap();
    recorded.events.extend(vec![late; 40]);
    let html = page(&recorded);
    assert_eq!(html.matches(" retired &gt; t2_task 24,000,000</td>").count(), signals + 40);
    let summary = html.split("<summary>").find(|text| text.contains(" more of "));
    let summary = summary.unwrap().split(' ').collect::<Vec<_>>();
    let (folded, all): (usize, usize) = (summary[0].parse().unwrap(), summary[3].parse().unwrap());
    assert_eq!(all - folded, 10);
    assert!(all > 40);
    let gantt = place(&html, "aria-labelledby=\"gantt-title");
    let node = place(&html, "aria-labelledby=\"node-0-title");
    let table = place(&html, ">Signals</h2>");
    assert!(gantt < node && node < table);
}

/// Marks that would lie on each other are one, with all their labels.
#[test]
fn close_marks_share_a_label() {
    let mut recorded = opened(from_toml(SIGNALS).unwrap());
    let is_late =
        |event: &&Event| (event.kind, event.reason) == (EventKind::Late as u16, Cause::Node as u16);
    let late = *recorded.events.iter().find(is_late).unwrap();
    let signals = |recorded: &Opened| {
        let svg = Page::new(recorded.clone(), Selection::default()).chart("node-0").unwrap();
        let labels = svg.lines().filter(|line| line.contains("class=\"note\""));
        let labels: Vec<_> = labels
            .filter(|line| line.contains("signal"))
            .map(|line| line.split('>').nth(1).unwrap().replace("</text", ""))
            .collect();
        (svg.matches(">!</text>").count(), labels)
    };
    let (marks, labels) = signals(&recorded);
    recorded.events.push(late);
    let (same, joined) = signals(&recorded);
    assert_eq!((marks, joined.len()), (same, labels.len()), "{labels:?}");
    let number = |label: &str| label.matches("signal").count();
    let sum = |labels: &[String]| labels.iter().map(|label| number(label)).sum::<usize>();
    assert_eq!(sum(&joined), sum(&labels) + 1, "{joined:?}");
    recorded.events.extend(vec![late; 9]);
    let (same, short) = signals(&recorded);
    assert_eq!(marks, same);
    assert!(short.iter().any(|label| label.contains(" more, signal ")), "{short:?}");
}

/// Compared values and all marks lie inside the frame.
#[test]
fn the_axes_cover_the_data() {
    let page = page();
    let mut lines = 0;
    for name in page.charts() {
        let svg = page.chart(&name).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "{name}");
        let document = Document::parse(&svg).unwrap();
        let number = |node: &roxmltree::Node, name: &str| -> f64 {
            node.attribute(name).unwrap().parse().unwrap()
        };
        let with_class = |class: &'static str| {
            let nodes = document.descendants();
            nodes.filter(move |node| {
                let classes = node.attribute("class").unwrap_or_default();
                classes.split(' ').any(|known| known == class)
            })
        };
        let frames: Vec<_> = with_class("plot")
            .map(|plot| {
                let (left, top) = (number(&plot, "x"), number(&plot, "y"));
                let (width, height) = (number(&plot, "width"), number(&plot, "height"));
                (left, left + width, top, top + height)
            })
            .collect();
        let inside = |x: f64, y: f64| {
            let mut frames = frames.iter();
            frames.any(|&(left, right, top, bottom)| {
                (left - 0.1..=right + 0.1).contains(&x) && (top - 0.1..=bottom + 0.1).contains(&y)
            })
        };
        for line in with_class("compared").filter(|node| node.has_attribute("points")) {
            lines += 1;
            for point in line.attribute("points").unwrap().split(' ') {
                let (x, y) = point.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(inside(x, y), "{name}: {x}, {y} in {frames:?}");
            }
        }
        if name == "gantt" {
            continue;
        }
        for circle in document.descendants().filter(|node| node.has_attribute("cx")) {
            let (x, y) = (number(&circle, "cx"), number(&circle, "cy"));
            assert!(inside(x, y), "{name}: mark at {x}, {y}");
        }
        let view = document.root_element().attribute("viewBox").unwrap().split(' ');
        let view: Vec<f64> = view.map(|number| number.parse().unwrap()).collect();
        let [left, top, width, height] = view[..] else { panic!("{view:?}") };
        let (across, down) = (left..=left + width, top..=top + height);
        for text in document.descendants().filter(|node| node.tag_name().name() == "text") {
            let (x, y) = (number(&text, "x"), number(&text, "y"));
            assert!(across.contains(&x) && down.contains(&y), "{name}: {text:?}");
        }
    }
    assert_eq!(lines, 1 + 3 + 9);
}

#[test]
fn a_recording_without_events_is_still_a_page() {
    let page = empty();
    let html = page.html();
    for said in [
        "0 of 9</b> tasks ended",
        "No threshold was exceeded",
        "nothing ran",
        "No task was preempted.",
        "No task ended.",
    ] {
        assert!(html.contains(said), "{said}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf\""));
    for name in page.charts() {
        let svg = page.chart(&name).unwrap();
        Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn a_picture_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let refused = page().chart("deviation").unwrap_err();
    assert!(refused.contains("no picture \"deviation\"; write one of gantt, node-0, process-0-1"));
    assert!(refused.ends_with("preemptions, deviations"), "{refused}");
}

#[test]
fn deadlines_are_shown_where_a_simulation_has_them() {
    let without = page().html();
    assert!(!without.contains("deadlines kept"));
    let recording = pbs_report::Recording {
        version: pbs_report::Recording::VERSION,
        source: Source::Simulation,
        kernel: facts().kernel,
        tier: facts().tier,
        rate_insns_per_ms: facts().rate_insns_per_ms,
        outcome: facts().outcome,
        config: pbs_report::config_by_name(&Config::DEFAULT),
        plans: vec![(&job()).into()],
        events: Vec::new(),
    };
    let mut json = serde_json::to_value(&recording).unwrap();
    json["processes"] = serde_json::json!([
        { "id": 1, "ended_ns": 4_000_000, "deadline_ns": 5_000_000, "kept": true },
        { "id": 2, "ended_ns": null, "deadline_ns": 6_500_000, "kept": false },
        { "id": 3, "exits": [] },
    ]);
    let opened = Opened::from_json(&json.to_string()).unwrap();
    let html = Page::new(opened, Selection::default()).html();
    assert!(html.contains("<b>1 of 2</b> deadlines kept"));
    assert!(html.contains(">4.000</td><td class=\"number\">5.000</td><td>kept</td>"));
    assert!(html.contains(">not ended</td><td class=\"number\">6.500</td><td>missed</td>"));
}

/// Every heading and every chart is in the table of contents, and every link leads
/// somewhere.
#[test]
fn the_contents_lead_to_every_heading() {
    let html = page().html();
    let (_, nav) = html.split_once("<nav").unwrap();
    let (nav, body) = nav.split_once("</nav>").unwrap();
    let links: Vec<_> =
        nav.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for link in &links {
        assert!(body.contains(&format!(" id=\"{link}\"")), "{link}");
    }
    let headings = body.matches("<h2").count() + body.matches("<h3").count();
    assert_eq!(links.len(), headings);
    assert!(headings > 8, "{headings}");
    assert_eq!(nav.matches("<ul").count(), nav.matches("</ul>").count());
}

/// Deadlines of jobs come back from what `run --report` writes.
#[test]
fn deadlines_of_jobs_are_told_in_words() {
    let mut opened = opened(job());
    let begun_ns = opened.events[0].time_ns;
    opened.deadlines = vec![
        Deadline {
            process: None,
            name: "<good>".into(),
            deadline_ns: begun_ns + 400_000_000,
            ended_ns: Some(begun_ns + 300_500_000),
            kept: true,
        },
        Deadline {
            process: None,
            name: "bad".into(),
            deadline_ns: begun_ns + 100_000_000,
            ended_ns: Some(begun_ns + 300_500_000),
            kept: false,
        },
    ];
    let page = Page::new(opened, Selection::default());
    for text in [page.html(), page.chart("gantt").unwrap()] {
        assert!(text.contains("&lt;good&gt;"), "{text}");
        assert!(text.contains("kept by 99.5 ms"), "{text}");
        assert!(text.contains("missed by 200.5 ms"), "{text}");
    }
    assert!(page.html().contains("<b>1 of 2</b> deadlines kept"));
}
