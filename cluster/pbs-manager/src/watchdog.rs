// SPDX-License-Identifier: GPL-2.0
//! Nodes that are not heard of any more (Keller, 3: the island manager's watchdog).

use crate::ledger::{NodeRow, NodeState};

use crate::engine::Engine;
use crate::manager::Manager;

/// Reason of a node that is down because it was silent. The node is up again once it is heard from.
const SILENT: &str = "not heard of for too long";

impl<E: Engine> Manager<E> {
    /// Takes silent nodes out of use, and nodes that are heard from again back into use.
    pub(crate) fn watch(&mut self) {
        let Some(limit_s) = self.site.watchdog_s else {
            return;
        };
        let (mut silent, mut back) = (Vec::new(), Vec::new());
        for (name, heard_s) in self.engine.heard() {
            let Some(node) = self.machine.node_by_name(&name) else {
                continue;
            };
            let is_silent = self.clock_s >= heard_s.saturating_add(limit_s);
            let out = self.nodes_out.get(&name);
            if is_silent && out.is_none() {
                silent.push((node, name));
            } else if !is_silent && out.is_some_and(is_by_watchdog) {
                back.push((node, name));
            }
        }
        // Those that are back first: what leaves the others may find its place there.
        if !back.is_empty() {
            self.bring_back(&back);
        }
        if !silent.is_empty() {
            self.withdraw(&silent, NodeState::Down, SILENT);
        }
    }

    /// Returns the time at which the next node will have been silent for too long.
    pub(crate) fn next_watch_s(&self) -> Option<u64> {
        let limit_s = self.site.watchdog_s?;
        let heard = self.engine.heard().into_iter();
        let watched = heard.filter(|(name, _)| {
            self.machine.node_by_name(name).is_some() && !self.nodes_out.contains_key(name)
        });
        watched.map(|(_, heard_s)| heard_s.saturating_add(limit_s)).min()
    }
}

fn is_by_watchdog(row: &NodeRow) -> bool {
    row.state == NodeState::Down && row.why == SILENT
}
