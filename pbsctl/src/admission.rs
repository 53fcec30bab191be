// SPDX-License-Identifier: GPL-2.0
//! A command that admits jobs in place of the built-in planner, for jobs that are planned together.

use std::time::Duration;

use clap::Args;
use pbs_job::{Job, Machine};
use pbs_node::{
    check_work, AdmissionAnswer, AdmissionQuestion, Choice, SchedulerCommand, Step, WantedProcess,
};
use pbs_plan::{to_toml, Plan, Slot};
use pbs_sim::{simulate, NoAnswer, Options};
use pbs_text::span;
use serde::Serialize;

use crate::output::report;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AdmissionOptions {
    /// Let a command admit the jobs, and make their plan: "command LINE"
    #[arg(long, value_name = "WHO", value_parser = SchedulerCommand::from_option)]
    admission: Option<SchedulerCommand>,

    /// Give the command that admits jobs this time to answer, in seconds or with a unit
    /// [default: 1]
    #[arg(long, value_name = "SECONDS", requires = "admission",
          value_parser = SchedulerCommand::timeout_of)]
    admission_timeout: Option<Duration>,
}

impl AdmissionOptions {
    /// The command, if there is one.
    pub(crate) fn command(&self) -> Option<SchedulerCommand> {
        let command = self.admission.clone()?;
        let timeout = self.admission_timeout.unwrap_or(command.timeout);
        Some(SchedulerCommand { timeout, ..command })
    }

    /// The command, before its first question.
    pub(crate) fn admission(&self) -> Option<Admission> {
        let command = self.command()?;
        Some(Admission { command, plan: None, jobs: Vec::new() })
    }
}

/// A command with the jobs that it has admitted.
pub(crate) struct Admission {
    command: SchedulerCommand,
    /// Plan of the command, for these jobs.
    plan: Option<Plan>,
    jobs: Vec<Admitted>,
}

/// A job in the plan.
struct Admitted {
    job: Job,
    processes: Vec<(usize, WantedProcess)>,
}

/// Result of a question.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AdmissionView {
    command: String,
    pub(crate) verdict: Verdict,
    /// Reason for which the job was declined, or the answer was not usable.
    pub(crate) why: Option<String>,
    /// Planned end of the job.
    end_ns: Option<u64>,
    /// The plan of all jobs so far, in TOML.
    plan: Option<String>,
    /// Reason for which the command was not asked at all, as words that follow its name.
    #[serde(skip)]
    unasked: Option<String>,
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
        let asked = match &self.unasked {
            Some(why) => format!("nobody: {} {why}", self.command),
            None => self.command.clone(),
        };
        vec![("asked", asked), ("answer", text)]
    }
}

impl Admission {
    /// Asks for the plan of all jobs so far and of this one.  `lead_ns`: time until the plan is in
    /// force.
    pub(crate) fn ask(&mut self, job: &Job, machine: &Machine, lead_ns: u64) -> AdmissionView {
        let view = AdmissionView {
            command: self.command.line.clone(),
            verdict: Verdict::Fallback,
            why: None,
            end_ns: None,
            plan: None,
            unasked: self.question(job, machine, lead_ns).text().err(),
        };
        match self.answer(job, machine, lead_ns) {
            Ok(Answer::Declined(why)) => {
                AdmissionView { verdict: Verdict::Declined, why: Some(why), ..view }
            }
            Ok(Answer::Plan(plan, end_ns, admitted)) => {
                let toml = to_toml(&plan);
                self.plan = Some(*plan);
                self.jobs.push(*admitted);
                let (end_ns, plan) = (Some(end_ns), Some(toml));
                AdmissionView { verdict: Verdict::Admitted, end_ns, plan, ..view }
            }
            Err(why) => {
                report_built_in(&self.command, &job.name, &why);
                AdmissionView { why: Some(why), ..view }
            }
        }
    }

    fn question<'a>(
        &'a self,
        job: &'a Job,
        machine: &'a Machine,
        lead_ns: u64,
    ) -> AdmissionQuestion<'a> {
        AdmissionQuestion { job, machine, plan: self.plan.as_ref(), lead_ns }
    }

    fn answer(&self, job: &Job, machine: &Machine, lead_ns: u64) -> Result<Answer, String> {
        let question = self.question(job, machine, lead_ns);
        let plan = match question.ask(&self.command)? {
            AdmissionAnswer::Declined(why) => return Ok(Answer::Declined(why)),
            AdmissionAnswer::Plan(plan) => plan,
        };
        let processes = WantedProcess::of_job(job, question.first_id());
        let new = Admitted { job: job.clone(), processes };
        let all: Vec<_> = self.jobs.iter().chain([&new]).collect();
        let wanted = all.iter().flat_map(|admitted| &admitted.processes);
        check_work(&plan, wanted.map(|(_, wanted)| wanted), machine)?;
        let end_ns = keeps_deadlines(&plan, &all, lead_ns)?;
        Ok(Answer::Plan(plan, end_ns, Box::new(new)))
    }

    /// The CPUs that the plan has for the processes of an admitted job; `place`: the job's place
    /// among those that were admitted.
    pub(crate) fn choice(&self, place: usize) -> Choice {
        let (Some(plan), Some(admitted)) = (&self.plan, self.jobs.get(place)) else {
            return Choice::default();
        };
        let chosen = admitted.processes.iter().filter_map(|(process, wanted)| {
            let index = plan.processes.iter().position(|planned| planned.id == wanted.id)?;
            Some((*process, plan.cpu_of(index)?.cpu))
        });
        Choice(chosen.collect())
    }

    /// The tasks in the order of the plan's slots.  `submissions`: place of each admitted job among
    /// the submissions.
    pub(crate) fn steps(&self, submissions: &[usize]) -> Vec<Step> {
        let Some(plan) = &self.plan else {
            return Vec::new();
        };
        let mut steps = Vec::new();
        let mut next = vec![0; plan.processes.len()];
        for cpu in &plan.cpus {
            for slot in &cpu.slots {
                let Slot::Process { process } = slot else {
                    continue;
                };
                let position = next[*process];
                next[*process] += 1;
                steps.extend(self.step(plan.processes[*process].id, position, submissions));
            }
        }
        steps
    }

    /// The step of a process's task: the task with instructions that has so many before it.
    fn step(&self, id: u32, position: usize, submissions: &[usize]) -> Option<Step> {
        let mut jobs = self.jobs.iter().zip(submissions);
        jobs.find_map(|(Admitted { job, processes }, &submission)| {
            let (process, _) = processes.iter().find(|(_, wanted)| wanted.id == id)?;
            let tasks = job.processes[*process].tasks.iter().copied();
            let mut with_insns = tasks.filter(|&task| job.tasks[task].insns > 0);
            Some(Step { submission, task: with_insns.nth(position)? })
        })
    }
}

/// Says that the built-in planner decides about a job, and why.
pub(crate) fn report_built_in(command: &SchedulerCommand, job: &str, why: &str) {
    let line = &command.line;
    report(&format!("pbsctl: job {job}: \"{line}\" {why}; the built-in planner decides"));
}

enum Answer {
    /// A plan of all jobs, the end of the new one, and the new one.
    Plan(Box<Plan>, u64, Box<Admitted>),
    Declined(String),
}

/// Simulates the plan with its planned lengths.  Returns the end of the last job, counted from its
/// submission.
fn keeps_deadlines(plan: &Plan, jobs: &[&Admitted], lead_ns: u64) -> Result<u64, String> {
    let options = Options { record_grants: false, ..Options::default() };
    let simulated = simulate(plan, &options, &mut NoAnswer)
        .map_err(|error| format!("wrote a plan that cannot be simulated: {error}"))?;
    let mut end_ns = 0;
    for Admitted { job, processes } in jobs {
        let is_of_job = |id: u32| processes.iter().any(|(_, wanted)| wanted.id == id);
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

#[cfg(test)]
mod tests {
    use pbs_job::{job_from_toml, machine_from_toml};

    use super::*;

    const MACHINE: &str = "[[node]]\nname = \"lab\"\nmemory_bytes = 67_108_864\ncores = [
        { name = \"a\", cpu = 0, rate_insns_per_s = 1_000_000_000 },
        { name = \"b\", cpu = 1, rate_insns_per_s = 1_000_000_000 },
    ]\n";

    fn job(name: &str) -> Job {
        let text = format!(
            "name = \"{name}\"\ndeadline_ns = 900_000_000\ncpus = [1]\n[[process]]\nid = 1\n\
             memory_bytes = 4_096\ntasks = [5_000_000, 7_000_000]\n"
        );
        job_from_toml(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    /// Asks about two jobs; the command has this plan for both.
    fn asked(first: &str, both: &str) -> (Admission, Vec<Verdict>) {
        let line = format!("if grep -q first; then echo '{first}'; else echo '{both}'; fi");
        let line = line.replace("grep -q first", "grep -q '\"plan\":null'");
        let command = SchedulerCommand::from_option(&format!("command {line}")).unwrap();
        // A busy machine is no fault of the command.
        let command = SchedulerCommand { timeout: Duration::from_secs(600), ..command };
        let mut admission = Admission { command, plan: None, jobs: Vec::new() };
        let machine = machine_from_toml(MACHINE).unwrap();
        let jobs = [job("x"), job("y")];
        let verdicts = jobs.iter().map(|job| admission.ask(job, &machine, 0).verdict).collect();
        (admission, verdicts)
    }

    fn plan(cpu: u32, ids: &[u32], slots: &str) -> String {
        let process = |id: &u32| {
            let tasks = "tasks = [5_000_000, 7_000_000]";
            format!("[[process]]\nid = {id}\nmemory_bytes = 4_096\n{tasks}\n")
        };
        let processes: String = ids.iter().map(process).collect();
        format!("{processes}[[cpu]]\ncpu = {cpu}\nrate_insns_per_ms = 1_000_000\nslots = {slots}\n")
    }

    /// Jobs run on the CPUs and in the order of the slots that a command has written.
    #[test]
    fn the_cpus_and_the_order_of_a_plan_become_those_of_the_jobs() {
        let (admission, verdicts) =
            asked(&plan(1, &[1], "[1, 1]"), &plan(1, &[2, 1], "[2, 1, 1, 2]"));
        assert_eq!(verdicts, [Verdict::Admitted, Verdict::Admitted]);
        assert_eq!((admission.choice(0), admission.choice(1)), {
            let on_1 = Choice(vec![(0, 1)]);
            (on_1.clone(), on_1)
        });
        // The jobs are the third and the first submission, and begin with a task without instructions.
        let steps = admission.steps(&[2, 0]);
        let steps = steps.iter().map(|step| (step.submission, job("x").tasks[step.task].insns));
        let (first, last) = (5_000_000, 7_000_000);
        assert_eq!(steps.collect::<Vec<_>>(), [(0, first), (2, first), (2, last), (0, last)]);
    }

    #[test]
    fn an_answer_keeps_a_job_on_the_cpus_that_it_may_run_on() {
        let (admission, verdicts) = asked(&plan(0, &[1], "[1, 1]"), "");
        assert_eq!(verdicts, [Verdict::Fallback, Verdict::Fallback]);
        assert!(admission.steps(&[]).is_empty());
    }
}
