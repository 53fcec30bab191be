// SPDX-License-Identifier: GPL-2.0
//! Generated plans (Leppert 2021, 4.3.1).
//!
//! [`generate`] makes a plan for one CPU of [`Parameters`]: processes with
//! tasks of random lengths, idle slots among them, and for each the length
//! that it really has; and, if asked for, with peaks of memory.  Real lengths scatter around the planned ones; a
//! [`Scenario`] says what else is wrong.
//!
//! The same parameters give the same plan on every machine.  With the same
//! seed, plans that differ in nothing but `task_sigma_permille`,
//! `message_sigma_permille`, `deviation_permille` and scenario have the same slots, and their tasks
//! deviate in the same proportion; only `long-then-short` and
//! `scatter-gather` bring slots of their own.

pub mod deadline_jobs;
mod edges;
mod layout;
mod memory;
pub mod nets;
mod parameters;
mod random;
mod real;
mod runnable;
mod scenario;
mod span;

pub use parameters::{Error, Parameters, SlotOrder};
pub use random::{Random, Stream};
pub use runnable::make_runnable;
pub use scenario::Scenario;
pub use span::Span;

use pbs_plan::{Cpu, Plan};

/// The plan of these parameters, or which of them is out of range.
pub fn generate(parameters: &Parameters) -> Result<Plan, Error> {
    parameters.check()?;
    let mut processes = layout::processes(parameters);
    let slots = layout::slots(parameters, &processes)?;
    let mut cpu = Cpu { cpu: parameters.cpu, slots, ..Cpu::default() };
    edges::edges(parameters, &mut processes, &cpu.slots);
    memory::peaks(parameters, &mut processes);
    real::lengths(parameters, &mut processes, &mut cpu.slots);
    Ok(Plan { plan_id: parameters.plan_id, processes, cpus: vec![cpu], ..Plan::default() })
}
