// SPDX-License-Identifier: GPL-2.0
//! Reports of runs of the policy core.

mod common;

use common::{facts, job, report, simulate};
use pbs_plan::from_toml;
use pbs_report::{describe, table, EventView, Exit, Facts, MarkKind, Outcome, Report};
use pbs_uapi::{Event, EventKind};

#[test]
fn every_task_is_accounted() {
    let report = report(&job());
    assert_eq!(report.tasks.len(), 9);
    assert!(report.is_complete());
    for task in &report.tasks {
        let expected = match (task.process, task.task) {
            (1, 0) => 26_000_000,
            (2, 1) => 18_000_000,
            (3, 0) => 25_100_000,
            _ => task.planned_insns,
        };
        assert_eq!(task.retired_insns, expected, "{task:?}");
        assert!(task.started_ns < task.ended_ns, "{task:?}");
    }
    let over = &report.tasks[0];
    assert_eq!((over.deviation_permille, over.preemptions), (300, 1));
    assert_eq!(report.processes[0].preemptions, 1);
    assert_eq!(report.processes[1].retired_insns, 38_000_000);
    assert_eq!(report.processes[2].peak_vm_bytes, 64 << 20);
    assert_eq!(report.event_counts["task_ended"], 9);
    assert_eq!(report.event_counts["preempted"], 1);
}

/// The segments of a task add up to what it retired, at the node's rate.
#[test]
fn segments_hold_what_the_tasks_retired() {
    let report = report(&job());
    let cpu = &report.cpus[0];
    for window in cpu.actual.windows(2) {
        assert!(window[0].end_ns <= window[1].start_ns, "{window:?}");
    }
    // The run is shorter than a window of execution time, so nothing but the
    // tasks takes time in the segments.
    for task in report.tasks.iter().filter(|task| task.ended_ns < Some(5_095_000_000)) {
        let ns: u64 = cpu
            .actual
            .iter()
            .filter(|segment| (segment.process, segment.task) == (task.process, Some(task.task)))
            .map(|segment| segment.end_ns - segment.start_ns)
            .sum();
        assert!(ns.abs_diff(4 * task.retired_insns) <= 8, "{task:?}: {ns} ns");
    }
    let preempted: Vec<_> = cpu
        .marks
        .iter()
        .filter(|mark| mark.kind == MarkKind::Preempted)
        .map(|mark| (mark.process, mark.task, mark.slot))
        .collect();
    assert_eq!(preempted, [(1, Some(0), Some(0))]);
}

#[test]
fn the_plan_stands_end_to_end() {
    let report = report(&job());
    let planned = &report.cpus[0].planned;
    assert_eq!(planned.len(), 11);
    for window in planned.windows(2) {
        assert_eq!(window[0].start_insns + window[0].length_insns, window[1].start_insns);
    }
    assert_eq!((planned[3].process, planned[3].length_insns), (None, 10_000_000));
}

/// In time a slot is as long as at the rate of its process, or of its CPU.
#[test]
fn the_plan_lasts_as_long_as_its_rates_say() {
    let ends = |plan: &pbs_plan::Plan| {
        let report = report(plan);
        let planned = &report.cpus[0].planned;
        assert_eq!(planned[0].start_ns, 0);
        assert!(planned.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        let ends: Vec<_> = planned.iter().map(|slot| slot.end_ns).collect();
        ends
    };
    let mut plan = job();
    let lengths: Vec<_> = plan.place(&plan.cpus[0]).map(|slot| slot.length_insns).collect();
    // Four nanoseconds for each.
    let usual = ends(&plan);
    assert_eq!(usual[0], 4 * lengths[0]);
    assert_eq!(usual.last(), Some(&(4 * lengths.iter().sum::<u64>())));
    plan.cpus[0].rate_insns_per_ms = facts().rate_insns_per_ms / 2;
    let slow: Vec<_> = usual.iter().map(|end_ns| 2 * end_ns).collect();
    assert_eq!(ends(&plan), slow);
    // Of the first process, at a quarter of that.
    let first = plan.place(&plan.cpus[0]).next().and_then(|slot| slot.task);
    let first = first.map(|(process, _)| process).unwrap();
    plan.processes[first].rate_insns_per_ms = facts().rate_insns_per_ms / 8;
    let mixed = ends(&plan);
    assert_eq!(mixed[0], 4 * slow[0]);
    let own = plan.place(&plan.cpus[0]).zip(&lengths);
    let own = own.filter(|(slot, _)| slot.task.is_some_and(|(process, _)| process == first));
    let own: u64 = own.map(|(_, length_insns)| length_insns).sum();
    let last = slow.last().unwrap() + 3 * 8 * own;
    assert_eq!(mixed.last(), Some(&last));
}

#[test]
fn an_absent_process_is_marked_and_comes_later() {
    let plan = job();
    let events = simulate(&plan, &[2], 600_000_000);
    let report = Report::new(&plan, &events, &facts());
    assert!(report.is_complete());
    assert!(report.cpus[0].marks.iter().any(|mark| mark.kind == MarkKind::Absent));
    let after = report.cpus[0].actual.iter().filter(|s| s.reason == "after_plan");
    assert!(after.count() > 0);
}

/// Coming late into one's slot is not missing it.
#[test]
fn a_process_that_comes_while_its_slot_lasts_is_not_absent() {
    let plan = job();
    let absent = |absent_ns| {
        let events = simulate(&plan, &[1], absent_ns);
        let told = events.iter().any(|event| event.kind == EventKind::Absent as u16);
        let report = Report::new(&plan, &events, &facts());
        let marks = report.cpus[0].marks.iter();
        (told, marks.filter(|mark| mark.kind == MarkKind::Absent).count())
    };
    assert_eq!(absent(1_000_000), (true, 0));
    assert!(absent(600_000_000).1 > 0);
}

#[test]
fn a_run_that_was_broken_off_says_so() {
    let plan = job();
    let mut events = simulate(&plan, &[], 0);
    let cut = events.iter().position(|event| event.kind == EventKind::TaskEnded as u16).unwrap();
    events.truncate(cut);
    let report = Report::new(&plan, &events, &Facts { outcome: Outcome::Interrupted, ..facts() });
    assert!(!report.is_complete());
    assert_eq!(report.tasks.iter().filter(|task| task.ended).count(), 0);
    let text = table(&report);
    assert!(text.contains("Plan 7 was interrupted: 0 of 9 tasks ended."), "{text}");
    assert!(text.contains("not ended"), "{text}");
}

#[test]
fn other_plans_do_not_count() {
    let plan = job();
    let mut events = simulate(&plan, &[], 0);
    for event in &mut events {
        event.plan_id += 1;
    }
    let report = Report::new(&plan, &events, &facts());
    assert!(report.tasks.iter().all(|task| task.retired_insns == 0));
    assert!(report.cpus[0].actual.is_empty());
}

#[test]
fn lost_events_and_failed_commands_are_said() {
    let plan = job();
    let mut events = simulate(&plan, &[], 0);
    events.push(Event { kind: EventKind::Overrun as u16, value: 1234, ..Event::default() });
    let exit = Exit {
        process: 2,
        program: "sha256sum".into(),
        pid: 77,
        code: None,
        signal: Some(9),
        error: None,
    };
    assert!(!exit.success());
    let report = Report::new(&plan, &events, &Facts { exits: vec![exit], ..facts() });
    assert_eq!(report.events_lost, 1234);
    let text = table(&report);
    assert!(text.contains("1,234 events were lost"), "{text}");
    assert!(text.contains("sha256sum (pid 77) of process 2 was killed by SIGKILL."), "{text}");
}

#[test]
fn the_table_shows_each_task() {
    let text = table(&report(&job()));
    let expected = "\
PROCESS                     TASK    CPU     PLANNED     RETIRED  DEVIATION  PREEMPTED  PUSHED     LATENESS  PEAK RSS   PEAK VM
sort                        0         0  20,000,000  26,000,000    +30.0 %          1       0    6,000,000   8.0 MiB  64.0 MiB
hash                        0         0   8,000,000   8,000,000      0.0 %          0       0            0   8.0 MiB  64.0 MiB
a <very> long & \"odd\" name  0 only    0  25,000,000  25,100,000     +0.4 %          0       0      100,000   8.0 MiB  64.0 MiB
sort                        1         0  10,000,000  10,000,000      0.0 %          0       0    6,000,000       0 B       0 B
hash                        1         0  30,000,000  18,000,000    −40.0 %          0       0  −12,000,000       0 B       0 B
";
    assert!(text.starts_with(expected), "{text}");
}

/// Below the tasks, the signals stand in order; those beyond the first twenty
/// are counted.
#[test]
fn the_table_lists_signals() {
    let config = "[config]\nsigma_t2_permille = 1200\nt2_spacer_ns = 4_000_000\n\
                  thresholds = [\"t1\", \"t2_task\", \"tm2_task\"]";
    let plan = from_toml(&common::JOB.replace("[config]", config)).unwrap();
    let mut events = simulate(&plan, &[], 0);
    let text = table(&Report::new(&plan, &events, &facts()));
    let expected = "
SIGNAL  PROCESS  TASK  WHAT WAS COMPARED                         SLOT
late    sort     0     24,000,001 retired > t2_task 24,000,000      3
early   hash     1     18,000,000 retired < tm2_task 24,000,000     5

Plan 7 ended";
    assert!(text.contains(expected), "{text}");
    let quiet = common::JOB.replace("[config]", "[config]\nthresholds = [\"t1\"]");
    assert!(!table(&report(&from_toml(&quiet).unwrap())).contains("SIGNAL"));

    let late = *events.iter().find(|event| event.kind == EventKind::Late as u16).unwrap();
    events.extend(vec![late; 25]);
    let text = table(&Report::new(&plan, &events, &facts()));
    assert!(text.contains("\n... and 7 more.\n"), "{text}");
    assert_eq!(text.matches(" > t2_task ").count(), 19, "{text}");
}

#[test]
fn json_has_names_and_nulls() {
    let plan = job();
    let events = simulate(&plan, &[], 0);
    let report = serde_json::to_value(Report::new(&plan, &events, &facts())).unwrap();
    assert_eq!(report["cpus"][0]["planned"][3]["process"], serde_json::Value::Null);
    assert_eq!(report["cpus"][0]["actual"][0]["reason"], "slot");
    let grant = events.iter().find(|event| event.kind == EventKind::Grant as u16).unwrap();
    let view = serde_json::to_value(EventView::from(grant)).unwrap();
    assert_eq!((&view["kind"], &view["reason"]), (&"grant".into(), &"slot".into()));
    assert_eq!(view["pid"], serde_json::Value::Null);
}

#[test]
fn events_read_as_lines() {
    let plan = from_toml("[[process]]\nid=4\ntasks=[900]\n[[cpu]]\ncpu=0\nslots=[4]\n").unwrap();
    let text: Vec<_> = simulate(&plan, &[], 0).iter().map(describe).collect();
    let expected = [
        "       0      5.000000 cpu0   plan_installed plan 0, 1 slots",
        "       1      5.000000 cpu0   grant          process 4 task 0 slot 0 (slot)",
        "       2      5.000003 cpu0   task_ended     process 4 task 0 slot 0 planned 900 retired \
         900 preempted 0 lateness 0 peak 8.0 MiB of 64.0 MiB",
        "       3      5.000003 cpu0   process_ended  process 4 slot 0 all its tasks ended",
    ];
    assert_eq!(&text[..expected.len()], expected, "{text:#?}");
}

#[test]
fn no_task_has_a_slot_before_its_own() {
    let report = report(&job());
    let segments = &report.cpus[0].actual;
    assert!(segments.iter().any(|segment| segment.reason == "slot"));
    for segment in segments {
        let task = report
            .tasks
            .iter()
            .find(|task| task.process == segment.process && Some(task.task) == segment.task)
            .unwrap();
        assert!(segment.slot.is_none_or(|slot| task.slot as u64 <= slot), "{segment:?}");
    }
}

#[test]
fn deviations_are_rounded() {
    let mut plan = job();
    // 399.96 thousandths less than the 30,000,000 that are planned.
    plan.processes[1].tasks[1].real_insns = Some(18_001_200);
    let tasks = report(&plan).tasks;
    let hash = tasks.iter().find(|task| task.process == 2 && task.task == 1).unwrap();
    assert_eq!(hash.deviation_permille, -400);
}

#[test]
fn only_a_task_over_its_plan_is_marked_as_preempted() {
    // The rest of the first task takes all of the second slot, so the second
    // task is pushed on.
    let text =
        "[config]\nno_preemption_ns = 10_000\nt1_spares_last_slot = false\nthresholds = [\"t1\"]\n\
                [[process]]\nid = 1\ntasks = [{ planned_insns = 10_000_000, \
                real_insns = 15_000_000 }, 5_000_000, 5_000_000]\n\
                [[cpu]]\ncpu = 0\nslots = [1, 1, 1]\n";
    let report = report(&from_toml(text).unwrap());
    let kinds: Vec<_> = report.cpus[0].marks.iter().map(|mark| mark.kind).collect();
    assert_eq!(kinds, [MarkKind::Preempted, MarkKind::Pushed, MarkKind::Pushed]);
    // t1 of a slot of 10,000,000.
    let first = &report.cpus[0].marks[0];
    assert_eq!(first.value, 10_500_000);
    assert!((10_500_000..15_000_000).contains(&first.retired_insns));
    // They are counted apart.
    let charged: Vec<_> = report.tasks.iter().map(|t| (t.preemptions, t.pushes)).collect();
    assert_eq!(charged, [(1, 0), (0, 1), (0, 1)]);
    let process = &report.processes[0];
    assert_eq!((process.preemptions, process.pushes), (1, 2));
    assert_eq!((report.event_counts["preempted"], report.event_counts["pushed"]), (1, 2));
}
