// SPDX-License-Identifier: GPL-2.0
//! A command that admits jobs in place of the built-in planner: the question, and the check of its
//! answer.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use pbs_job::{job_to_json, machine_to_json, Action, Job, Machine};
use pbs_node::SchedulerCommand;
use pbs_plan::{check, to_json, to_toml, Plan, Process};
use pbs_sim::{plan_of_answer, simulate, Conversation, NoAnswer, Options};
use pbs_text::json::is_json;
use pbs_text::{grouped, ms, span};
use serde::Serialize;
use serde_json::{json, Value};

use crate::output::report;

/// Time that a command has for its answer, unless the option says otherwise.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which the answer is looked for.
const LOOK: Duration = Duration::from_millis(1);

#[derive(Args, Clone, Debug)]
pub(crate) struct AdmissionOptions {
    /// Let a command admit the jobs, and make their plan: "command LINE"
    #[arg(long = "admission", value_name = "WHO", value_parser = SchedulerCommand::from_option)]
    command: Option<SchedulerCommand>,

    /// Give the command this time to answer, in seconds or with a unit [default: 1]
    #[arg(long = "admission-timeout", value_name = "SECONDS", requires = "command",
          value_parser = SchedulerCommand::timeout_of)]
    timeout: Option<Duration>,
}

impl AdmissionOptions {
    /// The command, before its first question.
    pub(crate) fn admission(&self) -> Option<Admission> {
        let line = self.command.clone()?.line;
        let timeout = self.timeout.unwrap_or(TIMEOUT);
        Some(Admission { line, timeout, plan: None, jobs: Vec::new() })
    }
}

/// A command with the jobs that it has admitted.
pub(crate) struct Admission {
    line: String,
    timeout: Duration,
    /// Plan of the command, for these jobs.
    plan: Option<Plan>,
    jobs: Vec<Admitted>,
}

/// A job in the plan.
struct Admitted {
    job: Job,
    /// Process N of the job is process `first_id` + N of the plan.
    first_id: u32,
}

/// Result of a question.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AdmissionView {
    command: String,
    pub(crate) verdict: Verdict,
    /// Reason for which the job was declined, or the answer was not usable.
    why: Option<String>,
    /// Planned end of the job.
    end_ns: Option<u64>,
    /// The plan of all jobs so far, in TOML.
    plan: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Admitted,
    Declined,
    /// The built-in planner decided.
    Fallback,
}

impl AdmissionView {
    /// The lines of text: the subject and its words.
    pub(crate) fn rows(&self, deadline_ns: u64) -> Vec<(&'static str, String)> {
        let why = self.why.as_deref().unwrap_or("no reason given");
        let text = match (self.verdict, self.end_ns) {
            (Verdict::Admitted, Some(end_ns)) => {
                let left_ns = deadline_ns.saturating_sub(end_ns);
                format!("planned end {}, {} before the deadline", span(end_ns), span(left_ns))
            }
            (Verdict::Admitted, None) => "admitted".into(),
            (Verdict::Declined, _) => format!("declined: {why}"),
            (Verdict::Fallback, _) => "the built-in planner decided".into(),
        };
        vec![("asked", self.command.clone()), ("answer", text)]
    }
}

impl Admission {
    /// Asks for the plan of all jobs so far and of this one.  `lead_ns`: time until the plan is in
    /// force.
    pub(crate) fn ask(&mut self, job: &Job, machine: &Machine, lead_ns: u64) -> AdmissionView {
        let first_id = self.plan.as_ref().map_or(0, greatest_id);
        let asked = self.question(job, machine, lead_ns, first_id).and_then(|question| {
            let answer = self.answer(question)?;
            self.understood(&answer, job, machine, lead_ns, first_id)
        });
        let view = AdmissionView {
            command: self.line.clone(),
            verdict: Verdict::Fallback,
            why: None,
            end_ns: None,
            plan: None,
        };
        match asked {
            Ok(Answer::Declined(why)) => {
                AdmissionView { verdict: Verdict::Declined, why: Some(why), ..view }
            }
            Ok(Answer::Plan(plan, end_ns)) => {
                let toml = to_toml(&plan);
                self.plan = Some(*plan);
                self.jobs.push(Admitted { job: job.clone(), first_id });
                let (end_ns, plan) = (Some(end_ns), Some(toml));
                AdmissionView { verdict: Verdict::Admitted, end_ns, plan, ..view }
            }
            Err(why) => {
                let line = &self.line;
                report(&format!(
                    "pbsctl: job {}: \"{line}\" {why}; the built-in planner decides",
                    job.name
                ));
                AdmissionView { why: Some(why), ..view }
            }
        }
    }

    /// One line of JSON.
    fn question(
        &self,
        job: &Job,
        machine: &Machine,
        lead_ns: u64,
        first_id: u32,
    ) -> Result<Vec<u8>, String> {
        let is_plain =
            |action: Action| matches!(action, Action::Start | Action::Calculation | Action::End);
        if !job.tasks.iter().all(|task| is_plain(task.action)) {
            let why = "is not asked about jobs whose processes fork, join or send messages";
            return Err(why.into());
        }
        if job.start_ns > 0 {
            return Err("is not asked about jobs that begin later".into());
        }
        let question = json!({
            "job": job_to_json(job),
            "machine": machine_to_json(machine),
            "plan": self.plan.as_ref().map(to_json),
            "first_id": first_id,
            "lead_ns": lead_ns,
        });
        Ok(format!("{question}\n").into_bytes())
    }

    /// Runs the command.  It is killed with its descendants at the end of its time.
    fn answer(&self, question: Vec<u8>) -> Result<String, String> {
        let until = Instant::now() + self.timeout;
        let told = |why: pbs_sim::NoReply| why.to_string();
        let mut conversation = Conversation::start(&self.line, None, question).map_err(told)?;
        loop {
            if let Some(answer) = conversation.look_text() {
                return answer.map_err(told);
            }
            if Instant::now() >= until {
                return Err(format!("gave no answer within {} ms", ms(nanoseconds(self.timeout))));
            }
            thread::sleep(LOOK);
        }
    }

    fn understood(
        &self,
        answer: &str,
        job: &Job,
        machine: &Machine,
        lead_ns: u64,
        first_id: u32,
    ) -> Result<Answer, String> {
        if let Some(why) = declined(answer)? {
            return Ok(Answer::Declined(why));
        }
        let plan = plan_of_answer(answer).map_err(|why| why.to_string())?;
        let plan = plan.ok_or("wrote neither a plan nor a reason")?;
        check(&plan).map_err(|problems| {
            let problems: Vec<_> = problems.iter().map(|problem| problem.message.clone()).collect();
            format!("wrote a plan that is not valid: {}", problems.join("; "))
        })?;
        let new = (job, first_id);
        let all = self.jobs.iter().map(|admitted| (&admitted.job, admitted.first_id));
        let all: Vec<_> = all.chain([new]).collect();
        has_all_work(&plan, &all)?;
        has_cpus(&plan, machine)?;
        let end_ns = keeps_deadlines(&plan, &all, lead_ns)?;
        Ok(Answer::Plan(Box::new(plan), end_ns))
    }
}

enum Answer {
    /// A plan of all jobs, and the end of the new one.
    Plan(Box<Plan>, u64),
    Declined(String),
}

/// The reason of an answer `{"declined": "reason"}`.
fn declined(answer: &str) -> Result<Option<String>, String> {
    if !is_json(answer) {
        return Ok(None);
    }
    // What is no JSON at all is refused as a plan, with its place.
    let value: Value = serde_json::from_str(answer).unwrap_or_default();
    match &value["declined"] {
        Value::Null => Ok(None),
        Value::String(why) if !why.trim().is_empty() => Ok(Some(why.clone())),
        other => Err(format!("wrote \"declined\": {other}; it must be the reason in words")),
    }
}

fn greatest_id(plan: &Plan) -> u32 {
    plan.processes.iter().map(|process| process.id).max().unwrap_or(0)
}

/// Whether the plan has the processes of the jobs with their tasks, and no others.
fn has_all_work(plan: &Plan, jobs: &[(&Job, u32)]) -> Result<(), String> {
    let mut expected = 0;
    for (job, first_id) in jobs {
        for of_job in &job.processes {
            let work = of_job.tasks.iter().map(|&task| job.tasks[task].insns);
            let work: Vec<_> = work.filter(|&insns| insns > 0).collect();
            if work.is_empty() {
                continue;
            }
            expected += 1;
            let id = first_id + of_job.id;
            let place = format!("process {} of job {}", of_job.label(), job.name);
            let planned = plan.processes.iter().find(|process| process.id == id);
            let planned = planned.ok_or_else(|| {
                format!("wrote a plan without {place}, which must have the id {id}")
            })?;
            let lengths = |process: &Process| -> Vec<u64> {
                process.tasks.iter().map(|task| task.planned_insns).collect()
            };
            if lengths(planned) != work {
                return Err(format!("wrote a plan with other tasks of {place}"));
            }
            if planned.memory_bytes < of_job.memory_bytes {
                return Err(format!(
                    "wrote a plan with {} bytes for {place}, which needs {}",
                    grouped(planned.memory_bytes),
                    grouped(of_job.memory_bytes)
                ));
            }
        }
    }
    if plan.processes.len() == expected {
        Ok(())
    } else {
        Err("wrote a plan with processes of no job".into())
    }
}

fn has_cpus(plan: &Plan, machine: &Machine) -> Result<(), String> {
    let cores = machine.nodes.iter().flat_map(|node| &node.cores);
    let cpus: Vec<_> = cores.filter_map(|core| core.cpu).collect();
    let strange = plan.cpus.iter().map(|cpu| cpu.cpu).find(|cpu| !cpus.contains(cpu));
    match strange {
        None => Ok(()),
        Some(cpu) => Err(format!("wrote a plan for CPU {cpu}, which the machine does not have")),
    }
}

/// Simulates the plan with its planned lengths.  Returns the end of the last job, counted from its
/// submission.
fn keeps_deadlines(plan: &Plan, jobs: &[(&Job, u32)], lead_ns: u64) -> Result<u64, String> {
    let options = Options { record_grants: false, ..Options::default() };
    let simulated = simulate(plan, &options, &mut NoAnswer)
        .map_err(|error| format!("wrote a plan that cannot be simulated: {error}"))?;
    let mut end_ns = 0;
    for (job, first_id) in jobs {
        let is_of_job = |id: u32| job.processes.iter().any(|process| first_id + process.id == id);
        let mut ends = simulated.processes.iter().filter(|process| is_of_job(process.id));
        let end = ends
            .try_fold(0, |latest, process| process.ended_ns.map(|ended_ns| ended_ns.max(latest)));
        let end = end.ok_or_else(|| {
            format!("wrote a plan that does not end all processes of job {}", job.name)
        })?;
        end_ns = end.saturating_add(lead_ns);
        if end_ns > job.deadline_ns {
            return Err(format!(
                "wrote a plan in which job {} ends after {}, behind its deadline of {}",
                job.name,
                span(end_ns),
                span(job.deadline_ns)
            ));
        }
    }
    Ok(end_ns)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
