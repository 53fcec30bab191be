// SPDX-License-Identifier: GPL-2.0
//! Output during a run, and the data that its report needs.

use pbs_node::{JobOutcome, Listener, News};
use pbs_plan::Plan;
use pbs_uapi::Event;

use super::live::Live;
use crate::failure::Failure;
use crate::output::report;

/// The terminal, and the memory of the run.
#[derive(Debug)]
pub(super) struct Screen {
    live: Live,
    /// The plan that was started with, and those that came after it.
    pub(super) plans: Vec<Plan>,
    /// Events of this run of the plans, in order.
    pub(super) events: Vec<Event>,
    /// Outcomes of the jobs that are over.
    pub(super) jobs: Vec<JobOutcome>,
}

impl Screen {
    /// `live`: with the line that says how far the run is.
    pub(super) fn new(live: bool) -> Self {
        Self { live: Live::new(live), plans: Vec::new(), events: Vec::new(), jobs: Vec::new() }
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        self.live.clear();
    }
}

impl Listener for Screen {
    fn news(&mut self, news: News) {
        self.live.clear();
        report(&match news {
            News::NotAdmitted(error) => Failure::from(error).to_string(),
            news => format!("pbsctl: {news}"),
        });
    }

    fn event(&mut self, event: &Event) {
        self.live.event(event);
        self.events.push(*event);
    }

    fn planned(&mut self, plan: &Plan) {
        if self.plans.is_empty() {
            self.live.planned(plan)
        } else {
            self.live.replanned()
        }
        self.plans.push(plan.clone());
    }

    fn over(&mut self, outcome: JobOutcome) {
        self.jobs.push(outcome);
    }

    fn waits(&mut self) {
        self.live.show();
    }
}
