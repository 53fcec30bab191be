// SPDX-License-Identifier: GPL-2.0
//! One line on the terminal that says how far a run is.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use pbs_plan::Plan;
use pbs_text::grouped;
use pbs_uapi::{Event, EventKind};

use crate::output::counted;

/// The terminal is written to at most this often: pbsctl has little time on the
/// CPU of a plan.
const EVERY: Duration = Duration::from_millis(250);

/// The line, if standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Live {
    on: bool,
    tasks: u64,
    ended: u64,
    signals: u64,
    plans: u64,
    written: Option<Instant>,
}

impl Live {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            on: wanted && io::stderr().is_terminal(),
            tasks: 0,
            ended: 0,
            signals: 0,
            plans: 0,
            written: None,
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match EventKind::from_raw(event.kind) {
            Some(EventKind::TaskEnded) => self.ended += 1,
            Some(EventKind::Late | EventKind::Early) => self.signals += 1,
            _ => {}
        }
    }

    /// The run begins with that plan.
    pub(crate) fn planned(&mut self, plan: &Plan) {
        let tasks = plan.processes.iter().map(|process| process.tasks.len());
        self.tasks = tasks.sum::<usize>() as u64;
    }

    /// A plan was made anew.
    pub(crate) fn replanned(&mut self) {
        self.plans += 1;
    }

    /// Shows how far it is, if that was not done a moment ago.
    pub(crate) fn show(&mut self) {
        let shown = self.written.is_some_and(|at| at.elapsed() < EVERY);
        if self.on && !shown {
            self.written = Some(Instant::now());
            self.write(&format!("\r{}\x1b[K", self.line()));
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.written.take().is_some() {
            self.write("\r\x1b[K");
        }
    }

    fn line(&self) -> String {
        format!(
            "{} of {} ended, {}, {}",
            grouped(self.ended),
            counted(self.tasks, "task", "tasks"),
            counted(self.signals, "prediction failure", "prediction failures"),
            counted(self.plans, "new plan", "new plans"),
        )
    }

    fn write(&self, text: &str) {
        // Who can't be told goes on.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_plan::from_toml;

    #[test]
    fn the_line_says_how_far_it_is() {
        let text = "[[process]]\nid = 1\ntasks = [5, 5]\n[[cpu]]\ncpu = 0\nslots = [1, 1]\n";
        let mut live = Live::new(false);
        live.planned(&from_toml(text).unwrap());
        for kind in [EventKind::TaskEnded, EventKind::Late, EventKind::Grant] {
            live.event(&Event { kind: kind as u16, ..Event::default() });
        }
        live.replanned();
        assert_eq!(live.line(), "1 of 2 tasks ended, 1 prediction failure, 1 new plan");
    }
}
