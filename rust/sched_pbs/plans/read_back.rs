// SPDX-License-Identifier: GPL-2.0

//! Reading back of the plan of a CPU.

use super::control::{self, Control};
use crate::{
    linux::storage::CHARGED,
    pbs_core::{wire, Plan},
    percpu::{cpu::Cpu, cpus},
    state::node::KernelMemory,
};
use kernel::{alloc::KVVec, prelude::*, task_ext::give_way};

/// Number of records that are copied with the run queue locked.
const RECORDS_A_LOCK: usize = 128;

/// The plan of a CPU, as a plan of one CPU with its configuration, and the generation of that.
pub(crate) fn read_back(number: u32) -> Result<(KVVec<u8>, u32)> {
    // With this lock nobody replaces the plan between two locks of the run queue.
    let control = control::get()?.lock_killable()?;
    read_plan(&control, cpus::get(number).ok_or(ENODEV)?)
}

/// Reads back the plan of a CPU. Nobody replaces the plan meanwhile: the caller has the control
/// mutex locked. Sleeps.
pub(super) fn read_plan(_control: &Control, cpu: &Cpu) -> Result<(KVVec<u8>, u32)> {
    let (header, config, record, generation) = cpu
        .lock_for_change(|_, _, state| {
            let node = state.node.as_ref()?;
            let plan = node.plan();
            let header = wire::encode::Header {
                plan_id: node.plan_id(),
                total_bytes: plan.encoded_bytes(),
                nr_cpus: 1,
                with_config: true,
                with_arrivals: plan.has_arrivals(),
                lease_ns: state.lease.map_or(0, |lease| lease.length_ns()),
                memory_bytes: plan.memory_bytes(),
                ..wire::encode::Header::default()
            };
            let record = plan.cpu_record(cpu.number());
            Some((header, *node.config(), record, state.generation))
        })
        .flatten()
        .ok_or(ENOENT)?;
    let mut out = KVVec::with_capacity(header.total_bytes as usize, CHARGED)?;
    out.extend_from_slice(&header.bytes(), CHARGED)?;
    out.extend_from_slice(&wire::encode::config(&config), CHARGED)?;
    out.extend_from_slice(&record.bytes(), CHARGED)?;
    for index in 0..record.nr_processes {
        give_way()?;
        let process = cpu
            .lock_for_change(|_, _, state| state.node.as_ref()?.plan().process(index).copied())
            .flatten()
            .ok_or(ENOENT)?;
        out.extend_from_slice(&process.record().bytes(), CHARGED)?;
    }
    let slots = record.nr_slots as usize;
    append(
        &mut out,
        cpu,
        slots,
        wire::SLOT_BYTES,
        |plan, index, place| {
            if let Some(slot) = plan.slots().get(index) {
                let process = plan.process(slot.process);
                let id = process.map_or(wire::IDLE, |process| process.id);
                place.copy_from_slice(&wire::encode::slot(slot.length_insns, id, slot.task));
            }
        },
    )?;
    let edges = record.nr_edges as usize;
    append(
        &mut out,
        cpu,
        edges,
        wire::EDGE_BYTES,
        |plan, index, place| {
            place.copy_from_slice(&plan.edge_record(index as u32));
        },
    )?;
    if header.with_arrivals {
        append(
            &mut out,
            cpu,
            edges,
            wire::ARRIVAL_BYTES,
            |plan, index, place| {
                place.copy_from_slice(&plan.arrival_record(index as u32));
            },
        )?;
    }
    Ok((out, generation))
}

/// Appends `count` records of `bytes` bytes each of the plan of a CPU; `write` writes the record of
/// an index.
///
/// Fails with `ENOENT` if the CPU has no plan any more. Sleeps.
fn append(
    out: &mut KVVec<u8>,
    cpu: &Cpu,
    count: usize,
    bytes: usize,
    write: impl Fn(&Plan<KernelMemory>, usize, &mut [u8]),
) -> Result {
    for first in (0..count).step_by(RECORDS_A_LOCK) {
        give_way()?;
        let records = RECORDS_A_LOCK.min(count - first);
        let before = out.len();
        out.extend_with(records * bytes, 0, CHARGED)?;
        let piece = out.get_mut(before..).unwrap_or_default();
        cpu.lock_for_change(|_, _, state| {
            let plan = state.node.as_ref()?.plan();
            for (index, place) in (first..).zip(piece.chunks_exact_mut(bytes)) {
                write(plan, index, place);
            }
            Some(())
        })
        .flatten()
        .ok_or(ENOENT)?;
    }
    Ok(())
}
