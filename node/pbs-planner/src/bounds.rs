// SPDX-License-Identifier: GPL-2.0
//! Lower bounds for the end of any plan of a job.
//!
//! Each bound ignores all rules except one, and assumes an empty machine. A plan that ends at the
//! greatest bound is proven to be optimal. The greatest bound also limits how far any other plan
//! can be from the optimum.

use crate::reserve::net::Net;
use crate::reserve::Request;
use crate::store::{Balancing, Store};

/// Resource or rule that sets a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The critical path: the tasks wait for each other, each on the fastest core.
    Path,
    /// Core time: all that is to be retired, by all cores together that the job may
    /// run on.
    Cores,
    /// Memory over time: what each process holds, from its first task's start to
    /// its last one's end at the least, of the memory of all their nodes together.
    Memory,
    /// A resource over time: what each process holds of it, as of memory, of all that there is.
    Resource,
}

/// No plan of the job ends earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The time.
    pub end_ns: u64,
    /// Resource or rule that sets the bound.
    pub limit: Limit,
}

/// The time before which no plan of the run ends, on that machine.
pub fn lower_bound(store: &Store, request: &Request<'_>) -> Bound {
    let request = request.not_before(store.now_ns());
    lower(&request, &Net::new(&request, store), store)
}

pub(crate) fn lower(request: &Request<'_>, net: &Net, store: &Store) -> Bound {
    let bounds = [
        (net.rank_ns.iter().copied().max().unwrap_or(0), Limit::Path),
        (cores_ns(net, store), Limit::Cores),
        (memory_ns(request, net, store), Limit::Memory),
        (resources_ns(net, store), Limit::Resource),
    ];
    // The first of those that are equal.
    let greatest = bounds.into_iter().rev().max_by_key(|bound| bound.0);
    let (length_ns, limit) = greatest.unwrap_or((0, Limit::Path));
    Bound { end_ns: request.start_ns.saturating_add(length_ns), limit }
}

fn cores_ns(net: &Net, store: &Store) -> u64 {
    let fastest = net.fastest_rate(store);
    let rates = || net.sites(store).map(|site| site.rate_insns_per_s);
    let (is_uniform, cores) = match &net.confined {
        None => {
            let mut groups = store.groups_by_rate();
            let is_uniform = groups.all(|group| group.rate_insns_per_s == fastest);
            (is_uniform, store.sites().len())
        }
        Some(_) => (rates().all(|rate| rate == fastest), rates().count()),
    };
    if is_uniform {
        // Each task takes as long on any of them, in whole ticks.
        let lengths = net.shortest_ns.iter().copied().map(u128::from);
        let length_ns = lengths.sum::<u128>().div_ceil(cores.max(1) as u128);
        return u64::try_from(length_ns).unwrap_or(u64::MAX);
    }
    let insns: u128 = net.process_insns.iter().copied().map(u128::from).sum();
    let rate_insns_per_s: u128 = rates().map(u128::from).sum();
    quotient(insns * 1_000_000_000, rate_insns_per_s)
}

fn memory_ns(request: &Request<'_>, net: &Net, store: &Store) -> u64 {
    if store.balancing() == Balancing::Blind {
        return 0;
    }
    let processes = request.job.processes.iter().zip(&net.span_ns);
    let held = processes
        .map(|(process, &span_ns)| u128::from(process.memory_bytes).saturating_mul(span_ns.into()));
    let held = held.fold(0, u128::saturating_add);
    let bytes = net.nodes(store).map(|node| u128::from(node.memory_bytes));
    quotient(held, bytes.sum())
}

/// The longest of the times for which the resources are held.
fn resources_ns(net: &Net, store: &Store) -> u64 {
    let resources = &store.machine().resources;
    let mut held = vec![0u128; resources.len()];
    for (needs, &span_ns) in net.needs.iter().zip(&net.span_ns) {
        for of in &needs.resources {
            let more = u128::from(of.count) * u128::from(span_ns);
            held[of.resource] = held[of.resource].saturating_add(more);
        }
    }
    let times = held.iter().zip(resources).map(|(&held, of)| quotient(held, of.count.into()));
    times.max().unwrap_or(0)
}

fn quotient(much: u128, rate: u128) -> u64 {
    let time_ns = much.checked_div(rate).unwrap_or(0);
    u64::try_from(time_ns).unwrap_or(u64::MAX)
}
