// SPDX-License-Identifier: GPL-2.0
//! The cores of a job that may not run on all: of the CPUs that it names
//! ([`Job::cpus`](pbs_job::Job::cpus)), of those that its processes name
//! ([`Process::cpus`](pbs_job::Process::cpus)), and of the nodes of the resources that they hold.

use pbs_job::Process;

use super::{Progress, Request};
use crate::store::{Needs, Store};

/// Cores on which a job may run.
#[derive(Clone, Debug)]
pub(crate) struct Confined {
    /// Per core: a process that has none, and names none, may go there.
    allowed: Vec<bool>,
    /// Per process: the same of one that names some; empty: it names none.
    own: Vec<Vec<bool>>,
    /// Per core: that, or a process of the job is there already.
    used: Vec<bool>,
    /// Per node: it has such a core.
    nodes: Vec<bool>,
    /// Per memory: it is that of such a core.
    memories: Vec<bool>,
}

impl Confined {
    /// `None`: the job may run on all cores. Of one that can run on none, which is
    /// refused, bounds are those of all.
    pub(super) fn new(request: &Request<'_>, store: &Store, needs: &[Needs]) -> Option<Self> {
        let job = request.job;
        let resources = &store.machine().resources;
        let has_places = |needs: &Needs| {
            let mut held = needs.resources.iter();
            held.any(|held| !resources[held.resource].nodes.is_empty())
        };
        let mut processes = job.processes.iter().zip(needs);
        let is_free =
            |(process, needs): (&Process, &Needs)| process.cpus.is_empty() && !has_places(needs);
        if job.cpus.is_empty() && processes.all(is_free) {
            return None;
        }
        let named = |names: &[u32]| -> Vec<bool> {
            let cpus = store.machine().cpus();
            cpus.map(|cpu| names.is_empty() || names.binary_search(&cpu).is_ok()).collect()
        };
        let allowed = named(&job.cpus);
        let own = job.processes.iter().zip(needs).map(|(process, needs)| {
            if is_free((process, needs)) {
                return Vec::new();
            }
            let mut cores = named(&process.cpus);
            for held in &needs.resources {
                let nodes = &resources[held.resource].nodes;
                for (allowed, site) in cores.iter_mut().zip(store.sites()) {
                    *allowed &= nodes.is_empty() || nodes.binary_search(&site.node).is_ok();
                }
            }
            cores
        });
        let own: Vec<_> = own.collect();
        let mut used = allowed.clone();
        for process in 0..job.processes.len() {
            let (Progress::Running { core, .. } | Progress::Attached { core }) =
                request.progress_of(process)
            else {
                continue;
            };
            if let Some(used) = used.get_mut(core) {
                *used = true;
            }
        }
        if !used.contains(&true) {
            used.fill(true);
        }
        let mut nodes = vec![false; store.machine().nodes.len()];
        let mut memories = vec![false; store.memories().len()];
        for (site, _) in store.sites().iter().zip(&used).filter(|(_, used)| **used) {
            nodes[site.node] = true;
            memories[site.memory] = true;
        }
        Some(Self { allowed, own, used, nodes, memories })
    }

    /// Whether a process that has no core, and names none, may go there.
    pub(crate) fn allows(&self, core: usize) -> bool {
        self.allowed[core]
    }

    /// Whether that process may go there, if it has no core.
    pub(crate) fn allows_process(&self, process: usize, core: usize) -> bool {
        self.own[process].get(core).unwrap_or(&self.allowed[core]) & self.allowed[core]
    }

    /// Whether that process may not go to all cores of its job.
    pub(crate) fn has_own(&self, process: usize) -> bool {
        !self.own[process].is_empty()
    }

    /// Whether any process of the job may be there.
    pub(crate) fn uses(&self, core: usize) -> bool {
        self.used[core]
    }

    /// Whether one of those cores is of that node.
    pub(super) fn uses_node(&self, node: usize) -> bool {
        self.nodes[node]
    }

    /// Whether one of those cores has that memory.
    pub(super) fn uses_memory(&self, memory: usize) -> bool {
        self.memories[memory]
    }
}
