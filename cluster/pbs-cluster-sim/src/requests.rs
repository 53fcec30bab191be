// SPDX-License-Identifier: GPL-2.0
//! Requests to the planner, made of the jobs of a trace.

use pbs_cluster_planner::{Machine, Request, NCPUS};
use pbs_resources::{Arrangement, Chunk, Item, Placement, Rset, Value};

use crate::TraceJob;

/// Name of the resource that is memory.
const MEMORY: &str = "mem";

/// Sizes of the chunks of requests on a machine.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    /// Maximum number of cores of a chunk.
    node_cores: u64,
    /// Memory of most nodes, in bytes; `None` if the site has no memory to plan.
    node_memory_bytes: Option<u64>,
}

impl Requests {
    /// Creates requests for a machine.
    pub(crate) fn new(machine: &Machine) -> Self {
        // The size of most nodes: chunks as large fill them.
        let size = |resource| {
            let nodes = (0..machine.node_count()).map(|node| machine.has(node, resource));
            let mut sizes: Vec<u64> = nodes.collect();
            sizes.sort_unstable();
            sizes.get(sizes.len() / 2).copied().unwrap_or(1).max(1)
        };
        let memory = machine.resource(MEMORY).filter(|&memory| machine.total(memory) > 0);
        Self { node_cores: size(NCPUS), node_memory_bytes: memory.map(size) }
    }

    /// Returns the request for a job. User 7 is `u7` and group 3 is `G3`, as in the sites of
    /// `pbs-site`: this way the limits of a site bind the jobs of a trace.
    pub(crate) fn of(&self, what: &TraceJob) -> Request {
        Request {
            user: format!("u{}", what.user).into(),
            group: format!("G{}", what.group),
            ..Request::new(self.rset(what.cores, what.memory_bytes), what.requested_s)
        }
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
            avoid: Vec::new(),
        }
    }
}
