// SPDX-License-Identifier: GPL-2.0
//! Questions to the job scheduler, and its answers.

use std::collections::HashMap;

use pbs_core::wire::NO_TASK;
use pbs_plan::Plan;

use super::Machine;
use crate::outcome::Replan;
use crate::scheduler::remaining::{remaining, Progress};
use crate::scheduler::{Failure, JobScheduler, NodeState, ProcessState};
use crate::Error;

/// Number of plans in succession that a node may refuse before the job scheduler is not asked again
/// about the same failures.
const MOST_REFUSALS: u32 = 4;

/// An answer that has not come yet.
pub(super) struct UnderWay {
    asked_ns: u64,
    pub(super) comes_ns: u64,
    plan: Plan,
    failures: Vec<Failure>,
    /// Number of processes that had ended or were killed when the answer was requested.
    gone: usize,
}

impl Machine<'_> {
    /// Asks the job scheduler about new failures, unless it is still busy with
    /// earlier ones or has answered as often as it may.
    pub(super) fn ask(&mut self, scheduler: &mut dyn JobScheduler) -> Result<(), Error> {
        let is_put_off = self.again_ns.is_none_or(|again_ns| again_ns > self.now_ns);
        if self.answer.is_some() || self.log.failures.is_empty() && is_put_off {
            return Ok(());
        }
        self.again_ns = None;
        let shared_ns = self.options.shared_answer_ns;
        if shared_ns.is_some() {
            if !self.waiting.is_turn(self.cpu.cpu, self.now_ns) {
                return Ok(());
            }
            self.waiting.leave(self.cpu.cpu);
        }
        let failures = std::mem::take(&mut self.log.failures);
        if self.cpu.answers == self.options.max_answers {
            self.cpu.unanswered += failures.len() as u64;
            return Ok(());
        }
        let state = self.state();
        if state.remaining.processes.is_empty() {
            return Ok(());
        }
        let answer = scheduler.answer(&failures, &state);
        // Later in any case: the same question would get the same answer.
        self.again_ns = scheduler.asks_again_ns().filter(|&again_ns| again_ns > self.now_ns);
        let Some(plan) = answer.map_err(Error::Scheduler)? else {
            // The next question is another one.
            self.refusals = 0;
            return Ok(());
        };
        self.cpu.answers += 1;
        let takes_ns = shared_ns.unwrap_or(self.node.config().reschedule_time_ns);
        // Not in the moment of the question, which might then never pass.
        let comes_ns = self.now_ns.saturating_add(takes_ns.max(1));
        if shared_ns.is_some() {
            self.waiting.take(comes_ns);
        }
        self.answer =
            Some(UnderWay { asked_ns: self.now_ns, comes_ns, plan, failures, gone: self.gone() });
        Ok(())
    }

    fn state(&self) -> NodeState {
        let processes = self.node.plan().processes().iter().zip(0..);
        let infos: Vec<_> = processes.filter_map(|(_, p)| self.node.process(p)).collect();
        let by_id: HashMap<u32, _> = infos.iter().map(|info| (info.id, info)).collect();
        let here = self.plan.processes.iter();
        let here: Vec<_> = here.map(|process| by_id.get(&process.id)).collect();
        let passed_ns = self.execution_ns().saturating_sub(self.slot.1);
        let config = *self.node.config();
        let progress = Progress {
            cursor: self.node.cursor() as usize,
            idle_passed_insns: self.clock.insns_in(passed_ns),
            ended_tasks: here
                .iter()
                .map(|info| match info {
                    Some(info) if !info.done => info.ended_tasks as usize,
                    _ => usize::MAX,
                })
                .collect(),
            retired_insns: here
                .iter()
                .map(|info| info.map_or(0, |info| info.retired_insns))
                .collect(),
            ahead_insns: self.node.policy().reschedule_time_insns,
            passed_ns: self
                .now_ns
                .saturating_sub(self.plan_since_ns)
                .saturating_add(config.reschedule_time_ns),
            clock: self.clock,
        };
        let left = Plan {
            config: Some(config),
            ..self
                .plan
                .cpus
                .first()
                .map_or_else(Plan::default, |cpu| remaining(&self.plan, cpu, &progress))
        };
        NodeState {
            cpu: self.cpu.cpu,
            now_ns: self.now_ns,
            rate_insns_per_ms: self.clock.insns_per_ms(),
            config,
            processes: infos
                .iter()
                .map(|info| ProcessState {
                    id: info.id,
                    ended: info.done,
                    task: Some(info.task).filter(|&task| task != NO_TASK),
                    planned_insns: info.planned_insns,
                    retired_insns: info.retired_insns,
                    preemptions: info.preemptions,
                    lateness_insns: info.lateness_insns,
                })
                .collect(),
            remaining: left,
        }
    }

    /// Brings an answer into force whose time has come.
    pub(super) fn receive_plan(&mut self, scheduler: &mut dyn JobScheduler) -> Result<(), Error> {
        let Some(answer) = self.answer.take_if(|answer| answer.comes_ns <= self.now_ns) else {
            return Ok(());
        };
        let plan = answer.plan;
        self.check_answer(&plan)?;
        let config = plan.config.unwrap_or(self.options.config);
        config.check().map_err(Error::Config)?;
        let mut node = Self::node(self.truth, &plan, config, self.clock, self.now_ns)?;
        let refused = node.check_over(&self.node, plan.dealt_seq).err();
        if let Some(refusal) = refused.filter(|_| answer.gone == self.gone()) {
            return Err(Error::Scheduler(format!("the node refuses its plan: {refusal}")));
        }
        self.node.tell_untold(&mut self.log);
        // The present node stays as it is until the new one has taken all over.
        node.begin(Some(&self.node), plan.dealt_seq, self.now_ns);
        let refused = refused.or_else(|| node.check_begun(|_| None).err());
        let failed_ns = answer.failures.iter().map(|failure| failure.time_ns).min();
        let failed_ns = failed_ns.unwrap_or(answer.asked_ns);
        self.replans.push(Replan {
            cpu: self.cpu.cpu,
            failed_ns,
            asked_ns: answer.asked_ns,
            came_ns: self.now_ns,
            plan: plan.clone(),
            refused: refused.map(|refusal| refusal.to_string()),
        });
        if refused.is_some() {
            self.refusals += 1;
            if self.refusals >= MOST_REFUSALS {
                self.refusals = 0;
                self.cpu.given_up += answer.failures.len() as u64;
                return Ok(());
            }
            // Something ended or began meanwhile: the question is asked again.
            self.log.failures.splice(0..0, answer.failures);
            return self.ask(scheduler);
        }
        self.refusals = 0;
        let tap = std::mem::take(self.node.tap_mut());
        self.node = node;
        self.log.follow(&self.node);
        self.log.plan_id = plan.plan_id;
        self.slot = (0, self.execution_ns());
        self.plan_since_ns = self.now_ns;
        self.plan = plan.clone();
        self.record(tap, true);
        self.tell_installed();
        self.tell_memory();
        self.enter(&plan);
        Ok(())
    }

    /// Checks for faults that the kernel would refuse, and for those that only a simulation can
    /// have.
    fn check_answer(&self, plan: &Plan) -> Result<(), Error> {
        let dealt_seq = plan.dealt_seq;
        let next_seq = self.log.events.len() as u64;
        if dealt_seq > next_seq {
            return Err(Error::Scheduler(format!(
                "its plan deals with failures before event {dealt_seq}, and the next event is \
                 {next_seq}; write the number of the last failure plus one"
            )));
        }
        let cpus: Vec<_> = plan.cpus.iter().map(|cpu| cpu.cpu).collect();
        if cpus != [self.cpu.cpu] {
            return Err(Error::Scheduler(format!(
                "its plan is for the CPUs {cpus:?}; write a plan for CPU {} only",
                self.cpu.cpu
            )));
        }
        Ok(())
    }
}
