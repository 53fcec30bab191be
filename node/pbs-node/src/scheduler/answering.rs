// SPDX-License-Identifier: GPL-2.0
//! Answers of a command on a node: questions when a prediction fails, and plans for the kernel.

use pbs_plan::Plan;

use super::asking::{Reply, Scheduler};
use super::{Answers, SchedulerCommand};
use crate::clock::monotonic_ns;
use crate::jobs::{HandOver, Jobs};
use crate::{Listener, News, Node};

impl<L: Listener> Node<L> {
    /// From now on a command answers prediction failures.
    pub fn answer_with(&mut self, command: SchedulerCommand) {
        let rate_insns_per_ms = self.kernel.info.rate_insns_per_ms;
        self.scheduler = Some(Scheduler::new(command, self.kernel.config, rate_insns_per_ms));
    }

    /// Returns the figures of the command's answers, if there is a command.
    pub fn answers(&self) -> Option<&Answers> {
        self.scheduler.as_ref().map(Scheduler::answers)
    }

    /// Lets the command answer. Returns for how long events may be waited for; `None`: what is
    /// to be answered is the built-in planner's.
    pub(crate) fn answer_by_command(&mut self) -> Option<i32> {
        let scheduler = self.scheduler.as_mut()?;
        if let Some(jobs) = &mut self.jobs {
            jobs.ledger.keep_in_time(&mut self.listener);
        }
        if scheduler.is_open() {
            // What was given up leaves the plan at once, and what the command is not asked about
            // does not wait for it.
            let is_own = |jobs: &Jobs| {
                let others = |cpu| scheduler.answers_for(cpu);
                jobs.controller.has_vacated() || jobs.controller.needs_own_plan(others)
            };
            let is_own = self.jobs.as_ref().is_some_and(is_own);
            return match scheduler.look() {
                Reply::Wait(_) if is_own => None,
                Reply::Wait(timeout_ms) => Some(timeout_ms),
                // Others may have failed meanwhile.
                Reply::Stays => Some(0),
                Reply::Plan(plan) => Some(self.take_answer(*plan)),
                Reply::Failed(why) => {
                    self.fall_back(why);
                    None
                }
            };
        }
        let cpu = scheduler.next_cpu().filter(|_| scheduler.can_ask())?;
        let now_ns = monotonic_ns();
        if let Some(jobs) = &mut self.jobs {
            match jobs.hand_over(cpu, |cpu| scheduler.answers_for(cpu), now_ns) {
                HandOver::Keep => return None,
                HandOver::NotBefore(timeout_ms) => return Some(timeout_ms),
                HandOver::Ask => {}
            }
        }
        let (jobs, device) = (self.jobs.as_ref(), &self.kernel.device);
        let is_over = |number| jobs.is_some_and(|jobs| jobs.has_process_ended(number));
        let known = |number| device.process(number).ok().flatten().filter(|_| !is_over(number));
        match scheduler.ask(&known, now_ns) {
            Ok(true) => Some(0),
            Ok(false) => {
                // Nothing of it is left, but of others.
                self.jobs.iter_mut().for_each(Jobs::refused);
                None
            }
            Err(why) => {
                self.fall_back(why);
                None
            }
        }
    }

    /// Writes the plan of an answer. Returns for how long events may be waited for.
    fn take_answer(&mut self, mut plan: Plan) -> i32 {
        let Some(scheduler) = &mut self.scheduler else {
            return -1;
        };
        plan.lease_ns = self.lease.length_ns();
        plan.plan_id = scheduler.last_plan_id() + 1;
        if let Some(jobs) = &mut self.jobs {
            jobs.leave_out_ended(&mut plan);
            jobs.number(&mut plan);
        }
        let encoded = pbs_plan::wire::encode(&plan);
        if let Err(refused) = self.kernel.device.write_plan(&encoded.bytes) {
            let is_outdated = refused.error.raw_os_error() == Some(libc::ESRCH);
            if let Some(cpu) = scheduler.refused(is_outdated) {
                self.jobs.iter_mut().for_each(|jobs| jobs.handed_back(cpu));
                return 0;
            }
            self.fall_back(format!("wrote a plan that the kernel refused: {refused}"));
            return 0;
        }
        scheduler.accepted();
        self.refusals.taken();
        let whole = scheduler.whole_with(&plan);
        self.progress.written(&plan);
        if let Some(jobs) = &mut self.jobs {
            jobs.command_planned(&plan, &whole, &mut self.listener);
        }
        self.listener.planned(&plan);
        self.processes.note(&plan);
        scheduler.written(&plan, monotonic_ns());
        // Others may have failed meanwhile.
        0
    }

    /// The command gave no usable answer: the built-in planner answers, if there are jobs.
    fn fall_back(&mut self, why: String) {
        let Some(scheduler) = &self.scheduler else {
            return;
        };
        let command = scheduler.command().line.clone();
        if let Some(jobs) = &mut self.jobs {
            jobs.refused();
        }
        let is_given_up = scheduler.answers().is_given_up;
        let plans_jobs = self.jobs.is_some();
        self.listener.news(News::CommandFailed { command, why, plans_jobs, is_given_up });
    }
}
