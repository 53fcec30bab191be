// SPDX-License-Identifier: GPL-2.0
//! Times at which running requests are over, or their users are notified.

use std::collections::BTreeSet;

use pbs_cluster_planner::RequestId;

/// Deadlines of running requests, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// Latest ends of running requests.
    ends: BTreeSet<(u64, RequestId)>,
    /// Times at which users are notified that the end is near.
    notices: BTreeSet<(u64, RequestId)>,
}

impl Deadlines {
    /// Adds the end of a request.
    pub(crate) fn expect_end(&mut self, due_s: u64, id: RequestId) {
        self.ends.insert((due_s, id));
    }

    /// Adds a notice to the user of a request.
    pub(crate) fn expect_notice(&mut self, notice_s: u64, id: RequestId) {
        self.notices.insert((notice_s, id));
    }

    /// Removes the end of a request, and the notice before it.
    pub(crate) fn forget(&mut self, due_s: u64, notice_s: u64, id: RequestId) {
        self.ends.remove(&(due_s, id));
        self.notices.remove(&(notice_s, id));
    }

    /// The next of all.
    pub(crate) fn next_s(&self) -> Option<u64> {
        let first = [self.ends.first(), self.notices.first()];
        first.into_iter().flatten().map(|&(time_s, _)| time_s).min()
    }

    /// Removes the next request that is over by now.
    pub(crate) fn pop_end(&mut self, now_s: u64) -> Option<RequestId> {
        pop(&mut self.ends, now_s)
    }

    /// Removes the next notice that is due by now.
    pub(crate) fn pop_notice(&mut self, now_s: u64) -> Option<RequestId> {
        pop(&mut self.notices, now_s)
    }
}

fn pop(times: &mut BTreeSet<(u64, RequestId)>, now_s: u64) -> Option<RequestId> {
    let &(time_s, id) = times.first()?;
    if time_s > now_s {
        return None;
    }
    times.pop_first();
    Some(id)
}
