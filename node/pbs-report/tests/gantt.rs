// SPDX-License-Identifier: GPL-2.0
//! The picture holds what it should, where it should.

mod common;

use common::{facts, job, report, simulate};
use pbs_plan::from_toml;
use pbs_report::gantt::gantt;
use pbs_report::{Facts, MarkKind, Report};

/// Values of an attribute of all elements of that name.
fn attributes(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let start = format!("<{element} ");
    let key = format!(" {attribute}=\"");
    svg.lines()
        .filter(|line| line.starts_with(&start))
        .filter_map(|line| line.split_once(&key)?.1.split('"').next()?.parse().ok())
        .collect()
}

/// The top and the bottom of a picture.
fn extent(svg: &str) -> (f64, f64) {
    let numbers = svg.split("viewBox=\"").nth(1).unwrap().split('"').next().unwrap();
    let numbers: Vec<f64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    (numbers[1], numbers[1] + numbers[3])
}

#[test]
fn all_is_within_the_picture() {
    let svg = gantt(&report(&job()));
    let starts = attributes(&svg, "rect", "x");
    let widths = attributes(&svg, "rect", "width");
    assert!(starts.len() > 20);
    for (x, width) in starts.iter().zip(&widths) {
        assert!(*x >= 0.0 && x + width <= 960.0, "{x} + {width}");
    }
    let (top, bottom) = extent(&svg);
    for y in attributes(&svg, "text", "y") {
        assert!((top..bottom).contains(&y), "{y} of {top} to {bottom}");
    }
}

#[test]
fn names_are_escaped_and_elements_closed() {
    let svg = gantt(&report(&job()));
    assert!(svg.contains("a &lt;very&gt; long &amp; &quot;odd&quot; name"));
    assert!(!svg.contains("<very>"));
    for element in ["svg", "text", "title", "pattern", "defs"] {
        let opened = svg.matches(&format!("<{element}")).count();
        assert_eq!(opened, svg.matches(&format!("</{element}>")).count(), "{element}");
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
                { name = \"narrow one\", planned_insns = 4_000_000 }, 100_000_000]\n\
                [[cpu]]\ncpu = 0\nslots = [1, 1, 1]\n";
    let svg = gantt(&report(&from_toml(text).unwrap()));
    let line = |text: &str| svg.lines().find(|line| line.contains(text));
    assert!(!line(">wide</text>").unwrap().contains("rotate"));
    assert!(line(">narrow one</text>").unwrap().contains("rotate(-90 "));
    assert!(line(">p 2</text>").is_some());
}

/// The second task of the receiver waits for a message of the other CPU, whose sender is late.
#[test]
fn messages_lead_from_their_sender_to_their_arrival() {
    let text = "[[process]]\nid = 1\nname = \"sender\"\ntasks = [{ planned_insns = 40_000_000, \
                real_insns = 60_000_000 }]\n[[process]]\nid = 2\nname = \"receiver\"\ntasks = [\
                30_000_000, { planned_insns = 40_000_000, after = [{ task = \"sender/0\", \
                arrival = \"50 ms\" }] }]\n[[cpu]]\ncpu = 0\nslots = [1]\n[[cpu]]\ncpu = 1\n\
                slots = [2, \"idle 20_000_000\", 2]\n";
    let plan = from_toml(text).unwrap();
    let run = pbs_sim::simulate(&plan, &pbs_sim::Options::default(), &mut pbs_sim::NoAnswer);
    let facts = Facts { rate_insns_per_ms: 1_000_000, ..facts() };
    let svg = gantt(&Report::new(&plan, &run.unwrap().events, &facts));
    let arrow = |title: &str| -> Vec<f64> {
        let line = svg.lines().find(|line| line.contains(title)).unwrap_or_else(|| panic!("{svg}"));
        let path = line.split(" d=\"M ").nth(1).unwrap().split(" M ").next().unwrap();
        path.split([' ', 'Q']).filter_map(|number| number.parse().ok()).collect()
    };
    let planned = arrow("message of sender, task 0, planned to arrive at 50.000 ms");
    let actual = arrow("receives the message of");
    let box_of = |title: &str| {
        let line = svg.lines().find(|line| line.contains(title)).unwrap();
        let of = |attribute| attributes(line, "rect", attribute)[0];
        (of("x"), of("x") + of("width"))
    };
    let (begin, end) = box_of("slot 0: sender");
    let per_ms = (end - begin) / 40.0;
    assert!((planned[0] - end).abs() < 0.1, "{planned:?}");
    assert!((planned[4] - (begin + 50.0 * per_ms)).abs() < 0.1, "{planned:?}");
    // It really arrives when the sender ends, on the other CPU.
    assert!((actual[0] - (begin + 60.0 * per_ms)).abs() < 0.5, "{actual:?}");
    assert!((actual[4] - actual[0]).abs() < 0.1 && actual[5] > actual[1] + 50.0, "{actual:?}");
    assert!(svg.contains(">message, planned and actual</text>"));
    assert!(!gantt(&report(&job())).contains(">message, planned and actual</text>"));
}

/// The boxes of a colour: left, top and height.
fn boxes(svg: &str, fill: &str) -> Vec<(f64, f64, f64)> {
    let fill = format!("fill=\"{fill}\"");
    let own: Vec<_> =
        svg.lines().filter(|line| line.contains("<title>slot ") && line.contains(&fill)).collect();
    let own = own.join("\n");
    let (x, y) = (attributes(&own, "rect", "x"), attributes(&own, "rect", "y"));
    let heights = attributes(&own, "rect", "height");
    let places = x.into_iter().zip(y).zip(heights);
    places.map(|((x, y), height)| (x, y, height)).collect()
}

/// Two processes in turn, the first of which is always late.
fn alternating(tasks: usize) -> Report {
    let late = "{ planned_insns = 1_000_000, real_insns = 1_200_000 }, ".repeat(tasks);
    let exact = "1_000_000, ".repeat(tasks);
    let slots = "1, 2, ".repeat(tasks);
    let text = format!(
        "[config]\nno_preemption_ns = 0\n[[process]]\nid = 1\nname = \"late\"\ntasks = [{late}]\n[[process]]\nid = 2\n\
         tasks = [{exact}]\n[[cpu]]\ncpu = 0\nslots = [{slots}]\n"
    );
    report(&from_toml(&text).unwrap())
}

#[test]
fn many_slots_have_a_lane_for_each_process() {
    let few = gantt(&alternating(4));
    let (first, second) = (boxes(&few, "#0072b2"), boxes(&few, "#e69f00"));
    assert_eq!((first.len(), second.len()), (4, 4));
    assert_eq!(first[0].1, second[0].1);
    assert!(few.contains("fill-opacity=\"0.22\""));

    let svg = gantt(&alternating(120));
    let (first, second) = (boxes(&svg, "#0072b2"), boxes(&svg, "#e69f00"));
    assert_eq!((first.len(), second.len()), (120, 120));
    for &(_, top, height) in &first {
        // One below the other, without a gap.
        assert!((top + height - second[0].1).abs() < 0.02, "{top} {height}");
        assert!((0.0..first[0].2 + 0.1).contains(&height));
    }
    assert!(svg.contains(">late</text>") && svg.contains(">2</text>"));
    assert!(!svg.contains("fill-opacity=\"0.22\""));
}

#[test]
fn many_marks_are_counted() {
    let counted = ">marks between two ticks</text>";
    assert!(!gantt(&alternating(4)).contains(counted));
    let report = alternating(120);
    let marks = &report.cpus[0].marks;
    let of = |kind: MarkKind| marks.iter().filter(|mark| mark.kind == kind).count();
    let in_row = of(MarkKind::Preempted) + of(MarkKind::Pushed);
    assert!(in_row > 60, "{in_row}");
    let svg = gantt(&report);
    assert!(svg.contains(counted));
    // Numbers beside the symbols of t1, which stand just above the lower track.
    let track = svg.lines().find(|line| line.starts_with("<rect ") && line.contains("\"track\""));
    let top = attributes(track.unwrap(), "rect", "y")[0];
    let base = format!(" y=\"{:.2}\"", top - 7.0 + 4.0);
    let numbers = svg.lines().filter(|line| line.contains(&base));
    let numbers: Vec<usize> = numbers
        .filter_map(|line| line.split('>').nth(1)?.split('<').next()?.parse().ok())
        .collect();
    assert_eq!(numbers.iter().sum::<usize>(), in_row);
}

/// A plan of many processes with one task each.
fn crowd(processes: u32) -> Report {
    let mut text = String::new();
    for id in 1..=processes {
        text += &format!(
            "[[process]]\nid = {id}\nname = \"worker-number-{id}\"\ntasks = [1_000_000]\n"
        );
    }
    let slots: Vec<_> = (1..=processes).map(|id| id.to_string()).collect();
    text += &format!("[[cpu]]\ncpu = 0\nslots = [{}]\n", slots.join(", "));
    report(&from_toml(&text).unwrap())
}

/// Beside its colour each has a lane, a name at it, and a letter; and of no two both
/// colour and pattern are the same.
#[test]
fn many_processes_are_told_apart_without_colours() {
    let svg = gantt(&crowd(30));
    let mut places = Vec::new();
    let mut looks = Vec::new();
    let lines: Vec<_> = svg.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        if !line.contains("<title>slot ") || line.contains("idle") {
            continue;
        }
        places.push(attributes(line, "rect", "y")[0]);
        let fill = line.split("fill=\"").nth(1).unwrap();
        let over = lines[number + 1].split("url(").nth(1);
        let over = over.filter(|_| lines[number + 1].contains("pointer-events"));
        looks.push((fill.split('"').next().unwrap(), over));
    }
    assert_eq!((places.len(), looks.len()), (30, 30));
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 11.0), "{places:?}");
    looks.sort_unstable();
    looks.dedup();
    assert_eq!(looks.len(), 30);
    // The end of a name tells it from others.
    for name in
        ["worker-…er-9", "worker-…r-30", "A process worker-number-1", "d process worker-number-30"]
    {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
}

#[test]
fn hundreds_of_processes_have_a_picture_of_bounded_height() {
    let svg = gantt(&crowd(300));
    let height = attributes(&svg, "svg", "height")[0];
    assert!(height < 4000.0, "{height}");
    assert_eq!(svg.matches("<title>slot ").count(), 300);
}

/// Programs that convert pictures, and do not know variables, draw with the light colours.
#[test]
fn the_file_has_its_colours_without_variables() {
    let svg = gantt(&report(&job()));
    let (fixed, _) = svg.split_once(":root").unwrap();
    assert!(fixed.contains(".picture .paper { fill: #ffffff; }"), "{fixed}");
    assert!(!fixed.contains("var("), "{fixed}");
    let (_, rules) = svg.split_once("@supports (color: var(--ink)) {").unwrap();
    assert!(rules.contains(".picture .paper { fill: var(--paper); }"), "{rules}");
}

/// A page that is dark, and a printer, have colours of their own.
#[test]
fn the_file_has_its_dark_colours() {
    let svg = gantt(&report(&job()));
    for part in ["prefers-color-scheme: dark", "@media print", "class=\"paper\""] {
        assert!(svg.contains(part), "{part}");
    }
}

/// The deadlines that the plan implies equal those of the simulator, and are in the picture.
#[test]
fn deadlines_that_the_plan_implies_are_marked() {
    let plan = job();
    let mut report = report(&plan);
    let config = plan.config.unwrap();
    report.deadlines = report.implied_deadlines(&plan, &config);
    let said = pbs_sim::deadlines(&plan, &plan.cpus[0], &config, facts().rate_insns_per_ms);
    assert_eq!(report.deadlines.len(), 3);
    let begun_ns = report.cpus[0].installed_ns.unwrap();
    for (deadline, (index, after_ns)) in report.deadlines.iter().zip(said) {
        assert_eq!(deadline.process, Some(plan.processes[index].id));
        assert_eq!(deadline.deadline_ns, begun_ns + after_ns);
        let own = report.tasks.iter().filter(|task| Some(task.process) == deadline.process);
        let ended_ns = own.filter_map(|task| task.ended_ns).max();
        assert_eq!(deadline.ended_ns, ended_ns);
        assert_eq!(deadline.kept, ended_ns.unwrap() <= deadline.deadline_ns);
    }
    let svg = gantt(&report);
    assert!(svg.contains(">A sort: "), "{svg}");
    let words = svg.matches(": kept by ").count() + svg.matches(": missed by ").count();
    assert_eq!(words, 3);
    let kept = report.deadlines.iter().filter(|deadline| deadline.kept).count();
    let table = pbs_report::table(&report);
    assert!(table.contains(&format!("Deadlines: {kept} of 3 kept")), "{table}");
}
