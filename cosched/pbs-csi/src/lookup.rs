// SPDX-License-Identifier: GPL-2.0
//! The co-scheduling information of an entry.

use crate::csi::{read, Csi};
use crate::node::Locked;
use crate::table::Entry;
use crate::Error;

impl Locked<'_> {
    /// The CSI of a waiting task; nothing if it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], [`Error::NotTrusted`].
    pub fn csi(&self, entry: &Entry) -> Result<Option<Csi>, Error> {
        let (directory, trust) = (&self.node.directory, self.node.trust);
        read(directory, trust, entry.owner, entry.task)
    }
}
