// SPDX-License-Identifier: GPL-2.0
//! What somebody asks for: a job, as whom it runs, and what is to be before it.

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
    /// As whom and where its programs run.
    pub owner: Owner,
    /// The name of the job, instead of that in its file.
    pub name: Option<String>,
    /// Its priority, instead of that in its file.
    pub priority: Option<u32>,
    /// Its deadline from the submission on, instead of that in its file.
    pub deadline_ns: Option<u64>,
    /// It is run as best effort, whatever its file says.
    pub best_effort: bool,
    /// It is not planned before somebody releases it.
    pub hold: bool,
    /// Runs that have to be over before it is planned.
    pub after: Vec<u64>,
    /// Runs that have to be complete, with programs that all succeeded.
    pub after_ok: Vec<u64>,
    /// The allocation that it is in ([`Node::allocate`](crate::Node::allocate)).
    pub allocation: Option<u32>,
}

/// What is to be said of a run that is over, beside its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// Why it did not come to its end, if that is to be said in words.
    pub why: Option<String>,
    /// When it was to have ended.
    pub deadline_unix_ns: Option<u64>,
    /// Whether it was run as best effort; `None`: a version before wrote this.
    pub best_effort: Option<bool>,
    /// The CPUs that it was confined to; empty: it was not.
    pub cpus: Vec<u32>,
    /// When its programs were let go.
    pub started_unix_ns: Option<u64>,
    /// It ended, and before its deadline; `None`: it had none.
    pub kept: Option<bool>,
    /// All programs succeeded, as far as that is known.
    pub succeeded: bool,
    /// How each program ended; of those that another service has started nothing is
    /// known.
    pub programs: Vec<ProgramEnd>,
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// Its process's number in the job.
    pub process: u32,
    /// The program.
    pub program: String,
    /// Its exit status, if it exited.
    pub code: Option<i32>,
    /// The signal, if that killed it.
    pub signal: Option<i32>,
    /// Why it could not be executed.
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

/// As it stands in the history.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Noted {
    pub(crate) terms: Terms,
    pub(crate) ending: Ending,
}

impl Noted {
    /// What cannot be read was written by a later version: nothing is known then.
    pub(crate) fn of(order: &pbs_history::Order) -> Self {
        serde_json::from_str(&order.text).unwrap_or_default()
    }

    pub(crate) fn order(&self) -> pbs_history::Order {
        pbs_history::Order {
            uid: self.terms.owner.uid,
            text: serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// What is kept of it when it is over.
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
        job.best_effort |= terms.best_effort;
        Self { submission, terms }
    }

    /// Why it is not to be planned yet, if so; `of` says how a run ended that is over.
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
                        "it was to come after run {id}, which ended as {}",
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

/// How a run ended.
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
    /// What it waits for will not come.
    Never(String),
}
