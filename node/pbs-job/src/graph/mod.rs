// SPDX-License-Identifier: GPL-2.0
//! Jobs whose tasks have several implementations: task graphs (Rados 2019, 2.4).
//!
//! A [`Graph`] says what each task waits for, and as what it can run: its variants, each
//! for a programming model, on a number of threads of the CPU or on an accelerator. Who
//! decides which of them runs makes a [`Job`](crate::Job) of it.

use pbs_text::{Line, Problem};

mod lanes;
mod parse;

pub use lanes::{lanes_from_text, lanes_to_text, ProgramLane, LANES_VARIABLE};
pub use parse::{graph_from_toml, is_graph};

/// Tasks of a graph at most, and variants of a task.
pub const MAX_TASKS: usize = 10_000;
/// See [`MAX_TASKS`].
pub const MAX_VARIANTS: usize = 256;
/// Threads of a variant at most.
pub const MAX_THREADS: u32 = 8192;

/// A job whose tasks have variants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Readable name; the history of measured figures is stored under it.
    pub name: String,
    /// Arrival of the job, counted from the submission of all jobs.
    pub start_ns: u64,
    /// Time by which the last task must have ended; `None`: there is no deadline.
    pub deadline_ns: Option<u64>,
    /// Priority: a job with a greater number is more important.
    pub priority: u32,
    /// Program that runs all tasks under plans, each in one of its threads. Empty: each variant has
    /// its command.
    pub program: Vec<String>,
    /// In the order of the file, behind all that they wait for or not; never empty.
    pub tasks: Vec<GraphTask>,
}

/// A task of a [`Graph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphTask {
    /// Name of the task, unique in the graph.
    pub name: String,
    /// Dependencies on other tasks.
    pub after: Vec<GraphEdge>,
    /// Maximum memory that each thread of the task allocates.
    pub memory_bytes: u64,
    /// Implementations of the task; never empty.
    pub variants: Vec<Variant>,
    /// Line of the file that declares the task.
    pub line: Line,
}

/// Dependency of a task on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphEdge {
    /// Index into [`Graph::tasks`].
    pub task: usize,
    /// The data that come from there.
    pub bytes: u64,
    /// Time of the data's transfer between two memories, if declared. Otherwise it follows from
    /// `bytes` ([`Device::transfer_ns`](crate::Device::transfer_ns)).
    pub transfer_ns: Option<u64>,
}

/// An implementation of a task (Rados 2019, 2.6.2: a proxy).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Programming model, such as `cpu`, `omp`, `ocl` or `cuda`.
    pub model: String,
    /// Resource on which the variant runs.
    pub target: Target,
    /// Time that the variant takes, if declared.
    pub runtime_ns: Option<u64>,
    /// Instructions that each thread of the variant retires, if declared.
    pub insns: Option<u64>,
    /// The program, as each of its threads is started where plans execute it.
    pub command: Vec<String>,
    /// Line of the file that declares the variant.
    pub line: Line,
}

/// Resource on which a variant runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A number of threads of the CPU.
    Threads(u32),
    /// An accelerator of that kind.
    Device(String),
}

impl Default for Target {
    fn default() -> Self {
        Self::Threads(1)
    }
}

impl Variant {
    /// Returns the time of the variant on a core of this rate, if it is declared or follows from
    /// its instructions. A time that is too long for 64 bits is `u64::MAX`.
    pub fn runtime_ns(&self, rate_insns_per_s: u64) -> Option<u64> {
        let of_insns = |insns: u64| {
            let rate = u128::from(rate_insns_per_s.max(1));
            let ns = (u128::from(insns) * 1_000_000_000).div_ceil(rate);
            u64::try_from(ns).unwrap_or(u64::MAX).max(1)
        };
        self.runtime_ns.or_else(|| self.insns.map(of_insns))
    }

    /// Returns the label that distinguishes the variant from the others of its task: `omp 4`, `ocl
    /// gpu`.
    pub fn label(&self) -> String {
        match &self.target {
            Target::Threads(1) => self.model.clone(),
            Target::Threads(threads) => format!("{} {threads}", self.model),
            Target::Device(kind) if *kind == self.model => kind.clone(),
            Target::Device(kind) => format!("{} {kind}", self.model),
        }
    }
}

impl Graph {
    /// Tasks that wait for each other, each for the one before it, the first of the file
    /// first; `None`: there are none.
    pub fn circle(&self) -> Option<Vec<usize>> {
        // Per task: not seen, on the way, or done.
        let mut seen = vec![0u8; self.tasks.len()];
        for first in 0..self.tasks.len() {
            let mut way: Vec<(usize, usize)> = vec![(first, 0)];
            if seen[first] != 0 {
                continue;
            }
            seen[first] = 1;
            while let Some((task, next)) = way.last_mut() {
                let Some(edge) = self.tasks[*task].after.get(*next) else {
                    seen[*task] = 2;
                    way.pop();
                    continue;
                };
                *next += 1;
                match seen[edge.task] {
                    0 => {
                        seen[edge.task] = 1;
                        way.push((edge.task, 0));
                    }
                    1 => {
                        let start = way.iter().position(|&(task, _)| task == edge.task);
                        let circle = way[start.unwrap_or(0)..].iter().map(|&(task, _)| task);
                        let mut circle: Vec<usize> = circle.rev().collect();
                        let least = (0..circle.len()).min_by_key(|&place| circle[place]);
                        circle.rotate_left(least.unwrap_or(0));
                        return Some(circle);
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Checks the figures and the order of the graph.
    pub(crate) fn check(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        if self.tasks.is_empty() {
            let message = "the job has neither a [[process]] nor a [[task]]; add one";
            problems.push(Problem::at(None, message));
        }
        if let Some(circle) = self.circle() {
            let names = circle.iter().map(|&task| self.tasks[task].name.as_str());
            let names: Vec<_> = names.take(8).collect();
            let more = match circle.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            problems.push(Problem::at(
                self.tasks[circle[0]].line,
                format!(
                    "tasks {}{more} wait for each other in a circle and can never start; remove \
                     one from an after",
                    names.join(", ")
                ),
            ));
        }
        if !self.program.is_empty() {
            let has_command =
                |task: &&GraphTask| !task.variants.iter().all(|of| of.command.is_empty());
            let started_twice = self.tasks.iter().find(has_command);
            problems.extend(started_twice.map(|task| {
                let message = format!(
                    "task {} has a command, and the job has a program that runs all tasks; remove \
                     one of them",
                    task.name
                );
                Problem::at(task.line, message)
            }));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}
