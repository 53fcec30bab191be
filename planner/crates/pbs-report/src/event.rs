// SPDX-License-Identifier: GPL-2.0
//! Events as JSON and as lines of text.

use pbs_uapi::{Eject, Event, EventKind, Grant, IDLE, NO_SLOT, NO_TASK};
use serde::Serialize;

use crate::number::{bytes, grouped};

/// An event as it stands in JSON: names for numbers, `null` for what the
/// event does not have.
#[derive(Clone, Debug, Serialize)]
pub struct EventView {
    seq: u64,
    time_ns: u64,
    plan_id: u64,
    kind: String,
    reason: Option<String>,
    cpu: u32,
    process: Option<u32>,
    task: Option<u32>,
    slot: Option<u64>,
    planned_insns: u64,
    retired_insns: u64,
    lateness_insns: i64,
    value: u64,
    peak_vm_bytes: u64,
    peak_rss_bytes: u64,
    preemptions: u32,
    pid: Option<i32>,
}

impl From<&Event> for EventView {
    fn from(event: &Event) -> Self {
        Self {
            seq: event.seq,
            time_ns: event.time_ns,
            plan_id: event.plan_id,
            kind: kind_name(event),
            reason: reason_name(event),
            cpu: event.cpu,
            process: Some(event.process).filter(|&process| process != IDLE),
            task: Some(event.task).filter(|&task| task != NO_TASK),
            slot: Some(event.slot).filter(|&slot| slot != NO_SLOT),
            planned_insns: event.planned_insns,
            retired_insns: event.retired_insns,
            lateness_insns: event.lateness_insns,
            value: event.value,
            peak_vm_bytes: event.peak_vm_bytes,
            peak_rss_bytes: event.peak_rss_bytes,
            preemptions: event.preemptions,
            pid: Some(event.pid).filter(|&pid| pid != 0),
        }
    }
}

/// The name of the event's kind; its number where it is a new one.
pub(crate) fn kind_name(event: &Event) -> String {
    EventKind::from_raw(event.kind)
        .map_or_else(|| format!("kind_{}", event.kind), |kind| kind.name().into())
}

fn reason_name(event: &Event) -> Option<String> {
    let name = match EventKind::from_raw(event.kind) {
        Some(EventKind::Grant) => Grant::from_raw(event.reason).map(Grant::name),
        Some(EventKind::Ejected) => Eject::from_raw(event.reason).map(Eject::name),
        _ => None,
    };
    match name {
        Some(name) => Some(name.into()),
        None if event.reason == 0 => None,
        None => Some(format!("reason_{}", event.reason)),
    }
}

/// The event as a line of text, without its end.
pub fn describe(event: &Event) -> String {
    let mut line = format!(
        "{:>8} {:>6}.{:06} cpu{:<3} {:<14}",
        event.seq,
        event.time_ns / 1_000_000_000,
        event.time_ns % 1_000_000_000 / 1_000,
        event.cpu,
        kind_name(event)
    );
    let mut say = |text: String| {
        line.push(' ');
        line.push_str(&text);
    };
    if event.process != IDLE {
        say(format!("process {}", event.process));
    }
    if event.task != NO_TASK {
        say(format!("task {}", event.task));
    }
    if event.slot != NO_SLOT {
        say(format!("slot {}", event.slot));
    }
    let value = event.value;
    match EventKind::from_raw(event.kind) {
        Some(EventKind::PlanInstalled) => {
            say(format!("plan {}, {} slots", event.plan_id, grouped(value)));
        }
        Some(EventKind::PlanEnded) => say(format!(
            "plan {}, {value} processes still have tasks",
            event.plan_id
        )),
        Some(EventKind::PlanDropped | EventKind::CpuGone) => say(format!("plan {}", event.plan_id)),
        Some(EventKind::Attached) => say(format!("pid {}", event.pid)),
        Some(EventKind::Grant | EventKind::Absent) => {}
        Some(EventKind::TaskEnded) => say(format!(
            "planned {} retired {} preempted {} lateness {} peak {} of {}",
            grouped(event.planned_insns),
            grouped(event.retired_insns),
            event.preemptions,
            grouped(event.lateness_insns),
            bytes(event.peak_rss_bytes),
            bytes(event.peak_vm_bytes)
        )),
        Some(EventKind::Preempted) => say(format!(
            "t1 {} planned {} retired {}",
            grouped(value),
            grouped(event.planned_insns),
            grouped(event.retired_insns)
        )),
        Some(EventKind::Ceiling) => say(format!("after {} ns", grouped(value))),
        Some(EventKind::ProcessEnded) if value == 0 => say("all its tasks ended".into()),
        Some(EventKind::ProcessEnded) => say(format!("{value} of its tasks not ended")),
        Some(EventKind::Ejected) => say(format!("pid {}", event.pid)),
        Some(EventKind::StopLong) => say(format!("pid {} {} ns", event.pid, grouped(value))),
        Some(EventKind::Overrun) => say(format!("{} events lost", grouped(value))),
        Some(EventKind::Late | EventKind::Early | EventKind::Info) | None => {
            say(format!("value {value}"));
        }
    }
    if let Some(reason) = reason_name(event) {
        line.push_str(&format!(" ({reason})"));
    }
    line
}
