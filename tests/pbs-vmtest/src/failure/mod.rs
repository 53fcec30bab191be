// SPDX-License-Identifier: GPL-2.0
//! Prediction failures: what the thresholds of Leppert 2021, chapter 3, tell,
//! and what plans do about it.
//!
//! The numbers are small, so that tasks of some milliseconds meet them, and
//! each test switches on only what it is about.

pub mod again;
pub mod config;
pub mod dealt;
pub mod early;
pub mod ended;
pub mod info;
pub mod late;
pub mod rogue;
pub mod stress;

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, Event, EventKind};

use crate::harness::{line, ns, overshoot_limit_insns, Node, Verdict, CONFIG};
use crate::{check, check_eq};

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

/// Fields of a signal: kind, cause, process, task, and the share of the
/// threshold in percent.
pub type SignalFields = (EventKind, Cause, u32, u32, u32);

/// Fields of all signals, in order.
pub fn said(node: &Node) -> Result<Vec<SignalFields>, String> {
    node.signals().iter().map(says).collect()
}

fn says(event: &Event) -> Result<SignalFields, String> {
    let kind = EventKind::from_raw(event.kind);
    let cause = Cause::from_raw(event.reason);
    let (Some(kind), Some(cause)) = (kind, cause) else {
        return Err(format!("unknown kind or cause: {}", line(event)));
    };
    let Event { process, task, .. } = *event;
    Ok((kind, cause, process, task, event.level_percent))
}

/// The signals are these, no more and no less.
pub fn check_said(node: &Node, expected: &[SignalFields]) -> Verdict {
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
