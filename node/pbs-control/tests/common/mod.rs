// SPDX-License-Identifier: GPL-2.0
//! A node in virtual time that the loop is closed over.

#![allow(dead_code)]

use pbs_control::{Answer, Controller, Missed};
use pbs_job::{Action, Core, Job, Machine, Node, Process, Task};
use pbs_plan::Plan;
use pbs_sim::{Failure, JobScheduler, NodeState, Simulation};
use pbs_uapi::{Event, EventKind};

pub(crate) const RATE_INSNS_PER_S: u64 = 1_000_000_000;

/// One core.
pub(crate) fn machine() -> Machine {
    Machine {
        name: None,
        tick_ns: 1,
        nodes: vec![Node {
            name: "node".into(),
            memory_bytes: 1 << 30,
            cores: vec![Core {
                name: "core".into(),
                cpu: Some(0),
                rate_insns_per_s: RATE_INSNS_PER_S,
            }],
            line: None,
        }],
        ..Machine::default()
    }
}

/// A job of one process.
pub(crate) fn job(name: &str, insns: &[u64], deadline_ns: u64) -> Job {
    let last = insns.len() - 1;
    let tasks = insns.iter().enumerate().map(|(position, &insns)| Task {
        id: position as u32,
        name: None,
        process: 0,
        position,
        action: match position {
            0 => Action::Start,
            _ if position == last => Action::End,
            _ => Action::Calculation,
        },
        insns,
        memory_bytes: 1 << 20,
        message_bytes: None,
        senders: Vec::new(),
        after: Vec::new(),
        before: Vec::new(),
        line: None,
    });
    Job {
        name: name.into(),
        deadline_ns,
        tasks: tasks.collect(),
        processes: vec![Process {
            memory_bytes: 1 << 20,
            tasks: (0..insns.len()).collect(),
            ..Process::default()
        }],
        ..Job::default()
    }
}

/// Job scheduler that answers the simulated node.
pub(crate) struct Loop<'a> {
    controller: &'a mut Controller,
    pub(crate) answers: usize,
    pub(crate) missed: Vec<Missed>,
}

impl<'a> Loop<'a> {
    pub(crate) fn new(controller: &'a mut Controller) -> Self {
        Self { controller, answers: 0, missed: Vec::new() }
    }

    pub(crate) fn controller(&mut self) -> &mut Controller {
        self.controller
    }

    pub(crate) fn first_plan(&mut self) -> Plan {
        let plan = self.controller.plan(0).unwrap().unwrap();
        for process in &plan.processes {
            self.controller.event(&Event {
                kind: EventKind::Attached as u16,
                process: process.id,
                ..Event::default()
            });
        }
        plan
    }
}

impl JobScheduler for Loop<'_> {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        for process in &state.processes {
            self.controller.event(&process.event(state.cpu));
        }
        for failure in failures {
            self.controller.event(&failure.event(state.cpu));
        }
        match self.controller.answer(state.now_ns) {
            Ok(Answer::Plan { plan, missed }) => {
                self.answers += 1;
                self.missed.extend(missed);
                Ok(Some(*plan))
            }
            Ok(_) => Ok(None),
            Err(problems) => Err(format!("{problems:?}")),
        }
    }
}

/// Runs a plan with what its tasks really take, process by process.
pub(crate) fn run(plan: &Plan, real: &[Vec<u64>], scheduler: &mut dyn JobScheduler) -> Simulation {
    let mut plan = plan.clone();
    for (process, real) in plan.processes.iter_mut().zip(real) {
        for (task, &insns) in process.tasks.iter_mut().zip(real) {
            task.real_insns = Some(insns);
        }
    }
    let options = pbs_sim::Options {
        rate_insns_per_ms: RATE_INSNS_PER_S / 1000,
        limit_ns: Some(20_000_000_000),
        linux_is_idle: false,
        ..pbs_sim::Options::default()
    };
    pbs_sim::simulate(&plan, &options, scheduler).unwrap()
}

/// Simulates the first plan of a controller that receives no events.
pub(crate) fn simulate(
    controller: &mut Controller,
    real: &[Vec<u64>],
    scheduler: &mut dyn JobScheduler,
) -> Simulation {
    let plan = controller.plan(0).unwrap().unwrap();
    run(&plan, real, scheduler)
}

/// Returns the end of each process.
pub(crate) fn ends_ns(simulation: &Simulation) -> Vec<Option<u64>> {
    let processes = simulation.processes.iter();
    processes.map(|process| process.ended_ns).collect()
}
