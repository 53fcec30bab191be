// SPDX-License-Identifier: GPL-2.0
//! An allocation on a node: its plan, and what becomes of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pbs_control::{Answer, Controller, SoFar};
use pbs_job::{Action, Core, Job, Machine, Node, Process, Task};
use pbs_plan::{Config, Plan};
use pbs_planner::plan_building::planner_config;
use pbs_planner::{RunId, Strategy};
use pbs_sim::{simulate, Failure, JobScheduler, NodeState};
use pbs_uapi::{Event, EventKind};

use crate::whole::{Error, Length};

const RATE_INSNS_PER_S: u64 = 1_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;
const MEMORY_BYTES: u64 = 1 << 40;
/// Long after all ends.
const WHENEVER_NS: u64 = 1 << 60;
/// The simulation goes on for so many times what was asked for: nobody gets more.
const MOST_DURATIONS: u64 = 2;

/// Prediction of a node for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Time of the prediction, in nanoseconds from the start.
    pub told_ns: u64,
    /// Predicted end, from the start; `None`: the node does not know it.
    pub end_ns: Option<u64>,
}

/// Course of an allocation that is not interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// End of the allocation, in nanoseconds from the start; `None`: later than any extension
    /// permits.
    pub end_ns: Option<u64>,
    /// Times of the node's signals, late or early.
    pub signals_ns: Vec<u64>,
    /// Times at which a new plan came into force.
    pub replans_ns: Vec<u64>,
    /// Predictions of an end later than requested, by the time of prediction.
    pub predictions: Vec<Prediction>,
}

/// A plan for all cores of an allocation.
struct Planned {
    controller: Controller,
    /// Run of each process.
    runs: Vec<RunId>,
    end_ns: u64,
}

fn machine(cpus: &[u32]) -> Machine {
    let core = |&cpu: &u32| Core {
        name: format!("c{cpu}"),
        cpu: Some(cpu),
        rate_insns_per_s: RATE_INSNS_PER_S,
    };
    Machine {
        name: None,
        tick_ns: 1,
        nodes: vec![Node {
            name: "node".into(),
            memory_bytes: MEMORY_BYTES,
            cores: cpus.iter().map(core).collect(),
            line: None,
        }],
        ..Machine::default()
    }
}

fn options() -> pbs_control::Options {
    pbs_control::Options {
        config: Some(planner_config(Config::DEFAULT)),
        lead_ns: Config::DEFAULT.reschedule_time_ns,
        planning: pbs_planner::Options {
            // Each process is a chain of tasks: there is no better place for one than that
            // where it ends first.
            strategies: vec![Strategy::EarliestFinish],
            ..pbs_planner::Options::default()
        },
        ..pbs_control::Options::default()
    }
}

/// A process as a job of the node's planner.
fn job(number: usize, process: &[Length], deadline_ns: u64) -> Job {
    let last = process.len().saturating_sub(1);
    let tasks = process.iter().enumerate().map(|(position, length)| Task {
        id: position as u32,
        name: None,
        process: 0,
        position,
        action: match position {
            0 => Action::Start,
            _ if position == last => Action::End,
            _ => Action::Calculation,
        },
        insns: length.planned_insns,
        memory_bytes: 0,
        message_bytes: None,
        senders: Vec::new(),
        after: Vec::new(),
        before: Vec::new(),
        line: None,
    });
    Job {
        name: format!("p{number}"),
        deadline_ns,
        tasks: tasks.collect(),
        processes: vec![Process { tasks: (0..process.len()).collect(), ..Process::default() }],
        ..Job::default()
    }
}

/// The processes by what is planned of them.
fn longest_first(processes: &[Vec<Length>]) -> Vec<usize> {
    let planned_insns = |process: &[Length]| process.iter().map(|of| of.planned_insns).sum();
    let mut order: Vec<usize> = (0..processes.len()).collect();
    order.sort_by_key(|&number| Reverse::<u64>(planned_insns(&processes[number])));
    order
}

/// Plans all processes, the longest first.
fn plan(cpus: &[u32], processes: &[Vec<Length>]) -> Result<Planned, Error> {
    let mut controller = Controller::new(machine(cpus), options(), 1, 1);
    let mut runs = vec![RunId(0); processes.len()];
    let mut end_ns = 0;
    for number in longest_first(processes) {
        let job = job(number, &processes[number], WHENEVER_NS);
        let admitted = controller.admit(job, 0);
        let admitted = admitted.map_err(|declined| Error(format!("{declined:?}")))?;
        runs[number] = admitted.run;
        end_ns = end_ns.max(admitted.planned.end_ns);
    }
    Ok(Planned { controller, runs, end_ns })
}

/// Returns the length of a plan of the processes on that many cores, in whole seconds. The length
/// contains the capacity buffer and the unallocated time, because the planner plans with a
/// correspondingly slower node.
///
/// # Errors
///
/// The processes can't be planned.
pub fn span_s(cores: u32, processes: &[Vec<Length>]) -> Result<u64, Error> {
    let cpus: Vec<u32> = (0..cores).collect();
    let planned = plan(&cpus, processes)?;
    Ok(planned.end_ns.div_ceil(NS_PER_S).max(1))
}

/// Returns the actual time of the processes on that many cores without a plan, in whole seconds.
/// Each core takes the longest process that has not begun, and has no time to leave to others.
/// Therefore processes as long as planned take less than [`span_s`].
pub fn list_s(cores: u32, processes: &[Vec<Length>]) -> u64 {
    list_insns(cores, processes).div_ceil(RATE_INSNS_PER_S).max(1)
}

/// Returns the actual time of the processes on that many cores without a plan, in whole seconds.
/// Each core leaves as much time to others as a plan has to.
pub fn list_beside_others_s(cores: u32, processes: &[Vec<Length>]) -> u64 {
    let Config { window_period_ns, window_unallocated_ns, .. } = Config::DEFAULT;
    let execution_ns = window_period_ns.saturating_sub(window_unallocated_ns).max(1);
    let window_insns = u128::from(RATE_INSNS_PER_S) * u128::from(execution_ns);
    let insns = u128::from(list_insns(cores, processes)) * u128::from(window_period_ns);
    u64::try_from(insns.div_ceil(window_insns)).unwrap_or(u64::MAX).max(1)
}

/// Instructions of the core that ends last without a plan.
fn list_insns(cores: u32, processes: &[Vec<Length>]) -> u64 {
    let mut free_insns = vec![0u64; cores.max(1) as usize];
    for number in longest_first(processes) {
        let length_insns: u64 = processes[number].iter().map(|of| of.real_insns).sum();
        if let Some(first) = free_insns.iter_mut().min() {
            *first += length_insns;
        }
    }
    free_insns.into_iter().max().unwrap_or(0)
}

/// Plans the processes on just these CPUs of a node, runs the plan there, and answers what
/// the node signals with new plans. It has promised to be over after `duration_s`.
///
/// # Errors
///
/// It can't be planned or simulated.
pub fn course(cpus: &[u32], processes: &[Vec<Length>], duration_s: u64) -> Result<Course, Error> {
    let deadline_ns = duration_s.saturating_mul(NS_PER_S);
    let Planned { mut controller, runs, .. } = plan(cpus, processes)?;
    for &run in &runs {
        // One that ends later keeps the deadline that it has.
        let _ = controller.set_deadline(run, deadline_ns);
    }
    let first = controller.plan(0).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(|of| of.message.clone()).collect();
        Error(problems.join("; "))
    })?;
    let Some(mut first) = first else {
        return Err(Error("a job has nothing to run".into()));
    };
    let mut cores = Cores::new(cpus, deadline_ns);
    for (number, (process, &run)) in processes.iter().zip(&runs).enumerate() {
        let id = controller.number(run, 0);
        cores.take_over(&first, id, job(number, process, deadline_ns));
        let real = process.iter().map(|of| of.real_insns);
        cores.real_insns.insert(id, real.collect());
        let known = first.processes.iter_mut().find(|known| known.id == id);
        for task in known.into_iter().flat_map(|known| &mut known.tasks) {
            task.real_insns = process.get(task.id as usize).map(|of| of.real_insns);
        }
    }
    let options = pbs_sim::Options {
        rate_insns_per_ms: RATE_INSNS_PER_S / 1000,
        limit_ns: Some(deadline_ns.saturating_mul(MOST_DURATIONS)),
        record_grants: false,
        // Others use the time that plans leave to them.
        linux_is_idle: false,
        ..pbs_sim::Options::default()
    };
    let simulation = simulate(&first, &options, &mut cores).map_err(|error| Error::of(&error))?;
    let mut course = Course {
        end_ns: simulation.ended().then(|| simulation.ended_ns()),
        predictions: cores.predictions,
        ..Course::default()
    };
    course.predictions.sort_by_key(|told| told.told_ns);
    let is_signal = |event: &&Event| {
        event.kind == EventKind::Late as u16 || event.kind == EventKind::Early as u16
    };
    let signals = simulation.events.iter().filter(is_signal);
    course.signals_ns = signals.map(|event| event.time_ns).collect();
    let taken = simulation.replans.iter();
    let taken = taken.filter(|replan| replan.refused.is_none());
    course.replans_ns = taken.map(|replan| replan.came_ns).collect();
    Ok(course)
}

/// Controllers that answer the node: one for each core, because the simulator asks core by core.
/// Processes stay on the core of the first plan.
struct Cores {
    by_cpu: BTreeMap<u32, OfCore>,
    /// Instructions that the tasks of each process will have retired at their end. A node reports
    /// this for each task; the simulator does not.
    real_insns: BTreeMap<u32, Vec<u64>>,
    deadline_ns: u64,
    predictions: Vec<Prediction>,
}

struct OfCore {
    controller: Controller,
    runs: Vec<RunId>,
}

impl Cores {
    fn new(cpus: &[u32], deadline_ns: u64) -> Self {
        let of_core = |&cpu: &u32| {
            let controller = Controller::new(machine(&[cpu]), options(), 2, 1);
            let runs = Vec::new();
            (cpu, OfCore { controller, runs })
        };
        Self {
            by_cpu: cpus.iter().map(of_core).collect(),
            real_insns: BTreeMap::new(),
            deadline_ns,
            predictions: Vec::new(),
        }
    }

    /// The process of that number goes on where the first plan has it.
    fn take_over(&mut self, plan: &Plan, id: u32, job: Job) {
        let is_here = |cpu: &&pbs_plan::Cpu| {
            let mut here = plan.processes_on(cpu).into_iter();
            here.any(|place| plan.processes.get(place).is_some_and(|of| of.id == id))
        };
        let Some(cpu) = plan.cpus.iter().find(is_here).map(|cpu| cpu.cpu) else {
            return;
        };
        if let Some(core) = self.by_cpu.get_mut(&cpu) {
            let so_far = SoFar { cpu: Some(cpu), ..SoFar::default() };
            core.runs.extend(core.controller.take_over(job, &[id], &[so_far]));
        }
    }
}

impl JobScheduler for Cores {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let Some(core) = self.by_cpu.get_mut(&state.cpu) else {
            return Ok(None);
        };
        for process in &state.processes {
            let real_insns = self.real_insns.get(&process.id).into_iter().flatten();
            let ended = if process.ended {
                usize::MAX
            } else {
                process.task.map_or(0, |task| task as usize)
            };
            for (task, &retired_insns) in (0..).zip(real_insns).take(ended) {
                core.controller.event(&Event {
                    kind: EventKind::TaskEnded as u16,
                    cpu: state.cpu,
                    process: process.id,
                    task,
                    retired_insns,
                    ..Event::default()
                });
            }
            core.controller.event(&process.event(state.cpu));
        }
        for failure in failures {
            core.controller.event(&failure.event(state.cpu));
        }
        let answer = core.controller.answer(state.now_ns);
        let answer = answer.map_err(|problems| format!("{problems:?}"))?;
        let Answer::Plan { plan, missed } = answer else {
            return Ok(None);
        };
        let ends_ns = core.runs.iter().filter_map(|&run| {
            let run = core.controller.run(run)?;
            run.buffered_end_ns
        });
        let end_ns = ends_ns.max().unwrap_or(0);
        let end_ns = Some(end_ns).filter(|_| missed.iter().all(|missed| missed.by_ns.is_some()));
        if end_ns.is_none_or(|end_ns| end_ns > self.deadline_ns) {
            self.predictions.push(Prediction { told_ns: state.now_ns, end_ns });
        }
        Ok(Some(*plan))
    }
}
