// SPDX-License-Identifier: GPL-2.0
//! Waiting tasks: as a table, as arrows, and in the page.

use pbs_plan::from_toml;
use pbs_report::gantt::gantt;
use pbs_report::{
    table, wait_table, waited, Edge, Facts, MarkKind, Opened, Page, Report, Selection, Source,
};
use pbs_uapi::{Event, EventKind, Grant, Wait};

/// `join` waits for both others, of which `right` is later.
const NET: &str = r#"
plan_id = 7
[[process]]
id = 1
name = "left <&>"
tasks = [1_000]
[[process]]
id = 2
name = "right"
tasks = [{ name = "last", planned_insns = 5_000 }]
[[process]]
id = 3
name = "join"
tasks = [500, { planned_insns = 2_000, after = ["left <&>", "right"] }]
[[cpu]]
cpu = 0
slots = [1, 3, 3]
[[cpu]]
cpu = 1
slots = [2]
"#;

fn event(time_ns: u64, kind: EventKind, cpu: u32, process: u32, task: u32) -> Event {
    Event {
        seq: time_ns,
        time_ns,
        kind: kind as u16,
        plan_id: 7,
        cpu,
        process,
        task,
        slot: 0,
        planned_insns: 1000,
        retired_insns: 1000,
        ..Event::default()
    }
}

fn grant(time_ns: u64, cpu: u32, process: u32, task: u32) -> Event {
    Event { reason: Grant::Slot as u16, ..event(time_ns, EventKind::Grant, cpu, process, task) }
}

/// The slot of `join` comes at 600 µs; `left` has ended then at 1 ms, `right` at 5.
fn events(last: Wait) -> Vec<Event> {
    let waits = |time_ns, reason, after_process: u64| Event {
        reason: reason as u16,
        value: after_process << 32,
        ..event(time_ns, EventKind::Waits, 0, 3, 1)
    };
    let mut events = vec![
        event(0, EventKind::PlanInstalled, 0, u32::MAX, u32::MAX),
        event(1, EventKind::PlanInstalled, 1, u32::MAX, u32::MAX),
        grant(10, 0, 3, 0),
        grant(20, 1, 2, 0),
        event(500_000, EventKind::TaskEnded, 0, 3, 0),
        waits(600_000, Wait::Task, 1),
        grant(610_000, 0, 1, 0),
        event(1_000_000, EventKind::TaskEnded, 0, 1, 0),
    ];
    if last == Wait::Gone {
        events.push(waits(2_000_000, Wait::Gone, 2));
        return events;
    }
    events.extend([
        event(5_000_000, EventKind::TaskEnded, 1, 2, 0),
        grant(5_100_000, 0, 3, 1),
        event(7_000_000, EventKind::TaskEnded, 0, 3, 1),
    ]);
    events
}

fn facts() -> Facts {
    Facts { rate_insns_per_ms: 1000, ..Facts::default() }
}

#[test]
fn who_waited_is_told_with_what_ended_last() {
    let plan = from_toml(NET).unwrap();
    let waits = waited(std::slice::from_ref(&plan), &events(Wait::Task));
    let edge = Edge { process: 3, task: 1, after_process: 2, after_task: 0 };
    let found: Vec<_> =
        waits.iter().map(|wait| (wait.edge, wait.from_ns, wait.until_ns, wait.is_gone)).collect();
    assert_eq!(found, [(edge, 600_000, Some(5_000_000), false)]);
    let gone = waited(std::slice::from_ref(&plan), &events(Wait::Gone));
    let found: Vec<_> = gone.iter().map(|wait| (wait.edge, wait.is_gone)).collect();
    assert_eq!(found, [(edge, true)]);
    let name = |_, _| None;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = wait_table(&gone, |id| format!("p{id}"), name);
    assert!(words(&text).ends_with("p3 1 p2 0 in vain: it has gone"), "{text}");
    assert_eq!(wait_table(&[], |id| id.to_string(), name), "");

    let report = Report::new(&plan, &events(Wait::Task), &facts());
    let text = words(&table(&report));
    let line = "WAITING PROCESS TASK WAITED FOR TASK WAITED ms join 1 right 0 last 4.400";
    assert!(text.contains(line), "{text}");
    let edges: Vec<_> = report.edges.iter().map(|edge| edge.after_process).collect();
    assert_eq!(edges, [1, 2]);
}

#[test]
fn arrows_lead_to_who_waits() {
    let plan = from_toml(NET).unwrap();
    let report = Report::new(&plan, &events(Wait::Task), &facts());
    let marks: Vec<_> = report.cpus[0].marks.iter().map(|mark| mark.kind).collect();
    assert_eq!(marks, [MarkKind::Waits]);
    let svg = gantt(&report);
    assert_eq!(svg.matches("<path ").count(), 2);
    assert!(svg.contains("<title>join 1 waits for right 0 (last)</title>"), "{svg}");
    assert!(svg.contains("<title>join 1 waits for left &lt;&amp;&gt; 0</title>"), "{svg}");
    // The one that it waited for to the last, and the key.
    assert_eq!(svg.matches("class=\"critical\"").count(), 2);
    // From the end of one to the start of the other, at 5 and 5.1 ms of 8.5.
    let path = svg.lines().find(|line| line.contains("class=\"critical\""));
    let numbers: Vec<f64> = (path.unwrap().split(' '))
        .filter_map(|word| word.trim_end_matches('"').parse().ok())
        .collect();
    assert!(numbers[0] < numbers[4] && numbers[4] - numbers[0] < 40.0, "{numbers:?}");

    // Who never began has no arrow.
    let gone = gantt(&Report::new(&plan, &events(Wait::Gone), &facts()));
    assert_eq!(gone.matches("<path ").count(), 0);
}

#[test]
fn the_page_tells_who_waited() {
    let page = |text: &str| {
        let opened = Opened {
            plans: vec![from_toml(text).unwrap()],
            config: pbs_plan::Config::DEFAULT,
            events: events(Wait::Task),
            facts: facts(),
            source: Source::Run,
            deadlines: Default::default(),
        };
        Page::new(opened, Selection::default()).html()
    };
    let html = page(NET);
    let row = "<tr><td class=\"number\">0</td><td>join</td><td>1</td><td>right</td>\
               <td>0 last</td><td class=\"number\">4.400</td></tr>";
    assert!(html.contains(">Waiting tasks</h2>") && html.contains(row), "{html}");
    let without = page(&NET.replace(", after = [\"left <&>\", \"right\"]", ""));
    assert!(!without.contains("Waiting tasks"));
}
