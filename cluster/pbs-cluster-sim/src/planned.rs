// SPDX-License-Identifier: GPL-2.0
//! The planner of `pbs-cluster-planner` as a policy.

use std::collections::HashMap;
use std::sync::Arc;

use pbs_cluster_planner::{Machine, Planner, RequestId, Rules, When};

use crate::requests::Requests;
use crate::{Policy, TraceJob};

/// Plans, and moves up who can where somebody left.
#[derive(Clone, Debug)]
pub struct Planned {
    planner: Planner,
    chunks: Requests,
    /// Number of requests that are searched for an earlier place at each event. The rest continues
    /// at the next event, as in Keller's background thread (5.4).
    backfills: usize,
    jobs: HashMap<RequestId, usize>,
    requests: HashMap<usize, RequestId>,
    declined: Vec<usize>,
    /// A job that can't be over by its deadline is declined when it comes.
    keeps_deadlines: bool,
}

impl Planned {
    /// Creates a policy with an empty plan.
    pub fn new(machine: Arc<Machine>, rules: Rules, backfills: usize) -> Self {
        Self::with_policy(machine, rules, pbs_cluster_planner::Policy::default(), backfills)
    }

    /// Creates a policy with an empty plan that follows a site's policy.
    pub fn with_policy(
        machine: Arc<Machine>,
        rules: Rules,
        policy: pbs_cluster_planner::Policy,
        backfills: usize,
    ) -> Self {
        Self {
            chunks: Requests::new(&machine),
            planner: Planner::with_policy(machine, rules, policy),
            backfills,
            jobs: HashMap::new(),
            requests: HashMap::new(),
            declined: Vec::new(),
            keeps_deadlines: false,
        }
    }

    /// Jobs with a deadline are planned to be over by then, or declined at once, as requests
    /// with one are (Keller, 5). Otherwise nobody knows of deadlines, as under all others.
    pub fn keeping_deadlines(mut self) -> Self {
        self.keeps_deadlines = true;
        self
    }

    /// Returns the jobs that no plan can satisfy, by their index in the trace.
    pub fn declined(&self) -> &[usize] {
        &self.declined
    }

    /// Returns the number of searches for an earlier place.
    pub fn decisions(&self) -> u64 {
        self.planner.decisions()
    }
}

impl Policy for Planned {
    fn name(&self) -> &str {
        if self.keeps_deadlines {
            "planned to deadlines"
        } else {
            "planned"
        }
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        // Who came before has what was given back.
        self.planner.backfill(now_s, self.backfills);
        let mut request = self.chunks.of(what);
        if let Some(end_s) = what.deadline_s.filter(|_| self.keeps_deadlines) {
            request.when = When::Deadline { end_s, late: false };
        }
        match self.planner.submit(now_s, &request) {
            Ok(id) => {
                self.jobs.insert(id, job);
                self.requests.insert(job, id);
            }
            Err(_) => self.declined.push(job),
        }
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        if let Some(id) = self.requests.remove(&job) {
            self.jobs.remove(&id);
            self.planner.remove(now_s, id);
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.planner.forget_before(now_s);
        self.planner.backfill(now_s, self.backfills);
        if self.planner.next_look_s().is_some() {
            self.planner.plan_waiting(now_s);
        }
        let mut ids = Vec::new();
        self.planner.start(now_s, &mut ids);
        started.extend(ids.iter().filter_map(|id| self.jobs.get(id)));
    }

    fn next_s(&self) -> Option<u64> {
        let times = [self.planner.next_start_s(), self.planner.next_look_s()];
        times.into_iter().flatten().min()
    }
}
