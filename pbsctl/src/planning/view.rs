// SPDX-License-Identifier: GPL-2.0
//! Views of attempts and resources, for people and programs.

use std::collections::BTreeSet;

use pbs_job::Job;
use pbs_node::Planning;
use pbs_planner::{Attempt, CutShort, Run, Store};
use pbs_report::held;
use pbs_text::{bytes, grouped, ms};
use serde::Serialize;

/// Source of the figures, in a line.
pub(crate) fn history_text(planning: &Planning) -> String {
    match planning.history() {
        (file, false) => {
            format!(
                "No earlier run is known ({file} is not there): figures are from the job \
                     files.\n"
            )
        }
        (file, true) => format!("Earlier runs are from {file}.\n"),
    }
}

/// The file of the runs before, if there is one.
pub(crate) fn history_file(planning: &Planning) -> Option<&str> {
    let (file, is_there) = planning.history();
    is_there.then_some(file)
}

/// A time with its unit.
pub(crate) fn nanoseconds(ns: u64) -> String {
    format!("{} ms", ms(ns))
}

/// Machine that jobs are planned for.
#[derive(Serialize)]
pub(crate) struct MachineView {
    name: Option<String>,
    nodes: usize,
    cores: usize,
    memory_bytes: u64,
    balancing: &'static str,
}

impl MachineView {
    pub(crate) fn new(store: &Store) -> Self {
        let machine = store.machine();
        Self {
            name: machine.name.clone(),
            nodes: machine.nodes.len(),
            cores: store.sites().len(),
            memory_bytes: machine.memory_bytes(),
            balancing: store.balancing().name(),
        }
    }
}

/// Result of a strategy.
#[derive(Serialize)]
pub(crate) struct AttemptView {
    strategy: &'static str,
    /// `None`: it found no plan.
    end_ns: Option<u64>,
    why: Option<String>,
}

impl AttemptView {
    pub(crate) fn new(attempt: &Attempt, job: &Job) -> Self {
        Self {
            strategy: attempt.strategy.name(),
            // The refusal is the next field.
            end_ns: attempt.end_ns.ok(),
            why: attempt.end_ns.err().map(|refusal| refusal.describe(job, 0)),
        }
    }

    /// Results of all strategies, equal ones together; `None` if none was tried.
    pub(crate) fn text(attempts: &[Self]) -> Option<String> {
        let mut reached: Vec<(Option<u64>, Vec<&str>)> = Vec::new();
        for attempt in attempts {
            let same = reached.iter_mut().find(|(end_ns, _)| *end_ns == attempt.end_ns);
            match same {
                Some((_, strategies)) => strategies.push(attempt.strategy),
                None => reached.push((attempt.end_ns, vec![attempt.strategy])),
            }
        }
        let texts = reached.into_iter().map(|(end_ns, strategies)| {
            let end = end_ns.map_or_else(|| "no plan".into(), nanoseconds);
            format!("{end} ({})", strategies.join(", "))
        });
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

/// Search for a plan that ended before it was through.
#[derive(Serialize)]
pub(crate) struct CutShortView {
    /// The first strategy that was not tried, or not to its end.
    strategy: &'static str,
    /// Steps of work that the plan could take (--max-work).
    max_work: u64,
    /// Sentence that says all of that.
    #[serde(skip)]
    text: String,
}

impl CutShortView {
    /// `may_exist`: what a longer search may find.
    pub(crate) fn new(cut_short: &CutShort, may_exist: &str) -> Self {
        Self {
            strategy: cut_short.strategy.name(),
            max_work: cut_short.max_work,
            text: format!("{cut_short}; {may_exist} may exist (--max-work)"),
        }
    }

    pub(crate) fn text(&self) -> String {
        self.text.clone()
    }
}

/// Changes of memory that are printed.
const MOST_STEPS: usize = 8;

/// A line with the changes below it, of which the first are printed.
fn with_steps<S>(first: String, steps: &[S], text: impl Fn(&S) -> String) -> Vec<String> {
    let mut lines = vec![first];
    lines.extend(steps.iter().take(MOST_STEPS).map(text));
    let more = steps.len().saturating_sub(MOST_STEPS);
    if more > 0 {
        lines.push(format!("... and {more} more changes (--json)"));
    }
    lines
}

/// The memory that a run has of a node.
#[derive(Serialize)]
pub(crate) struct NodeView {
    node: String,
    /// The most that its processes have at once.
    peak_bytes: u64,
    memory_bytes: u64,
    /// From the run's begin to its end.
    steps: Vec<StepView>,
}

/// The amounts that a run holds of a resource.
#[derive(Serialize)]
pub(crate) struct ResourceView {
    resource: String,
    /// The most that its processes hold at once.
    peak: u64,
    count: u64,
    /// From the run's begin to its end.
    steps: Vec<AmountView>,
}

/// Use of a resource from a time on.
#[derive(Serialize)]
struct AmountView {
    at_ns: u64,
    /// Amount of the run.
    held: u64,
    /// Amount of runs that were planned before.
    others: u64,
    /// Free amount.
    left: u64,
}

impl ResourceView {
    /// Views of each resource that the run holds.
    pub(crate) fn all(store: &Store, run: &Run) -> Vec<Self> {
        let resources = store.machine().resources.iter().enumerate();
        let views = resources.filter_map(|(index, resource)| {
            let own = held(run.held(index));
            let all = held(store.runs().flat_map(|(_, run)| run.held(index)));
            let steps =
                StepView::all(&own, &all, resource.count).into_iter().map(|step| AmountView {
                    at_ns: step.at_ns,
                    held: step.held_bytes,
                    others: step.others_bytes,
                    left: step.left_bytes.unwrap_or(0),
                });
            (!own.is_empty()).then(|| Self {
                resource: resource.name.clone(),
                peak: own.iter().map(|&(_, held)| held).max().unwrap_or(0),
                count: resource.count,
                steps: steps.collect(),
            })
        });
        views.collect()
    }

    /// The most that the run holds, and how much it holds when.
    pub(crate) fn text(&self) -> Vec<String> {
        let (peak, count) = (grouped(self.peak), grouped(self.count));
        let first = format!("{peak} at most of {count} {}", self.resource);
        with_steps(first, &self.steps, AmountView::text)
    }
}

impl AmountView {
    fn text(&self) -> String {
        let others = match self.others {
            0 => String::new(),
            others => format!(" beside {} of other jobs", grouped(others)),
        };
        let (at, held, left) = (nanoseconds(self.at_ns), grouped(self.held), grouped(self.left));
        format!("from {at}: {held}{others}, {left} left")
    }
}

/// Use of a node's memory from a time on.
#[derive(Serialize)]
struct StepView {
    at_ns: u64,
    /// Memory of the run.
    held_bytes: u64,
    /// Memory of runs that were planned before.
    others_bytes: u64,
    /// Free memory; `None`: more is reserved than there is, as it was not checked.
    left_bytes: Option<u64>,
}

impl NodeView {
    /// Views of each node on which the run has a process.
    pub(crate) fn all(store: &Store, run: &Run) -> Vec<Self> {
        let nodes = store.machine().nodes.iter().enumerate();
        let views = nodes.filter_map(|(index, node)| {
            let held_on_node = |run: &Run| -> Vec<(u64, u64, u64)> {
                let on_node = run.processes.iter().filter(|process| process.node == index);
                let held = on_node.map(|p| (p.start_ns, p.end_ns, p.memory_bytes));
                held.collect()
            };
            let own = held(held_on_node(run));
            let all = held(store.runs().flat_map(|(_, run)| held_on_node(run)));
            (!own.is_empty()).then(|| Self {
                node: node.name.clone(),
                peak_bytes: own.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0),
                memory_bytes: node.memory_bytes,
                steps: StepView::all(&own, &all, node.memory_bytes),
            })
        });
        views.collect()
    }

    /// The most that the run has, and what it has when.
    pub(crate) fn text(&self) -> Vec<String> {
        let (peak, memory) = (bytes(self.peak_bytes), bytes(self.memory_bytes));
        let first = format!("{peak} at most of the {memory} of node {}", self.node);
        with_steps(first, &self.steps, StepView::text)
    }
}

impl StepView {
    /// `own` and `all`: what is held from which time on, by the run and by all.
    fn all(own: &[(u64, u64)], all: &[(u64, u64)], memory_bytes: u64) -> Vec<Self> {
        let (Some(first), Some(last)) = (own.first(), own.last()) else {
            return Vec::new();
        };
        let at = |steps: &[(u64, u64)], at_ns: u64| {
            let before = steps.partition_point(|&(from_ns, _)| from_ns <= at_ns);
            steps[..before].last().map_or(0, |&(_, bytes)| bytes)
        };
        let times = own.iter().chain(all).map(|&(at_ns, _)| at_ns);
        let times: BTreeSet<u64> =
            times.filter(|at_ns| (first.0..last.0).contains(at_ns)).collect();
        let mut steps: Vec<Self> = Vec::new();
        for at_ns in times {
            let (held_bytes, all_bytes) = (at(own, at_ns), at(all, at_ns));
            let others_bytes = all_bytes.saturating_sub(held_bytes);
            let is_new = steps.last().is_none_or(|last| {
                (last.held_bytes, last.others_bytes) != (held_bytes, others_bytes)
            });
            if is_new {
                steps.push(Self {
                    at_ns,
                    held_bytes,
                    others_bytes,
                    left_bytes: memory_bytes.checked_sub(all_bytes),
                });
            }
        }
        steps
    }

    fn text(&self) -> String {
        let others = match self.others_bytes {
            0 => String::new(),
            others_bytes => format!(" beside {} of other jobs", bytes(others_bytes)),
        };
        let left = match self.left_bytes {
            Some(left_bytes) => format!("{} left", bytes(left_bytes)),
            None => "MORE THAN THE NODE HAS".into(),
        };
        let (at, held) = (nanoseconds(self.at_ns), bytes(self.held_bytes));
        format!("from {at}: {held}{others}, {left}")
    }
}
