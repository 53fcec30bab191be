// SPDX-License-Identifier: GPL-2.0
//! Account of a session: the accounting that the report leaves to future work.

use std::ops::Range;

use pbs_profile::view::Steps;
use serde::{Deserialize, Serialize};

use crate::{Kind, Prices};

/// Node-time of a session on all clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Pre-allocated, whether used or not.
    pub pre_allocated_node_ns: u128,
    /// Pre-allocated node-time that no non-preemptible request of the session used.
    pub idle_node_ns: u128,
    /// Used by non-preemptible requests.
    pub non_preemptible_node_ns: u128,
    /// Given to preemptible requests.
    pub preemptible_node_ns: u128,
    /// Node-time of preemptible requests that was kept although a view had asked for it.
    pub overstayed_node_ns: u128,
    /// Node-time lost by killing, as reported by the application.
    pub wasted_node_ns: u128,
    /// Besides, what non-preemptible requests had after their end, until a pass took it: who
    /// asks for next to no time again and again has nodes all the time.
    #[serde(default)]
    pub late_non_preemptible_node_ns: u128,
    /// Node-time that preemptible requests had after their end, until a pass took it.
    #[serde(default)]
    pub late_preemptible_node_ns: u128,
}

impl Account {
    /// Returns the cost, in millionths of the unit in which an hour of a node is priced.
    /// Pre-allocated node-time is charged as such while it is not used.
    pub fn cost_micro(&self, prices: &Prices) -> u128 {
        const HOUR_NS: u128 = 3_600_000_000_000;
        let of = |node_ns: u128, kind| node_ns.saturating_mul(u128::from(prices.of(kind)));
        let all = [
            of(self.idle_node_ns, Kind::PreAllocation),
            of(self.all_non_preemptible_node_ns(), Kind::NonPreemptible),
            of(self.all_preemptible_node_ns(), Kind::Preemptible),
        ];
        all.iter().fold(0, |sum, one| one.saturating_add(sum)) / HOUR_NS
    }

    /// Adds another account.
    pub fn add(&mut self, other: &Self) {
        for (sum, node_ns) in [
            (&mut self.pre_allocated_node_ns, other.pre_allocated_node_ns),
            (&mut self.idle_node_ns, other.idle_node_ns),
            (&mut self.non_preemptible_node_ns, other.non_preemptible_node_ns),
            (&mut self.preemptible_node_ns, other.preemptible_node_ns),
            (&mut self.overstayed_node_ns, other.overstayed_node_ns),
            (&mut self.wasted_node_ns, other.wasted_node_ns),
            (&mut self.late_non_preemptible_node_ns, other.late_non_preemptible_node_ns),
            (&mut self.late_preemptible_node_ns, other.late_preemptible_node_ns),
        ] {
            *sum = sum.saturating_add(node_ns);
        }
    }

    /// Returns the node-time of non-preemptible requests, until it was taken.
    pub fn all_non_preemptible_node_ns(&self) -> u128 {
        self.non_preemptible_node_ns.saturating_add(self.late_non_preemptible_node_ns)
    }

    /// Returns the node-time of preemptible requests, until it was taken.
    pub fn all_preemptible_node_ns(&self) -> u128 {
        self.preemptible_node_ns.saturating_add(self.late_preemptible_node_ns)
    }

    /// Counts nodes that were kept for so long after the end.
    pub(crate) fn count_late(&mut self, kind: Kind, nodes: usize, late_ns: u64) {
        let node_ns = match kind {
            // That has none.
            Kind::PreAllocation => return,
            Kind::NonPreemptible => &mut self.late_non_preemptible_node_ns,
            Kind::Preemptible => &mut self.late_preemptible_node_ns,
        };
        *node_ns += nodes as u128 * u128::from(late_ns);
    }

    /// Counts what booked requests of a cluster have from one time to another.
    pub(crate) fn count(
        &mut self,
        pre_allocated: &Steps,
        non_preemptible: &Steps,
        over: &Range<u64>,
    ) {
        self.pre_allocated_node_ns += pre_allocated.integral(over.clone());
        self.non_preemptible_node_ns += non_preemptible.integral(over.clone());
        let idle = pre_allocated.saturating_difference(non_preemptible);
        self.idle_node_ns += idle.integral(over.clone());
    }
}
