// SPDX-License-Identifier: GPL-2.0
//! Plans that nobody has run yet, as text and as picture.

use pbs_report::{
    held, schedule_chart, schedule_picture, schedule_tables, Schedule, ScheduleAfter, ScheduleCore,
    ScheduleNode, ScheduleResource, ScheduleTask,
};

fn task(process: usize, start_ns: u64, end_ns: u64) -> ScheduleTask {
    ScheduleTask {
        process,
        task: format!("{process} <&>"),
        start_ns,
        end_ns,
        after: Vec::new(),
        is_critical: false,
        insns: end_ns - start_ns,
        memory_bytes: 10,
    }
}

/// A core with these tasks, on a node of 100 bytes.
fn schedule(tasks: Vec<ScheduleTask>) -> Schedule {
    let processes = tasks.iter().map(|task| task.process).max().unwrap_or(0) + 1;
    let held = held(tasks.iter().map(|task| (task.start_ns, task.end_ns, 50)));
    Schedule {
        title: "a <job>".into(),
        processes: (0..processes).map(|number| format!("p{number}")).collect(),
        deadlines: vec![(120, "near".into()), (1_000_000, "far".into())],
        nodes: vec![ScheduleNode {
            name: "node".into(),
            memory_bytes: 100,
            reserved_bytes: held,
            cores: vec![ScheduleCore { name: "core".into(), tasks }],
        }],
        resources: Vec::new(),
    }
}

/// The cells of the line that begins so.
fn cells<'a>(chart: &'a str, first: &str) -> Vec<&'a str> {
    let lines = chart.lines().filter(|line| line.starts_with(first));
    lines.map(|line| line.split('|').nth(1).unwrap()).collect()
}

#[test]
fn what_ends_makes_room_at_once() {
    let intervals = [(0, 10, 5), (10, 20, 7), (5, 15, 1), (3, 3, 9)];
    let expected = [(0, 5), (5, 6), (10, 8), (15, 7), (20, 0)];
    assert_eq!(held(intervals), expected);
    assert_eq!(held([]), []);
}

#[test]
fn resources_are_shown_as_memory_is() {
    let held = vec![(0, 3), (40, 4), (60, 0)];
    let resources = vec![ScheduleResource { name: "a <tape>".into(), count: 4, held }];
    let plan = Schedule { resources, ..schedule(vec![task(0, 0, 100)]) };
    let chart = schedule_chart(&plan, 0);
    let rows = chart.lines().skip_while(|line| !line.contains("a <tape> |"));
    let rows: Vec<_> = rows.take(4).map(|line| line.split('|').nth(1).unwrap()).collect();
    assert_eq!(rows, ["    ##    ", "######    ", "######    ", "######    "]);
    assert!(chart.contains("| 4\n"), "{chart}");
    let svg = schedule_picture(&plan);
    assert!(svg.contains("a &lt;tape&gt;") && svg.contains(">4 at most<"), "{svg}");
}

#[test]
fn a_cell_has_who_has_most_of_it() {
    // Ten cells of ten: 6 + 4, all idle, 1 alone, then two halves of one.
    let tasks = vec![
        task(0, 0, 6),
        task(1, 6, 10),
        task(2, 25, 26),
        task(0, 30, 33),
        task(1, 33, 37),
        task(0, 37, 40),
        task(3, 90, 100),
    ];
    let chart = schedule_chart(&schedule(tasks), 0);
    assert_eq!(cells(&chart, "  core"), ["A.CA.....D"]);
    assert_eq!(cells(&chart, "memory"), ["          "]);
    // Half of the memory is two quarters, also where it is held for a moment.
    assert_eq!(cells(&chart, "       |"), ["          ", "# ##     #", "# ##     #"]);
    assert!(chart.ends_with("idle\n"), "{chart}");
}

#[test]
fn long_tasks_go_through_many_cells() {
    let chart = schedule_chart(&schedule(vec![task(0, 5, 95), task(1, 95, 100)]), 0);
    assert_eq!(cells(&chart, "  core"), ["AAAAAAAAAA"]);
    let chart = schedule_chart(&schedule(vec![task(0, 5, 94), task(1, 94, 100)]), 0);
    assert_eq!(cells(&chart, "  core"), ["AAAAAAAAAB"]);
}

#[test]
fn charts_are_as_wide_as_asked_for() {
    let tasks = (0..70).map(|number| task(number, number as u64, number as u64 + 1));
    let chart = schedule_chart(&schedule(tasks.collect()), 60);
    let core = chart.lines().find(|line| line.starts_with("  core")).unwrap();
    assert!(core.len() <= 60, "{core}");
    assert!(chart.lines().all(|line| line.len() <= 60), "{chart}");
    assert!(chart.contains("* others"), "{chart}");
}

#[test]
fn nothing_planned_is_no_trouble() {
    let nothing = schedule(Vec::new());
    assert_eq!(cells(&schedule_chart(&nothing, 0), "  core"), [".........."]);
    assert!(schedule_tables(&nothing).starts_with("node core\n"));
    roxmltree::Document::parse(&schedule_picture(&nothing)).unwrap();
    assert_eq!(schedule_tables(&Schedule::default()), "");
}

#[test]
fn the_picture_is_xml_with_all_tasks_and_the_deadline_that_is_near() {
    let tasks = vec![task(0, 0, 60), task(1, 60, 100)];
    let svg = schedule_picture(&schedule(tasks));
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts = |name: &str| {
        let nodes = document.descendants();
        let nodes = nodes.filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)));
        nodes.filter_map(|node| node.text().map(String::from)).collect::<Vec<_>>()
    };
    assert_eq!(texts("title").len(), 3, "one of the picture and one of each task");
    assert!(texts("title")[1].starts_with("p0, task 0 <&>: 0.000 to 0.000 ms"));
    let texts = texts("text");
    for text in ["a <job>", "node", "core", "deadline of near", "50 B at most", "p1"] {
        assert!(texts.iter().any(|known| known == text), "{text}: {texts:?}");
    }
    assert!(!texts.iter().any(|text| text == "deadline of far"));
}

/// Waiting tasks are in the table, and arrows lead to them; tasks that determine the end are
/// marked.
#[test]
fn who_waits_is_shown() {
    let mut tasks = vec![task(0, 0, 10), task(1, 10, 20), task(2, 20, 30)];
    let after = |process: usize| ScheduleAfter { process, task: format!("{process} <&>") };
    let plain = schedule(tasks.clone());
    assert!(!schedule_tables(&plain).contains("AFTER"));
    assert!(!schedule_picture(&plain).contains("class=\"edge\""));
    tasks[1].after = vec![after(0)];
    tasks[2].after = vec![after(0), after(1)];
    tasks[0].is_critical = true;
    tasks[2].is_critical = true;
    let waits = schedule(tasks);
    let table = schedule_tables(&waits);
    let ends: Vec<_> = table.lines().skip(1).map(str::trim_end).collect();
    for (line, end) in ends.iter().zip(["AFTER", " -", "p0 0 <&>", "p0 0 <&>, p1 1 <&>"]) {
        assert!(line.ends_with(end), "{end}: {table}");
    }
    let picture = schedule_picture(&waits);
    assert_eq!(picture.matches("<path ").count(), 3);
    assert_eq!(picture.matches("<path d=").count(), 3);
    let title = "<title>p2 task 2 &lt;&amp;&gt; waits for p0 task 0 &lt;&amp;&gt;</title>";
    assert!(picture.contains(title), "{picture}");
    // Two tasks, the arrow from one to the other, and the key.
    assert_eq!(picture.matches("class=\"critical\"").count(), 4);
}
