// SPDX-License-Identifier: GPL-2.0
//! Measures how fast a plan of a million tasks is simulated: `cargo run --release -p pbs-sim
//! --example million`.

use std::time::Instant;

use pbs_plan::{Cpu, Plan, Process, Slot, Task};
use pbs_sim::{simulate, NoAnswer, Options};

const PROCESSES: usize = 100;
const TASKS: usize = 1_000_000;

fn main() -> Result<(), pbs_sim::Error> {
    let plan = plan();
    for record_grants in [true, false] {
        let options = Options { record_grants, ..Options::default() };
        let begin = Instant::now();
        let simulation = simulate(&plan, &options, &mut NoAnswer)?;
        println!(
            "{} tasks, {} events in {:.2} s{}",
            simulation.tasks.len(),
            simulation.events.len(),
            begin.elapsed().as_secs_f64(),
            if record_grants { "" } else { ", without those of grants" }
        );
    }
    Ok(())
}

/// Processes in turn, tasks of about a millisecond, half of them late.
fn plan() -> Plan {
    let processes = (0..PROCESSES).map(|process| Process {
        id: process as u32,
        tasks: (0..TASKS / PROCESSES)
            .map(|task| Task {
                id: task as u32,
                planned_insns: 1_000_000,
                // A fixed pattern from 7 % early to 7 % late.
                real_insns: Some(930_000 + 10_000 * ((process * 7 + task * 11) % 15) as u64),
                ..Task::default()
            })
            .collect(),
        ..Process::default()
    });
    let slots = (0..TASKS).map(|slot| Slot::Process { process: slot % PROCESSES });
    Plan {
        plan_id: 1,
        processes: processes.collect(),
        cpus: vec![Cpu { slots: slots.collect(), ..Cpu::default() }],
        ..Plan::default()
    }
}
