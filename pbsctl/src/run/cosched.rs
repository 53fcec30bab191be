// SPDX-License-Identifier: GPL-2.0
//! Task graphs that are run: co-scheduled first, then jobs like any others.

use std::path::PathBuf;

use pbs_cosched::{evaluations, Objective, Scheduler};
use pbs_job::graph::{graph_from_toml, Graph};
use pbs_job::{job_to_toml, Job, Machine};
use pbs_lanes::{decide, jobs, turns, Decided, Lowered, Question};
use pbs_node::{Step, Submission};
use pbs_report::ms;
use serde::Serialize;

use crate::failure::Failure;
use crate::files;

/// Mappings that the scheduler tries; a tenth of a second for a hundred tasks.
const EVALUATIONS: u64 = 5_000;

/// What is run of task graphs.
pub(super) struct Cosched {
    /// A job for each graph.
    pub(super) submissions: Vec<Submission>,
    /// The order of their tasks.
    pub(super) steps: Vec<Step>,
    /// What was decided, for people and programs.
    pub(super) decision: Decision,
}

/// What was decided.
#[derive(Serialize)]
pub(super) struct Decision {
    accepted: bool,
    reason: String,
    makespan_ns: u64,
    not_co_scheduled_ns: u64,
    tasks: Vec<Choice>,
}

/// What a task runs as.
#[derive(Serialize)]
struct Choice {
    job: String,
    task: String,
    variant: String,
    cpus: Vec<u32>,
}

/// Co-schedules the task graphs of those files on that machine.
pub(super) fn co_schedule(files: &[PathBuf], machine: &Machine) -> Result<Cosched, Failure> {
    let mut graphs = Vec::new();
    for path in files {
        let file = files::name(path);
        let graph = graph_from_toml(&files::read(path)?);
        graphs.push(graph.map_err(|problems| Failure::Invalid { file, problems })?);
    }
    let unfit = |unfit: Vec<pbs_lanes::Unfit>| {
        let told = unfit.iter().map(ToString::to_string);
        Failure::NotValid(told.collect())
    };
    let question = Question::new(&graphs, machine, |_, _, _| None).map_err(unfit)?;
    let scheduler = Scheduler::default();
    let objective = Objective::default();
    let decided = decide(
        &question,
        &scheduler,
        objective,
        &mut evaluations(EVALUATIONS),
    );
    let decided = decided.map_err(|faults| {
        let told = faults.iter().map(|fault| format!("{fault:?}"));
        Failure::NotValid(told.collect())
    })?;
    let lowered = jobs(
        &question,
        &graphs,
        machine,
        &decided.mapping,
        &decided.timeline,
    );
    let lowered = lowered.map_err(|why| Failure::NotValid(vec![why.to_string()]))?;
    without_programs(&lowered)?;
    let steps = turns(&lowered).into_iter().map(|(submission, task)| Step {
        submission,
        task,
        stretch_permille: 1000,
    });
    let steps = steps.collect();
    let decision = decision(&question, &graphs, &decided, &lowered);
    let submissions = files.iter().zip(lowered).map(|(path, lowered)| Submission {
        file: files::name(path),
        request: job_to_toml(&lowered.job),
        job: lowered.job,
    });
    Ok(Cosched {
        submissions: submissions.collect(),
        steps,
        decision,
    })
}

/// Refuses jobs that nobody could start.
fn without_programs(lowered: &[Lowered]) -> Result<(), Failure> {
    let without = |job: &Job| {
        let processes = job
            .processes
            .iter()
            .filter(|process| !process.cpus.is_empty());
        let mut bare = processes.filter(|process| process.start.commands().is_empty());
        bare.next().map(|_| {
            format!(
                "not all tasks of {} that run have a command; add command = [\"prog\", \"{{lane}}\"] \
                 to their variants",
                job.name
            )
        })
    };
    let told: Vec<String> = lowered
        .iter()
        .filter_map(|lowered| without(&lowered.job))
        .collect();
    match told.is_empty() {
        true => Ok(()),
        false => Err(Failure::NotValid(told)),
    }
}

fn decision(
    question: &Question,
    graphs: &[Graph],
    decided: &Decided,
    lowered: &[Lowered],
) -> Decision {
    let tasks = question.tasks.iter().enumerate().map(|(index, of)| {
        let graph = &graphs[of.graph];
        let task = &graph.tasks[of.task];
        let choice = decided.mapping.choices[index].map_or(0, |choice| choice.variant);
        let job = &lowered[of.graph];
        let lanes = job.lanes.iter().zip(&job.job.tasks);
        let lanes = lanes.filter(|(lane, _)| lane.is_some_and(|lane| lane.task == index));
        let cpus = lanes.flat_map(|(_, task)| &job.job.processes[task.process].cpus);
        Choice {
            job: graph.name.clone(),
            task: task.name.clone(),
            variant: task.variants[of.variants[choice]].label(),
            cpus: cpus.copied().collect(),
        }
    });
    Decision {
        accepted: decided.verdict.accepted,
        reason: decided.verdict.reason.to_string(),
        makespan_ns: decided.timeline.end_ns(),
        not_co_scheduled_ns: decided.verdict.without.makespan_ns,
        tasks: tasks.collect(),
    }
}

impl Decision {
    /// For people: what was decided, and of the first tasks as what they run.
    pub(super) fn text(&self) -> String {
        const SHOWN: usize = 12;
        let how = match self.accepted {
            true => "co-scheduled",
            false => "not co-scheduled, each as is fastest for it",
        };
        let mut text = format!("{how}: {}\n", self.reason);
        for Choice {
            job,
            task,
            variant,
            cpus,
        } in self.tasks.iter().take(SHOWN)
        {
            let cpus = pbs_job::cpu_list(cpus);
            text.push_str(&format!("  {job}/{task}: {variant} on CPU {cpus}\n"));
        }
        if self.tasks.len() > SHOWN {
            text.push_str(&format!("  and {} more tasks\n", self.tasks.len() - SHOWN));
        }
        text.push_str(&format!("  expected to take {} ms\n", ms(self.makespan_ns)));
        text
    }
}
