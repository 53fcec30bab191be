// SPDX-License-Identifier: GPL-2.0

//! The tracepoints `pbs:*`, of `include/trace/events/pbs.h`.

use crate::pbs_core::{EventKind, PresentSlot};
use kernel::bindings::pbs_event as Record;

kernel::declare_trace! {
    /// A slot begins.
    fn pbs_slot_begin(
        cpu: u32,
        plan_id: u64,
        slot: u32,
        process: u32,
        task: u32,
        length_insns: u64,
        t1_insns: u64,
        limit_ns: u64,
    );
    /// A slot ends.
    fn pbs_slot_end(
        cpu: u32,
        plan_id: u64,
        slot: u32,
        process: u32,
        task: u32,
        length_insns: u64,
        count_insns: u64,
    );
    fn pbs_grant(event: &Record);
    fn pbs_task_end(event: &Record);
    fn pbs_preempt(event: &Record);
    fn pbs_ceiling(event: &Record);
    fn pbs_signal(event: &Record);
    fn pbs_plan_swap(event: &Record);
    fn pbs_plan_end(event: &Record);
    fn pbs_attach(event: &Record);
    fn pbs_wait(event: &Record);
    fn pbs_tier(event: &Record);
}

/// Traces an event, if there is a tracepoint for its kind.
#[inline(always)]
pub(crate) fn event(kind: EventKind, record: &Record) {
    if any_event_enabled() {
        go_through(kind, record);
    }
}

/// Whether any tracepoint of an event is enabled.
#[inline(always)]
fn any_event_enabled() -> bool {
    #[cfg(CONFIG_TRACEPOINTS)]
    // SAFETY: The key is defined in trace.c, which is built in.
    return unsafe {
        kernel::static_branch_unlikely!(
            kernel::bindings::trace_pbs_event_key,
            kernel::bindings::static_key_false,
            key
        )
    };
    #[cfg(not(CONFIG_TRACEPOINTS))]
    false
}

#[cold]
#[inline(never)]
fn go_through(kind: EventKind, record: &Record) {
    match kind {
        EventKind::Grant => pbs_grant(record),
        EventKind::TaskEnded => pbs_task_end(record),
        EventKind::Preempted => pbs_preempt(record),
        EventKind::Ceiling => pbs_ceiling(record),
        EventKind::Late | EventKind::Early | EventKind::Info => pbs_signal(record),
        EventKind::PlanInstalled | EventKind::PlanDropped | EventKind::CpuGone => {
            pbs_plan_swap(record)
        }
        EventKind::PlanEnded => pbs_plan_end(record),
        EventKind::Attached => pbs_attach(record),
        EventKind::Waits => pbs_wait(record),
        EventKind::Tier => pbs_tier(record),
        EventKind::Absent
        | EventKind::ProcessEnded
        | EventKind::Ejected
        | EventKind::StopLong
        | EventKind::Overrun
        | EventKind::Configured => {}
    }
}

/// Traces that a slot begins. `slot` is only called if the tracepoint is enabled.
#[inline(always)]
pub(crate) fn slot_begin(cpu: u32, plan_id: u64, slot: impl FnOnce() -> Option<PresentSlot>) {
    if pbs_slot_begin_enabled() {
        if let Some(slot) = slot() {
            pbs_slot_begin(
                cpu,
                plan_id,
                slot.number,
                slot.process,
                slot.task,
                slot.length_insns,
                slot.t1_insns.unwrap_or(0),
                slot.limit_ns,
            );
        }
    }
}

/// Traces that a slot ends. `slot` is only called if the tracepoint is enabled.
#[inline(always)]
pub(crate) fn slot_end(cpu: u32, plan_id: u64, slot: impl FnOnce() -> Option<PresentSlot>) {
    if pbs_slot_end_enabled() {
        if let Some(slot) = slot() {
            pbs_slot_end(
                cpu,
                plan_id,
                slot.number,
                slot.process,
                slot.task,
                slot.length_insns,
                slot.count_insns,
            );
        }
    }
}
