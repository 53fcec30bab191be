// SPDX-License-Identifier: GPL-2.0
//! Deadlines, and whether they were kept.

use pbs_plan::{Config, Plan};
use pbs_text::span;
use serde::{Deserialize, Serialize};

use crate::Report;

/// A deadline of a process or of a job. Times are those of the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The number of the process; `None`: it is that of a job.
    pub process: Option<u32>,
    /// Name of the process or of the job.
    pub name: String,
    /// The deadline.
    pub deadline_ns: u64,
    /// End of the last task; `None`: not all tasks ended.
    pub ended_ns: Option<u64>,
    /// Whether that was before the deadline.
    pub kept: bool,
}

impl Deadline {
    /// Whether it was kept, and by how much.
    pub(crate) fn words(&self) -> String {
        let by = |ended_ns: u64| span(ended_ns.abs_diff(self.deadline_ns));
        match (self.kept, self.ended_ns) {
            (true, Some(ended_ns)) => format!("kept by {}", by(ended_ns)),
            (true, None) => "kept".into(),
            (false, Some(ended_ns)) => format!("missed by {}", by(ended_ns)),
            (false, None) => "missed, not ended".into(),
        }
    }
}

impl Report {
    /// The deadlines of the plan that was run, as the simulator reckons them: what the plan
    /// declares, or else the planned end of each process and its plan buffer. `config` is that
    /// of the node.
    pub fn implied_deadlines(&self, plan: &Plan, config: &Config) -> Vec<Deadline> {
        let config = plan.config.unwrap_or(*config);
        let mut deadlines = Vec::new();
        for cpu in &plan.cpus {
            let timeline = self.cpus.iter().find(|timeline| timeline.cpu == cpu.cpu);
            let Some(begun_ns) = timeline.and_then(|timeline| timeline.installed_ns) else {
                continue;
            };
            let implied = pbs_sim::deadlines(plan, cpu, &config, self.rate_insns_per_ms);
            for (index, after_ns) in implied {
                let (id, name) = (plan.processes[index].id, plan.processes[index].label());
                let deadline_ns = begun_ns.saturating_add(after_ns);
                let own = self.tasks.iter().filter(|task| task.process == id);
                let ends: Option<Vec<_>> = own.map(|task| task.ended_ns).collect();
                let ended_ns = ends.and_then(|ends| ends.into_iter().max());
                deadlines.push(Deadline {
                    process: Some(id),
                    name,
                    deadline_ns,
                    ended_ns,
                    kept: ended_ns.is_some_and(|ended_ns| ended_ns <= deadline_ns),
                });
            }
        }
        deadlines
    }
}

/// Lists the number of kept deadlines and those that were missed, for people.
pub(crate) fn deadline_lines(deadlines: &[Deadline]) -> String {
    let kept = deadlines.iter().filter(|deadline| deadline.kept).count();
    let mut out = match deadlines.len() {
        0 => return String::new(),
        all => format!("\nDeadlines: {kept} of {all} kept\n"),
    };
    for deadline in deadlines.iter().filter(|deadline| !deadline.kept) {
        out.push_str(&format!("  {}: {}\n", deadline.name, deadline.words()));
    }
    out
}
