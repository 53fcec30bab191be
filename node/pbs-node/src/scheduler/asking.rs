// SPDX-License-Identifier: GPL-2.0
//! One question after the other to a command, and what its answers are worth.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pbs_plan::{Config, Plan};
use pbs_sim::{plan_of_answer, question, Failure};
use pbs_uapi::{Event, Process};

use super::check::check_same_work;
use super::in_force::{together, Defaults, InForce};
use super::talk::{Talk, LOOK_MS};
use super::{Answers, SchedulerCommand};

/// Failures of a CPU that are remembered while nobody asks; the oldest are forgotten first.
const MAX_FAILURES: usize = 4096;

/// State of a question.
#[derive(Debug)]
pub(crate) enum Reply {
    /// No answer yet: look again after so many milliseconds.
    Wait(i32),
    /// A plan that the node can take; its number is the caller's.
    Plan(Box<Plan>),
    /// The plan in force is to stay.
    Stays,
    /// No usable answer, and why.
    Failed(String),
}

/// A command with the plans that it is asked about.
#[derive(Debug)]
pub(crate) struct Scheduler {
    command: SchedulerCommand,
    defaults: Defaults,
    in_force: BTreeMap<u32, InForce>,
    failures: BTreeMap<u32, Vec<Failure>>,
    /// Time of the first plan, from which the times of questions count.
    begin_ns: Option<u64>,
    open: Option<Open>,
    talk: Talk,
    /// The question whose plan was handed out last.
    answered: Option<Answered>,
    /// CPUs whose failures are asked about for the second time.
    again: BTreeSet<u32>,
    failures_in_a_row: u32,
    sum_ns: u64,
    answers: Answers,
}

/// A question without an answer.
#[derive(Debug)]
struct Open {
    left: Plan,
    /// Number of the event after the last failure.
    next_seq: u64,
    about: Answered,
}

/// Subject of a question.
#[derive(Debug)]
struct Answered {
    asked: Instant,
    cpu: u32,
    /// Failures on that CPU, with times of the node's clock.
    failures: Vec<Failure>,
    /// Whether it was asked for the second time.
    is_second: bool,
}

impl Scheduler {
    pub(crate) fn new(command: SchedulerCommand, config: Config, rate_insns_per_ms: u64) -> Self {
        Self {
            answers: Answers { command: command.line.clone(), ..Answers::default() },
            command,
            defaults: Defaults { config, rate_insns_per_ms },
            in_force: BTreeMap::new(),
            failures: BTreeMap::new(),
            begin_ns: None,
            open: None,
            talk: Talk::default(),
            answered: None,
            again: BTreeSet::new(),
            failures_in_a_row: 0,
            sum_ns: 0,
        }
    }

    pub(crate) fn command(&self) -> &SchedulerCommand {
        &self.command
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Hears of an event of the node's own plans.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Some(in_force) = self.in_force.get_mut(&event.cpu) {
            in_force.event(event);
        }
        if let Some(failure) = Failure::of_event(event) {
            let failures = self.failures.entry(event.cpu).or_default();
            failures.push(failure);
            if failures.len() > MAX_FAILURES {
                failures.remove(0);
            }
        }
    }

    /// The node took a plan. A question about one of its CPUs is void.
    pub(crate) fn written(&mut self, plan: &Plan, now_ns: u64) {
        for cpu in &plan.cpus {
            self.written_on(plan, cpu.cpu, now_ns);
        }
    }

    /// A plan is in force on a CPU.
    pub(crate) fn written_on(&mut self, plan: &Plan, cpu: u32, now_ns: u64) {
        self.begin_ns.get_or_insert(now_ns);
        self.again.remove(&cpu);
        let on = |open: &Open| open.left.cpus.iter().any(|it| it.cpu == cpu);
        if self.open.take_if(|open| on(open)).is_some() {
            self.answers.superseded += 1;
            self.talk.close();
        }
        if let Some(failures) = self.failures.get_mut(&cpu) {
            failures.retain(|failure| failure.seq >= plan.dealt_seq);
        }
        let of = plan.cpus.iter().find(|it| it.cpu == cpu);
        match of.and_then(|of| InForce::new(plan, of, self.defaults, now_ns)) {
            Some(in_force) => drop(self.in_force.insert(cpu, in_force)),
            None => drop(self.in_force.remove(&cpu)),
        }
    }

    /// All plans in force together, with `plan` on its CPUs.
    pub(crate) fn whole_with(&self, plan: &Plan) -> Plan {
        let is_new = |cpu: u32| plan.cpus.iter().any(|it| it.cpu == cpu);
        let others = self.in_force.iter().filter(|(&cpu, _)| !is_new(cpu));
        together(std::iter::once(plan).chain(others.map(|(_, in_force)| &in_force.plan)))
    }

    /// The number of the last plan in force.
    pub(crate) fn last_plan_id(&self) -> u64 {
        self.in_force.values().map(|in_force| in_force.plan.plan_id).max().unwrap_or(0)
    }

    /// Whether a question is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The CPU to ask about: the one with the oldest failure. A CPU whose tasks wait for those
    /// of others is the built-in planner's.
    pub(crate) fn next_cpu(&self) -> Option<u32> {
        let failures = self.failures.iter();
        let failures =
            failures.filter(|(&cpu, failures)| !failures.is_empty() && self.answers_for(cpu));
        let oldest = failures.min_by_key(|(_, failures)| failures[0].seq);
        oldest.map(|(&cpu, _)| cpu)
    }

    /// Whether the command is asked about failures on that CPU.
    pub(crate) fn answers_for(&self, cpu: u32) -> bool {
        let in_force = self.in_force.get(&cpu);
        !self.answers.is_given_up && in_force.is_some_and(|in_force| !in_force.is_coupled)
    }

    /// Whether there is something to ask the command.
    pub(crate) fn can_ask(&self) -> bool {
        !self.is_open() && !self.answers.is_given_up && self.next_cpu().is_some()
    }

    /// Asks the command about the oldest failures. `known` is what the kernel says of a
    /// process; `None`: nothing of it is to be planned any more. Whether a question is open.
    ///
    /// # Errors
    ///
    /// The command could not be asked.
    pub(crate) fn ask(
        &mut self,
        known: &dyn Fn(u32) -> Option<Process>,
        now_ns: u64,
    ) -> Result<bool, String> {
        let Some(cpu) = self.next_cpu() else {
            return Ok(false);
        };
        let begin_ns = self.begin_ns.unwrap_or(now_ns);
        let failures = self.failures.remove(&cpu).unwrap_or_default();
        let is_second = self.again.remove(&cpu);
        let state = self.in_force[&cpu].state(known, begin_ns, now_ns);
        if state.remaining.processes.is_empty() {
            return Ok(false);
        }
        let next_seq = failures.last().map_or(0, |failure| failure.seq + 1);
        let told = failures.iter().map(|failure| {
            let time_ns = failure.time_ns.saturating_sub(begin_ns);
            Failure { time_ns, ..*failure }
        });
        let told: Vec<_> = told.collect();
        self.answers.questions += 1;
        let asked =
            question(&told, &state).and_then(|question| self.talk.ask(&self.command, question));
        asked.inspect_err(|_| self.failed())?;
        let about = Answered { asked: Instant::now(), cpu, failures, is_second };
        self.open = Some(Open { left: state.remaining, next_seq, about });
        Ok(true)
    }

    /// Looks for the answer to the question that is open.
    pub(crate) fn look(&mut self) -> Reply {
        let Some(Open { left, next_seq, about }) = self.open.take() else {
            return Reply::Wait(-1);
        };
        let Some(answer) = self.talk.look(&self.command) else {
            self.open = Some(Open { left, next_seq, about });
            return Reply::Wait(LOOK_MS);
        };
        let answer = answer.and_then(|text| plan_of_answer(&text).map_err(|why| why.to_string()));
        let checked = answer.and_then(|plan| match plan {
            Some(plan) => {
                check_same_work(&plan, &left, next_seq).map(|()| Some(completed(plan, &left)))
            }
            None => Ok(None),
        });
        match checked {
            Ok(Some(plan)) => {
                self.answered = Some(about);
                Reply::Plan(Box::new(plan))
            }
            Ok(None) => {
                self.usable();
                self.answers.stays += 1;
                Reply::Stays
            }
            Err(why) => {
                self.failed();
                Reply::Failed(why)
            }
        }
    }

    /// The plan of the last answer is in force.
    pub(crate) fn accepted(&mut self) {
        self.usable();
        self.answers.answers += 1;
        if let Some(about) = self.answered.take() {
            let took_ns = about.asked.elapsed().as_nanos() as u64;
            self.sum_ns = self.sum_ns.saturating_add(took_ns);
            self.answers.mean_ns = Some(self.sum_ns / self.answers.answers);
            self.answers.max_ns = self.answers.max_ns.max(Some(took_ns));
        }
    }

    /// The kernel did not take the plan of the last answer. `is_outdated`: since a process has
    /// ended after the question. That is no fault of the command, which is asked once more, as
    /// things are then; returns the CPU of that question. `None`: the answer is a failure.
    pub(crate) fn refused(&mut self, is_outdated: bool) -> Option<u32> {
        match self.answered.take() {
            Some(mut about) if is_outdated && !about.is_second => {
                self.again.insert(about.cpu);
                self.answers.superseded += 1;
                let since = self.failures.remove(&about.cpu).unwrap_or_default();
                about.failures.extend(since);
                self.failures.insert(about.cpu, about.failures);
                Some(about.cpu)
            }
            _ => {
                self.failed();
                None
            }
        }
    }

    /// A question got an answer that counts.
    fn usable(&mut self) {
        self.failures_in_a_row = 0;
    }

    /// A question got no usable answer.
    fn failed(&mut self) {
        self.answers.fallbacks += 1;
        self.failures_in_a_row += 1;
        self.answers.is_given_up |= self.failures_in_a_row >= SchedulerCommand::MAX_FAILURES;
    }

    /// Whether that process is the command's, whose end is nobody else's business; and whether
    /// it has ended.
    pub(crate) fn has_ended(&mut self, pid: i32) -> Option<bool> {
        self.talk.has_ended(pid)
    }
}

/// The answer with what it may leave out: names, and the numbers of the whole plan.
fn completed(mut plan: Plan, left: &Plan) -> Plan {
    for process in &mut plan.processes {
        if let Some(known) = left.process(process.id) {
            process.name.clone_from(&known.name);
        }
    }
    plan.config = plan.config.or(left.config);
    if plan.memory_bytes == 0 {
        plan.memory_bytes = left.memory_bytes;
    }
    plan
}
