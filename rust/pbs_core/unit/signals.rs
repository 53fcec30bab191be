// SPDX-License-Identifier: GPL-2.0

//! Prediction failures, cause by cause: each is reported where its threshold is passed, not where
//! it is met, and once.

use std::vec::Vec;

use crate::{Config, EventKind, Presence, Threshold};

use super::scene::{Scene, CONFIG};
use super::text::{self, Cpu};

/// t1 of 1000 is 1100, t2_task 1500, tm2_task 500.  A process alone may be late
/// by a tenth of its tasks begun, or 30; so may the node.  No stress.
const SIGNALS: Config = Config {
    ceiling_extra_ns: 1_000_000_000,
    sigma_t2_permille: 1500,
    t2_spacer_ns: 20,
    t2_task_signaling_limit_ns: 2_000_000,
    max_preemptions: 2,
    capacity_buffer_permille: 1100,
    available_plan_buffer_permille: 1000,
    reschedule_time_ns: 0,
    t2_min_process_ns: 30,
    tm2_node_lower_bound_ns: 30,
    t2_node_lateness_cap_permille: 1100,
    tm2_node_earliness_cap_permille: 100,
    stress_reset: 4,
    stress_gain_ns: 0,
    nominal_tick_ns: 100_000,
    ..CONFIG
};

/// With these thresholds alone.
pub(super) fn on(thresholds: &[Threshold]) -> Config {
    Config {
        thresholds: thresholds.iter().map(|&threshold| threshold as u64).sum(),
        ..SIGNALS
    }
}

pub(super) fn scene(config: Config, slots: &[(u32, u64)]) -> Scene {
    Scene::ready(config, text::plan(slots))
}

/// A scene with plan buffers, in the order of the processes' ids.
pub(super) fn buffered(config: Config, slots: &[(u32, u64)], buffers_insns: &[u64]) -> Scene {
    let mut cpu = Cpu::numbered(0, slots);
    for (process, &buffer_insns) in cpu.processes.iter_mut().zip(buffers_insns) {
        process.1 = buffer_insns;
    }
    Scene::ready(config, text::plan_of(cpu))
}

#[test]
fn node_is_to_be_asked_when_a_task_turns_late_only_if_lateness_matters() {
    let slots = [(1, 1000)];
    assert_eq!(scene(on(&[]), &slots).last.until_insns, None);
    let t1 = scene(on(&[Threshold::T1]), &slots);
    assert_eq!(t1.last.until_insns, Some(1100));
    for early in [Threshold::Tm2Task, Threshold::Tm2Node, Threshold::Info] {
        assert_eq!(scene(on(&[early]), &slots).last.until_insns, None);
    }
    for late in [
        Threshold::T2Task,
        Threshold::T2Process,
        Threshold::T2Node,
        Threshold::T2Preemptions,
    ] {
        let mut scene = scene(on(&[late]), &slots);
        assert_eq!(scene.last.until_insns, Some(1001));
        scene.run(999);
        assert_eq!(scene.last.until_insns, Some(2));
        scene.run(1);
        assert_eq!(scene.last.until_insns, Some(1));
        assert_eq!(scene.log.lines(), [""; 0]);
    }
}

#[test]
fn t2_task_is_told_beyond_it_and_once_a_task() {
    let mut scene = scene(
        on(&[Threshold::T1, Threshold::T2Task]),
        &[(1, 1000), (1, 1000), (2, 1000), (1, 1000)],
    );
    assert_eq!(scene.last.until_insns, Some(1001));
    scene.run(1001);
    // t1 of its own slot comes first.
    assert_eq!(scene.last.until_insns, Some(99));
    scene.run(99);
    assert_eq!(scene.log.tasks(EventKind::Preempted), [(1, 0)]);
    assert_eq!(scene.last.until_insns, Some(401));
    scene.run(400);
    assert_eq!(scene.last.until_insns, Some(1));
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1501"]);
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.value, event.slot, event.time_ns), (1500, 1, 1501));
    assert_eq!((event.planned_insns, event.lateness_insns), (1000, 501));
    assert_eq!((event.node_lateness_insns, event.preemptions), (501, 1));
    assert_eq!((event.level_percent, event.stress), (100, 0));
    // Nothing but t1 is left of this task.
    assert_eq!(scene.last.until_insns, Some(1100 - 401));
    scene.run(100);
    scene.finish(100);
    assert_eq!(scene.log.signals().len(), 1);
    // The next task is another one.
    scene.run_as_told(499);
    scene.finish(1000);
    assert_eq!(scene.granted(), 1);
    scene.run_as_told(1001);
    assert_eq!(scene.log.signals().len(), 1);
    scene.run_as_told(1);
    let lines = ["late task: 1.0 at 1501", "late task: 1.1 at 1501"];
    assert_eq!(scene.log.lines(), lines);
}

#[test]
fn t2_preemptions_is_told_at_it_and_once_a_task() {
    let slots = [(1, 1000); 8];
    let mut scene = scene(on(&[Threshold::T1, Threshold::T2Preemptions]), &slots);
    scene.run(1100);
    scene.run(1099);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late preemptions: 1.0 at 2200"]);
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.value, event.preemptions), (2, 2));
    // In the slot that it was preempted in, right after the warning.
    assert_eq!((event.slot, event.lateness_insns), (1, 1200));
    scene.run(1100);
    scene.finish(10);
    scene.run_as_told(2200);
    let lines = [
        "late preemptions: 1.0 at 2200",
        "late preemptions: 1.1 at 2190",
    ];
    assert_eq!(scene.log.lines(), lines);
}

#[test]
fn preemption_by_the_ceiling_counts_too() {
    let config = Config {
        max_preemptions: 1,
        ceiling_extra_ns: 1000,
        ..on(&[Threshold::T2Preemptions])
    };
    // A task at its plan is not charged with the first ceiling.
    let mut scene = scene(config, &[(1, 1000), (1, 1000), (2, 1000)]);
    scene.run(1000);
    scene.wait(2000);
    assert_eq!(scene.log.tasks(EventKind::Ceiling), [(1, 0)]);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    scene.wait(2999);
    assert_eq!(scene.log.lines(), ["late preemptions: 1.0 at 1001"]);
}

#[test]
fn t2_process_first_stage_is_the_capacity_buffer() {
    let mut scene = scene(on(&[Threshold::T2Process]), &[(1, 1000), (1, 1000)]);
    assert_eq!(scene.node.process_limit_insns(0, 0), 100);
    scene.run(1001);
    assert_eq!(scene.last.until_insns, Some(100));
    scene.run(99);
    assert_eq!(scene.last.until_insns, Some(1));
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1101"]);
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.value, event.lateness_insns), (100, 101));
    // Once a process.
    assert_eq!(scene.last.until_insns, None);
    scene.finish(1000);
    scene.run(5000);
    assert_eq!(scene.log.signals().len(), 1);
}

#[test]
fn t2_process_accumulates_what_tasks_ended_with() {
    // 50 late, then 100 early, then 210 late: 160 of the 3000 begun.
    let mut scene = scene(on(&[Threshold::T2Process]), &[(1, 1000); 4]);
    scene.finish(1050);
    scene.finish(900);
    assert_eq!(scene.node.process_limit_insns(0, scene.now_ns), 300);
    scene.finish(1210);
    assert_eq!(scene.node.process_lateness_insns(0), 160);
    assert_eq!(scene.node.process_limit_insns(0, scene.now_ns), 400);
    scene.run(1001);
    // 161 of 400.
    assert_eq!(scene.last.until_insns, Some(240));
    scene.run(239);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late process: 1.3 at 1241"]);
    assert_eq!(scene.log.signals()[0].1.lateness_insns, 401);
}

#[test]
fn t2_process_second_stage_is_the_plan_buffer_by_progress() {
    // 400 of extra capacity for 2000 planned: one fifth of what is retired.
    // Retired beyond 1000 plus a fifth of all is beyond 1250.
    let slots = [(1, 1000), (1, 1000)];
    let mut scene = buffered(on(&[Threshold::T2Process]), &slots, &[4000]);
    scene.run_as_told(1001);
    // The limit is at 200 and continues to rise: 199 and a quarter of that more.
    assert_eq!(scene.last.until_insns, Some(249));
    scene.run_as_told(249);
    assert_eq!(scene.node.process_limit_insns(0, scene.now_ns), 250);
    assert_eq!(scene.log.lines(), [""; 0]);
    assert_eq!(scene.last.until_insns, Some(1));
    scene.run_as_told(1);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1251"]);
    assert_eq!(scene.log.signals()[0].1.value, 250);
}

#[test]
fn t2_process_does_not_rise_while_its_least_is_greater() {
    // A fifth of what is retired is 300 only at 1500.
    let config = Config {
        t2_min_process_ns: 300,
        ..on(&[Threshold::T2Process])
    };
    let mut scene = buffered(config, &[(1, 1000), (1, 1000)], &[4000]);
    scene.run_as_told(1001);
    assert_eq!(scene.last.until_insns, Some(300));
    scene.run_as_told(299);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run_as_told(1);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1301"]);
    assert_eq!(scene.log.signals()[0].1.value, 300);
}

#[test]
fn t2_process_shares_the_plan_buffer_with_the_active() {
    // 3000 planned with 6000 of buffer: 600 of extra capacity, 300 for each of
    // two, a tenth of what is retired.
    let slots = [(2, 1000), (1, 1000), (2, 1000), (1, 1000), (1, 1000)];
    let mut scene = buffered(on(&[Threshold::T2Process]), &slots, &[6000, 0]);
    scene.finish(1000);
    assert_eq!(scene.node.thresholds(0).active, 2);
    scene.run_as_told(1111);
    assert_eq!(scene.node.process_limit_insns(0, scene.now_ns), 111);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run_as_told(1);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1112"]);
}

#[test]
fn t2_node_adds_up_the_active_processes() {
    let slots = [(1, 1000), (2, 1000), (1, 1000), (2, 1000)];
    let mut scene = scene(on(&[Threshold::T2Node]), &slots);
    scene.finish(1080);
    // 2000 are begun.
    let thresholds = scene.node.thresholds(scene.now_ns);
    assert_eq!((thresholds.active, thresholds.lateness_insns), (2, 80));
    assert_eq!(thresholds.t2_node_insns, 200);
    assert_eq!(thresholds.tm2_node_insns, -100);
    scene.run(1001);
    assert_eq!(scene.last.until_insns, Some(120));
    scene.run(119);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late node: 2.0 at 1121"]);
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.value, event.lateness_insns), (200, 121));
    assert_eq!(event.node_lateness_insns, 201);
    // Once a node, whoever runs.
    scene.finish(1000);
    scene.run(3000);
    assert_eq!(scene.log.signals().len(), 1);
}

#[test]
fn t2_node_forgets_a_process_that_has_ended() {
    let slots = [(1, 1000), (2, 1000), (2, 1000)];
    let mut scene = scene(on(&[Threshold::T2Node]), &slots);
    scene.finish(1090);
    assert_eq!(scene.node.lateness_insns(), 0);
    scene.run(1100);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late node: 2.0 at 1101"]);
}

#[test]
fn t2_node_has_its_least_for_each_active_process() {
    // 30 for the one, 60 for both.
    let config = Config {
        t2_node_lateness_cap_permille: 1000,
        ..on(&[Threshold::T2Node])
    };
    let mut scene = scene(config, &[(1, 100), (2, 100), (1, 100), (2, 100)]);
    scene.finish(130);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(130);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late node: 2.0 at 131"]);
    assert_eq!(scene.log.signals()[0].1.value, 60);
}

#[test]
fn tm2_task_is_told_below_it() {
    let mut scene = scene(on(&[Threshold::Tm2Task]), &[(1, 1000), (1, 1000), (1, 20)]);
    scene.finish(500);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.finish(499);
    assert_eq!(scene.log.lines(), ["early task: 1.1 at 499"]);
    let (seq, event) = scene.log.signals()[0];
    assert_eq!((event.value, event.planned_insns), (500, 1000));
    assert_eq!((event.lateness_insns, event.level_percent), (-1001, 100));
    // Right after the end of the task, of which it speaks.
    let ended = scene.log.0[seq as usize - 1];
    assert_eq!((ended.kind, ended.task), (EventKind::TaskEnded, 1));
    // A task no longer than T2_SPACER is never too early.
    scene.finish(0);
    assert_eq!(scene.log.signals().len(), 1);
}

#[test]
fn tm2_node_is_told_below_it_at_an_early_end() {
    let config = Config {
        tm2_node_earliness_cap_permille: 10,
        ..on(&[Threshold::Tm2Node])
    };
    let mut scene = scene(config, &[(1, 1000), (2, 1000), (1, 1000), (2, 1000)]);
    // The least is 30, however many have begun.
    scene.finish(970);
    scene.finish(1000);
    assert_eq!(scene.log.lines(), [""; 0]);
    assert_eq!(scene.node.thresholds(scene.now_ns).tm2_node_insns, -30);
    scene.finish(999);
    // Process 1 has ended with 31 early, but it was there when its task ended.
    assert_eq!(scene.log.lines(), ["early node: 1.1 at 999"]);
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.value as i64, event.node_lateness_insns), (-30, -31));
    assert_eq!((event.lateness_insns, event.slot), (-31, 2));
    scene.finish(100);
    assert_eq!(scene.log.signals().len(), 1);
}

#[test]
fn tm2_node_is_not_looked_at_where_a_task_ends_as_planned() {
    let config = |stress_gain_ns| Config {
        stress_gain_ns,
        stress_reset: 1,
        nominal_tick_ns: 100_000,
        ..on(&[Threshold::Tm2Node])
    };
    // Held back by stress first: it is early before it may be reported.
    let mut scene = scene(config(1), &[(1, 1000), (1, 1000), (1, 1000)]);
    scene.finish(600);
    scene.wait(100_000);
    assert_eq!(scene.node.thresholds(scene.now_ns).tm2_node_insns, -100);
    scene.finish(1000);
    assert_eq!(scene.node.lateness_insns(), -400);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.finish(999);
    assert_eq!(scene.log.lines(), ["early node: 1.2 at 999"]);
    assert_eq!(scene.log.signals()[0].1.value as i64, -300);
}

#[test]
fn failure_at_the_very_instruction_of_t1_is_told_before_another_runs() {
    // t1 is 1101, and that is too late for process and node.
    let config = Config {
        sigma_t1_permille: 1101,
        ..on(&[Threshold::T1, Threshold::T2Process, Threshold::T2Node])
    };
    let mut scene = scene(config, &[(1, 1000), (2, 1000), (1, 1000)]);
    scene.run_as_told(1101);
    assert_eq!(scene.granted(), 2);
    let lines = ["late process: 1.0 at 1101", "late node: 1.0 at 1101"];
    assert_eq!(scene.log.lines(), lines);
    assert!(scene.log.signals().iter().all(|(_, event)| event.slot == 0));
}

#[test]
fn failure_that_comes_with_a_block_is_told() {
    let slots = [(1, 1000), (2, 1000)];
    let mut scene = scene(on(&[Threshold::T2Task]), &slots);
    scene.node.charge(0, 1501);
    scene.now_ns = 1501;
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1501"]);
}

#[test]
fn lateness_is_looked_at_where_a_task_ends() {
    let thresholds = [
        Threshold::T2Task,
        Threshold::T2Process,
        Threshold::T2Node,
        Threshold::Info,
    ];
    let mut scene = scene(on(&thresholds), &[(1, 1000), (1, 1000)]);
    // All at once: of the levels only the last.
    scene.finish(1501);
    let lines = [
        "late task: 1.0 at 1501",
        "late process: 1.0 at 1501",
        "late node: 1.0 at 1501",
    ];
    assert_eq!(scene.log.lines(), lines);
    let last = scene.log.signals()[2].0 as usize;
    assert_eq!(scene.log.0[last + 1].kind, EventKind::TaskEnded);
    // Nothing that meets its thresholds exactly is reported.
    let mut exact = self::scene(on(&thresholds[..1]), &[(1, 1000)]);
    exact.finish(1500);
    assert_eq!(exact.log.lines(), [""; 0]);
}

#[test]
fn end_of_a_process_is_the_end_of_its_task() {
    let thresholds = [Threshold::T2Task, Threshold::Tm2Task];
    let slots = [(1, 1000), (1, 1000), (2, 1000), (3, 1000), (2, 1000)];
    let mut scene = scene(on(&thresholds), &slots);
    scene.node.charge(0, 1501);
    scene.exit(1);
    scene.run(499);
    // It is killed before its last task, which is no earliness.
    scene.exit(2);
    scene.run(498);
    scene.exit(3);
    let lines = ["late task: 1.0 at 1501", "early task: 3.0 at 498"];
    assert_eq!(scene.log.lines(), lines);
    // A task that has not begun is neither.
    let mut unbegun = self::scene(on(&thresholds), &[(1, 1000), (2, 1000)]);
    unbegun.exit(2);
    assert_eq!(unbegun.log.lines(), [""; 0]);
}

/// Runs one scene in which everything happens that can.
fn everything(off: Option<Threshold>) -> Vec<(EventKind, u16)> {
    let bits = off.map_or(0, |threshold| threshold as u64);
    let config = Config {
        thresholds: Threshold::ALL_BITS & !bits,
        ..SIGNALS
    };
    let slots = [(2, 1000), (1, 1000), (1, 1000), (1, 1000), (2, 1000)];
    let mut scene = scene(config, &slots);
    scene.finish(400);
    scene.run_as_told(2999);
    scene.finish(1);
    let mut seen = Vec::new();
    let kinds = [EventKind::Preempted, EventKind::Late];
    let kinds = [kinds, [EventKind::Early, EventKind::Info]].concat();
    for event in &scene.log.0 {
        let of = (event.kind, event.reason);
        if kinds.contains(&event.kind) && !seen.contains(&of) {
            seen.push(of);
        }
    }
    seen.sort_unstable();
    seen
}

#[test]
fn each_threshold_can_be_switched_off_alone() {
    let all = everything(None);
    let told = |kind, cause| (kind, cause);
    let (task, process, node, preemptions) = (1, 2, 3, 4);
    let expected = [
        told(EventKind::Preempted, 0),
        told(EventKind::Late, task),
        told(EventKind::Late, process),
        told(EventKind::Late, node),
        told(EventKind::Late, preemptions),
        told(EventKind::Early, task),
        told(EventKind::Early, node),
        told(EventKind::Info, process),
        told(EventKind::Info, node),
    ];
    assert_eq!(all, expected);
    for off in Threshold::ALL {
        let gone: &[(EventKind, u16)] = match off {
            // Without it there are no preemptions.
            Threshold::T1 => &[told(EventKind::Preempted, 0), told(EventKind::Late, 4)],
            Threshold::T2Task => &[told(EventKind::Late, 1)],
            // Information comes only with its threshold.
            Threshold::T2Process => &[told(EventKind::Late, 2), told(EventKind::Info, 2)],
            Threshold::T2Node => &[told(EventKind::Late, 3), told(EventKind::Info, 3)],
            Threshold::T2Preemptions => &[told(EventKind::Late, 4)],
            Threshold::Tm2Task => &[told(EventKind::Early, 1)],
            Threshold::Tm2Node => &[told(EventKind::Early, 3)],
            Threshold::Info => &[told(EventKind::Info, 2), told(EventKind::Info, 3)],
            // See the tests of memory.
            Threshold::T2Memory => &[],
            // See the tests of messages.
            Threshold::T2Message | Threshold::Tm2Message => &[],
        };
        let mut rest = all.clone();
        rest.retain(|of| !gone.contains(of));
        assert_eq!(everything(Some(off)), rest, "without {}", off.name());
    }
}
