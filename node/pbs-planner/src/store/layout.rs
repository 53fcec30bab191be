// SPDX-License-Identifier: GPL-2.0
//! A machine as the store sees it: cores, memories, and groups of like cores.

use std::cmp::Reverse;

use pbs_job::Machine;
use pbs_profile::Profile;

use super::gaps::{Gap, Gaps};
use super::{Balancing, Capacity};

/// A core as the store sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index of its node.
    pub node: usize,
    /// Instructions of plans that the core retires in a second: the part of its rate that its
    /// [`Capacity`] leaves.
    pub rate_insns_per_s: u64,
    /// Instructions that the core retires in a second.
    pub(super) core_rate_insns_per_s: u64,
    /// Number of the memory of which its processes have theirs.
    pub memory: usize,
    pub(super) group: u32,
}

/// Cores of the same rate that share a memory.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Index of the group.
    pub(crate) index: usize,
    pub(crate) rate_insns_per_s: u64,
    pub(crate) memory: usize,
    pub(crate) gaps: Gaps,
}

/// Parts of a store for a machine of which nothing is reserved.
pub(super) struct Layout {
    pub(super) sites: Vec<Site>,
    pub(super) memories: Vec<Profile>,
    pub(super) groups: Vec<Group>,
    /// Indices of the groups, the fastest first.
    pub(super) by_rate: Vec<usize>,
}

impl Layout {
    pub(super) fn new(machine: &Machine, balancing: Balancing, capacity: Capacity) -> Self {
        let mut sites: Vec<Site> = Vec::new();
        let mut memories = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut free: Vec<Vec<Gap>> = Vec::new();
        for (index, node) in machine.nodes.iter().enumerate() {
            // Of this node.
            let mut first_group = groups.len();
            if balancing != Balancing::Static {
                memories.push(Profile::new(balancing.memory_bytes(node)));
            }
            for core in &node.cores {
                if balancing == Balancing::Static {
                    memories.push(Profile::new(balancing.memory_bytes(node)));
                    first_group = groups.len();
                }
                let rate_insns_per_s = capacity.planned_rate(core.rate_insns_per_s);
                let same = |group: &Group| group.rate_insns_per_s == rate_insns_per_s;
                let found = groups[first_group..].iter().position(same);
                let group = found.map_or(groups.len(), |found| first_group + found);
                if found.is_none() {
                    groups.push(Group {
                        index: group,
                        rate_insns_per_s,
                        memory: memories.len() - 1,
                        gaps: Gaps::default(),
                    });
                    free.push(Vec::new());
                }
                free[group].push(Gap { start_ns: 0, end_ns: u64::MAX, core: sites.len() as u32 });
                sites.push(Site {
                    node: index,
                    rate_insns_per_s,
                    core_rate_insns_per_s: core.rate_insns_per_s,
                    memory: memories.len() - 1,
                    group: group as u32,
                });
            }
        }
        for (group, free) in groups.iter_mut().zip(free) {
            group.gaps = Gaps::new(free);
        }
        let mut by_rate: Vec<usize> = (0..groups.len()).collect();
        by_rate.sort_by_key(|&group| Reverse(groups[group].rate_insns_per_s));
        Self { sites, memories, groups, by_rate }
    }
}
