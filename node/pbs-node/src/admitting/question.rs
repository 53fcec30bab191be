// SPDX-License-Identifier: GPL-2.0
//! The question to a command that admits jobs, and its answer.

use std::thread;
use std::time::Duration;

use pbs_job::{job_to_json, machine_to_json, Action, Job, Machine};
use pbs_plan::{check, to_json, Plan};
use pbs_sim::plan_of_answer;
use pbs_text::json::is_json;
use serde_json::{json, Value};

use crate::scheduler::Talk;
use crate::SchedulerCommand;

/// Interval at which a caller that waits looks for the answer.
const LOOK: Duration = Duration::from_millis(1);

/// The longest reason of an answer, which is one line; the rest is left out.
const REASON_CHARS: usize = 1000;

/// A question about a job.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionQuestion<'a> {
    /// The job as it is predicted. Its times count from its submission.
    pub job: &'a Job,
    /// The machine for which is planned.
    pub machine: &'a Machine,
    /// Plan of the jobs before; `None`: there is none.
    pub plan: Option<&'a Plan>,
    /// Time from the submission until the plan is in force.
    pub lead_ns: u64,
}

/// An answer that can be used.
#[derive(Clone, Debug)]
pub enum AdmissionAnswer {
    /// A valid plan, whose work was not checked.
    Plan(Box<Plan>),
    /// Reason for which the job is declined.
    Declined(String),
}

impl AdmissionQuestion<'_> {
    /// Returns the number before those of the job: its process N is process `first_id` + N of the
    /// plan.
    pub fn first_id(&self) -> u32 {
        let processes = self.plan.iter().flat_map(|plan| &plan.processes);
        processes.map(|process| process.id).max().unwrap_or(0)
    }

    /// The question as one line of JSON.
    ///
    /// # Errors
    ///
    /// The reason for which a command is not asked about this job, as words that follow its name.
    pub fn text(&self) -> Result<Vec<u8>, String> {
        let Self { job, machine, plan, lead_ns } = self;
        // A job of several processes forks and joins, also where its file does not say so.
        if job.processes.len() > 1 {
            return Err("is not asked about jobs of several processes".into());
        }
        let is_plain =
            |action: Action| matches!(action, Action::Start | Action::Calculation | Action::End);
        if !job.tasks.iter().all(|task| is_plain(task.action)) {
            return Err("is not asked about jobs that send messages".into());
        }
        if job.start_ns > 0 {
            return Err("is not asked about jobs that begin later".into());
        }
        if job.holds_resources() {
            return Err("is not asked about jobs that hold resources".into());
        }
        let first_id = self.first_id();
        let greatest_id = job.processes.iter().map(|process| process.id).max().unwrap_or(0);
        if first_id.checked_add(greatest_id).is_none() {
            return Err(format!(
                "is not asked about jobs with process {greatest_id}; write a lesser id"
            ));
        }
        let question = json!({
            "job": job_to_json(job),
            "machine": machine_to_json(machine),
            "plan": plan.map(to_json),
            "first_id": first_id,
            "lead_ns": lead_ns,
        });
        Ok(format!("{question}\n").into_bytes())
    }

    /// Asks the command, and waits for its answer until its time is over. It is killed with its
    /// descendants then.
    ///
    /// # Errors
    ///
    /// There is no usable answer, and why, as words that follow the command.
    pub fn ask(&self, command: &SchedulerCommand) -> Result<AdmissionAnswer, String> {
        let mut talk = Talk::default();
        talk.ask(command, self.text()?)?;
        loop {
            if let Some(answer) = talk.look(command) {
                return answer.and_then(|text| AdmissionAnswer::of_text(&text));
            }
            thread::sleep(LOOK);
        }
    }
}

impl AdmissionAnswer {
    /// The answer of a text that a command wrote.
    ///
    /// # Errors
    ///
    /// The text is neither a valid plan nor a reason.
    pub fn of_text(text: &str) -> Result<Self, String> {
        if let Some(why) = declined(text)? {
            return Ok(Self::Declined(why));
        }
        let plan = plan_of_answer(text).map_err(|why| why.to_string())?;
        let plan = plan.ok_or("wrote neither a plan nor a reason")?;
        check(&plan).map_err(|problems| {
            let problems: Vec<_> = problems.iter().map(|problem| problem.message.clone()).collect();
            format!("wrote a plan that is not valid: {}", problems.join("; "))
        })?;
        Ok(Self::Plan(Box::new(plan)))
    }
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
        Value::String(why) if !why.trim().is_empty() => {
            let words: Vec<_> = why.split_whitespace().collect();
            Ok(Some(words.join(" ").chars().take(REASON_CHARS).collect()))
        }
        other => Err(format!("wrote \"declined\": {other}; it must be the reason in words")),
    }
}

#[cfg(test)]
mod tests {
    use pbs_job::{job_from_toml, machine_from_toml};

    use super::*;

    /// A plan cannot say these things, and the command is therefore not asked.
    #[test]
    fn a_command_is_not_asked_about_jobs_that_its_plan_cannot_have() {
        let machine = include_str!("../../../../samples/machines/vm.toml");
        let machine = machine_from_toml(machine).unwrap();
        let process = |id: u32| {
            format!("[[process]]\nid = {id}\nmemory_bytes = 4096\ntasks = [{{ insns = 5 }}]\n")
        };
        let told = |head: &str, processes: &str| {
            let text = format!("name = \"a\"\ndeadline_ns = 900_000_000\n{head}\n{processes}");
            let job = job_from_toml(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
            let plan = pbs_plan::from_toml(PLAN).unwrap();
            let question =
                AdmissionQuestion { job: &job, machine: &machine, plan: Some(&plan), lead_ns: 0 };
            question.text().map(|text| String::from_utf8(text).unwrap())
        };
        let question = told("", &process(1)).unwrap();
        assert!(question.contains("\"first_id\":4000000000") && question.ends_with("}\n"));
        let later = told("start_ns = 5", &process(1)).unwrap_err();
        assert_eq!(later, "is not asked about jobs that begin later");
        let holds = told("resources = { m = 1 }", &process(1)).unwrap_err();
        assert_eq!(holds, "is not asked about jobs that hold resources");
        let forks = told("", &(process(1) + &process(2))).unwrap_err();
        assert_eq!(forks, "is not asked about jobs of several processes");
        let great = told("", &process(4_000_000_000)).unwrap_err();
        assert_eq!(great, "is not asked about jobs with process 4000000000; write a lesser id");
    }

    const PLAN: &str = "plan_id = 7\n[[process]]\nid = 4_000_000_000\ntasks = [5]\n[[cpu]]\n\
                        cpu = 0\nslots = [4_000_000_000]\n";
}
