// SPDX-License-Identifier: GPL-2.0
//! The check of a job before anything else is done with it (Glaß 2024, 7.1,
//! item 1).
//!
//! Everything that is wrong is found in one go, the first problems are told, and each message
//! names the task or process that it is about.

mod assemble;
mod circle;
mod ends;
mod figures;
mod forks;
mod net;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use pbs_text::{Problem, Problems};

use crate::draft::{Draft, DraftProcess, DraftTask, Kind};
use crate::Job;

pub(crate) use figures::{cpu_twice, late_start};

impl Draft {
    /// The job, if its task net is a valid one (Glaß 2024, 7.1, item 1) and its
    /// figures are in their ranges; else the first things that are wrong, each with
    /// the task or process that it is about.
    pub fn check(self) -> Result<Job, Vec<Problem>> {
        check(self)
    }
}

fn check(draft: Draft) -> Result<Job, Vec<Problem>> {
    let mut problems = Problems::default();
    let are_told_apart = figures::check(&draft, &mut problems);
    if !are_told_apart {
        return Err(problems.into_vec());
    }
    let net = Net::new(&draft, &mut problems);
    net.check(&mut problems);
    circle::check(&net, &mut problems);
    problems.none()?;
    let net = net.links();
    Ok(assemble::assemble(draft, net))
}

/// The edges of a net, by the indices of its tasks, seen from both ends.
struct Net<'a> {
    draft: &'a Draft,
    /// Index of the process of each task, where there is such a process.
    process_of: Vec<Option<usize>>,
    /// The next tasks of the same process.
    next: Vec<Vec<usize>>,
    /// The next tasks of other processes.
    far_next: Vec<Vec<usize>>,
    /// The tasks of the same process that lead to it.
    previous: Vec<Vec<usize>>,
    /// The tasks of other processes that lead to it.
    far_previous: Vec<Vec<usize>>,
    /// The tasks of each process to which none of its own leads.
    first: Vec<Vec<usize>>,
    /// The tasks of each process that lead to none of its own.
    last: Vec<Vec<usize>>,
    /// Index of the partner of each task.
    partner: Vec<Option<usize>>,
    /// The partner of each task that waits for its message.
    sent: Vec<Option<usize>>,
    /// The tasks whose messages each task waits for.
    received: Vec<Vec<usize>>,
    /// The tasks that each one names to wait for.
    awaits: Vec<Vec<usize>>,
    /// The tasks that name it.
    awaited: Vec<Vec<usize>>,
}

impl<'a> Net<'a> {
    fn new(draft: &'a Draft, problems: &mut Problems) -> Self {
        let tasks = draft.tasks.len();
        let processes: HashMap<u32, usize> = (draft.processes.iter().enumerate().rev())
            .map(|(index, process)| (process.id, index))
            .collect();
        // Of several with the same number the first is meant.
        let indices: HashMap<u32, usize> =
            (draft.tasks.iter().enumerate().rev()).map(|(index, task)| (task.id, index)).collect();
        let mut net = Self {
            draft,
            process_of: Vec::with_capacity(tasks),
            next: vec![Vec::new(); tasks],
            far_next: vec![Vec::new(); tasks],
            previous: vec![Vec::new(); tasks],
            far_previous: vec![Vec::new(); tasks],
            first: vec![Vec::new(); draft.processes.len()],
            last: vec![Vec::new(); draft.processes.len()],
            partner: vec![None; tasks],
            sent: vec![None; tasks],
            received: vec![Vec::new(); tasks],
            awaits: vec![Vec::new(); tasks],
            awaited: vec![Vec::new(); tasks],
        };
        for task in &draft.tasks {
            let process = processes.get(&task.process).copied();
            if process.is_none() {
                problems.add(task.line, || {
                    format!(
                        "{} belongs to process {}, which is not there; add the process, or \
                         correct the number",
                        task.label(),
                        task.process
                    )
                });
            }
            net.process_of.push(process);
        }
        for (index, task) in draft.tasks.iter().enumerate() {
            net.edges(index, task, &indices, problems);
            net.find_partner(index, task, &indices, problems);
            net.find_awaited(index, task, &indices, problems);
        }
        net.wait_for_receivers(problems);
        for index in 0..tasks {
            let Some(process) = net.process_of[index] else {
                continue;
            };
            if net.previous[index].is_empty() {
                net.first[process].push(index);
            }
            if net.next[index].is_empty() {
                net.last[process].push(index);
            }
        }
        net
    }

    fn edges(
        &mut self,
        index: usize,
        task: &DraftTask,
        indices: &HashMap<u32, usize>,
        problems: &mut Problems,
    ) {
        let mut seen = HashSet::new();
        for next in &task.next {
            let is_twice = !seen.insert(*next);
            let label = task.label();
            let wrong = if *next == task.id {
                Some(format!("{label} leads to itself; name the task after it"))
            } else if is_twice {
                Some(format!("{label} leads to task {next} twice; remove one"))
            } else if !indices.contains_key(next) {
                Some(format!(
                    "{label} leads to task {next}, which is not there; add the task, or \
                     correct the number"
                ))
            } else {
                None
            };
            if let Some(message) = wrong {
                problems.push(Problem::at(task.line, message));
                continue;
            }
            let next = indices[next];
            if self.process_of[index] == self.process_of[next] {
                self.next[index].push(next);
                self.previous[next].push(index);
            } else {
                self.far_next[index].push(next);
                self.far_previous[next].push(index);
            }
        }
    }

    fn find_partner(
        &mut self,
        index: usize,
        task: &DraftTask,
        indices: &HashMap<u32, usize>,
        problems: &mut Problems,
    ) {
        let label = task.label();
        let Some(id) = task.partner else {
            if task.message_bytes.is_some() {
                problems.push(Problem::at(
                    task.line,
                    format!(
                        "{label} has a message of some bytes, but no receiver; name the \
                         communication that receives it: to = ..."
                    ),
                ));
            }
            return;
        };
        let partner = indices.get(&id).copied();
        let kind = partner.map(|partner| self.draft.tasks[partner].kind);
        let message = if task.kind != Kind::Communication {
            format!(
                "{label} is a {} and has a partner, task {id}; only a communication has one",
                task.kind.name()
            )
        } else if partner == Some(index) {
            format!("{label} sends a message to itself; name another task")
        } else if kind.is_none() {
            format!("{label} sends a message to task {id}, which is not there; name another task")
        } else if kind != Some(Kind::Communication) {
            format!(
                "{label} sends a message to task {id}, which is no communication; name one \
                 that is"
            )
        } else {
            self.partner[index] = partner;
            if let Some(partner) = partner.filter(|_| task.message_bytes.is_some()) {
                self.sent[index] = Some(partner);
                self.received[partner].push(index);
            }
            return;
        };
        problems.push(Problem::at(task.line, message));
    }

    fn find_awaited(
        &mut self,
        index: usize,
        task: &DraftTask,
        indices: &HashMap<u32, usize>,
        problems: &mut Problems,
    ) {
        let mut seen = HashSet::new();
        for id in &task.after {
            let is_twice = !seen.insert(*id);
            let label = task.label();
            let wrong = match indices.get(id) {
                Some(&before) if before == index => {
                    format!("{label} waits for itself; name a task of another process")
                }
                Some(_) if is_twice => {
                    format!("{label} waits for task {id} twice; remove one")
                }
                Some(&before) if self.process_of[before] == self.process_of[index] => format!(
                    "{label} waits for task {id} of its own process, whose tasks run in their \
                     order anyway; remove it"
                ),
                Some(&before) => {
                    self.awaits[index].push(before);
                    self.awaited[before].push(index);
                    continue;
                }
                None => format!(
                    "{label} waits for task {id}, which is not there; add the task, or correct \
                     the number"
                ),
            };
            problems.push(Problem::at(task.line, wrong));
        }
    }

    /// The task after a synchronous message waits for the receiver.
    fn wait_for_receivers(&mut self, problems: &mut Problems) {
        for (index, task) in self.draft.tasks.iter().enumerate().filter(|task| task.1.synchronous) {
            let Some(receiver) = self.sent[index] else {
                problems.add(task.line, || {
                    format!(
                        "{} sends synchronously, but no task waits for its message; add the \
                         receiver and the size: to = ..., bytes = ...",
                        task.label()
                    )
                });
                continue;
            };
            for &next in &self.next[index] {
                let is_own = self.process_of[next] == self.process_of[receiver];
                if !is_own && !self.awaits[next].contains(&receiver) {
                    self.awaits[next].push(receiver);
                    self.awaited[receiver].push(next);
                }
            }
        }
    }

    fn task(&self, index: usize) -> &'a DraftTask {
        &self.draft.tasks[index]
    }

    fn process(&self, index: usize) -> &'a DraftProcess {
        &self.draft.processes[index]
    }
}

/// `1, 2 and 3`, and after eight of them how many more.
fn listed(items: impl Iterator<Item = impl Display>) -> String {
    const MOST: usize = 8;
    let mut items = items;
    let first: Vec<_> = items.by_ref().take(MOST).map(|item| item.to_string()).collect();
    match (&first[..], items.count()) {
        ([], _) => String::new(),
        ([one], _) => one.clone(),
        ([some @ .., last], 0) => format!("{} and {last}", some.join(", ")),
        (some, more) => format!("{} and {more} more", some.join(", ")),
    }
}
