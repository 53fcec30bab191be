// SPDX-License-Identifier: GPL-2.0
//! The answer of the service of this node about a job, without submitting it.

use std::path::Path;

use pbs_job::now_unix_ns;
use pbs_node_api::{Client, Explanation};
use pbs_text::{shown as foreign, underscored};
use serde::Serialize;

use super::row;
use crate::failure::Failure;
use crate::planning::nanoseconds;
use crate::service;
use crate::terms::Terms;

/// Decision of the service.
#[derive(Serialize)]
pub(super) struct ServedView {
    pub(super) admitted: bool,
    /// Reason for which it would decline the job.
    why: Option<String>,
    /// Counted from the submission.
    earliest_deadline_ns: Option<u64>,
    /// Counted from now.
    planned_end_ns: Option<u64>,
    /// Change of its CPUs because of slow-downs.
    slowdowns: Option<String>,
}

impl ServedView {
    /// Asks the service about a job that was read from `file`.
    pub(super) fn ask(client: &mut Client, request: String, file: &Path) -> Result<Self, Failure> {
        let asked = service::submission_of(request, file, &Terms::default())?;
        let explained = client.explain(&asked)?;
        let Explanation { admitted, why, earliest_deadline_ns, slowdowns, .. } = explained;
        let end_unix_ns = explained.expected_end_unix_ns;
        let planned_end_ns = end_unix_ns.map(|end| end.saturating_sub(now_unix_ns()));
        Ok(Self { admitted, why, earliest_deadline_ns, planned_end_ns, slowdowns })
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let decision = match (self.admitted, self.planned_end_ns) {
            (true, Some(end_ns)) => format!("admits it: planned end {}", nanoseconds(end_ns)),
            (true, None) => "admits it".into(),
            (false, _) => {
                let why = self.why.as_deref().unwrap_or("it gives no reason");
                format!("declines it: {}", foreign(why))
            }
        };
        let earliest = self
            .earliest_deadline_ns
            .map(|ns| row("", format!("it would admit it with deadline_ns = {}", underscored(ns))));
        let slowdowns = self.slowdowns.as_deref().map(|text| row("", foreign(text).to_string()));
        let scope = "the rows below are of a node without other jobs";
        [Some(row("service", decision)), earliest, slowdowns, Some(row("", scope.into()))]
            .into_iter()
            .flatten()
            .collect()
    }
}
