// SPDX-License-Identifier: GPL-2.0
//! Small clusters and requests for tests.

#![allow(dead_code)] // No test needs all of it.

use std::sync::Arc;

use pbs_cluster_planner::{
    Limit, Limited, Machine, NodeSpec, Planner, Request, RequestId, Resource, Rules, State, When,
};
use pbs_site::Whom;

pub(crate) const ALWAYS: std::ops::Range<u64> = 0..u64::MAX;
pub(crate) const HOUR: u64 = 3600;
pub(crate) const DAY: u64 = 24 * HOUR;

pub(crate) fn spec(name: &str, cores: u64) -> NodeSpec {
    NodeSpec::new(name, vec![cores])
}

pub(crate) fn ncpus() -> Resource {
    Resource { name: "ncpus".into(), job_wide: None }
}

/// Nodes n1, n2 ... with so many cores.
pub(crate) fn nodes(cores: &[u64]) -> Planner {
    with_rules(cores, Rules::default())
}

pub(crate) fn with_rules(cores: &[u64], rules: Rules) -> Planner {
    let specs = cores.iter().enumerate();
    let specs: Vec<_> = specs.map(|(at, &cores)| spec(&format!("n{}", at + 1), cores)).collect();
    Planner::new(Arc::new(Machine::new(vec![ncpus()], &specs)), rules)
}

/// Creates a planner with additional resources, of nodes or job-wide.
pub(crate) fn on(others: &[(&str, Option<u64>)], nodes: &[NodeSpec], rules: Rules) -> Planner {
    let others = others.iter().map(|&(name, job_wide)| Resource { name: name.into(), job_wide });
    let resources = [ncpus()].into_iter().chain(others).collect();
    Planner::new(Arc::new(Machine::new(resources, nodes)), rules)
}

pub(crate) fn ask(rset: &str, duration_s: u64) -> Request {
    Request::new(rset.parse().unwrap(), duration_s)
}

pub(crate) fn fixed(rset: &str, start_s: u64, duration_s: u64) -> Request {
    Request { when: When::Fixed { start_s }, ..ask(rset, duration_s) }
}

pub(crate) fn start(planner: &Planner, id: RequestId) -> Option<u64> {
    match planner.state(id) {
        Some(State::Planned { start_s } | State::Running { start_s, .. }) => Some(start_s),
        _ => None,
    }
}

/// Submits, and tells the start.
pub(crate) fn submit(planner: &mut Planner, now_s: u64, request: &Request) -> u64 {
    let id = planner.submit(now_s, request).unwrap();
    start(planner, id).expect("it has a place")
}

pub(crate) fn names(planner: &Planner, id: RequestId) -> Vec<String> {
    let placed = planner.placed(id).iter();
    placed.map(|placed| planner.machine().node_name(placed.node as usize).to_string()).collect()
}

pub(crate) fn limit(whom: Whom, of: Limited, valid: std::ops::Range<u64>) -> Limit {
    Limit {
        whom,
        of,
        items: None,
        soft_permille: None,
        duration_s: None,
        area_s: None,
        valid: vec![valid],
    }
}
