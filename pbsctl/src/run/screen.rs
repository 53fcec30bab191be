// SPDX-License-Identifier: GPL-2.0
//! What is said of a run while it runs, and what is kept of it for its report.

use pbs_node::{Listener, News};
use pbs_plan::Plan;
use pbs_report::{bytes, ms};
use pbs_uapi::Event;

use super::live::Live;
use crate::failure::Failure;
use crate::output::write_err;

/// The terminal, and the memory of the run.
#[derive(Debug)]
pub(super) struct Screen {
    live: Live,
    /// The plan that was started with, and those that came after it.
    pub(super) plans: Vec<Plan>,
    /// Those of this run of the plans, in order.
    pub(super) events: Vec<Event>,
}

impl Screen {
    /// `live`: with the line that says how far the run is.
    pub(super) fn new(live: bool) -> Self {
        Self {
            live: Live::new(live),
            plans: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        self.live.clear();
    }
}

impl Listener for Screen {
    fn news(&mut self, news: News) {
        self.live.clear();
        write_err(&(text(news) + "\n"));
    }

    fn event(&mut self, event: &Event) {
        self.live.event(event);
        self.events.push(*event);
    }

    fn planned(&mut self, plan: &Plan) {
        match self.plans.is_empty() {
            true => self.live.planned(plan),
            false => self.live.replanned(),
        }
        self.plans.push(plan.clone());
    }

    fn waits(&mut self) {
        self.live.show();
    }
}

fn text(news: News) -> String {
    let text = match news {
        News::NotAdmitted(error) => return Failure::from(error).to_string(),
        News::Cancelled {
            process,
            cut,
            is_told,
        } => format!(
            "process {process} is cancelled: it waits for process {cut}, which has ended before \
             its tasks did{}",
            match is_told {
                true => "",
                false => "; end its program, which pbsctl did not start",
            }
        ),
        News::EventsLost => "events were lost, as it came to read them too late; what the tasks \
                             used that they told of is not recorded"
            .into(),
        News::NotAsked(process, why) => {
            format!("how process {process} is cannot be asked: {why}")
        }
        News::MemoryShort => "the node uses more memory than plans may".into(),
        News::Grown {
            job,
            process,
            used_bytes,
            reserved_bytes,
        } => format!(
            "process {process} of job {job} uses {}, and {} were reserved for it; it is planned \
             anew with more",
            bytes(used_bytes),
            bytes(reserved_bytes)
        ),
        News::WillMiss(job, Some(ns)) => {
            format!(
                "job {job} will miss its deadline by {} ms as it looks now",
                ms(ns)
            )
        }
        News::WillMiss(job, None) => format!(
            "there is no place left for job {job}; what is left of it goes on outside the plan"
        ),
        News::NoNewPlan(why) => {
            format!("no new plan could be made, so the old one goes on: {why}")
        }
        News::PlanRefused(why) => {
            format!("the kernel refused the new plan, so the old one goes on: {why}")
        }
        News::NotRecorded(error) => format!("{error}. What runs goes on, but is not recorded"),
    };
    format!("pbsctl: {text}")
}
