// SPDX-License-Identifier: GPL-2.0
//! Schedules on CPU threads and accelerators, as picture and as page.

use pbs_report::{
    placements_page, placements_picture, Panel, PlacedProcess, PlacedTask, Placements,
};
use pbs_text::Table;

fn task(process: usize, rows: &[usize], start_ns: u64, end_ns: u64) -> PlacedTask {
    PlacedTask {
        process,
        task: format!("t <{start_ns}>"),
        label: "omp & more".into(),
        rows: rows.to_vec(),
        start_ns,
        end_ns,
    }
}

/// Two panels, of which the second ends in the middle of the first.
fn placements(threads: usize) -> Placements {
    let process = |name: &str, arrival_ns, deadline_ns| PlacedProcess {
        name: name.into(),
        arrival_ns,
        deadline_ns,
    };
    let panel = |title: &str, tasks, marks| Panel { title: title.into(), tasks, marks };
    let all: Vec<usize> = (0..threads).collect();
    Placements {
        title: "a <title>".into(),
        processes: vec![process("p", 0, None), process("q", 300, Some(1_200))],
        threads: (0..threads).map(|cpu| format!("CPU {cpu}")).collect(),
        accelerators: vec!["gpu 0".into(), "gpu 1".into()],
        panels: vec![
            panel(
                "without",
                vec![task(0, &all, 0, 400), task(1, &[0, 1, 3], 400, 1_000)],
                Vec::new(),
            ),
            panel(
                "with",
                vec![task(0, &[threads], 0, 400), task(1, &[threads + 1], 0, 500)],
                vec![(300, "mapped anew".into())],
            ),
        ],
    }
}

/// The boxes of a process: left, top, width and height.
fn boxes(svg: &str, name: &str) -> Vec<[f64; 4]> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let boxes = document.descendants().filter(|node| {
        let title = node.children().find(|child| child.has_tag_name("title"));
        let title = title.and_then(|title| title.text()).unwrap_or_default();
        node.has_tag_name("rect") && title.starts_with(&format!("{name} "))
    });
    let places = boxes.map(|node| {
        ["x", "y", "width", "height"].map(|key| node.attribute(key).unwrap().parse().unwrap())
    });
    places.collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.05
}

#[test]
fn both_schedules_are_on_one_axis() {
    let svg = placements_picture(&placements(4));
    let (p, q) = (boxes(&svg, "p"), boxes(&svg, "q"));
    // 400 ns are as wide above and below, and begin at the same place.
    assert!(near(p[0][0], p[1][0]) && near(p[0][2], p[1][2]), "{p:?}");
    assert!(near(q[0][2] / p[0][2], 1.5), "{q:?}");
    // The threads beside each other are one box, those apart two.
    assert_eq!((p.len(), q.len()), (2, 3));
    assert!(near(p[0][3], 2.0 * q[0][3]), "{p:?} {q:?}");
    assert!(near(q[0][3], 2.0 * q[1][3]), "{q:?}");
    // The accelerators are below the threads, one below the other.
    assert!(p[1][1] > p[0][1] + p[0][3] && q[2][1] > p[1][1]);
    // The deadline is to the right of all, so the axis reaches there.
    let text: String = svg.chars().collect();
    assert!(text.contains("deadline of q") && text.contains("mapped anew"));
    assert!(text.contains("0.001 ms"), "{text}");
}

/// If there are very many threads, only the first and the last are named, and the picture fits on a
/// screen.
#[test]
fn many_threads_stay_readable() {
    let svg = placements_picture(&placements(96));
    let document = roxmltree::Document::parse(&svg).unwrap();
    let height: f64 = document.root_element().attribute("height").unwrap().parse().unwrap();
    assert!(height < 960.0, "{height}");
    let texts = document.descendants().filter(|node| node.is_text());
    let texts = texts.filter_map(|node| node.text());
    let cpus = texts.filter(|text| text.starts_with("CPU ")).count();
    assert_eq!(cpus, 4);
}

/// The texts that are drawn.
fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text().map(str::to_string)).collect()
}

/// Draws a panel whose rows end at 1,000, with processes of these arrivals and deadlines.
fn with_processes(of: &[(u64, Option<u64>)]) -> String {
    let processes = of.iter().enumerate();
    let processes = processes.map(|(index, &(arrival_ns, deadline_ns))| PlacedProcess {
        name: format!("p{index}"),
        arrival_ns,
        deadline_ns,
    });
    placements_picture(&Placements {
        processes: processes.collect(),
        threads: vec!["CPU 0".into()],
        panels: vec![Panel { tasks: vec![task(0, &[0], 0, 1_000)], ..Panel::default() }],
        ..Placements::default()
    })
}

/// Lines that are as close as their texts are wide are all there, and none goes untold.
#[test]
fn lines_whose_texts_have_no_room_are_counted() {
    for (count, at) in [(3, 500), (5, 500), (5, 980)] {
        let processes: Vec<_> = (0..count).map(|number| (at + 3 * number, None)).collect();
        let svg = with_processes(&processes);
        let lines = svg.matches("stroke-dasharray=\"2 3\"").count();
        // One more says what the others are.
        assert_eq!(lines, count as usize + 1, "{svg}");
        let texts = texts(&svg);
        let comes = texts.iter().filter(|text| text.starts_with('p') && text.contains(" comes"));
        let told = comes.map(|text| {
            let more = text.split_once(" +").map_or(0, |(_, more)| more.parse().unwrap());
            1 + more
        });
        assert_eq!(told.sum::<u64>(), count, "{texts:?}");
    }
    let svg = with_processes(&[(0, Some(700)); 40]);
    let texts = texts(&svg);
    assert!(texts.contains(&"deadline of p0 +38".into()), "{texts:?}");
    // What has room for itself counts nobody.
    let svg = with_processes(&[(300, None), (600, None)]);
    assert!(!svg.contains(" +"), "{svg}");
}

#[test]
fn nothing_at_all_is_drawn_too() {
    let svg = placements_picture(&Placements::default());
    assert!(roxmltree::Document::parse(&svg).is_ok());
}

#[test]
fn pages_hold_the_picture_and_the_tables() {
    let mut table = Table::new(&["what", "how much"], 1);
    table.push(vec!["<this>".into(), "7".into()]);
    let figures = [("speed-up".to_string(), "1 < 2".to_string())];
    let page = placements_page(&placements(4), &figures, "a & b", &[("All", table)]);
    for part in [
        "<h1>a &lt;title&gt;</h1>",
        "a &amp; b",
        "<li><b>1 &lt; 2</b> speed-up</li>",
        "<svg ",
        "<h2>All</h2>",
        "<td>&lt;this&gt;</td><td class=\"number\">7</td>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
