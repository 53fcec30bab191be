// SPDX-License-Identifier: GPL-2.0
//! What carries allocations out: the node side (Keller, 3), simulated or real.

use std::collections::{BTreeSet, HashMap};

use pbs_cluster::RequestId;

/// Nodes with what is given of them, from when to when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// For which request.
    pub request: RequestId,
    /// Whose it is.
    pub user: String,
    /// What is started.
    pub command: Vec<String>,
    /// Names of nodes, and of each the names and amounts of resources.
    pub nodes: Vec<(String, Vec<(String, u64)>)>,
    /// From then on. With the number of the request it is a name that no other has.
    pub from_s: u64,
    /// Until then at the latest.
    pub until_s: u64,
    /// How long it really runs, if that is known: it is simulated then.
    pub run_s: Option<u64>,
}

/// What an engine tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A request is over; how, in a word or two.
    Ended {
        /// Which.
        request: RequestId,
        /// `completed` if all went well.
        outcome: String,
    },
    /// A request will need longer than it may.
    PredictedEnd {
        /// Which.
        request: RequestId,
        /// When it will be over.
        end_s: u64,
    },
    /// A node can't be used.
    NodeFailed {
        /// Which.
        node: String,
        /// Why.
        why: String,
    },
}

/// Starts and stops, and tells what happened. No call waits.
pub trait Engine {
    /// A request has its nodes; of one that runs already, it is told again after a restart.
    fn start(&mut self, allocation: &Allocation);
    /// A request is not to run any more. It counts as over.
    fn stop(&mut self, request: RequestId);
    /// Another end.
    fn extend(&mut self, request: RequestId, until_s: u64);
    /// Its user is to be told that it ends soon.
    fn notify(&mut self, request: RequestId);
    /// When something will happen next, if that is known.
    fn next_s(&self) -> Option<u64>;
    /// What has happened until now and was not told yet, in its order.
    fn happened(&mut self, now_s: u64) -> Vec<Happened>;
}

/// One that outlives the manager.
impl<E: Engine> Engine for &mut E {
    fn start(&mut self, allocation: &Allocation) {
        E::start(self, allocation);
    }

    fn stop(&mut self, request: RequestId) {
        E::stop(self, request);
    }

    fn extend(&mut self, request: RequestId, until_s: u64) {
        E::extend(self, request, until_s);
    }

    fn notify(&mut self, request: RequestId) {
        E::notify(self, request);
    }

    fn next_s(&self) -> Option<u64> {
        E::next_s(self)
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        E::happened(self, now_s)
    }
}

/// An engine in virtual time: a request runs as long as it says it does.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    ends: BTreeSet<(u64, RequestId)>,
    of: HashMap<RequestId, u64>,
}

impl Engine for Simulated {
    fn start(&mut self, allocation: &Allocation) {
        let end_s = match allocation.run_s {
            Some(run_s) => allocation.from_s.saturating_add(run_s),
            None => allocation.until_s,
        };
        self.ends.insert((end_s, allocation.request));
        self.of.insert(allocation.request, end_s);
    }

    fn stop(&mut self, request: RequestId) {
        if let Some(end_s) = self.of.remove(&request) {
            self.ends.remove(&(end_s, request));
        }
    }

    // Who needs longer does so whatever it may.
    fn extend(&mut self, _: RequestId, _: u64) {}

    fn notify(&mut self, _: RequestId) {}

    fn next_s(&self) -> Option<u64> {
        self.ends.first().map(|&(end_s, _)| end_s)
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        let mut happened = Vec::new();
        while let Some(&(_, request)) = self.ends.first().filter(|(end_s, _)| *end_s <= now_s) {
            self.ends.pop_first();
            self.of.remove(&request);
            happened.push(Happened::Ended {
                request,
                outcome: "completed".into(),
            });
        }
        happened
    }
}
