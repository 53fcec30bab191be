// SPDX-License-Identifier: GPL-2.0
//! One question after the other about jobs that wait, for a node that never waits.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use pbs_history::RunId;
use pbs_job::Machine;

use super::beside::{Beside, Decision};
use super::question::AdmissionAnswer;
use crate::scheduler::{Talk, LOOK_MS};
use crate::SchedulerCommand;

/// Jobs that wait for a decision at most. The built-in planner decides about those beyond: none
/// waits longer for the command than this many times its own limit.
pub(crate) const ASKED: usize = 16;

/// Time for which a command is not asked after several failures in a row. If its first answer after
/// that is a failure, too, it is not asked for as long again.
const REST: Duration = Duration::from_secs(60);

/// A command that admits jobs, with its open question.
#[derive(Debug)]
pub(crate) struct Admitter {
    command: SchedulerCommand,
    talk: Talk,
    open: Option<(RunId, Beside)>,
    /// Jobs to be asked about, the most important first.
    next: VecDeque<RunId>,
    /// Jobs that were changed while the command was asked about them. The others come first: who
    /// changes a job again and again keeps nobody else waiting.
    changed: BTreeSet<RunId>,
    failures_in_a_row: u32,
    /// Time until which the command is not asked.
    rests_until: Option<Instant>,
}

/// Decision about a job, with the reason for which there is no answer.
pub(crate) struct Decided {
    pub(crate) run: RunId,
    pub(crate) decision: Decision,
    pub(crate) unusable: Option<String>,
}

impl Admitter {
    pub(crate) fn new(command: SchedulerCommand) -> Self {
        Self {
            command,
            talk: Talk::default(),
            open: None,
            next: VecDeque::new(),
            changed: BTreeSet::new(),
            failures_in_a_row: 0,
            rests_until: None,
        }
    }

    /// The command, as it is called in messages.
    pub(crate) fn line(&self) -> &str {
        &self.command.line
    }

    /// Whether the command is not asked for a while, after several failures in a row.
    pub(crate) fn is_given_up(&self) -> bool {
        self.rests_until.is_some_and(|until| Instant::now() < until)
    }

    /// Notes a failure of the command.
    fn failed(&mut self) {
        self.failures_in_a_row += 1;
        if self.failures_in_a_row >= SchedulerCommand::MAX_FAILURES {
            self.failures_in_a_row = SchedulerCommand::MAX_FAILURES - 1;
            self.rests_until = Instant::now().checked_add(REST);
        }
    }

    /// Notes the jobs to be asked about, the most important first.
    pub(crate) fn ask_about(&mut self, mut runs: Vec<RunId>) {
        let open = self.open.as_ref().map(|(run, _)| *run);
        self.changed.retain(|run| runs.contains(run));
        runs.retain(|run| Some(*run) != open);
        runs.sort_by_key(|run| self.changed.contains(run));
        self.next = runs.into();
    }

    /// Whether a job is to be asked about now.
    pub(crate) fn has_question(&self) -> bool {
        self.open.is_none() && !self.is_given_up() && !self.next.is_empty()
    }

    /// Takes the next job to be asked about.
    pub(crate) fn next(&mut self) -> Option<RunId> {
        if self.has_question() {
            self.next.pop_front()
        } else {
            None
        }
    }

    /// Time until the answer is looked for, in milliseconds; negative: no question is open.
    pub(crate) fn look_ms(&self) -> i32 {
        if self.open.is_some() {
            LOOK_MS
        } else {
            -1
        }
    }

    /// Asks about a job. A job that the command is not asked about, or a command that cannot be
    /// run, is decided at once.
    pub(crate) fn ask(
        &mut self,
        run: RunId,
        question: Result<(Vec<u8>, Beside), String>,
    ) -> Option<Decided> {
        let (question, beside) = match question {
            Ok(asked) => asked,
            // The job is at fault, and not the command.
            Err(why) => return Some(Decided::unusable(run, why)),
        };
        match self.talk.ask(&self.command, question) {
            Ok(()) => {
                self.open = Some((run, beside));
                None
            }
            Err(why) => {
                self.failed();
                Some(Decided::unusable(run, why))
            }
        }
    }

    /// Looks for the answer, without waiting.
    pub(crate) fn look(&mut self, machine: &Machine) -> Option<Decided> {
        let (run, beside) = self.open.take()?;
        let Some(answer) = self.talk.look(&self.command) else {
            self.open = Some((run, beside));
            return None;
        };
        let answer = answer.and_then(|text| AdmissionAnswer::of_text(&text));
        let decision = answer.and_then(|answer| beside.decision(answer, machine));
        Some(match decision {
            Ok(decision) => {
                self.failures_in_a_row = 0;
                Decided { run, decision, unusable: None }
            }
            Err(why) => {
                self.failed();
                Decided::unusable(run, why)
            }
        })
    }

    /// Closes the question about a job that is not to be decided any more.
    pub(crate) fn forget(&mut self, run: RunId) {
        if self.open.take_if(|(of, _)| *of == run).is_some() {
            self.talk.close();
            self.changed.insert(run);
        }
    }

    /// Closes the open question: its answer would be about another state of the node.
    pub(crate) fn forget_all(&mut self) {
        if self.open.take().is_some() {
            self.talk.close();
        }
        self.next.clear();
    }

    /// Whether that process is the command's, and whether it has ended.
    pub(crate) fn has_ended(&mut self, pid: i32) -> Option<bool> {
        self.talk.has_ended(pid)
    }
}

#[cfg(test)]
impl Admitter {
    /// Job that the command is asked about.
    pub(crate) fn asked(&self) -> Option<RunId> {
        self.open.as_ref().map(|(run, _)| *run)
    }

    /// Ends the time for which the command is not asked.
    pub(crate) fn end_rest(&mut self) {
        self.rests_until = None;
    }
}

impl Decided {
    fn unusable(run: RunId, why: String) -> Self {
        Self { run, decision: Decision::BuiltIn, unusable: Some(why) }
    }
}
