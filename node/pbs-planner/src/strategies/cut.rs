// SPDX-License-Identifier: GPL-2.0
//! Searches that ended before they were through.

use std::fmt;

use pbs_text::grouped;

use super::Strategy;

/// A search that ended since it had done all the work that a question may take
/// ([`Options::max_work`](super::Options::max_work)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutShort {
    /// The first strategy that was not tried, or not to its end.
    pub strategy: Strategy,
    /// The steps that the question could take.
    pub max_work: u64,
}

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { strategy, max_work } = self;
        write!(
            f,
            "{strategy} was cut short, as the plan may take {} steps of work",
            grouped(*max_work)
        )
    }
}
