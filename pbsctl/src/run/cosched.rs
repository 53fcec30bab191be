// SPDX-License-Identifier: GPL-2.0
//! Task graphs that are run: co-scheduled first, then jobs like any others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pbs_cosched::{Objective, Scheduler, Slowing};
use pbs_cosched_report::lanes::{
    decide, jobs, turns, variant_runs, Decided, Lowered, Question, Ran,
};
use pbs_cosched_report::Slowed;
use pbs_history::{Options, Store};
use pbs_interference::Entry;
use pbs_job::graph::Graph;
use pbs_job::{job_to_toml, Job, Machine, Start};
use pbs_node::{sharing, Node, Step, Submission};
use pbs_planner::RunId;
use pbs_report::Report;
use pbs_text::span;
use serde::Serialize;

use super::screen::Screen;
use crate::failure::Failure;
use crate::files;
use crate::jobs::{graphs_of, question};

/// Mappings that the scheduler tries; a tenth of a second for a hundred tasks.
const EVALUATIONS: u64 = 5_000;

/// The default scheduler, as the history knows it.
const SCHEDULER: &str = "evolutionary";

/// Task graphs that are run.
pub(super) struct Cosched {
    /// A job for each graph.
    pub(super) submissions: Vec<Submission>,
    /// The order of their tasks.
    pub(super) steps: Vec<Step>,
    /// Data to find out afterwards how long each variant took.
    pub(super) follow: Follow,
}

/// The decision, and the data needed to learn from the run.
pub(super) struct Follow {
    /// For people and programs.
    pub(super) decision: Decision,
    /// Run of each graph, once it is admitted.
    pub(super) runs: Vec<RunId>,
    /// The graph and the process of its job, by their indices, of each number of a process in
    /// plans.
    processes: BTreeMap<u32, (usize, usize)>,
    question: Question,
    graphs: Vec<Graph>,
    decided: Decided,
    lowered: Vec<Lowered>,
    /// Time that the decision took.
    took: Duration,
}

/// The decision.
#[derive(Serialize)]
pub(super) struct Decision {
    accepted: bool,
    reason: String,
    makespan_ns: u64,
    not_co_scheduled_ns: u64,
    tasks: Vec<Choice>,
}

/// Variant that a task runs as.
#[derive(Serialize)]
struct Choice {
    job: String,
    task: String,
    variant: String,
    cpus: Vec<u32>,
}

/// Co-schedules the task graphs of those files on that machine, by what the history knows of
/// their variants, and with the slow-downs between them, if these are given.
pub(super) fn co_schedule(
    files: &[PathBuf],
    machine: &Machine,
    history: &Path,
    slowdowns: Option<&[Entry<String>]>,
) -> Result<Cosched, Failure> {
    let graphs = graphs_of(files)?;
    let question = question(&graphs, machine, history)?.0.for_plans();
    let scheduler = Scheduler::default();
    let objective = Objective::default();
    let slowed = slowdowns.map(|entries| {
        let cpus: Vec<u32> = machine.cpus().collect();
        Slowed::new(&question, entries, sharing(machine).or_as_in(entries, &cpus))
    });
    let slowing = slowed.as_ref().map(|slowed| slowed as &dyn Slowing);
    let began = Instant::now();
    let decided = decide(&question, &scheduler, objective, slowing, EVALUATIONS);
    let took = began.elapsed();
    let decided = decided.map_err(|faults| {
        let told = faults.iter().map(|fault| fault.tell(&question.workload));
        Failure::NotValid(told.collect())
    })?;
    let lowered = jobs(&question, &graphs, machine, &decided.mapping, &decided.timeline);
    let lowered = lowered.map_err(|why| Failure::NotValid(vec![why.to_string()]))?;
    without_programs(&lowered)?;
    let steps = turns(&lowered).into_iter();
    let steps = steps.map(|(submission, task)| Step { submission, task });
    let steps = steps.collect();
    let decision = decision(&question, &graphs, &decided, &lowered);
    let submissions = files.iter().zip(&lowered).map(|(path, lowered)| Submission {
        file: files::name(path),
        request: job_to_toml(&lowered.job),
        job: lowered.job.clone(),
    });
    Ok(Cosched {
        submissions: submissions.collect(),
        steps,
        follow: Follow {
            decision,
            runs: Vec::new(),
            processes: BTreeMap::new(),
            question,
            graphs,
            decided,
            lowered,
            took,
        },
    })
}

impl Follow {
    /// Notes which processes of plans are whose, while the node knows it.
    pub(super) fn note_processes(&mut self, node: &Node<Screen>) {
        let plans = node.listener.plans.iter();
        for process in plans.flat_map(|plan| &plan.processes) {
            let Some((run, index)) = node.process(process.id) else {
                continue;
            };
            if let Some(graph) = self.runs.iter().position(|&own| own == run) {
                self.processes.insert(process.id, (graph, index));
            }
        }
    }

    /// Keeps what deciding took, and what the variants took that ran to their end, as the
    /// report of the run has it.
    pub(super) fn learn(&self, report: &Report, history: &Path) -> Result<(), Failure> {
        let mut ran = BTreeMap::new();
        for task in report.tasks.iter().filter(|task| task.ended) {
            let Some(&(job, process)) = self.processes.get(&task.process) else {
                continue;
            };
            let tasks = &self.lowered[job].job.processes[process].tasks;
            let index = tasks.get(task.task as usize);
            if let (Some(&index), Some(start_ns), Some(end_ns)) =
                (index, task.started_ns, task.ended_ns)
            {
                let insns = task.retired_insns;
                ran.insert((job, index), Ran { start_ns, end_ns, insns });
            }
        }
        let runs = variant_runs(
            &self.question,
            &self.graphs,
            &self.decided.mapping,
            &self.lowered,
            |job, task| ran.get(&(job, task)).copied(),
        );
        let mut store = Store::open(history, Options::DEFAULT)?;
        store.record_variant_runs(&runs)?;
        let took_ns = u64::try_from(self.took.as_nanos()).unwrap_or(u64::MAX);
        Ok(store.record_decisions(&[pbs_history::Decision {
            scheduler: SCHEDULER.into(),
            tasks: self.question.tasks.len() as u64,
            took_ns: took_ns.max(1),
        }])?)
    }
}

/// Refuses jobs that nobody could start.
fn without_programs(lowered: &[Lowered]) -> Result<(), Failure> {
    let without = |job: &Job| {
        let processes = job.processes.iter().filter(|process| !process.cpus.is_empty());
        let mut bare = processes.filter(|process| process.start == Start::Unsaid);
        bare.next().map(|_| {
            format!(
                "some tasks of {} have no command; add command = [\"prog\", \"{{lane}}\"] to their \
                 variants, or announce the graph with SCHED_PBS_GRAPH",
                job.name
            )
        })
    };
    let told: Vec<String> = lowered.iter().filter_map(|lowered| without(&lowered.job)).collect();
    if told.is_empty() {
        Ok(())
    } else {
        Err(Failure::NotValid(told))
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
        makespan_ns: decided.makespan_ns,
        not_co_scheduled_ns: decided.verdict.without.makespan_ns,
        tasks: tasks.collect(),
    }
}

impl Decision {
    /// For people: what was decided, and of the first tasks as what they run.
    pub(super) fn text(&self) -> String {
        const SHOWN: usize = 12;
        let how = if self.accepted {
            "co-scheduled"
        } else {
            "not co-scheduled, each process with its fastest variants"
        };
        let mut text = format!("{how}: {}\n", self.reason);
        for Choice { job, task, variant, cpus } in self.tasks.iter().take(SHOWN) {
            let cpus = pbs_job::cpu_list(cpus);
            text.push_str(&format!("  {job}/{task}: {variant} on CPU {cpus}\n"));
        }
        if self.tasks.len() > SHOWN {
            text.push_str(&format!("  and {} more tasks\n", self.tasks.len() - SHOWN));
        }
        text.push_str(&format!("  expected to take {}\n", span(self.makespan_ns)));
        text
    }
}

/// A decision of two tasks.
#[cfg(test)]
pub(super) fn a_decision() -> Decision {
    let choice = |task: &str, cpus: &[u32]| Choice {
        job: "render".into(),
        task: task.into(),
        variant: "cpu".into(),
        cpus: cpus.into(),
    };
    Decision {
        accepted: true,
        reason: "it is shorter".into(),
        makespan_ns: 5,
        not_co_scheduled_ns: 9,
        tasks: vec![choice("a", &[0]), choice("b", &[0, 1])],
    }
}
