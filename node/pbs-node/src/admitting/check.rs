// SPDX-License-Identifier: GPL-2.0
//! Comparison of the plan of an answer with the work that it must have.

use std::collections::BTreeMap;

use pbs_job::{Job, Machine};
use pbs_plan::{Plan, Process, Slot};
use pbs_text::grouped;

/// A process that the plan of an answer must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedProcess {
    /// Number of the process in the plan.
    pub id: u32,
    /// Name of the process in messages.
    place: String,
    /// Lengths of its tasks in their order.
    work_insns: Vec<u64>,
    memory_bytes: u64,
    /// CPUs that it may run on; empty: all of the machine.
    cpus: Vec<u32>,
}

impl WantedProcess {
    /// The processes of a job with instructions, each with its index in the job.
    pub fn of_job(job: &Job, first_id: u32) -> Vec<(usize, Self)> {
        let processes = job.processes.iter().enumerate();
        let wanted = processes.filter_map(|(index, process)| {
            let work = process.tasks.iter().map(|&task| job.tasks[task].insns);
            let work_insns: Vec<_> = work.filter(|&insns| insns > 0).collect();
            let cpus = if process.cpus.is_empty() { &job.cpus } else { &process.cpus };
            let wanted = Self {
                id: first_id.saturating_add(process.id),
                place: format!("process {} of job {}", process.label(), job.name),
                work_insns,
                memory_bytes: process.memory_bytes,
                cpus: cpus.clone(),
            };
            (!wanted.work_insns.is_empty()).then_some((index, wanted))
        });
        wanted.collect()
    }

    /// The processes of a plan, each on its CPU.
    pub(super) fn of_plan(plan: &Plan) -> Vec<Self> {
        let cpus = cpus_of(plan);
        let processes = plan.processes.iter().enumerate();
        let wanted = processes.map(|(index, process)| Self {
            id: process.id,
            place: format!("process {}", process.label()),
            work_insns: lengths_insns(process),
            memory_bytes: process.memory_bytes,
            cpus: cpus.get(&index).copied().into_iter().collect(),
        });
        wanted.collect()
    }

    fn check(&self, planned: &Process, cpu: Option<u32>) -> Result<(), String> {
        let Self { place, work_insns, memory_bytes, cpus, .. } = self;
        if lengths_insns(planned) != *work_insns {
            return Err(format!("wrote a plan with other tasks of {place}"));
        }
        if planned.memory_bytes < *memory_bytes {
            return Err(format!(
                "wrote a plan with {} bytes for {place}, which needs {}",
                grouped(planned.memory_bytes),
                grouped(*memory_bytes)
            ));
        }
        match cpu {
            Some(cpu) if !cpus.is_empty() && !cpus.contains(&cpu) => Err(format!(
                "wrote a plan with {place} on CPU {cpu}; it may only be on the CPUs {cpus:?}"
            )),
            _ => Ok(()),
        }
    }
}

fn lengths_insns(process: &Process) -> Vec<u64> {
    process.tasks.iter().map(|task| task.planned_insns).collect()
}

/// The CPU of each process of a plan, by its index.
fn cpus_of(plan: &Plan) -> BTreeMap<usize, u32> {
    let mut cpus = BTreeMap::new();
    for cpu in &plan.cpus {
        for slot in &cpu.slots {
            if let Slot::Process { process } = slot {
                cpus.entry(*process).or_insert(cpu.cpu);
            }
        }
    }
    cpus
}

/// Checks that a plan has this work, and no other, on CPUs of the machine. Returns the CPU of each
/// process, by the number of the process.
///
/// # Errors
///
/// The first difference, as words that follow the command.
pub fn check_work<'a>(
    plan: &Plan,
    wanted: impl Iterator<Item = &'a WantedProcess>,
    machine: &Machine,
) -> Result<BTreeMap<u32, u32>, String> {
    let cpus = cpus_of(plan);
    let planned: BTreeMap<u32, usize> =
        plan.processes.iter().map(|process| process.id).zip(0..).collect();
    let mut expected = 0;
    for one in wanted {
        expected += 1;
        let index = planned.get(&one.id).copied().ok_or_else(|| {
            format!("wrote a plan without {}, which must have the id {}", one.place, one.id)
        })?;
        one.check(&plan.processes[index], cpus.get(&index).copied())?;
    }
    if plan.processes.len() != expected {
        return Err("wrote a plan with processes of no job".into());
    }
    let known: Vec<_> = machine.cpus().collect();
    let strange = plan.cpus.iter().map(|cpu| cpu.cpu).find(|cpu| !known.contains(cpu));
    if let Some(cpu) = strange {
        return Err(format!("wrote a plan for CPU {cpu}, which the machine does not have"));
    }
    let of = |(id, index): (u32, usize)| Some((id, *cpus.get(&index)?));
    Ok(planned.into_iter().filter_map(of).collect())
}
