// SPDX-License-Identifier: GPL-2.0
//! Prediction failures: what the thresholds of Leppert 2021, chapter 3, tell,
//! and what plans do about it.
//!
//! The numbers are small, so that tasks of some milliseconds meet them, and
//! each test switches on only what it is about.

mod again;
mod config;
mod dealt;
mod early;
mod ended;
mod info;
mod late;
mod rogue;
mod stress;

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, Event, EventKind};

use crate::harness::{line, ns, overshoot_limit_insns, Node, Verdict, CONFIG};
use crate::{check, check_eq};

/// The tests by their names.
pub const TESTS: &[(&str, crate::Test)] = &[
    ("late-by-t2-task", late::late_by_t2_task),
    ("late-by-t2-process", late::late_by_t2_process),
    ("late-by-plan-buffer", late::late_by_plan_buffer),
    ("late-by-t2-node", late::late_by_t2_node),
    ("late-by-t2-preemptions", late::late_by_t2_preemptions),
    ("early-by-tm2-task", early::early_by_tm2_task),
    ("early-by-tm2-node", early::early_by_tm2_node),
    ("info-before-t2-process", info::info_before_t2_process),
    ("info-before-t2-node", info::info_before_t2_node),
    ("each-threshold-can-be-off", info::each_threshold_can_be_off),
    (
        "every-reader-gets-the-signals",
        info::every_reader_gets_the_signals,
    ),
    (
        "stress-holds-signals-back",
        stress::stress_holds_signals_back,
    ),
    ("stress-falls-with-time", stress::stress_falls_with_time),
    ("dealt-task-is-silent", dealt::dealt_task_is_silent),
    ("dealt-process-is-silent", dealt::dealt_process_is_silent),
    (
        "dealt-preemptions-restart",
        dealt::dealt_preemptions_restart,
    ),
    ("dealt-with-the-future", dealt::dealt_with_the_future),
    ("failure-is-told-again", again::failure_is_told_again),
    (
        "plan-for-an-ended-process",
        ended::plan_for_an_ended_process,
    ),
    (
        "ended-process-on-one-of-two-cpus",
        ended::ended_process_on_one_of_two_cpus,
    ),
    ("numbers-of-a-plan", config::numbers_of_a_plan),
    ("numbers-in-sysfs", config::numbers_in_sysfs),
    ("rogue-loop-keeps-to-its-slots", rogue::rogue_loop),
    ("rogue-calls-keep-to-their-slots", rogue::rogue_calls),
];

/// Only these thresholds, with numbers for tasks of 1,000,000 instructions:
/// t2_task is 1,500,000, tm2_task 500,000, and a process may be late by 500,000
/// or a tenth. No stress, and ceilings that nobody reaches.
pub fn config(thresholds: &[Threshold]) -> Config {
    Config {
        ceiling_factor_permille: 1_000_000,
        t2_spacer_ns: ns(100_000),
        max_preemptions: 3,
        available_plan_buffer_permille: 1000,
        reschedule_time_ns: 0,
        t2_min_process_ns: ns(500_000),
        tm2_node_lower_bound_ns: ns(500_000),
        stress_gain_ns: 0,
        thresholds: thresholds.iter().map(|&bit| bit as u64).sum(),
        ..CONFIG
    }
}

/// What a signal says: kind, cause, process, task, and the share of the
/// threshold in percent.
pub type Said = (EventKind, Cause, u32, u32, u32);

/// What all signals say, in order.
pub fn said(node: &Node) -> Result<Vec<Said>, String> {
    node.signals().iter().map(says).collect()
}

fn says(event: &Event) -> Result<Said, String> {
    let kind = EventKind::from_raw(event.kind);
    let cause = Cause::from_raw(event.reason);
    let (Some(kind), Some(cause)) = (kind, cause) else {
        return Err(format!("unknown kind or cause: {}", line(event)));
    };
    let Event { process, task, .. } = *event;
    Ok((kind, cause, process, task, event.level_percent))
}

/// The signals are these, no more and no less.
pub fn check_said(node: &Node, expected: &[Said]) -> Verdict {
    for event in node.signals() {
        println!("{}", line(&event));
    }
    check_eq!(said(node)?, expected, "signals\n{}", node.log());
    Ok(())
}

/// `insns` is beyond `threshold_insns`, and was noticed soon: the timer is set
/// for the moment at which the count is predicted to get there.
pub fn check_just_beyond(what: &str, insns: i64, threshold_insns: i64) -> Verdict {
    let over_insns = insns - threshold_insns;
    println!("{what}: {over_insns} beyond {threshold_insns}");
    let limit_insns = overshoot_limit_insns() as i64;
    check!(
        (1..=limit_insns).contains(&over_insns),
        "{what}: {insns} is {over_insns} beyond {threshold_insns}"
    );
    Ok(())
}
