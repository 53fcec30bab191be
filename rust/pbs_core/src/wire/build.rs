// SPDX-License-Identifier: GPL-2.0

//! From a section of a written plan to a [`Plan`], with all checks of the
//! slots; and back.

use core::iter;

use super::super::memory::PAUSE_EVERY;
use super::super::plan::{Plan, Process, Slot, SUM_EVERY};
use super::super::{Config, Fault, Interrupted, Memory, Refusal};
use super::message::Section;
use super::{encode, IDLE, MAX_PLAN_INSNS, MAX_SLOT_INSNS, NO_TASK};

impl<M: Memory> Plan<M> {
    /// Builds the plan of one CPU; refuses slots that are wrong.
    ///
    /// Takes time in proportion to the number of slots: up to millions.
    pub fn build(section: &Section<'_>) -> Result<Plan<M>, Refusal> {
        let mut processes = read_processes::<M>(section)?;
        let (slots, owned) = read_slots::<M>(section, &mut processes)?;
        let mut first = 0;
        for (process, index) in processes.iter_mut().zip(0..) {
            if process.count == 0 {
                return Err(Fault::NoSlotOfProcess {
                    cpu: section.cpu(),
                    process: process.id,
                }
                .at(section.process(index)?.offset));
            }
            process.first = first;
            first += process.count;
        }
        let mut order = M::alloc::<u32>(owned, 0)?;
        for (slot, number) in slots.iter().zip(0..) {
            pause::<M>(number)?;
            let Some(process) = processes.get(slot.process as usize) else {
                continue;
            };
            if let Some(place) = order.get_mut((process.first + slot.position) as usize) {
                *place = number;
            }
        }
        let mut sums_insns = M::alloc::<u64>(owned / SUM_EVERY + 1, 0)?;
        let mut sum_insns = 0;
        let pieces = order.chunks(SUM_EVERY).map(Some).chain(iter::repeat(None));
        for ((place, numbers), number) in sums_insns.iter_mut().zip(pieces).zip(0..) {
            pause::<M>(number)?;
            *place = sum_insns;
            for &number in numbers.unwrap_or(&[]) {
                // The sum of all slots is at most 2^62.
                sum_insns += slots.get(number as usize).map_or(0, |s| s.length_insns);
            }
        }
        Ok(Plan {
            processes,
            slots,
            order,
            sums_insns,
        })
    }

    /// The size of what [`Plan::encode`] writes.
    pub fn encoded_bytes(&self) -> u64 {
        let processes = self.processes.len() as u64;
        encode::total_bytes(true, 1, processes, self.slots.len() as u64)
    }

    /// Writes the plan as a plan of one CPU with its configuration, piece by
    /// piece, until `sink` fails.
    pub fn encode<E>(
        &self,
        cpu: u32,
        config: &Config,
        plan_id: u64,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        sink(&encode::header(
            plan_id,
            self.encoded_bytes(),
            1,
            true,
            0,
            0,
        ))?;
        sink(&encode::config(config))?;
        let nr_slots = self.slots.len() as u64;
        sink(&encode::cpu(cpu, self.processes.len() as u32, nr_slots))?;
        for process in self.processes.iter() {
            sink(&encode::process(process.id, process.buffer_insns))?;
        }
        for slot in self.slots.iter() {
            let process = self
                .process(slot.process)
                .map_or(IDLE, |process| process.id);
            sink(&encode::slot(slot.length_insns, process, slot.task))?;
        }
        Ok(())
    }
}

/// Pauses at some of the records.
fn pause<M: Memory>(number: u32) -> Result<(), Interrupted> {
    if number as usize & (PAUSE_EVERY - 1) == 0 {
        M::pause()
    } else {
        Ok(())
    }
}

fn read_processes<M: Memory>(section: &Section<'_>) -> Result<M::Slice<Process>, Refusal> {
    let mut processes = M::alloc(section.nr_processes() as usize, Process::NONE)?;
    for (process, index) in processes.iter_mut().zip(0..) {
        let record = section.process(index)?;
        process.id = record.u32(0);
        process.buffer_insns = record.u64(8);
    }
    Ok(processes)
}

/// Reads the slots and counts those of each process.  Returns them and how
/// many are not idle.
fn read_slots<M: Memory>(
    section: &Section<'_>,
    processes: &mut [Process],
) -> Result<(M::Slice<Slot>, usize), Refusal> {
    let cpu = section.cpu();
    let mut slots = M::alloc(section.nr_slots() as usize, Slot::NONE)?;
    // The task that each process has had last.
    let mut last_tasks = M::alloc(processes.len(), NO_TASK)?;
    let mut owned = 0;
    let mut sum_insns = 0;
    for (place, number) in slots.iter_mut().zip(0..) {
        pause::<M>(number)?;
        let slot = u64::from(number);
        let record = section.slot(number)?;
        let length_insns = record.u64(0);
        let process = record.u32(8);
        let task = record.u32(12);
        if length_insns == 0 || length_insns > MAX_SLOT_INSNS {
            return Err(Fault::SlotLength {
                cpu,
                slot,
                found_insns: length_insns,
            }
            .at(record.offset));
        }
        sum_insns += length_insns;
        if sum_insns > MAX_PLAN_INSNS {
            return Err(Fault::PlanLength { cpu, slot }.at(record.offset));
        }
        if process == IDLE {
            if task != NO_TASK {
                return Err(Fault::IdleTask { cpu, slot, task }.at(record.offset + 12));
            }
            place.length_insns = length_insns;
            continue;
        }
        let index = processes.binary_search_by_key(&process, |process| process.id);
        let Ok(index) = index else {
            return Err(Fault::UnknownProcess { cpu, slot, process }.at(record.offset + 8));
        };
        if task == NO_TASK {
            return Err(Fault::NoTask { cpu, slot, process }.at(record.offset + 12));
        }
        let (Some(owner), Some(last_task)) = (processes.get_mut(index), last_tasks.get_mut(index))
        else {
            continue;
        };
        let before = *last_task;
        if before != NO_TASK && task <= before {
            let fault = if task == before {
                Fault::DuplicateTask {
                    cpu,
                    slot,
                    process,
                    task,
                }
            } else {
                Fault::TaskOrder {
                    cpu,
                    slot,
                    process,
                    task,
                    before,
                }
            };
            return Err(fault.at(record.offset + 12));
        }
        *last_task = task;
        *place = Slot {
            length_insns,
            process: index as u32,
            task,
            position: owner.count,
        };
        owner.count += 1;
        owned += 1;
    }
    Ok((slots, owned))
}
