// SPDX-License-Identifier: GPL-2.0
//! Whether forks, fork ends and joins belong together.

use super::net::CheckedNet;
use crate::draft::Kind;

impl CheckedNet<'_, '_> {
    pub(super) fn fork(&mut self, task: usize) {
        let net = self.net;
        let label = self.label(task);
        let far = &net.far_next[task];
        match &far[..] {
            [] => {
                let message = format!(
                    "{label} is a fork and forks no process; lead it to the first task of a \
                     child process"
                );
                self.about(task, message);
            }
            [child] if !net.previous[*child].is_empty() => {
                let message = format!(
                    "{label} forks into the middle of process {}, at task {}; lead it to the first \
                     task of the process",
                    self.process_label(*child),
                    self.task(*child).id
                );
                self.about(task, message);
            }
            [_] => {}
            several => {
                let message = format!(
                    "{label} forks several processes, at tasks {}; write a fork task for each",
                    self.listed(several)
                );
                self.about(task, message);
            }
        }
        if net.next[task].is_empty() {
            let message = format!(
                "{label} is a fork and the last of process {}; a join task for the child must \
                 come after it",
                self.process_label(task)
            );
            self.about(task, message);
        }
    }

    /// Checks that the process that forks a child also joins it.
    pub(super) fn relations(&mut self, process: usize) {
        let net = self.net;
        let ([first], [last]) = (&net.first[process][..], &net.last[process][..]) else {
            return;
        };
        let ([fork], [join]) = (&net.far_previous[*first][..], &net.far_next[*last][..]) else {
            return;
        };
        let kinds = (self.task(*fork).kind, self.task(*join).kind);
        if kinds == (Kind::Fork, Kind::Join) && net.process_of[*fork] != net.process_of[*join] {
            let message = format!(
                "{} joins process {} in process {}, but task {} of process {} forked it; join \
                 it there",
                self.label(*join),
                net.process(process).label(),
                self.process_label(*join),
                self.task(*fork).id,
                self.process_label(*fork)
            );
            self.about(*join, message);
        }
    }

    /// A child has a fork end, before which it may only fork itself. Any other
    /// fork end comes right after a fork, of the process that forks.
    pub(super) fn fork_ends(&mut self, process: usize) {
        let net = self.net;
        let [first] = net.first[process][..] else {
            return;
        };
        let forked = net.is_forked(first);
        if !forked && self.task(first).kind != Kind::Start {
            // What is torn off has been told.
            return;
        }
        let mut waiting = forked;
        let mut after_fork = false;
        let mut at = Some(first);
        // Where the chain comes back to itself, two tasks lead to one.
        while let Some(task) = at.filter(|&task| net.previous[task].len() < 2) {
            let kind = self.task(task).kind;
            if kind == Kind::ForkEnd {
                if !waiting && !after_fork {
                    let message = format!(
                        "{} is a fork end, but in process {} no fork comes right before it; \
                         remove it, or put it there",
                        self.label(task),
                        self.process_label(task)
                    );
                    self.about(task, message);
                }
                waiting = false;
            } else if waiting && kind != Kind::Fork {
                let message = format!(
                    "{} ({}) of process {} comes before its fork end; begin a forked process \
                     with a fork end task",
                    self.label(task),
                    kind.name(),
                    self.process_label(task)
                );
                self.about(task, message);
                waiting = false;
            }
            after_fork = kind == Kind::Fork;
            at = net.next[task].first().copied();
        }
    }
}
