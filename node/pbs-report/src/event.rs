// SPDX-License-Identifier: GPL-2.0
//! Events as JSON and as lines of text.

use pbs_text::{bytes, grouped, span};
use pbs_uapi::{
    Cause, Drop, Eject, Event, EventKind, Grant, Tier, TierCause, Wait, IDLE, NO_SLOT, NO_TASK,
};
use serde::{Deserialize, Serialize};

/// Declares [`EventView`] and both ways between it and the record: fields that
/// are the same in both, and fields that the record has a special value for
/// where there is none.
macro_rules! event_view {
    (
        same { $($same:ident: $same_type:ty,)* }
        or_none { $($some:ident: $some_type:ty = $none:expr,)* }
    ) => {
        /// An event as it stands in JSON: names for numbers, `null` for what the
        /// event does not have. The fields are those of `struct pbs_event`.
        ///
        /// What a reader does not know it passes over; what an older writer did
        /// not know is 0 or `null`.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[allow(missing_docs)]
        pub struct EventView {
            /// The name of the kind, `kind_N` where it is a new one.
            pub kind: String,
            /// The name of the grant, cause or ejection, `reason_N` where it is
            /// a new one.
            pub reason: Option<String>,
            $(pub $same: $same_type,)*
            $(pub $some: Option<$some_type>,)*
        }

        impl From<&Event> for EventView {
            fn from(event: &Event) -> Self {
                Self {
                    kind: kind_name(event),
                    reason: reason_name(event),
                    $($same: event.$same,)*
                    $($some: Some(event.$some).filter(|&value| value != $none),)*
                }
            }
        }

        impl TryFrom<&EventView> for Event {
            type Error = String;

            /// Fails with words for a name that stands for no number.
            fn try_from(view: &EventView) -> Result<Self, String> {
                let kind = kind_number(&view.kind)
                    .ok_or_else(|| format!("there is no kind of event \"{}\"", view.kind))?;
                let reason = match &view.reason {
                    None => 0,
                    Some(name) => reason_number(kind, name).ok_or_else(|| {
                        format!("an event \"{}\" has no reason \"{name}\"", view.kind)
                    })?,
                };
                Ok(Event {
                    kind,
                    reason,
                    $($same: view.$same,)*
                    $($some: view.$some.unwrap_or($none),)*
                })
            }
        }
    };
}

event_view! {
    same {
        seq: u64,
        time_ns: u64,
        plan_id: u64,
        cpu: u32,
        planned_insns: u64,
        retired_insns: u64,
        lateness_insns: i64,
        node_lateness_insns: i64,
        value: u64,
        peak_vm_bytes: u64,
        peak_rss_bytes: u64,
        preemptions: u32,
        stress: u32,
        level_percent: u32,
        memory_bytes: u64,
    }
    or_none {
        process: u32 = IDLE,
        task: u32 = NO_TASK,
        slot: u64 = NO_SLOT,
        pid: i32 = 0,
    }
}

/// The name of the event's kind; its number where it is a new one.
pub(crate) fn kind_name(event: &Event) -> String {
    EventKind::from_raw(event.kind)
        .map_or_else(|| format!("kind_{}", event.kind), |kind| kind.name().into())
}

fn kind_number(name: &str) -> Option<u16> {
    let known = EventKind::from_name(name).map(|kind| kind as u16);
    known.or_else(|| name.strip_prefix("kind_")?.parse().ok())
}

pub(crate) fn reason_name(event: &Event) -> Option<String> {
    let name = match EventKind::from_raw(event.kind) {
        Some(EventKind::Grant) => Grant::from_raw(event.reason).map(Grant::name),
        Some(EventKind::Late | EventKind::Early | EventKind::Info) => {
            Cause::from_raw(event.reason).map(Cause::name)
        }
        Some(EventKind::Ejected) => Eject::from_raw(event.reason).map(Eject::name),
        Some(EventKind::PlanDropped) => Drop::from_raw(event.reason).map(Drop::name),
        Some(EventKind::Tier) => TierCause::from_raw(event.reason).map(TierCause::name),
        Some(EventKind::Waits) => Wait::from_raw(event.reason).map(Wait::name),
        _ => None,
    };
    match name {
        Some(name) => Some(name.into()),
        None if event.reason == 0 => None,
        None => Some(format!("reason_{}", event.reason)),
    }
}

fn reason_number(kind: u16, name: &str) -> Option<u16> {
    let known = match EventKind::from_raw(kind) {
        Some(EventKind::Grant) => Grant::from_name(name).map(|grant| grant as u16),
        Some(EventKind::Late | EventKind::Early | EventKind::Info) => {
            Cause::from_name(name).map(|cause| cause as u16)
        }
        Some(EventKind::Ejected) => Eject::from_name(name).map(|eject| eject as u16),
        Some(EventKind::PlanDropped) => Drop::from_name(name).map(|drop| drop as u16),
        Some(EventKind::Tier) => TierCause::from_name(name).map(|cause| cause as u16),
        Some(EventKind::Waits) => Wait::from_name(name).map(|wait| wait as u16),
        _ => None,
    };
    known.or_else(|| name.strip_prefix("reason_")?.parse().ok())
}

/// Whether the event is a late, early or info event.
pub(crate) fn is_signal(event: &Event) -> bool {
    matches!(
        EventKind::from_raw(event.kind),
        Some(EventKind::Late | EventKind::Early | EventKind::Info)
    )
}

/// Whether a slot reached t1 with a task that is not beyond its own plan. Such a task is pushed
/// into the next slot without being charged with a preemption; the kind of the event is
/// [`EventKind::Preempted`] all the same.
pub fn is_push(event: &Event) -> bool {
    event.kind == EventKind::Preempted as u16 && event.retired_insns <= event.planned_insns
}

/// Returns the name under which the event is counted: the name of its kind, but pushes are
/// distinguished from preemptions.
pub(crate) fn counted_as(event: &Event) -> String {
    if is_push(event) {
        return "pushed".into();
    }
    kind_name(event)
}

/// The two stages of what a process must be later than (3.3.6); their greater
/// is the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    pub(crate) capacity_buffer_insns: u64,
    pub(crate) t2_process_insns: u64,
}

/// The name of an `enum pbs_tier`; its number where it is a new one.
pub fn tier_name(tier: u32) -> String {
    Tier::from_raw(tier).map_or_else(|| format!("tier_{tier}"), |tier| tier.name().into())
}

/// Describes the comparison of a late, early or info event: the count, the sign and the threshold
/// by its name in Leppert 2021. An event contains only the greater of the two stages of a process;
/// `stages` are both, if they are known.
pub(crate) fn comparison(event: &Event, stages: Option<Stages>) -> String {
    let kind = EventKind::from_raw(event.kind);
    let early = kind == Some(EventKind::Early);
    let (actual, sign, name) = match Cause::from_raw(event.reason) {
        Some(Cause::Task) if early => (retired(event), "<", Some("tm2_task")),
        Some(Cause::Task) => (retired(event), ">", Some("t2_task")),
        Some(Cause::Process) => (lateness("process", event.lateness_insns), ">", None),
        Some(Cause::Node) if early => {
            (lateness("node", event.node_lateness_insns), "<", Some("tm2_node"))
        }
        Some(Cause::Node) => (lateness("node", event.node_lateness_insns), ">", Some("t2_node")),
        Some(Cause::Preemptions) => {
            (format!("{} preemptions", event.preemptions), "≥", Some("t2_preemptions"))
        }
        Some(Cause::Memory) => (memory("process", event), ">", Some("t2_memory")),
        Some(Cause::NodeMemory) => (memory("node", event), ">", Some("its limit")),
        Some(Cause::Message) => return message(event, early),
        Some(Cause::Start | Cause::End) => return deviation(event),
        None => return format!("value {}", grouped(event.value)),
    };
    let limit = grouped(threshold(event));
    let limit = match name {
        Some(name) => format!("{name} {limit}"),
        None => format!("{limit}, {}", greater(event, stages)),
    };
    if kind == Some(EventKind::Info) {
        let percent = event.level_percent;
        return format!("{actual} > {percent} % of {limit}");
    }
    format!("{actual} {sign} {limit}")
}

/// Describes the two stages of which the threshold of a process is the greater one.
fn greater(event: &Event, stages: Option<Stages>) -> String {
    let stages = stages.filter(|stages| {
        let greater = stages.capacity_buffer_insns.max(stages.t2_process_insns);
        // They follow from the events before, and some may have been lost.
        greater == event.value
    });
    match stages {
        Some(stages) => format!(
            "the greater of capacity buffer {} and t2_process {}",
            grouped(stages.capacity_buffer_insns),
            grouped(stages.t2_process_insns)
        ),
        None => "the greater of capacity buffer and t2_process".into(),
    }
}

fn retired(event: &Event) -> String {
    format!("{} retired", grouped(event.retired_insns))
}

fn lateness(whose: &str, insns: i64) -> String {
    format!("{whose} lateness {}", grouped(insns))
}

/// Describes a message that is late or early, with its sender. Its value is no threshold.
fn message(event: &Event, early: bool) -> String {
    let sender = format!("{}/{}", event.value >> 32, event.value as u32);
    let insns = grouped(event.retired_insns);
    if early {
        return format!("message of {sender} is early by {insns} > tm2_message");
    }
    let share = match event.level_percent {
        100 => String::new(),
        percent => format!("{percent} % of "),
    };
    format!("message of {sender} is late by {insns} > {share}t2_message")
}

/// Describes a task that starts or ends earlier or later than planned. Its value is no threshold.
fn deviation(event: &Event) -> String {
    let verb = if event.reason == Cause::Start as u16 { "started" } else { "ended" };
    let off_ns = event.value.cast_signed();
    let direction = if off_ns < 0 { "early" } else { "late" };
    format!("{verb} {} {direction} > timeliness_ns", span(off_ns.unsigned_abs()))
}

fn memory(whose: &str, event: &Event) -> String {
    format!("{whose} memory {}", grouped(event.memory_bytes))
}

/// The threshold of a late, early or info event, or the deviation of a start or an end. tm2_node is
/// a negative lateness, and a deviation is negative when the task is early: the record's value
/// holds both in two's complement.
pub(crate) fn threshold(event: &Event) -> i128 {
    let is_signed = match Cause::from_raw(event.reason) {
        Some(Cause::Node) => event.kind == EventKind::Early as u16,
        Some(Cause::Start | Cause::End) => true,
        _ => false,
    };
    if is_signed {
        i128::from(event.value as i64)
    } else {
        i128::from(event.value)
    }
}

/// Process and task that a task waits for: of [`EventKind::Waits`].
pub(crate) fn awaited(event: &Event) -> (u32, u32) {
    ((event.value >> 32) as u32, event.value as u32)
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
        Some(EventKind::PlanEnded) => {
            say(format!("plan {}, {value} processes still have tasks", event.plan_id))
        }
        Some(EventKind::PlanDropped | EventKind::CpuGone) => say(format!("plan {}", event.plan_id)),
        Some(EventKind::Attached) => say(format!("pid {}", event.pid)),
        Some(EventKind::Grant | EventKind::Absent) => {}
        Some(EventKind::TaskEnded) => {
            say(format!(
                "planned {} retired {} preempted {} lateness {}",
                grouped(event.planned_insns),
                grouped(event.retired_insns),
                event.preemptions,
                grouped(event.lateness_insns)
            ));
            // A simulation may know of none.
            if event.peak_vm_bytes > 0 {
                say(format!(
                    "peak {} of {}",
                    bytes(event.peak_rss_bytes),
                    bytes(event.peak_vm_bytes)
                ));
            }
        }
        Some(EventKind::Preempted) => say(format!(
            "t1 {} planned {} retired {}{}",
            grouped(value),
            grouped(event.planned_insns),
            grouped(event.retired_insns),
            if is_push(event) { ", pushed: within its plan" } else { "" }
        )),
        Some(EventKind::Ceiling) => say(format!("after {}", span(value))),
        Some(EventKind::ProcessEnded) if value == 0 => say("all its tasks ended".into()),
        Some(EventKind::ProcessEnded) => say(format!("{value} of its tasks not ended")),
        Some(EventKind::Ejected) => say(format!("pid {}", event.pid)),
        Some(EventKind::StopLong) => say(format!("pid {}, {}", event.pid, span(value))),
        Some(EventKind::Overrun) => say(format!("{} events lost", grouped(value))),
        Some(EventKind::Configured) => {
            let numbers = if value == 1 { "number" } else { "numbers" };
            say(format!("plan {}, {value} {numbers} of the configuration changed", event.plan_id));
        }
        Some(EventKind::Tier) => say(format!("counts by {}", tier_name(value as u32))),
        Some(EventKind::Waits) => {
            let (process, task) = awaited(event);
            let gone = if event.reason == Wait::Gone as u16 { ", which is gone" } else { "" };
            say(format!("waits for task {task} of process {process}{gone}"));
        }
        Some(EventKind::Late | EventKind::Early | EventKind::Info) => {
            say(comparison(event, None));
            if event.stress > 0 {
                say(format!("stress {}", event.stress));
            }
        }
        None => say(format!("value {}", grouped(value))),
    }
    if let Some(reason) = reason_name(event) {
        line.push_str(&format!(" ({reason})"));
    }
    line
}
