// SPDX-License-Identifier: GPL-2.0
//! A job that is to be admitted.

use pbs_history::{Kind, RunId};

use crate::orders::Terms;
use crate::Submission;

/// A job that is to be admitted.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) submission: Submission,
    /// Number of the run in the history, if it was submitted before.
    pub(crate) id: Option<RunId>,
    pub(crate) submitted_ns: u64,
    pub(crate) terms: Option<Terms>,
    pub(crate) kind: Kind,
}
