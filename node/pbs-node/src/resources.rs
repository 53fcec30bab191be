// SPDX-License-Identifier: GPL-2.0
//! Countable resources of a node, as an operator sees and sets them.

use crate::amounts::ResourceState;
use crate::jobs::Jobs;
use crate::{Error, Listener, Node};

impl<L: Listener> Node<L> {
    /// The countable resources of the node, in the order of its machine.
    pub fn resources(&self) -> Vec<ResourceState> {
        self.jobs.as_ref().map_or_else(Vec::new, Jobs::resources)
    }

    /// Sets the amount of a resource for new jobs. Admitted jobs keep what they were promised.
    ///
    /// # Errors
    ///
    /// The node has no such resource, or the amount is too great.
    pub fn set_amount(&mut self, name: &str, amount: u64) -> Result<(), Error> {
        self.jobs.as_mut().ok_or(Error::NoJobs)?.set_amount(name, amount)
    }
}
