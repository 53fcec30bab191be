// SPDX-License-Identifier: GPL-2.0
//! Times in which nodes are closed, such as for maintenance.

use std::ops::Range;

use pbs_cluster_planner::Replanned;

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::ClosedRow;
use crate::manager::Manager;
use crate::nodes::nodes_are;
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
        let mut changed = Vec::new();
        for (node, mut row) in nodes.into_iter().zip(closed) {
            row.times.retain(|&(from_s, end_s)| from_s < end_s && end_s > self.clock_s);
            row.times.sort_unstable();
            row.times.truncate(MOST_TIMES);
            let before = self.closed.get(&row.name);
            if before.map_or(!row.times.is_empty(), |before| *before != row) {
                changed.push((node, row));
            }
        }
        if changed.is_empty() {
            return Ok(Replanned::default());
        }
        let replanned = self.plan_with_closed(&changed);
        for (_, row) in changed {
            if row.times.is_empty() {
                self.tell(None, "node open", row.name.clone());
                self.closed.remove(&row.name);
            } else {
                self.tell(None, "node closed", format!("{}: {}", row.name, row.why));
                self.closed.insert(row.name.clone(), row.clone());
            }
            self.journal.closed(row);
        }
        self.settle();
        self.commit()?;
        Ok(replanned)
    }

    /// Opens all nodes, and says which and why; `None`: none was closed. Only the planner over Slurm
    /// updates the times in which nodes are closed: without Slurm they would be obeyed for ever.
    /// The caller writes the changes.
    pub fn open_all(&mut self) -> Option<String> {
        let rows: Vec<ClosedRow> = std::mem::take(&mut self.closed).into_values().collect();
        let opened = rows.into_iter().map(|row| ClosedRow { times: Vec::new(), ..row });
        let opened: Vec<ClosedRow> = opened.collect();
        let known = opened.iter().filter_map(|row| {
            let node = self.machine.node_by_name(&row.name)?;
            Some((node, row.clone()))
        });
        let known: Vec<_> = known.collect();
        self.plan_with_closed(&known);
        let names = opened.iter().map(|row| row.name.as_str());
        let told = (!opened.is_empty()).then(|| {
            let open = nodes_are(names, "open again");
            format!("{open}: only pbsctl cluster serve --slurm updates the times of closed nodes")
        });
        for row in opened {
            self.tell(None, "node open", row.name.clone());
            self.journal.closed(row);
        }
        told
    }

    /// Restores the closed times of a ledger, but for nodes that the site does not have any more.
    pub(crate) fn restore_closed(&mut self, rows: Vec<ClosedRow>) {
        let node = |row: ClosedRow| Some((self.machine.node_by_name(&row.name)?, row));
        let known: Vec<_> = rows.iter().cloned().filter_map(node).collect();
        self.plan_with_closed(&known);
        self.closed.extend(rows.into_iter().map(|row| (row.name.clone(), row)));
    }

    /// Plans with nodes closed, also what is planned in reservations that move.
    fn plan_with_closed(&mut self, closed: &[(usize, ClosedRow)]) -> Replanned {
        let nodes: Vec<usize> = closed.iter().map(|&(node, _)| node).collect();
        let times = closed.iter().map(|(node, row)| {
            let times: Vec<Range<u64>> =
                row.times.iter().map(|&(from_s, end_s)| from_s..end_s).collect();
            (*node, times)
        });
        let inside = self.planned_inside(&nodes);
        let replanned = self.planner.set_closed_all(self.clock_s, times.collect());
        self.move_inside(inside, &replanned);
        let names = closed.iter().map(|(_, row)| row.name.as_str());
        let is_open = closed.iter().all(|(_, row)| row.times.is_empty());
        let state = if is_open { "open again" } else { "closed for a time" };
        self.tell_replanned(&replanned, &nodes_are(names, state));
        replanned
    }
}
