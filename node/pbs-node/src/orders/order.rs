// SPDX-License-Identifier: GPL-2.0
//! Orders: a job, the user as whom it runs, and the runs that must be over before it.

use pbs_history::{Outcome, RunId};
use pbs_launch::Owner;
use pbs_report::Exit;
use serde::{Deserialize, Serialize};

use crate::Submission;

/// A job that a user wants to have run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The job, with what the terms say instead of its file.
    pub submission: Submission,
    /// All else.
    pub terms: Terms,
}

/// Under which terms a run is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// User and environment of its programs.
    pub owner: Owner,
    /// The name of the job, instead of that in its file.
    pub name: Option<String>,
    /// Priority, instead of the one in its file.
    pub priority: Option<u32>,
    /// Deadline counted from the submission, instead of the one in its file.
    pub deadline_ns: Option<u64>,
    /// Whether the run is held: it is not planned before somebody releases it.
    pub hold: bool,
    /// Runs that have to be over before it is planned.
    pub after: Vec<u64>,
    /// Runs that have to be complete, with programs that all succeeded.
    pub after_ok: Vec<u64>,
    /// The allocation that it is in ([`Node::allocate`](crate::Node::allocate)).
    pub allocation: Option<u32>,
}

/// Data about a run that is over, beside its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// Reason for which the run did not complete, if it needs words.
    pub why: Option<String>,
    /// Deadline of the run.
    pub deadline_unix_ns: Option<u64>,
    /// The CPUs that it was confined to; empty: it was not.
    pub cpus: Vec<u32>,
    /// Time at which its programs were released.
    pub started_unix_ns: Option<u64>,
    /// Whether it completed before its deadline; `None`: it had none.
    pub kept: Option<bool>,
    /// All programs succeeded, as far as that is known.
    pub succeeded: bool,
    /// End of each program; nothing is known of programs that another service has started.
    pub programs: Vec<ProgramEnd>,
}

/// End of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// Number of its process in the job.
    pub process: u32,
    /// The program.
    pub program: String,
    /// Exit status, if the program exited.
    pub code: Option<i32>,
    /// The signal, if that killed it.
    pub signal: Option<i32>,
    /// Reason for which the program could not be executed.
    pub error: Option<String>,
}

impl ProgramEnd {
    /// `process`: the number that its process has in the job.
    pub(crate) fn new(process: u32, exit: &Exit) -> Self {
        Self {
            process,
            program: exit.program.clone(),
            code: exit.code,
            signal: exit.signal,
            error: exit.error.clone(),
        }
    }
}

/// Record of an order in the history.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Noted {
    pub(crate) terms: Terms,
    pub(crate) ending: Ending,
}

impl Noted {
    /// Reads the record of an order. A record that cannot be read was written by a later version,
    /// and counts as empty.
    pub(crate) fn of(order: &pbs_history::Order) -> Self {
        serde_json::from_str(&order.text).unwrap_or_default()
    }

    pub(crate) fn order(&self) -> pbs_history::Order {
        pbs_history::Order {
            uid: self.terms.owner.uid,
            text: serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// Returns the record of a run that is over.
    pub(crate) fn over(mut self, ending: Ending) -> Self {
        self.terms.owner.environment.clear();
        Self { ending, ..self }
    }
}

impl Order {
    /// The job is as the terms say.
    pub fn new(mut submission: Submission, terms: Terms) -> Self {
        let job = &mut submission.job;
        if let Some(name) = &terms.name {
            job.name.clone_from(name);
        }
        job.priority = terms.priority.unwrap_or(job.priority);
        job.deadline_ns = terms.deadline_ns.unwrap_or(job.deadline_ns);
        Self { submission, terms }
    }

    /// Returns whether the order must wait, and the reason. `of` returns the end of a run that is
    /// over.
    pub(crate) fn waits(&self, of: impl Fn(RunId) -> Option<Ended>) -> Waits {
        if self.terms.hold {
            return Waits::For("held".into());
        }
        let after = self.terms.after.iter().map(|&id| (RunId(id), false));
        let after_ok = self.terms.after_ok.iter().map(|&id| (RunId(id), true));
        let mut waits = Vec::new();
        for (id, ok) in after.chain(after_ok) {
            match of(id) {
                Some(ended) if ok && !ended.well => {
                    return Waits::Never(format!(
                        "it depended on run {id}, which ended as {}",
                        ended.outcome
                    ));
                }
                Some(_) => {}
                None => waits.push(id.to_string()),
            }
        }
        if waits.is_empty() {
            Waits::No
        } else {
            Waits::For(format!("after {}", waits.join(", ")))
        }
    }
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Complete, and all its programs succeeded.
    pub(crate) well: bool,
}

/// Whether an order can be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    No,
    /// For what.
    For(String),
    /// The condition that it waits for can't be fulfilled any more.
    Never(String),
}
