// SPDX-License-Identifier: GPL-2.0
//! Whether a job has one start and one end, both of the initial process.

use pbs_text::Problem;

use super::net::CheckedNet;
use crate::draft::Kind;

impl CheckedNet<'_, '_> {
    fn all_of(&self, kind: Kind) -> Vec<usize> {
        let tasks = 0..self.net.process_of.len();
        tasks.filter(|&task| self.task(task).kind == kind).collect()
    }

    /// Checks that there is one task of that kind. A job without any task lacks them all, and the
    /// figures have the problem.
    pub(super) fn only_one(&mut self, kind: Kind) {
        if self.net.process_of.is_empty() {
            return;
        }
        let all = self.all_of(kind);
        let name = kind.name();
        match &all[..] {
            [] => {
                // What stands where it should be.
                let ends = if kind == Kind::Start { &self.net.previous } else { &self.net.next };
                let place = (0..ends.len()).filter(|&task| {
                    let process = self.net.process_of[task];
                    ends[task].is_empty() && process.is_some_and(|process| self.initial(process))
                });
                let place: Vec<_> = place.collect();
                let seen = match &place[..] {
                    [] => String::new(),
                    some => format!(" (now there: task {})", self.listed(some)),
                };
                let end = if kind == Kind::Start { "first" } else { "last" };
                self.problems.push(Problem::at(
                    None,
                    format!(
                        "the job has no {name} task; the {end} task of its initial process \
                         must be one{seen}"
                    ),
                ));
            }
            [_] => {}
            [first, more @ ..] => {
                for &task in more {
                    let message = format!(
                        "{} is a second {name} task beside task {}; a job has one",
                        self.label(task),
                        self.task(*first).id
                    );
                    self.about(task, message);
                }
            }
        }
    }

    pub(super) fn start_and_end_of_one_process(&mut self) {
        let (start, end) = (self.all_of(Kind::Start), self.all_of(Kind::End));
        let ([start], [end]) = (&start[..], &end[..]) else {
            return;
        };
        if self.net.process_of[*start] != self.net.process_of[*end] {
            let message = format!(
                "{} is the end of the job and of process {}, but the start, task {}, is of \
                 process {}; both belong to the initial process",
                self.label(*end),
                self.process_label(*end),
                self.task(*start).id,
                self.process_label(*start)
            );
            self.about(*end, message);
        }
    }
}
