// SPDX-License-Identifier: GPL-2.0
//! Number of programs that a node can start.

/// Number of programs that can be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Programs of root's jobs, and of jobs that nobody has ordered.
    pub(crate) root: usize,
    /// Programs of all other jobs.
    pub(crate) others: usize,
}

impl Room {
    /// Room for as many programs as anybody wants.
    pub(crate) const ENDLESS: Self = Self { root: usize::MAX, others: usize::MAX };

    /// Number of programs of that user.
    pub(crate) fn of(self, uid: Option<u32>) -> usize {
        match uid {
            None | Some(0) => self.root,
            Some(_) => self.others,
        }
    }

    /// Takes so many programs of a user out, if there is room for them. Whether there was.
    pub(crate) fn take(&mut self, uid: u32, programs: usize) -> bool {
        let fits = programs <= self.of(Some(uid));
        if fits {
            self.root = self.root.saturating_sub(programs);
            self.others = self.others.saturating_sub(programs);
        }
        fits
    }
}
