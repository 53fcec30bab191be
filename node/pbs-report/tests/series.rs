// SPDX-License-Identifier: GPL-2.0
//! The series are what the policy core had: its own signals say so.

mod common;

use common::{opened, SIGNALS};
use pbs_plan::{from_toml, Plan};
use pbs_report::{MarkKind, Opened, Page, Point, Report, Selection, Series};
use pbs_sim::{simulate, ConfigChange, JobScheduler, NoAnswer, Options, Stretch};
use pbs_uapi::{Cause, Event, EventKind};

fn plan() -> Plan {
    from_toml(SIGNALS).unwrap()
}

fn series(opened: &Opened) -> Series {
    let report = Report::of_plans(&opened.plans, &opened.events, &opened.facts);
    Series::new(opened, &report, Selection::default())
}

/// All values that a line has at a time: points, or a flat stretch.
fn at(line: &[Point], time_ns: u64) -> Vec<i64> {
    let points = line.iter().filter(|point| point.0 == time_ns);
    let pairs = line.windows(2);
    let flat = pairs.filter(|pair| (pair[0].0..pair[1].0).contains(&time_ns));
    let flat = flat.filter(|pair| pair[0].1 == pair[1].1);
    let values = points.chain(flat.map(|pair| &pair[0]));
    let mut values: Vec<_> = values.map(|point| point.1).collect();
    values.dedup();
    values
}

fn of_kind(events: &[Event], kind: EventKind) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| event.kind == kind as u16)
}

/// Every signal carries the threshold that the core had: it must lie on the
/// line. So must every lateness that an event tells. The answer is how many
/// limits of processes, of the node upwards and downwards, and tasks there were.
fn check_lines(opened: &Opened) -> [usize; 4] {
    let series = series(opened);
    let mut checked = [0; 4];
    for event in &opened.events {
        let cpu = series.cpus.iter().find(|cpu| cpu.cpu == event.cpu).unwrap();
        let time_ns = event.time_ns - cpu.begin_ns;
        let process = cpu.processes.iter().find(|p| p.process == event.process);
        let kind = EventKind::from_raw(event.kind);
        let is_signal = matches!(kind, Some(EventKind::Late | EventKind::Info));
        let value = event.value as i64;
        match Cause::from_raw(event.reason) {
            Some(Cause::Process) if is_signal => {
                let line = &process.unwrap().limit_insns;
                assert!(at(line, time_ns).contains(&value), "{event:?} {line:?}");
                checked[0] += 1;
            }
            Some(Cause::Node) if is_signal => {
                let line = &cpu.t2_node_insns;
                assert!(at(line, time_ns).contains(&value), "{event:?} {line:?}");
                checked[1] += 1;
            }
            Some(Cause::Node) if kind == Some(EventKind::Early) => {
                let line = &cpu.tm2_node_insns;
                assert!(at(line, time_ns).contains(&value), "{event:?} {line:?}");
                checked[2] += 1;
            }
            _ => {}
        }
        if kind == Some(EventKind::TaskEnded) {
            let line = &process.unwrap().lateness_insns;
            let values = at(line, time_ns);
            assert!(values.contains(&event.lateness_insns), "{event:?} {line:?}");
            let values = at(&cpu.lateness_insns, time_ns);
            assert!(values.contains(&event.node_lateness_insns), "{event:?}");
            checked[3] += 1;
        }
    }
    checked
}

#[test]
fn the_lines_go_through_what_the_core_told() {
    let checked = check_lines(&opened(plan()));
    assert!(checked[0] >= 4 && checked[1] >= 1 && checked[3] == 9, "{checked:?}");
}

/// The core takes times for instructions of the rate that the plan says.
#[test]
fn the_lines_are_those_of_the_rate_of_the_plan() {
    let mut plan = plan();
    plan.cpus[0].rate_insns_per_ms = common::facts().rate_insns_per_ms * 3 / 4;
    let checked = check_lines(&opened(plan));
    assert!(checked[0] >= 4 && checked[1] >= 1, "{checked:?}");
}

/// The lines also match the policy core for plans that take over and deal with failures, and for a
/// node that is early.
#[test]
fn the_lines_go_through_what_the_core_told_under_later_plans() {
    let simulated = |text: &str, scheduler: &mut dyn JobScheduler| {
        let first = from_toml(text).unwrap();
        let options =
            Options { rate_insns_per_ms: common::facts().rate_insns_per_ms, ..Options::default() };
        let simulation = simulate(&first, &options, scheduler).unwrap();
        let accepted = simulation.replans.into_iter();
        let accepted = accepted.filter(|replan| replan.refused.is_none());
        Opened {
            events: simulation.events,
            plans: std::iter::once(first).chain(accepted.map(|replan| replan.plan)).collect(),
            ..opened(plan())
        }
    };
    let stretched = simulated(SIGNALS, &mut Stretch::default());
    assert!(stretched.plans.len() > 2);
    assert!(stretched.plans[1].dealt_seq > 0);
    let checked = check_lines(&stretched);
    assert!(checked[0] >= 8 && checked[1] >= 4, "{checked:?}");

    // Where no least value covers them, thresholds show which accounts began
    // anew: those of the one process that was told, or of all with the node.
    let bare = SIGNALS.replace("t2_min_process_ns = 12_000_000", "t2_min_process_ns = 0");
    // It is told after a task of it has ended, or nothing is in its account.
    let first = "{ planned_insns = 20_000_000, real_insns = 46_000_000 }, 10_000_000";
    let second = "20_000_000, { planned_insns = 10_000_000, real_insns = 36_000_000 }";
    let bare = bare.replace(first, second);
    for thresholds in [
        r#"["t1", "t2_process", "info"]"#,
        r#"["t1", "t2_node", "info"]"#,
        r#"["t1", "t2_process", "t2_node", "info"]"#,
    ] {
        let text = bare.replace("[config]", &format!("[config]\nthresholds = {thresholds}"));
        let opened = simulated(&text, &mut Stretch::default());
        assert!(opened.plans.len() > 1, "{thresholds}");
        let checked = check_lines(&opened);
        assert!(checked[0] + checked[1] >= 3, "{thresholds}: {checked:?}");
    }

    let early = SIGNALS.replace("real_insns = 46_000_000", "real_insns = 12_000_000");
    let early = early.replace("[config]", "[config]\ntm2_node_earliness_cap_permille = 10");
    let checked = check_lines(&simulated(&early, &mut NoAnswer));
    assert_eq!(checked[2], 1, "{checked:?}");
}

/// The event of a change of the configuration does not contain the new numbers: lines of thresholds
/// end there.
#[test]
fn thresholds_are_not_drawn_after_a_change_of_the_configuration() {
    const AT_NS: u64 = 60_000_000;
    let lines = |opened: &Opened| {
        let cpu = series(opened).cpus.remove(0);
        let limits = cpu.processes.into_iter().map(|process| process.limit_insns);
        let lines: Vec<_> = limits.chain([cpu.t2_node_insns, cpu.tm2_node_insns]).collect();
        (cpu.config_changes_ns, lines, cpu.lateness_insns)
    };
    let is_late = |line: &Vec<Point>| line.iter().any(|point| point.0 > AT_NS);
    let (changes_ns, before, _) = lines(&opened(plan()));
    assert_eq!(changes_ns, [0; 0]);
    assert!(before.iter().any(is_late), "{before:?}");
    let changed = Options {
        rate_insns_per_ms: common::facts().rate_insns_per_ms,
        changes: vec![ConfigChange { at_ns: AT_NS, values: vec![(0, 1100)] }],
        ..Options::default()
    };
    let simulation = simulate(&plan(), &changed, &mut NoAnswer).unwrap();
    let (changes_ns, after, lateness) =
        lines(&Opened { events: simulation.events, ..opened(plan()) });
    assert_eq!(changes_ns, [AT_NS]);
    assert!(!after.iter().any(is_late), "{after:?}");
    assert!(is_late(&lateness));
}

/// A task of 20,000,000 that takes 46,000,000 at 250,000 a millisecond.
#[test]
fn a_task_has_the_values_worked_by_hand() {
    let opened = opened(plan());
    let series = series(&opened);
    let task = &series.tasks[0];
    assert_eq!((task.process, task.task), (1, 0));
    assert_eq!(task.retired_insns.first(), Some(&Point(0, 0)));
    assert_eq!(task.ended.map(|point| point.1), Some(46_000_000));
    let all = |line: &[Point], value| line.iter().all(|point| point.1 == value);
    // max(20 million * 1.2, 20 million + 1 million), and mirrored.
    assert!(!task.t2_task_insns.is_empty() && all(&task.t2_task_insns, 24_000_000));
    assert!(!task.tm2_task_insns.is_empty() && all(&task.tm2_task_insns, 16_000_000));
    // The first slot is as long as the task: 20 million * 1.05, after 84 ms.
    let first = task.slots[0];
    assert_eq!((first.slot, first.t1_insns), (0, 21_000_000));
    assert_eq!((first.begin_ns, first.end_ns), (0, 84_000_000));
    assert_eq!(task.preemptions[0], Point(84_000_000, 21_000_000));
    // Its lateness begins where it turned late, after 80 ms.
    let process = &series.cpus[0].processes[0];
    assert!(process.lateness_insns.contains(&Point(80_000_000, 0)));
    assert!(process.lateness_insns.contains(&Point(84_000_000, 1_000_000)));
    // The capacity buffer of the one task begun: a tenth of its length.
    assert!(at(&process.capacity_buffer_insns, 84_000_000).contains(&2_000_000));
}

/// Ten points, one less every 4 ms.
#[test]
fn stress_falls_by_the_nominal_tick() {
    let series = series(&opened(plan()));
    let stress = &series.cpus[0].stress;
    assert_eq!(stress[0], Point(0, 10));
    assert_eq!(at(stress, 4_000_000), [9]);
    assert_eq!(at(stress, 11_999_999), [8]);
    assert_eq!(at(stress, 40_000_000), [0]);
    assert!(stress.iter().all(|point| point.0 <= 40_000_000 || point.1 == 0));
}

#[test]
fn signals_are_told_with_what_was_compared() {
    let opened = opened(plan());
    let series = series(&opened);
    let late = series.signals.iter().find(|signal| signal.cause == "task");
    let late = late.unwrap();
    assert_eq!((late.kind, late.process, late.task), (MarkKind::Late, 1, 0));
    assert_eq!((late.compared, late.threshold), (24_000_001, 24_000_000));
    let early: Vec<_> = series.signals.iter().filter(|s| s.kind == MarkKind::Early).collect();
    assert_eq!((early[0].process, early[0].task), (2, 1));
    assert_eq!((early[0].compared, early[0].threshold), (9_000_000, 24_000_000));
    let told = [EventKind::Late, EventKind::Early, EventKind::Info];
    let told = told.map(|kind| of_kind(&opened.events, kind).count());
    assert_eq!(series.signals.len(), told.iter().sum::<usize>());
    assert!(series.signals.iter().map(|signal| signal.number).eq(1..=series.signals.len()));
}

#[test]
fn what_is_switched_off_has_no_line() {
    let text = SIGNALS.replace("[config]", "[config]\nthresholds = [\"t2_task\"]");
    let series = series(&opened(from_toml(&text).unwrap()));
    let cpu = &series.cpus[0];
    assert!(cpu.t2_node_insns.is_empty() && cpu.tm2_node_insns.is_empty());
    assert!(cpu.processes.iter().all(|process| process.limit_insns.is_empty()));
    assert!(!cpu.lateness_insns.is_empty());
    let task = &series.tasks[0];
    assert!(task.tm2_task_insns.is_empty() && task.slots.is_empty());
    assert!(!task.t2_task_insns.is_empty());
}

#[test]
fn the_task_that_is_asked_for_stands_in_front() {
    let selection = Selection { task: Some((2, 0)), tasks: 2, points: 100 };
    let page = Page::new(opened(plan()), selection);
    let tasks: Vec<_> = page.series().tasks.iter().map(|t| (t.process, t.task)).collect();
    assert_eq!(tasks, [(2, 0), (1, 0)]);
}

#[test]
fn lines_have_no_more_points_than_asked_for() {
    let opened = opened(plan());
    let report = Report::of_plans(&opened.plans, &opened.events, &opened.facts);
    let selection = Selection { points: 12, ..Selection::default() };
    let few = Series::new(&opened, &report, selection);
    let all = Series::new(&opened, &report, Selection::default());
    let (few, all) = (&few.cpus[0], &all.cpus[0]);
    assert!(all.lateness_insns.len() > 12 && few.lateness_insns.len() <= 12);
    let most = |line: &[Point]| line.iter().map(|point| point.1).max();
    assert_eq!(most(&few.lateness_insns), most(&all.lateness_insns));
}
