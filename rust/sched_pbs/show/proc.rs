// SPDX-License-Identifier: GPL-2.0

//! The class as Linux shows it: `linux.c` calls this, and prints.
//!
//! The run queue's clock is not updated: in an oops this only reads.

use crate::{
    linux::{
        entity,
        sched_class::{
            bindings::{pbs_place, pbs_standing},
            RunQueue, RunQueueGuard,
        },
    },
    percpu::{access, cpu::Cpu, cpus},
    state::{threads::Threads, State},
};
use core::ffi::c_int;
use kernel::{bindings, prelude::*, task::Task};

/// Writes the position of a thread in the plan of its CPU.
///
/// # Safety
///
/// `task` is valid, and `place` valid for writes. With `wait` the caller has no run queue locked,
/// and is not in an NMI.
#[no_mangle]
unsafe extern "C" fn sched_pbs_place(
    task: *mut bindings::task_struct,
    wait: bool,
    place: *mut pbs_place,
) -> c_int {
    // SAFETY: The caller's promise.
    let task = unsafe { Task::from_raw(task) };
    match place_of(task, wait) {
        Ok(found) => {
            // SAFETY: The caller's promise.
            unsafe { place.write(found) };
            0
        }
        Err(error) => error.to_errno(),
    }
}

fn place_of(task: &Task, wait: bool) -> Result<pbs_place> {
    let cpu = entity::seat_cpu(task).and_then(cpus::get).ok_or(ESRCH)?;
    let mut rq = if wait {
        RunQueueGuard::lock(cpu.id())
    } else {
        RunQueueGuard::try_lock(cpu.id()).ok_or(EBUSY)?
    };
    let place = access::with_state(rq.as_mut(), |rq, cpu, state| place_in(rq, cpu, state, task));
    place.flatten().ok_or(ESRCH)
}

fn place_in(rq: &RunQueue, cpu: &Cpu, state: &State, task: &Task) -> Option<pbs_place> {
    let (threads, node) = (state.threads.as_ref()?, state.node.as_ref()?);
    let row = threads.get(entity::seat_of(rq, task))?.row;
    let process = node.process(threads.rows().process(row)?)?;
    Some(pbs_place {
        plan_id: node.plan_id(),
        lateness_insns: process.lateness_insns,
        retired_insns: process.retired_insns,
        planned_insns: process.planned_insns,
        cpu: cpu.number(),
        process: process.id,
        // `NO_TASK` is -1.
        task: process.task as i32,
        slot: node.cursor(),
    })
}

/// Writes the state of a CPU's plan; returns whether it has one.
///
/// # Safety
///
/// `standing` is valid for writes. The caller has no run queue locked, and is not in an NMI.
#[no_mangle]
unsafe extern "C" fn sched_pbs_standing(number: u32, standing: *mut pbs_standing) -> bool {
    let Some(cpu) = cpus::get(number) else {
        return false;
    };
    let found = cpu.lock(|_, _, state| standing_of(state)).flatten();
    if let Some(found) = found {
        // SAFETY: The caller's promise.
        unsafe { standing.write(found) };
    }
    found.is_some()
}

fn standing_of(state: &State) -> Option<pbs_standing> {
    let node = state.node.as_ref()?;
    let granted = node.granted().0.and_then(|p| node.plan().process(p));
    Some(pbs_standing {
        plan_id: node.plan_id(),
        lateness_insns: node.lateness_insns(),
        slot_count_insns: node.slot_count_insns(),
        granted_process: granted.map_or(-1, |process| process.id.into()),
        slot: node.cursor(),
        slots: node.slots(),
        threads: state.threads.as_ref().map_or(0, Threads::used),
        unfinished: node.unfinished(),
    })
}
