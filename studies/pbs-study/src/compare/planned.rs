// SPDX-License-Identifier: GPL-2.0
//! Jobs under plans: admission by the node's planner, its plan, and its answers, with the
//! times that `scripts/compare-schedulers` has in the virtual machine.

use pbs_control::{Answer, Controller};
use pbs_gen::deadline_jobs::{DeadlineJob, INSNS_PER_MS};
use pbs_job::{Core, Machine, Node};
use pbs_plan::{Config, Plan};
use pbs_planner::RunId;
use pbs_sim::{simulate, Failure, JobScheduler, NodeState};
use pbs_uapi::{Event, EventKind};

use crate::node::Error;

/// Begin of the run, on the node's clock.
const BASE_NS: u64 = 2_000_000_000;
/// Time from the admission to the begin of the run.
const ADMISSION_BEFORE_NS: u64 = 1_500_000_000;
/// Time from the call that makes the first plan to the begin of the run.
const PLAN_BEFORE_NS: u64 = 150_000_000;
/// Time from the call that makes a plan until it is in force.
const LEAD_NS: u64 = 100_000_000;
/// Time from the moment at which the first plan is in force to the begin of the run.
pub(crate) const PLAN_RUNS_BEFORE_NS: u64 = PLAN_BEFORE_NS - LEAD_NS;
/// A simulation stops at the latest then.
const LIMIT_NS: u64 = 60_000_000_000;

/// Jobs that were asked for, with the planner that admitted some of them.
#[derive(Clone)]
pub(crate) struct Admission {
    controller: Controller,
    /// Run of each job; `None`: the job was declined.
    runs: Vec<Option<RunId>>,
}

/// Outcome of the jobs under plans.
pub(crate) struct PlannedRun {
    /// End of each job, from the begin of the run; `None`: the job was not run, or did not end.
    pub(crate) ends_ns: Vec<Option<u64>>,
    /// Plans that came into force.
    pub(crate) plans: u64,
    /// Longest time in which jobs kept the CPU without a gap.
    pub(crate) longest_run_ns: u64,
}

fn machine() -> Machine {
    Machine {
        name: None,
        tick_ns: 1,
        nodes: vec![Node {
            name: "node".into(),
            memory_bytes: 1_000_000_000,
            cores: vec![Core {
                name: "cpu0".into(),
                cpu: Some(0),
                rate_insns_per_s: INSNS_PER_MS * 1_000,
            }],
            line: None,
        }],
        ..Machine::default()
    }
}

fn problems<T: std::fmt::Debug>(problems: T) -> Error {
    Error(format!("{problems:?}"))
}

impl Admission {
    /// Asks for all jobs one after the other, in the order of their releases.
    pub(crate) fn new(jobs: &[DeadlineJob], config: Config) -> Result<Self, Error> {
        let options = pbs_control::Options {
            config: Some(config),
            lead_ns: LEAD_NS,
            ..pbs_control::Options::default()
        };
        let mut controller = Controller::new(machine(), options, 1, 1);
        let mut runs = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let request = job.request(index).map_err(problems)?;
            let request = request.submitted_at(BASE_NS).ok_or_else(|| problems("no such time"))?;
            let answer = controller.admit(request, BASE_NS - ADMISSION_BEFORE_NS);
            // A refusal is a result: the job has no run.
            runs.push(answer.ok().map(|admitted| admitted.run));
        }
        Ok(Self { controller, runs })
    }

    /// Returns whether each job was admitted.
    pub(crate) fn accepted(&self) -> Vec<bool> {
        self.runs.iter().map(Option::is_some).collect()
    }

    /// Makes the first plan and simulates it, with answers to prediction failures if
    /// `answers`.
    pub(crate) fn run(
        mut self,
        jobs: &[DeadlineJob],
        answers: bool,
        uses_unallocated: bool,
    ) -> Result<PlannedRun, Error> {
        let made = self.controller.plan(BASE_NS - PLAN_BEFORE_NS).map_err(problems)?;
        let Some(mut plan) = made else {
            return Ok(PlannedRun { ends_ns: vec![None; jobs.len()], plans: 0, longest_run_ns: 0 });
        };
        let controller = &mut self.controller;
        let numbers: Vec<Option<u32>> =
            self.runs.iter().map(|run| run.map(|run| controller.number(run, 0))).collect();
        for (job, number) in jobs.iter().zip(&numbers) {
            let process = plan.processes.iter_mut().find(|process| Some(process.id) == *number);
            for task in process.into_iter().flat_map(|process| &mut process.tasks) {
                task.real_insns = Some(job.real_insns);
                task.wait_insns = Some(insns_in(job.release_ns + PLAN_RUNS_BEFORE_NS));
            }
        }
        let options = pbs_sim::Options {
            rate_insns_per_ms: INSNS_PER_MS,
            limit_ns: Some(LIMIT_NS),
            asleep_at_start: true,
            linux_is_idle: uses_unallocated,
            record_grants: false,
            ..pbs_sim::Options::default()
        };
        let mut follower = Follower::new(controller, &plan, answers);
        let simulation = simulate(&plan, &options, &mut follower);
        let simulation = simulation.map_err(|error| Error(error.to_string()))?;
        let ended_ns = |number: &Option<u32>| {
            let mut processes = simulation.processes.iter();
            let process = processes.find(|process| Some(process.id) == *number)?;
            process.ended_ns?.checked_sub(PLAN_RUNS_BEFORE_NS)
        };
        let replans = simulation.replans.iter().filter(|replan| replan.refused.is_none());
        Ok(PlannedRun {
            ends_ns: numbers.iter().map(ended_ns).collect(),
            plans: 1 + replans.count() as u64,
            longest_run_ns: simulation.cpus.iter().map(|cpu| cpu.longest_run_ns).max().unwrap_or(0),
        })
    }
}

/// Instructions after which so much time has passed.
fn insns_in(time_ns: u64) -> u64 {
    (time_ns * INSNS_PER_MS).div_ceil(1_000_000)
}

/// Loop of the node: it passes the node's state on to the controller, and the controller's
/// plans to the node.
struct Follower<'a> {
    controller: &'a mut Controller,
    answers: bool,
    /// On the clock of the simulation.
    again_ns: Option<u64>,
}

impl<'a> Follower<'a> {
    /// All processes of the first plan are attached to it before it begins.
    fn new(controller: &'a mut Controller, plan: &Plan, answers: bool) -> Self {
        for process in &plan.processes {
            controller.event(&Event {
                kind: EventKind::Attached as u16,
                process: process.id,
                ..Event::default()
            });
        }
        Self { controller, answers, again_ns: None }
    }
}

impl JobScheduler for Follower<'_> {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        self.again_ns = None;
        if !self.answers {
            return Ok(None);
        }
        let heard = state.processes.iter().map(|process| process.event(state.cpu));
        let heard = heard.chain(failures.iter().map(|failure| failure.event(state.cpu)));
        heard.for_each(|event| self.controller.event(&event));
        let begun_ns = BASE_NS - PLAN_RUNS_BEFORE_NS;
        match self.controller.answer(begun_ns + state.now_ns) {
            Ok(Answer::Plan { plan, .. }) => {
                self.controller.taken();
                Ok(Some(*plan))
            }
            Ok(Answer::NotBefore(at_ns)) => {
                self.again_ns = Some(at_ns.saturating_sub(begun_ns));
                Ok(None)
            }
            Ok(Answer::Nothing) => Ok(None),
            Err(problems) => Err(format!("{problems:?}")),
        }
    }

    fn asks_again_ns(&self) -> Option<u64> {
        self.again_ns
    }
}
