// SPDX-License-Identifier: GPL-2.0
//! Plans in few words, and their outcomes.

#![allow(dead_code)]

use pbs_core::EventKind;
use pbs_plan::{Config, Cpu, Plan, Process, Slot, Task, Threshold};
use pbs_sim::{simulate, NoAnswer, Options, Simulation};
use pbs_uapi::Event;

/// Unallocated time is not reached, and t1 is the only threshold, close to a slot's
/// length and in each.
pub(crate) fn config() -> Config {
    Config {
        window_period_ns: 10_000_000_000,
        window_unallocated_ns: 100_000_000,
        thresholds: Threshold::T1 as u64,
        no_preemption_ns: 10_000,
        t1_spares_last_slot: 0,
        stress_gain_ns: 400_000,
        ..Config::DEFAULT
    }
}

/// `ID: LENGTH[/REAL] ...` for each process, and `slots: ID iLENGTH ...`.
pub(crate) fn plan(text: &str) -> Plan {
    let mut plan = Plan { plan_id: 1, config: Some(config()), ..Plan::default() };
    for line in text.lines() {
        let (head, words) = line.split_once(": ").unwrap();
        let words = words.split(' ');
        if head == "slots" {
            let slots = words.map(|word| match word.strip_prefix('i') {
                Some(length) => {
                    Slot::Idle { length_insns: length.parse().unwrap(), real_insns: None }
                }
                None => {
                    let id: u32 = word.parse().unwrap();
                    let process = plan.processes.iter().position(|known| known.id == id);
                    Slot::Process { process: process.unwrap() }
                }
            });
            let slots = slots.collect();
            plan.cpus.push(Cpu { slots, ..Cpu::default() });
            continue;
        }
        let tasks = words.zip(0..).map(|(word, id)| {
            let (planned, real) = word.split_once('/').unwrap_or((word, word));
            Task {
                id,
                planned_insns: planned.parse().unwrap(),
                real_insns: Some(real.parse().unwrap()),
                ..Task::default()
            }
        });
        let tasks = tasks.collect();
        plan.processes.push(Process { id: head.parse().unwrap(), tasks, ..Process::default() });
    }
    plan
}

pub(crate) fn run(plan: &Plan) -> Simulation {
    run_with(plan, &Options::default())
}

pub(crate) fn run_with(plan: &Plan, options: &Options) -> Simulation {
    simulate(plan, options, &mut NoAnswer).unwrap()
}

pub(crate) fn of_kind(simulation: &Simulation, kind: EventKind) -> Vec<Event> {
    let events = simulation.events.iter().copied();
    events.filter(|event| event.kind == kind as u16).collect()
}

/// (process, task, time) in the order of ending.
pub(crate) fn ended(simulation: &Simulation) -> Vec<(u32, u32, u64)> {
    let ended = of_kind(simulation, EventKind::TaskEnded);
    let ended = ended.iter();
    ended.map(|event| (event.process, event.task, event.time_ns)).collect()
}
