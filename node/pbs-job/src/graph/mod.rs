// SPDX-License-Identifier: GPL-2.0
//! Jobs whose tasks have several implementations: task graphs (Rados 2019, 2.4).
//!
//! A [`Graph`] says what each task waits for, and as what it can run: its variants, each
//! for a programming model, on a number of threads of the CPU or on an accelerator. Who
//! decides which of them runs makes a [`Job`](crate::Job) of it.

use pbs_text::{Line, Problem};

mod parse;

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
    /// What people call it; the history of measured figures is kept under it.
    pub name: String,
    /// When it arrives, counted from the submission of all.
    pub start_ns: u64,
    /// When its last task has to have ended; `None`: whenever.
    pub deadline_ns: Option<u64>,
    /// Of two jobs the one with the greater number is the more important.
    pub priority: u32,
    /// In the order of the file, behind all that they wait for or not; never empty.
    pub tasks: Vec<GraphTask>,
}

/// A task of a [`Graph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphTask {
    /// Its name, unlike that of any other task of the graph.
    pub name: String,
    /// What it waits for.
    pub after: Vec<GraphEdge>,
    /// What each of its threads allocates at most.
    pub memory_bytes: u64,
    /// As what it can run; never empty.
    pub variants: Vec<Variant>,
    /// Where it was read.
    pub line: Line,
}

/// That a task waits for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphEdge {
    /// Index into [`Graph::tasks`].
    pub task: usize,
    /// The data that come from there.
    pub bytes: u64,
    /// How long they are on the way between two memories, where that is said; else it
    /// follows from `bytes` ([`Device::transfer_ns`](crate::Device::transfer_ns)).
    pub transfer_ns: Option<u64>,
}

/// An implementation of a task (Rados 2019, 2.6.2: a proxy).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its programming model, such as `cpu`, `omp`, `ocl` or `cuda`.
    pub model: String,
    /// What it runs on.
    pub target: Target,
    /// How long it takes, where that is said.
    pub runtime_ns: Option<u64>,
    /// How many instructions each of its threads retires, where that is said.
    pub insns: Option<u64>,
    /// The program, as each of its threads is started where plans execute it.
    pub command: Vec<String>,
    /// Where it was read.
    pub line: Line,
}

/// What a variant runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// So many threads of the CPU.
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
    /// How long it takes on a core of that rate, as far as is said. What is too long for
    /// 64 bits is `u64::MAX`.
    pub fn runtime_ns(&self, rate_insns_per_s: u64) -> Option<u64> {
        let of_insns = |insns: u64| {
            let rate = u128::from(rate_insns_per_s.max(1));
            let ns = (u128::from(insns) * 1_000_000_000).div_ceil(rate);
            u64::try_from(ns).unwrap_or(u64::MAX).max(1)
        };
        self.runtime_ns.or_else(|| self.insns.map(of_insns))
    }

    /// What tells it from the other variants of its task: `omp 4`, `ocl gpu`.
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

    /// What is wrong with its figures and its order.
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
                    "tasks {}{more} wait for each other in a circle, so none can start; take one \
                     out of an after",
                    names.join(", ")
                ),
            ));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}
