// SPDX-License-Identifier: GPL-2.0
//! The cores of a job that may not run on all: of the CPUs that it names
//! ([`Job::cpus`](pbs_job::Job::cpus)).

use super::{Progress, Request};
use crate::store::Store;

/// Which cores are those of a job.
#[derive(Clone, Debug)]
pub(crate) struct Confined {
    /// Per core: a process that has none may go there.
    allowed: Vec<bool>,
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
    pub(super) fn new(request: &Request<'_>, store: &Store) -> Option<Self> {
        let job = request.job;
        if job.cpus.is_empty() {
            return None;
        }
        let cpus = store.machine().cpus();
        let allowed: Vec<bool> = cpus
            .map(|cpu| job.cpus.binary_search(&cpu).is_ok())
            .collect();
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
        Some(Self {
            allowed,
            used,
            nodes,
            memories,
        })
    }

    /// Whether a process that has no core may go there.
    pub(crate) fn allows(&self, core: usize) -> bool {
        self.allowed[core]
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
