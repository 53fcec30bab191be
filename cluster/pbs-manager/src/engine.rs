// SPDX-License-Identifier: GPL-2.0
//! Execution of allocations: the node side (Keller, 3), simulated or real.

use std::collections::{BTreeSet, HashMap};

use pbs_cluster_planner::RequestId;
use pbs_site::User;

use crate::wish::{Caller, Wish};

/// The outcome of what ended as it should.
pub(crate) const COMPLETED: &str = "completed";

/// Nodes with what is given of them, from when to when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Number of the request.
    pub request: RequestId,
    /// User who owns the request.
    pub user: User,
    /// Command that is started.
    pub command: Vec<String>,
    /// Names of nodes, and of each the names and amounts of resources.
    pub nodes: Vec<(String, Vec<(String, u64)>)>,
    /// Start of the allocation. Together with the number of the request, it is a unique name.
    pub from_s: u64,
    /// Latest end.
    pub until_s: u64,
    /// Actual run time, if it is known: the allocation is simulated then.
    pub run_s: Option<u64>,
    /// User who submitted the request, who may be an operator; `None`: it is not known.
    pub submitted_by: Option<User>,
    /// Index of the request in its array.
    pub array_index: Option<u64>,
    /// Signal by which programs are notified before the end.
    pub notify_signal: Option<String>,
    /// Threads that each program is told to start; `None`: the request does not say.
    pub omp_threads: Option<u64>,
}

/// Event that an engine reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A request is over; how, in a word or two.
    Ended {
        /// Request that ended.
        request: RequestId,
        /// `completed` if all went well.
        outcome: String,
    },
    /// A request will need longer than it may.
    PredictedEnd {
        /// Request that needs more time.
        request: RequestId,
        /// Predicted end.
        end_s: u64,
    },
    /// The nodes of a request are ready: it runs.
    Allocated {
        /// Request whose nodes are ready.
        request: RequestId,
    },
    /// The nodes of a request that was stopped, or has ended, are free of it.
    Released {
        /// Request whose nodes are free again.
        request: RequestId,
    },
    /// A request that was to start did not, and is held: it is planned again.
    NotStarted {
        /// Request that did not start.
        request: RequestId,
        /// Reason.
        why: String,
    },
    /// A request runs on other nodes, or at another time, than planned: the plan follows it.
    RunsElsewhere {
        /// Request that runs.
        request: RequestId,
        /// Names of its nodes.
        nodes: Vec<String>,
    },
    /// A node can't be used.
    NodeFailed {
        /// Node that failed.
        node: String,
        /// Reason.
        why: String,
    },
    /// A node is to have nothing new; what runs there goes on.
    NodeDrained {
        /// Node that is drained.
        node: String,
        /// Reason.
        why: String,
    },
    /// A node can be used again.
    NodeBack {
        /// Node that is usable again.
        node: String,
    },
}

/// Starts and stops, and tells what happened. No call waits.
pub trait Engine {
    /// Checks whether the engine can run such a request of that caller.
    ///
    /// # Errors
    ///
    /// The reason, and what to write instead.
    fn check(&self, caller: &Caller, wish: &Wish) -> Result<(), String> {
        let _ = (caller, wish);
        Ok(())
    }
    /// Checks whether that caller can give a request other resources, times or limits; `command` is
    /// that of the request.
    ///
    /// # Errors
    ///
    /// The reason, and what to write instead.
    fn check_change(&self, caller: &Caller, command: &[String]) -> Result<(), String> {
        let _ = (caller, command);
        Ok(())
    }
    /// Checks whether users can reserve nodes in the plan.
    ///
    /// # Errors
    ///
    /// The reason, and what to write instead.
    fn check_reservation(&self) -> Result<(), String> {
        Ok(())
    }
    /// A request has its nodes; of one that runs already, it is told again after a restart.
    fn start(&mut self, allocation: &Allocation);
    /// A request is not to run any more. It counts as over.
    fn stop(&mut self, request: RequestId);
    /// Changes the latest end of a request.
    fn extend(&mut self, request: RequestId, until_s: u64);
    /// Notifies the user of a request that it ends soon.
    fn notify(&mut self, request: RequestId);
    /// A running request has another number of chunks now.
    fn resize(&mut self, allocation: &Allocation) {
        let _ = allocation;
    }
    /// Whether nodes are made ready before a request runs and cleaned after it, and both is
    /// told: the plan has time for it then.
    fn has_phases(&self) -> bool {
        false
    }
    /// All that the engine was told is in the ledger. An engine whose effects outlive this process
    /// acts from then on only: otherwise the ledger may not know of them after a crash.
    fn written(&mut self) {}
    /// Returns how long before its start a request is handed to an engine that starts, watches and
    /// ends requests by itself. Its place stays from then on.
    ///
    /// Such an engine reports of each request that it runs, does not, or is over, however long that
    /// takes. Therefore no node is taken for failed because a request is late, and no running
    /// request is ended because of a node.
    fn fixed_before_s(&self) -> Option<u64> {
        None
    }
    /// The nodes of a request that have not told yet that they are ready, or free of it;
    /// none: it is not known which.
    fn late_nodes(&self, request: RequestId) -> Vec<String> {
        let _ = request;
        Vec::new()
    }
    /// Returns the times at which nodes were last heard from. A node that is not listed is not
    /// watched.
    fn heard(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
    /// Returns the time of the next event, if it is known.
    fn next_s(&self) -> Option<u64>;
    /// Returns the events up to now that were not reported yet, in their order.
    fn happened(&mut self, now_s: u64) -> Vec<Happened>;
}

/// Engine that outlives the manager.
impl<E: Engine> Engine for &mut E {
    fn check(&self, caller: &Caller, wish: &Wish) -> Result<(), String> {
        E::check(self, caller, wish)
    }

    fn check_change(&self, caller: &Caller, command: &[String]) -> Result<(), String> {
        E::check_change(self, caller, command)
    }

    fn check_reservation(&self) -> Result<(), String> {
        E::check_reservation(self)
    }

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

    fn resize(&mut self, allocation: &Allocation) {
        E::resize(self, allocation);
    }

    fn has_phases(&self) -> bool {
        E::has_phases(self)
    }

    fn written(&mut self) {
        E::written(self);
    }

    fn fixed_before_s(&self) -> Option<u64> {
        E::fixed_before_s(self)
    }

    fn late_nodes(&self, request: RequestId) -> Vec<String> {
        E::late_nodes(self, request)
    }

    fn heard(&self) -> Vec<(String, u64)> {
        E::heard(self)
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
    to_come: BTreeSet<(u64, RequestId, Step)>,
    /// Next step of each request, with its time.
    of: HashMap<RequestId, (u64, Step)>,
    /// Time that nodes take until they are ready, and until they are free.
    phases_s: Option<(u64, u64)>,
    /// Time since when the nodes of each request are ready.
    runs: HashMap<RequestId, Option<u64>>,
    now_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Allocated,
    Ended,
    Released,
}

impl Simulated {
    /// Nodes take so long until they are ready for a request, and so long until they are
    /// free of it.
    pub fn with_phases(allocate_s: u64, release_s: u64) -> Self {
        Self { phases_s: Some((allocate_s, release_s)), ..Self::default() }
    }

    fn expect(&mut self, time_s: u64, request: RequestId, step: Step) {
        self.forget(request);
        self.to_come.insert((time_s, request, step));
        self.of.insert(request, (time_s, step));
    }

    fn forget(&mut self, request: RequestId) {
        if let Some((time_s, step)) = self.of.remove(&request) {
            self.to_come.remove(&(time_s, request, step));
        }
    }
}

impl Engine for Simulated {
    fn start(&mut self, allocation: &Allocation) {
        let id = allocation.request;
        let run_s = allocation.run_s;
        self.runs.insert(id, run_s);
        match self.phases_s {
            Some((allocate_s, _)) => {
                let ready_s = allocation.from_s.saturating_add(allocate_s);
                self.expect(ready_s, id, Step::Allocated);
            }
            None => {
                let end_s = match run_s {
                    Some(run_s) => allocation.from_s.saturating_add(run_s),
                    None => allocation.until_s,
                };
                self.expect(end_s, id, Step::Ended);
            }
        }
    }

    fn stop(&mut self, request: RequestId) {
        self.forget(request);
        self.runs.remove(&request);
        if let Some((_, release_s)) = self.phases_s {
            self.expect(self.now_s.saturating_add(release_s), request, Step::Released);
        }
    }

    // Who needs longer does so whatever it may; who was not told how long it needs takes
    // all that it gets.
    fn extend(&mut self, request: RequestId, until_s: u64) {
        let is_open = self.runs.get(&request) == Some(&None);
        if let (true, Some(&(_, Step::Ended))) = (is_open, self.of.get(&request)) {
            self.expect(until_s, request, Step::Ended);
        }
    }

    fn notify(&mut self, _: RequestId) {}

    fn has_phases(&self) -> bool {
        self.phases_s.is_some()
    }

    fn next_s(&self) -> Option<u64> {
        self.to_come.first().map(|&(time_s, _, _)| time_s)
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        self.now_s = now_s;
        let mut happened = Vec::new();
        while let Some(&(time_s, request, step)) = self.to_come.first() {
            if time_s > now_s {
                break;
            }
            self.forget(request);
            happened.push(match step {
                Step::Allocated => {
                    let run_s = self.runs.get(&request).copied().flatten();
                    // Without a word of its own it is told by `extend` how long it may.
                    let end_s = run_s.map_or(u64::MAX, |run_s| time_s.saturating_add(run_s));
                    self.expect(end_s, request, Step::Ended);
                    Happened::Allocated { request }
                }
                Step::Ended => Happened::Ended { request, outcome: COMPLETED.into() },
                Step::Released => Happened::Released { request },
            });
        }
        happened
    }
}
