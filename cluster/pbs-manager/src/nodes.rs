// SPDX-License-Identifier: GPL-2.0
//! Operations of operators on nodes.

use crate::ledger::{NodeRow, NodeState, Phase, Row, State};
use pbs_cluster_planner::{Placed, Replanned, RequestId, Standing};

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
        let inside = self.planned_inside(&[node]);
        let mut replanned = self.planner.node_offline(clock_s, node);
        replanned.aborted = aborted;
        for (reservation, requests) in inside {
            self.plan_inside_again(reservation, requests, &replanned);
        }
        self.tell_replanned(&replanned, &format!("node {name} is {}", state.name()));
        let row = NodeRow { name: name.into(), state, why: why.into(), since_s: clock_s };
        self.tell(None, &format!("node {}", state.name()), format!("{name}: {why}"));
        self.nodes_out.insert(name.into(), row.clone());
        self.journal.node_out(row);
        replanned
    }

    /// Reports to requests what became of them.
    pub(crate) fn tell_replanned(&mut self, replanned: &Replanned, why: &str) {
        for &id in &replanned.shrunk {
            self.tell(Some(id), "lost a node", format!("{why}; it keeps its others"));
        }
        for &id in &replanned.moved {
            self.tell(Some(id), "moved", why.into());
        }
        for &id in &replanned.waiting {
            self.tell(Some(id), "waits", why.into());
        }
    }

    /// Plans what is planned in a running reservation on other nodes of it.
    fn withdraw_inside(&mut self, reservation: RequestId, node: usize, name: &str) {
        let placed = self.planner.placed(reservation).iter();
        if !placed.into_iter().any(|placed| placed.node as usize == node) {
            return;
        }
        let clock_s = self.clock_s;
        let is_running = self.planner.standing(reservation).is_some_and(|it| it.is_running);
        if let Some(inside) = self.planner.inside_mut(reservation).filter(|_| is_running) {
            if let Some(node) = inside.machine().node_by_name(name) {
                inside.node_offline(clock_s, node);
            }
        }
    }

    /// Returns the reservations on a node that have not begun, each with the requests in it.
    pub(crate) fn planned_inside(&self, nodes: &[usize]) -> Vec<(RequestId, Vec<(Row, Standing)>)> {
        let reservations = self.reservations.iter().filter(|&&reservation| {
            let is_there = |placed: &Placed| nodes.contains(&(placed.node as usize));
            let standing = self.planner.standing(reservation);
            standing.is_some_and(|it| !it.is_running && it.nodes.iter().any(is_there))
        });
        let with_requests = reservations.filter_map(|&reservation| {
            let inside = self.planner.inside(reservation)?;
            let standing = |id| Some((self.row(id)?, inside.standing(id)?));
            Some((reservation, inside.requests().filter_map(standing).collect()))
        });
        with_requests.collect()
    }

    /// Plans requests anew in those reservations that hold other nodes now.
    pub(crate) fn move_inside(
        &mut self,
        inside: Vec<(RequestId, Vec<(Row, Standing)>)>,
        replanned: &Replanned,
    ) {
        for (reservation, requests) in inside {
            if replanned.moved.contains(&reservation) || replanned.waiting.contains(&reservation) {
                self.plan_inside_again(reservation, requests, replanned);
            }
        }
    }

    /// Plans requests anew in a reservation that holds other nodes now. A request that has no place
    /// there ends.
    pub(crate) fn plan_inside_again(
        &mut self,
        reservation: RequestId,
        requests: Vec<(Row, Standing)>,
        replanned: &Replanned,
    ) {
        if replanned.shrunk.contains(&reservation) {
            return;
        }
        let clock_s = self.clock_s;
        if let Some(inside) = self.planner.inside_mut(reservation) {
            for (row, standing) in &requests {
                let Some(record) = self.records.get(&row.id) else {
                    continue;
                };
                let waiting = Standing { start_s: None, nodes: Vec::new(), ..standing.clone() };
                // What does not fit there any more ends below.
                let _ = inside.restore(row.id, &record.request, &waiting);
            }
            inside.plan_waiting(clock_s);
        }
        let why = "its reservation has moved, and has no place for it; submit it again";
        for (row, _) in requests {
            match self.row(row.id).map(|row| row.state) {
                Some(State::Planned) => {
                    self.tell(Some(row.id), "moved", "with its reservation".into());
                }
                Some(_) => self.end(row.id, why),
                None => {
                    self.records.remove(&row.id);
                    self.over(row, why);
                }
            }
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

    pub(crate) fn node(&self, name: &str) -> Result<usize, Error> {
        let node = self.machine.node_by_name(name);
        node.ok_or_else(|| Error::NoNode(name.into()))
    }
}
