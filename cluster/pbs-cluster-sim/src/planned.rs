// SPDX-License-Identifier: GPL-2.0
//! The planner of `pbs-cluster-planner` as a policy.

use std::collections::HashMap;
use std::sync::Arc;

use pbs_cluster_planner::{Machine, Planner, Request, RequestId, Rules, When, NCPUS};
use pbs_resources::{Arrangement, Chunk, Item, Placement, Rset, Value};

use crate::{Policy, TraceJob};

/// Name of the resource that is memory.
const MEMORY: &str = "mem";

/// Plans, and moves up who can where somebody left.
#[derive(Clone, Debug)]
pub struct Planned {
    planner: Planner,
    /// Maximum number of cores of a chunk.
    node_cores: u64,
    /// Memory of most nodes, in bytes; `None` if the site has no memory to plan.
    node_memory_bytes: Option<u64>,
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
        // The size of most nodes: chunks as large fill them.
        let size = |resource| {
            let nodes = (0..machine.node_count()).map(|node| machine.has(node, resource));
            let mut sizes: Vec<u64> = nodes.collect();
            sizes.sort_unstable();
            sizes.get(sizes.len() / 2).copied().unwrap_or(1).max(1)
        };
        let memory = machine.resource(MEMORY).filter(|&memory| machine.total(memory) > 0);
        Self {
            node_cores: size(NCPUS),
            node_memory_bytes: memory.map(size),
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

    /// Whole nodes' worth of cores, and the rest; with their part of the memory, if the site has
    /// memory to plan.
    fn rset(&self, cores: u64, memory_bytes: Option<u64>) -> Rset {
        let memory = self.node_memory_bytes.zip(memory_bytes);
        let memory = memory.map(|(of_node, all)| (of_node, all.div_ceil(cores.max(1)).max(1)));
        let chunk = |count, cores: u64| {
            let item = |resource: &str, amount| Item {
                resource: resource.into(),
                value: Value::Amount(amount),
            };
            let memory = memory.map(|(_, of_core)| item(MEMORY, of_core.saturating_mul(cores)));
            Chunk { count, items: [item("ncpus", cores)].into_iter().chain(memory).collect() }
        };
        // A node may have fewer cores' memory than cores.
        let fit = memory.map_or(u64::MAX, |(of_node, of_core)| (of_node / of_core).max(1));
        let most = self.node_cores.min(fit);
        let (whole, rest) = (cores / most, cores % most);
        let mut chunks = Vec::new();
        if whole > 0 {
            chunks.push(chunk(whole, most));
        }
        if rest > 0 {
            chunks.push(chunk(1, rest));
        }
        Rset {
            chunks,
            job_wide: Vec::new(),
            place: Placement { arrangement: Arrangement::Free, sharing: None },
        }
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
        let mut request = Request::new(self.rset(what.cores, what.memory_bytes), what.requested_s);
        request.user = what.user.to_string();
        request.group = what.group.to_string();
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
