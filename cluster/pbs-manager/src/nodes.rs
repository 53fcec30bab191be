// SPDX-License-Identifier: GPL-2.0
//! Operations of operators on nodes.

use crate::ledger::{NodeRow, NodeState, Phase, Row, State};
use pbs_cluster_planner::{Replanned, RequestId};

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;
use crate::record::RequestRecord;
use crate::wish::Caller;

impl<E: Engine> Manager<E> {
    /// Takes a node out of use. Offline: running requests end there. Down: they are aborted, or
    /// planned again if they are restartable, unless the engine watches them by itself. Requests
    /// that have not started there are planned elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`]; the operation is reserved for operators.
    pub fn node_out(
        &mut self,
        caller: &Caller,
        name: &str,
        state: NodeState,
        why: &str,
    ) -> Result<Replanned, Error> {
        caller.as_operator("take nodes out or back")?;
        let node = self.node(name)?;
        let replanned = self.withdraw(node, name, state, why);
        self.settle();
        self.commit()?;
        Ok(replanned)
    }

    /// Takes a node into use again: waiting requests are planned, and others may move up.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`]; the operation is reserved for operators.
    pub fn node_back(&mut self, caller: &Caller, name: &str) -> Result<Replanned, Error> {
        caller.as_operator("take nodes out or back")?;
        let node = self.node(name)?;
        let replanned = self.bring_back(node, name);
        self.settle();
        self.commit()?;
        Ok(replanned)
    }

    /// A node is in use again.
    pub(crate) fn bring_back(&mut self, node: usize, name: &str) -> Replanned {
        let replanned = self.planner.node_up(self.clock_s, node);
        for &reservation in &self.reservations {
            if let Some(inside) = self.planner.inside_mut(reservation) {
                if let Some(node) = inside.machine().node_by_name(name) {
                    inside.node_up(self.clock_s, node);
                }
            }
        }
        if self.nodes_out.remove(name).is_some() {
            self.journal.node_back(name);
            self.tell(None, "node online", name.into());
        }
        replanned
    }

    /// A node is down or offline.
    pub(crate) fn withdraw(
        &mut self,
        node: usize,
        name: &str,
        state: NodeState,
        why: &str,
    ) -> Replanned {
        let clock_s = self.clock_s;
        let mut aborted = Vec::new();
        // An engine that watches requests by itself reports what becomes of them.
        if state == NodeState::Down && self.engine.fixed_before_s().is_none() {
            for row in self.running_on(node, name) {
                if !self.records.contains_key(&row.id) {
                    // It has ended with its reservation.
                    continue;
                }
                // What has not begun loses nothing.
                let may_restart = row.is_restartable || row.phase == Some(Phase::Allocating);
                if may_restart && row.within.is_none() {
                    self.begin_again(&row, &format!("node {name} failed"));
                } else {
                    let failed = format!("node {name} failed");
                    self.finish(row.id, row.outcome.as_deref().unwrap_or(&failed));
                    aborted.push(row.id);
                }
            }
        }
        let held: Vec<RequestId> = self.reservations.iter().copied().collect();
        for reservation in held {
            self.withdraw_inside(reservation, node, name);
        }
        let mut replanned = self.planner.node_offline(clock_s, node);
        replanned.aborted = aborted;
        for &id in &replanned.moved {
            self.tell(Some(id), "moved", format!("node {name} is {}", state.name()));
        }
        for &id in &replanned.waiting {
            self.tell(Some(id), "waits", format!("node {name} is {}", state.name()));
        }
        let row = NodeRow { name: name.into(), state, why: why.into(), since_s: clock_s };
        self.tell(None, &format!("node {}", state.name()), format!("{name}: {why}"));
        self.nodes_out.insert(name.into(), row.clone());
        self.journal.node_out(row);
        replanned
    }

    /// A reservation that holds the node: what is planned in it goes to others of its
    /// nodes; if it has not begun it is held elsewhere, and what is planned in it ends.
    fn withdraw_inside(&mut self, reservation: RequestId, node: usize, name: &str) {
        let placed = self.planner.placed(reservation).iter();
        if !placed.into_iter().any(|placed| placed.node as usize == node) {
            return;
        }
        let clock_s = self.clock_s;
        let is_running = self.planner.standing(reservation).is_some_and(|it| it.is_running);
        match self.planner.inside_mut(reservation).filter(|_| is_running) {
            Some(inside) => {
                if let Some(node) = inside.machine().node_by_name(name) {
                    inside.node_offline(clock_s, node);
                }
            }
            None => self.end_inside(reservation, "its reservation has moved; submit again"),
        }
    }

    /// Returns the requests that run on a node. A reservation is among them if it has no other node
    /// left; otherwise it keeps its other nodes, and the requests on them.
    fn running_on(&self, node: usize, name: &str) -> Vec<Row> {
        let is_on = |(id, record): &(&RequestId, &RequestRecord)| match record.within {
            None => self.planner.placed(**id).iter().any(|of| of.node as usize == node),
            Some(_) => true,
        };
        let rows = self.records.iter().filter(is_on).filter_map(|(&id, _)| self.row(id));
        let is_down =
            |of: &str| self.nodes_out.get(of).is_some_and(|of| of.state == NodeState::Down);
        let is_left =
            |row: &Row| row.nodes.iter().any(|part| part.node != name && !is_down(&part.node));
        let runs = |row: &Row| row.state == State::Running && !(row.is_reservation && is_left(row));
        // A reservation has nodes with other numbers, and the same names.
        let has_node = |row: &Row| row.nodes.iter().any(|part| part.node == name);
        rows.filter(|row| runs(row) && has_node(row)).collect()
    }

    fn node(&self, name: &str) -> Result<usize, Error> {
        let node = self.machine.node_by_name(name);
        node.ok_or_else(|| Error::NoNode(name.into()))
    }
}
