// SPDX-License-Identifier: GPL-2.0
//! Whether the edges of a task net are those of a PB task net: every task in the
//! chain of its process, and nothing torn off.

use pbs_text::{Problem, Problems};

use super::{listed, Net};
use crate::draft::{DraftTask, Kind};

impl Net<'_> {
    pub(super) fn check(&self, problems: &mut Problems) {
        let mut found = CheckedNet { net: self, problems };
        found.only_one(Kind::Start);
        found.only_one(Kind::End);
        found.start_and_end_of_one_process();
        for task in 0..self.process_of.len() {
            found.own_edges(task);
            found.edges_out(task);
            found.edges_in(task);
        }
        for process in 0..self.first.len() {
            found.beginnings(process);
            found.relations(process);
            found.fork_ends(process);
        }
    }

    /// Whether the task is the first of its process and a fork leads to it.
    pub(super) fn is_forked(&self, task: usize) -> bool {
        let mut from = self.far_previous[task].iter();
        self.previous[task].is_empty() && from.any(|&from| self.task(from).kind == Kind::Fork)
    }
}

pub(super) struct CheckedNet<'a, 'n> {
    pub(super) net: &'a Net<'n>,
    pub(super) problems: &'a mut Problems,
}

impl<'n> CheckedNet<'_, 'n> {
    pub(super) fn about(&mut self, task: usize, message: String) {
        let line = self.net.task(task).line;
        self.problems.push(Problem::at(line, message));
    }

    pub(super) fn task(&self, index: usize) -> &'n DraftTask {
        self.net.task(index)
    }

    pub(super) fn label(&self, index: usize) -> String {
        self.net.task(index).label()
    }

    pub(super) fn process_label(&self, task: usize) -> String {
        match self.net.process_of[task] {
            Some(process) => self.net.process(process).label(),
            None => self.task(task).process.to_string(),
        }
    }

    pub(super) fn listed(&self, tasks: &[usize]) -> String {
        listed(tasks.iter().map(|&task| self.task(task).id))
    }

    /// Whether no fork leads to it.
    pub(super) fn initial(&self, process: usize) -> bool {
        let first = &self.net.first[process];
        !first.iter().any(|&task| self.net.is_forked(task))
    }

    /// Within its process a task has one before it and one after it.
    fn own_edges(&mut self, task: usize) {
        let (next, previous) = (&self.net.next[task], &self.net.previous[task]);
        if next.len() > 1 {
            let message = format!(
                "{} leads to several tasks of its own process: {}; a process runs its tasks \
                 one after the other, keep one",
                self.label(task),
                self.listed(next)
            );
            self.about(task, message);
        }
        if previous.len() > 1 {
            let message = format!(
                "several tasks of its own process lead to {}: {}; a process runs its tasks \
                 one after the other, keep one",
                self.label(task),
                self.listed(previous)
            );
            self.about(task, message);
        }
    }

    fn edges_out(&mut self, task: usize) {
        let net = self.net;
        let (label, process) = (self.label(task), self.process_label(task));
        let far = &net.far_next[task];
        let kind = self.task(task).kind;
        let is_last = net.next[task].is_empty();
        if kind == Kind::End && !(is_last && far.is_empty()) {
            let next = [&net.next[task][..], far].concat();
            let message = format!(
                "{label} is the end of the job and leads to task {}; nothing comes after it",
                self.listed(&next)
            );
            self.about(task, message);
            return;
        }
        if kind == Kind::Fork {
            self.fork(task);
            return;
        }
        let (joins, others): (Vec<_>, Vec<_>) =
            (far.iter()).partition(|&&next| is_last && self.task(next).kind == Kind::Join);
        for &other in others {
            let message = format!(
                "{label} of process {process} leads to {} of process {}; only a fork task \
                 leads to the first task of a child, and only the last task of a child to a \
                 join task",
                self.label(other),
                self.process_label(other)
            );
            self.about(task, message);
        }
        if joins.len() > 1 {
            let message = format!(
                "{label} leads to several join tasks: {}; one waits for process {process}",
                listed(joins.iter().map(|&&join| self.task(join).id))
            );
            self.about(task, message);
        }
        if is_last && far.is_empty() && kind != Kind::End {
            let forked = net.process_of[task].is_some_and(|process| !self.initial(process));
            let message = if forked {
                format!(
                    "{label} is the last of process {process} and leads nowhere, and the process \
                     is never joined; lead it to a join task of the process that forked it"
                )
            } else {
                format!("{label} ({}) leads nowhere; only the end task does", kind.name())
            };
            self.about(task, message);
        }
    }

    fn edges_in(&mut self, task: usize) {
        let net = self.net;
        let label = self.label(task);
        let kind = self.task(task).kind;
        let far = &net.far_previous[task];
        let is_first = net.previous[task].is_empty();
        if kind == Kind::Start {
            let previous = [&net.previous[task][..], far].concat();
            if !previous.is_empty() {
                let message = format!(
                    "{label} is the start of the job and comes after task {}; nothing comes \
                     before it",
                    self.listed(&previous)
                );
                self.about(task, message);
            }
        } else if is_first && !net.is_forked(task) {
            let message = format!(
                "nothing leads to {label} ({}) of process {}, and this part of the net is \
                 disconnected; lead a task to it, or fork its process",
                kind.name(),
                self.process_label(task)
            );
            self.about(task, message);
        }
        let forks = far.iter().filter(|&&from| net.task(from).kind == Kind::Fork);
        let forks: Vec<_> = forks.copied().collect();
        if is_first && forks.len() > 1 {
            let message = format!(
                "several fork tasks lead to {label}, the first of process {}: {}; a process is \
                 forked once",
                self.process_label(task),
                self.listed(&forks)
            );
            self.about(task, message);
        }
        if kind == Kind::Join {
            let last = far.iter().filter(|&&from| net.next[from].is_empty());
            let last: Vec<_> = last.copied().collect();
            if last.len() > 1 {
                let message = format!(
                    "{label} joins several processes, after tasks {}; write a join task for \
                     each",
                    self.listed(&last)
                );
                self.about(task, message);
            }
        }
    }

    /// All tasks of a process are one chain.
    fn beginnings(&mut self, process: usize) {
        let first = &self.net.first[process];
        if first.len() > 1 {
            let message = format!(
                "process {} begins several times, with tasks {}; lead its tasks from one to \
                 the next",
                self.net.process(process).label(),
                self.listed(first)
            );
            self.about(first[1], message);
        }
    }
}
