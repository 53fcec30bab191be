// SPDX-License-Identifier: GPL-2.0
//! Errors in the words of the site.

use pbs_cluster_planner::Refusal;

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;

impl<E: Engine> Manager<E> {
    /// Describes an error with times of the site, and with the causes that keep a request out.
    pub fn in_words(&self, error: &Error) -> String {
        match error {
            Error::Declined(why @ (Refusal::Never(causes) | Refusal::NotLonger(causes)))
                if !causes.is_empty() =>
            {
                let causes = causes.iter().map(|cause| cause.describe(&self.machine));
                format!("{why}: {}", causes.collect::<Vec<_>>().join(", "))
            }
            _ => error.describe(&self.site),
        }
    }
}
