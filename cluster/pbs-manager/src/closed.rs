// SPDX-License-Identifier: GPL-2.0
//! Times in which nodes are closed, such as for maintenance.

use std::ops::Range;

use pbs_cluster_planner::Replanned;

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::ClosedRow;
use crate::manager::Manager;
use crate::wish::Caller;

/// Greatest number of times in which a node is closed. The first of them count.
const MOST_TIMES: usize = 400;

impl<E: Engine> Manager<E> {
    /// Sets the times in which nodes are closed; without times a node is open. They replace those
    /// before. Running requests continue; those that have not started and would run in such a time
    /// are planned anew.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], before anything is changed; the operation is reserved for operators.
    pub fn set_closed(
        &mut self,
        caller: &Caller,
        closed: Vec<ClosedRow>,
    ) -> Result<Replanned, Error> {
        caller.as_operator("close nodes for a time")?;
        let nodes = closed.iter().map(|row| self.node(&row.name)).collect::<Result<Vec<_>, _>>()?;
        let mut all = Replanned::default();
        let mut is_changed = false;
        for (node, mut row) in nodes.into_iter().zip(closed) {
            row.times.retain(|&(from_s, end_s)| from_s < end_s && end_s > self.clock_s);
            row.times.sort_unstable();
            row.times.truncate(MOST_TIMES);
            let before = self.closed.get(&row.name);
            if before.map_or(row.times.is_empty(), |before| *before == row) {
                continue;
            }
            is_changed = true;
            let replanned = self.plan_with_closed(node, &row);
            self.tell_replanned(&replanned, &format!("node {} is closed for a time", row.name));
            all.moved.extend(replanned.moved);
            all.waiting.extend(replanned.waiting);
            all.shrunk.extend(replanned.shrunk);
            if row.times.is_empty() {
                self.tell(None, "node open", row.name.clone());
                self.closed.remove(&row.name);
            } else {
                self.tell(None, "node closed", format!("{}: {}", row.name, row.why));
                self.closed.insert(row.name.clone(), row.clone());
            }
            self.journal.closed(row);
        }
        if is_changed {
            self.settle();
            self.commit()?;
        }
        Ok(all)
    }

    /// Restores the closed times of a ledger, but for nodes that the site does not have any more.
    pub(crate) fn restore_closed(&mut self, rows: Vec<ClosedRow>) {
        for row in rows {
            if let Some(node) = self.machine.node_by_name(&row.name) {
                let replanned = self.plan_with_closed(node, &row);
                self.tell_replanned(&replanned, &format!("node {} is closed for a time", row.name));
            }
            self.closed.insert(row.name.clone(), row);
        }
    }

    /// Plans with a node closed, also what is planned in reservations that move.
    fn plan_with_closed(&mut self, node: usize, row: &ClosedRow) -> Replanned {
        let times: Vec<Range<u64>> =
            row.times.iter().map(|&(from_s, end_s)| from_s..end_s).collect();
        let inside = self.planned_inside(node);
        let replanned = self.planner.set_closed(self.clock_s, node, &times);
        self.move_inside(inside, &replanned);
        replanned
    }
}
