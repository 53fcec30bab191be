// SPDX-License-Identifier: GPL-2.0
//! The planner of `pbs-cluster-planner` as a policy.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pbs_cluster_planner::optimise::Improving;
use pbs_cluster_planner::{Machine, Planner, Request, RequestId, Rules, State, When};
use pbs_site::Promise;

use crate::requests::Requests;
use crate::{NeverRan, Policy, TraceJob, Work};

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
    /// Reason for which each of them is declined.
    reasons: BTreeMap<usize, NeverRan>,
    /// A job that can't be over by its deadline is declined when it comes.
    keeps_deadlines: bool,
    /// Search for a better plan at each event; `None`: no plan is reconsidered.
    improving: Option<Improving>,
    /// Promise of each job.
    promise: Promise,
    /// First planned start of each job that waits.
    told_s: HashMap<RequestId, u64>,
    broken: usize,
    /// Version of the plan that was improved last.
    version: u64,
    work: Work,
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
            reasons: BTreeMap::new(),
            keeps_deadlines: false,
            improving: None,
            promise: Promise::Start,
            told_s: HashMap::new(),
            broken: 0,
            version: 0,
            work: Work::default(),
        }
    }

    /// A search makes the plan better at each event, and keeps this promise to all jobs.
    pub fn improved(mut self, improving: Improving, promise: Promise) -> Self {
        self.planner.move_up_by_start();
        self.improving = Some(improving);
        self.promise = promise;
        self
    }

    /// Seeks a better plan, and takes it.
    fn improve(&mut self, now_s: u64) {
        let Some(improving) = self.improving else { return };
        if self.planner.version() == self.version {
            return;
        }
        let seed = improving.seed.wrapping_add(self.work.plans);
        let found = self.planner.improvement(now_s, &Improving { seed, ..improving }, &|_| None);
        if let Some(mut found) = found {
            while found.run(u64::MAX) {}
            self.work.plans += 1;
            self.work.orders += found.orders();
            self.work.placements += found.placements();
            self.planner.take_improvement(now_s, found);
        }
        self.version = self.planner.version();
    }

    /// Jobs with a deadline are planned to be over by then, or declined at once, as requests
    /// with one are (Keller, 5). Otherwise nobody knows of deadlines, as under all others.
    pub fn keeping_deadlines(mut self) -> Self {
        self.keeps_deadlines = true;
        self
    }

    /// Seeks a plan in which a request is over by its deadline, though it has no place in time
    /// beside the others as they stand: the better plan has it, or the request is declined.
    fn make_room(&mut self, now_s: u64, request: &Request) -> Option<RequestId> {
        let When::Deadline { end_s, .. } = request.when else {
            return None;
        };
        self.improving?;
        let late = Request { when: When::Agreement { end_s }, ..request.clone() };
        let id = self.planner.submit(now_s, &late).ok()?;
        self.improve(now_s);
        let is_in_time = self.planner.violation_s(id).is_none();
        if is_in_time && self.planner.alter(now_s, id, request).is_ok() {
            return Some(id);
        }
        self.planner.remove(now_s, id);
        None
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
        match (self.improving.is_some(), self.keeps_deadlines, self.promise) {
            (false, true, _) => "planned to deadlines",
            (false, false, _) => "planned",
            (true, _, Promise::Start) => "planned, optimised, start promised",
            (true, true, _) => "planned to deadlines, optimised",
            (true, false, _) => "planned, optimised",
        }
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        // Who came before has what was given back.
        self.planner.backfill(now_s, self.backfills);
        let mut request = self.chunks.of(what);
        if let Some(end_s) = what.deadline_s.filter(|_| self.keeps_deadlines) {
            request.when = When::Deadline { end_s, late: false };
        }
        request.promise = self.promise;
        let planned = self.planner.submit(now_s, &request);
        let planned = planned.or_else(|refusal| self.make_room(now_s, &request).ok_or(refusal));
        match planned {
            Ok(id) => {
                self.jobs.insert(id, job);
                if let Some(State::Planned { start_s }) = self.planner.state(id) {
                    self.told_s.insert(id, start_s);
                }
                self.requests.insert(job, id);
            }
            Err(refusal) => {
                self.declined.push(job);
                self.reasons.insert(job, NeverRan::of(&refusal));
            }
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
        self.work.events += 1;
        self.improve(now_s);
        let mut ids = Vec::new();
        self.planner.start(now_s, &mut ids);
        for id in &ids {
            let told_s = self.told_s.remove(id);
            self.broken += usize::from(told_s.is_some_and(|told_s| now_s > told_s));
        }
        started.extend(ids.iter().filter_map(|id| self.jobs.get(id)));
    }

    fn next_s(&self) -> Option<u64> {
        let times = [self.planner.next_start_s(), self.planner.next_look_s()];
        times.into_iter().flatten().min()
    }

    fn work(&self) -> Option<Work> {
        self.improving.is_some().then_some(self.work)
    }

    fn declined(&self) -> BTreeMap<usize, NeverRan> {
        self.reasons.clone()
    }

    fn broken_promises(&self) -> Option<usize> {
        (self.improving.is_some() && self.promise == Promise::Start).then_some(self.broken)
    }
}
