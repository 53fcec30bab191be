// SPDX-License-Identifier: GPL-2.0

//! State of one process, by its number.

use crate::{
    pbs_core::{wire, Presence, ProcessInfo},
    plans::control,
    rings::events,
    thread::attach,
};
use kernel::{bindings, prelude::*};

/// The state of a process that some plan has.
///
/// If two CPUs have it, which is possible only if it has ended on one of them, the result is that
/// of the CPU where it lives. Each lock is for one process.
pub(crate) fn read(id: u32) -> Result<bindings::pbs_process> {
    // With this lock nobody moves the process to another CPU meanwhile.
    let _control = control::get()?.lock_killable()?;
    let cpu = attach::cpu_of(id).ok_or(ENOENT)?;
    let known = cpu.lock_for_change(|_, _, state| {
        let node = state.node.as_ref()?;
        let process = node.plan().find(id)?;
        let info = node.process(process)?;
        let after = node.waits_for(process);
        // Events of this CPU get their number under this lock.
        Some((info, after, node.plan_id(), events::next_seq()))
    });
    let (info, after, plan_id, next_seq) = known.flatten().ok_or(ENOENT)?;
    let (after_process, after_task) = after.unwrap_or((wire::IDLE, wire::NO_TASK));
    Ok(bindings::pbs_process {
        process: info.id,
        cpu: cpu.number(),
        plan_id,
        state: state_of(&info, after.is_some()),
        task: info.task,
        ended_tasks: info.ended_tasks,
        tasks: info.tasks,
        planned_insns: info.planned_insns,
        retired_insns: info.retired_insns,
        lateness_insns: info.lateness_insns,
        buffer_insns: info.buffer_insns,
        preemptions: info.preemptions,
        after_process,
        after_task,
        task_peak_vm_bytes: info.task_peak_vm_bytes,
        task_peak_rss_bytes: info.task_peak_rss_bytes,
        memory_bytes: info.memory_bytes,
        t2_memory_bytes: info.t2_memory_bytes,
        peak_vm_bytes: info.peak_vm_bytes,
        peak_rss_bytes: info.peak_rss_bytes,
        next_seq,
        ..bindings::pbs_process::default()
    })
}

fn state_of(info: &ProcessInfo, waits: bool) -> u32 {
    match info.presence {
        _ if info.done => bindings::pbs_process_state_PBS_PROCESS_DONE,
        Presence::Absent => bindings::pbs_process_state_PBS_PROCESS_ABSENT,
        Presence::Blocked => bindings::pbs_process_state_PBS_PROCESS_BLOCKED,
        Presence::Ready if waits => bindings::pbs_process_state_PBS_PROCESS_WAITS,
        Presence::Ready => bindings::pbs_process_state_PBS_PROCESS_READY,
    }
}
