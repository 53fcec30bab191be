// SPDX-License-Identifier: GPL-2.0
//! The cluster on which a trace is replayed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pbs_cluster_planner::{Machine, NCPUS};
use pbs_cluster_sim::swf::Header;
use pbs_cluster_sim::TraceJob;
use pbs_site::{Site, Validity};
use pbs_text::grouped;

use super::site::read_site;
use crate::failure::Failure;
use crate::output::counted;

/// Largest number of cores of a machine that a header may name, as for `--cores`.
pub(super) const MOST_CORES: u64 = 100_000_000;

/// A cluster, and what is replayed on it.
pub(super) struct Cluster {
    pub(super) site: Site,
    pub(super) machine: Arc<Machine>,
    pub(super) cores: u64,
    /// Time at which the trace begins, counted from 1970, by which the calendar of the site is read.
    pub(super) begin_s: u64,
    /// Number of nodes by cores and memory in bytes; `None` if the site has no memory to plan.
    sizes: Option<BTreeMap<(u64, u64), u64>>,
}

impl Cluster {
    /// Returns the cluster that the options name, or one like OCuLUS.
    pub(super) fn of(site: Option<&Path>, cores: Option<u64>) -> Result<Self, Failure> {
        Ok(Self::new(named(site, cores)?.unwrap_or_else(Site::oculus)))
    }

    /// Returns the cluster that the options name, or else the machine that the header of a trace
    /// describes; also a remark if neither names one.
    pub(super) fn of_trace(
        site: Option<&Path>,
        cores: Option<u64>,
        header: &Header,
    ) -> Result<(Self, Option<String>), Failure> {
        let begin_s = header.number("UnixStartTime").unwrap_or(0);
        let at_begin = |on: Self| Self { begin_s, ..on };
        if let Some(site) = named(site, cores)? {
            return Ok((at_begin(Self::new(site)), None));
        }
        let oculus = at_begin(Self::new(Site::oculus()));
        match header.cores() {
            // Traces that were generated for it.
            Some(cores) if cores == oculus.cores => Ok((oculus, None)),
            Some(0) => Err(Failure::Failed(
                "the header of the trace says MaxProcs: 0; name the cores with --cores or --site"
                    .into(),
            )),
            Some(cores) if cores > MOST_CORES => Err(Failure::Failed(format!(
                "the header of the trace names {} cores (MaxProcs), and at most {} are replayed; \
                 name a part of them with --cores or --site",
                grouped(cores),
                grouped(MOST_CORES)
            ))),
            Some(cores) => {
                let mut site = one_node(cores);
                site.name = match header.get("Computer").filter(|name| !name.is_empty()) {
                    Some(computer) => format!("the machine of the trace, {computer}"),
                    None => "the machine of the trace".into(),
                };
                Ok((Self::new(site), None))
            }
            None => {
                let cores = grouped(oculus.cores);
                let remark = format!(
                    "the header of the trace names no number of cores (MaxProcs): another cluster \
                     is taken, with {cores} cores; name the right one with --cores or --site"
                );
                Ok((oculus, Some(remark)))
            }
        }
    }

    fn new(site: Site) -> Self {
        let machine = Arc::new(Machine::of_site(&site));
        let cores = machine.total(NCPUS);
        let memory = machine.resource("mem").filter(|&memory| machine.total(memory) > 0);
        let sizes = memory.map(|memory| {
            let mut sizes = BTreeMap::new();
            for node in 0..machine.node_count() {
                let size = (machine.has(node, NCPUS), machine.has(node, memory));
                *sizes.entry(size).or_insert(0) += 1;
            }
            sizes
        });
        Self { site, machine, cores, begin_s: 0, sizes }
    }

    /// Returns the cluster with the rules of its site, or else without its limits, free pools and
    /// gates of nodes.
    pub(super) fn with_rules(self, with_rules: bool) -> Self {
        if with_rules {
            return self;
        }
        let mut site = self.site;
        site.limits.clear();
        site.pools.clear();
        for node in &mut site.nodes {
            node.only_if = None;
            node.kept = None;
        }
        Self { begin_s: self.begin_s, ..Self::new(site) }
    }

    /// Returns what is to be said of a calendar whose place in the trace is not known.
    pub(super) fn calendar_remark(&self) -> Option<String> {
        let site = &self.site;
        let limits = site.limits.iter().map(|of| &of.validity);
        let pools = site.pools.iter().map(|of| &of.validity);
        let resources = site.resources.iter().map(|of| &of.validity);
        let consumers = site.users.iter().chain(&site.groups).map(|of| &of.validity);
        let mut all = limits.chain(pools).chain(resources).chain(consumers);
        let has_calendar = all.any(|of| *of != Validity::Always);
        (has_calendar && self.begin_s == 0).then(|| {
            "rules of the site have times, and the trace does not say when it began: it is taken \
             to have begun on 1970-01-01 at 00:00 UTC; add a line \"; UnixStartTime: SECONDS\" to \
             its header"
                .into()
        })
    }

    /// Whether all cores are on one node, and no rule binds anybody.
    pub(super) fn is_one_pool(&self) -> bool {
        self.machine.node_count() == 1 && self.sizes.is_none() && self.rules_in_words().is_none()
    }

    /// Returns the rules that bind jobs, in words; `None` if there is none.
    pub(super) fn rules_in_words(&self) -> Option<String> {
        let site = &self.site;
        let gates = site.nodes.iter().filter(|of| of.only_if.is_some() || of.kept.is_some());
        let pools: Vec<&str> = site.pools.iter().map(|pool| pool.name.as_str()).collect();
        let pool = match pools.len() {
            0 => None,
            count => {
                let counted = counted(count as u64, "free pool", "free pools");
                Some(format!("{counted} ({})", pools.join(", ")))
            }
        };
        let some = |count: usize, one, many| (count > 0).then(|| counted(count as u64, one, many));
        let limits = some(site.limits.len(), "limit", "limits");
        let gates = some(gates.count(), "node with a gate", "nodes with gates");
        let all: Vec<String> = [pool, limits, gates].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Whether the empty cluster has room for a job: its cores, each with its part of the job's
    /// memory.
    pub(super) fn fits(&self, job: &TraceJob) -> bool {
        let (Some(sizes), Some(all_bytes)) = (&self.sizes, job.memory_bytes) else {
            return job.cores <= self.cores;
        };
        let core_bytes = all_bytes.div_ceil(job.cores.max(1)).max(1);
        let room = sizes
            .iter()
            .map(|(&(cores, bytes), &nodes)| cores.min(bytes / core_bytes).saturating_mul(nodes));
        job.cores <= room.fold(0, u64::saturating_add)
    }

    /// Returns what is to be said of the memory of jobs, if they have any.
    pub(super) fn memory_remark(&self, has_memory: bool, has_pools: bool) -> Option<String> {
        if !has_memory {
            return None;
        }
        match (&self.sizes, has_pools) {
            (None, _) => Some(
                "the jobs have memory and the cluster has none to plan: memory is not considered; \
                 name a site with mem to plan it"
                    .into(),
            ),
            (Some(_), true) => Some(
                "memory of jobs is planned on nodes; to queues on one pool, and to conservative \
                 backfilling, the cluster is cores only"
                    .into(),
            ),
            (Some(_), false) => None,
        }
    }
}

fn named(site: Option<&Path>, cores: Option<u64>) -> Result<Option<Site>, Failure> {
    Ok(match (site, cores) {
        (Some(file), _) => Some(read_site(file)?),
        (None, Some(cores)) => Some(one_node(cores)),
        (None, None) => None,
    })
}

fn one_node(cores: u64) -> Site {
    let text = format!("name = \"one node\"\n[[nodes]]\nname = \"n1\"\nhas = \"ncpus={cores}\"\n");
    // The text is ours.
    Site::from_toml(&text).unwrap_or_else(|_| Site::oculus())
}
