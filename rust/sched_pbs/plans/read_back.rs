// SPDX-License-Identifier: GPL-2.0

//! Reading back of the plan of a CPU.

use super::control;
use crate::{linux::storage::CHARGED, pbs_core::wire, percpu::cpus};
use kernel::{alloc::KVVec, prelude::*, task_ext::give_way};

/// Number of slots, or of edges, that are copied with the run queue locked.
const SLOTS_A_LOCK: usize = 128;

/// The plan of a CPU, as a plan of one CPU with its configuration, and the generation of that.
pub(crate) fn read_back(number: u32) -> Result<(KVVec<u8>, u32)> {
    // With this lock nobody replaces the plan between two locks of the run queue.
    let _control = control::get()?.lock_killable()?;
    let cpu = cpus::get(number).ok_or(ENODEV)?;
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
            let record = plan.cpu_record(number);
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
    let mut piece = [0; SLOTS_A_LOCK * wire::SLOT_BYTES];
    for first in (0..record.nr_slots as usize).step_by(SLOTS_A_LOCK) {
        give_way()?;
        let used = cpu
            .lock_for_change(|_, _, state| {
                let plan = state.node.as_ref()?.plan();
                let slots = plan.slots().iter().skip(first);
                let mut used = 0;
                for (slot, place) in slots.zip(piece.chunks_exact_mut(wire::SLOT_BYTES)) {
                    let process = plan.process(slot.process);
                    let id = process.map_or(wire::IDLE, |process| process.id);
                    place.copy_from_slice(&wire::encode::slot(slot.length_insns, id, slot.task));
                    used += wire::SLOT_BYTES;
                }
                Some(used)
            })
            .flatten()
            .ok_or(ENOENT)?;
        out.extend_from_slice(piece.get(..used).unwrap_or_default(), CHARGED)?;
    }
    for first in (0..record.nr_edges as u32).step_by(SLOTS_A_LOCK) {
        give_way()?;
        let used = cpu
            .lock_for_change(|_, _, state| {
                let plan = state.node.as_ref()?.plan();
                let edges = first..plan.edges().len() as u32;
                let mut used = 0;
                for (edge, place) in edges.zip(piece.chunks_exact_mut(wire::EDGE_BYTES)) {
                    place.copy_from_slice(&plan.edge_record(edge));
                    used += wire::EDGE_BYTES;
                }
                Some(used)
            })
            .flatten()
            .ok_or(ENOENT)?;
        out.extend_from_slice(piece.get(..used).unwrap_or_default(), CHARGED)?;
    }
    if header.with_arrivals {
        for first in (0..record.nr_edges as u32).step_by(SLOTS_A_LOCK) {
            give_way()?;
            let used = cpu
                .lock_for_change(|_, _, state| {
                    let plan = state.node.as_ref()?.plan();
                    let edges = first..plan.edges().len() as u32;
                    let mut used = 0;
                    let places = piece.chunks_exact_mut(wire::ARRIVAL_BYTES);
                    for (edge, place) in edges.zip(places.take(SLOTS_A_LOCK)) {
                        place.copy_from_slice(&plan.arrival_record(edge));
                        used += wire::ARRIVAL_BYTES;
                    }
                    Some(used)
                })
                .flatten()
                .ok_or(ENOENT)?;
            out.extend_from_slice(piece.get(..used).unwrap_or_default(), CHARGED)?;
        }
    }
    Ok((out, generation))
}
