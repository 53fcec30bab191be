// SPDX-License-Identifier: GPL-2.0
//! Operations of operators on nodes.

use std::collections::HashSet;

use crate::ledger::{NodeRow, NodeState, Phase, Row, State};
use pbs_cluster_planner::{Placed, Replanned, RequestId, SearchBudget, Standing};

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;
use crate::record::RequestRecord;
use crate::wish::Caller;

/// Place of a node in the machine, and its name.
pub(crate) type NamedNode = (usize, String);

/// Nodes that are named to a request that moves.
const MOST_NAMED: usize = 8;

impl<E: Engine> Manager<E> {
    /// Takes nodes out of use. Offline: running requests end there. Down: they are aborted, or
    /// planned again if they are restartable, unless the engine watches them by itself. Requests
    /// that have not started there are planned elsewhere, once for all these nodes.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], before anything is changed; the operation is reserved for operators.
    pub fn nodes_out_of_use(
        &mut self,
        caller: &Caller,
        names: &[&str],
        state: NodeState,
        why: &str,
    ) -> Result<Replanned, Error> {
        caller.as_operator("take nodes out or back")?;
        let nodes = self.nodes_named(names)?;
        let replanned = self.withdraw(&nodes, state, why);
        self.settle();
        self.commit()?;
        Ok(replanned)
    }

    /// Takes a node out of use, as [`Self::nodes_out_of_use`] does.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::nodes_out_of_use`].
    pub fn node_out(
        &mut self,
        caller: &Caller,
        name: &str,
        state: NodeState,
        why: &str,
    ) -> Result<Replanned, Error> {
        self.nodes_out_of_use(caller, &[name], state, why)
    }

    /// Takes nodes into use again: waiting requests are planned, and others may move up.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`], before anything is changed; the operation is reserved for operators.
    pub fn nodes_back(&mut self, caller: &Caller, names: &[&str]) -> Result<Replanned, Error> {
        caller.as_operator("take nodes out or back")?;
        let nodes = self.nodes_named(names)?;
        let replanned = self.bring_back(&nodes);
        self.settle();
        self.commit()?;
        Ok(replanned)
    }

    /// Takes a node into use again, as [`Self::nodes_back`] does.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::nodes_back`].
    pub fn node_back(&mut self, caller: &Caller, name: &str) -> Result<Replanned, Error> {
        self.nodes_back(caller, &[name])
    }

    /// Nodes are in use again.
    pub(crate) fn bring_back(&mut self, nodes: &[NamedNode]) -> Replanned {
        let places: Vec<usize> = nodes.iter().map(|(node, _)| *node).collect();
        let replanned = self.planner.nodes_up(self.clock_s, &places);
        for &reservation in &self.reservations {
            if let Some(inside) = self.planner.inside_mut(reservation) {
                let known =
                    nodes.iter().filter_map(|(_, name)| inside.machine().node_by_name(name));
                let known: Vec<usize> = known.collect();
                inside.nodes_up(self.clock_s, &known);
            }
        }
        for (_, name) in nodes {
            if self.nodes_out.remove(name).is_some() {
                self.journal.node_back(name);
                self.tell(None, "node online", name.clone());
            }
        }
        replanned
    }

    /// Nodes are down or offline.
    pub(crate) fn withdraw(
        &mut self,
        nodes: &[NamedNode],
        state: NodeState,
        why: &str,
    ) -> Replanned {
        let clock_s = self.clock_s;
        let names: HashSet<&str> = nodes.iter().map(|(_, name)| name.as_str()).collect();
        let places: Vec<usize> = nodes.iter().map(|(node, _)| *node).collect();
        let mut aborted = Vec::new();
        // An engine that watches requests by itself reports what becomes of them.
        if state == NodeState::Down && self.engine.fixed_before_s().is_none() {
            for (row, name) in self.running_on(&places, &names) {
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
            self.withdraw_inside(reservation, &names);
        }
        let inside = self.planned_inside(&places);
        let mut replanned = self.planner.nodes_offline(clock_s, &places);
        replanned.aborted = aborted;
        self.move_inside(inside, &replanned);
        let named = nodes.iter().map(|(_, name)| name.as_str());
        self.tell_replanned(&replanned, &nodes_are(named, state.name()));
        for (_, name) in nodes {
            let row = NodeRow { name: name.clone(), state, why: why.into(), since_s: clock_s };
            self.tell(None, &format!("node {}", state.name()), format!("{name}: {why}"));
            self.nodes_out.insert(name.clone(), row.clone());
            self.journal.node_out(row);
        }
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
    fn withdraw_inside(&mut self, reservation: RequestId, names: &HashSet<&str>) {
        let is_running = self.planner.standing(reservation).is_some_and(|it| it.is_running);
        let clock_s = self.clock_s;
        if let Some(inside) = self.planner.inside_mut(reservation).filter(|_| is_running) {
            let machine = inside.machine();
            let lost = names.iter().filter_map(|name| machine.node_by_name(name));
            let lost: Vec<usize> = lost.collect();
            if !lost.is_empty() {
                inside.nodes_offline(clock_s, &lost);
            }
        }
    }

    /// Returns the reservations on nodes that have not begun, each with the requests in it.
    pub(crate) fn planned_inside(&self, nodes: &[usize]) -> Vec<(RequestId, Vec<(Row, Standing)>)> {
        let nodes: HashSet<usize> = nodes.iter().copied().collect();
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
                self.plan_inside_again(reservation, requests);
            }
        }
    }

    /// Plans requests anew in a reservation that holds other nodes now. A request that has no place
    /// there ends; one that was not tried, as the budget of the call did not suffice, waits there.
    fn plan_inside_again(&mut self, reservation: RequestId, requests: Vec<(Row, Standing)>) {
        let clock_s = self.clock_s;
        let budget = SearchBudget::default();
        if let Some(inside) = self.planner.inside_mut(reservation) {
            for (row, standing) in &requests {
                let Some(record) = self.records.get(&row.id) else {
                    continue;
                };
                let waiting = Standing { start_s: None, nodes: Vec::new(), ..standing.clone() };
                // What does not fit there any more ends below.
                let _ = inside.restore(row.id, &record.request, &waiting);
            }
            inside.plan_waiting_later();
            while inside.is_planning_waiting() && !budget.is_empty() {
                inside.plan_some_waiting(clock_s, 1, &budget);
            }
        }
        let why = "its reservation has moved, and has no place for it; submit it again";
        for (row, _) in requests {
            match self.row(row.id).map(|row| row.state) {
                Some(State::Planned) => {
                    self.tell(Some(row.id), "moved", "with its reservation".into());
                }
                Some(_) if budget.is_empty() => {}
                Some(_) => self.end(row.id, why),
                None => {
                    self.records.remove(&row.id);
                    self.over(row, why);
                }
            }
        }
    }

    /// Returns the requests that run on nodes, each with a name of these. A reservation is among
    /// them if it has no other node left; otherwise it keeps its other nodes, and the requests on
    /// them.
    fn running_on(&self, nodes: &[usize], names: &HashSet<&str>) -> Vec<(Row, String)> {
        let nodes: HashSet<usize> = nodes.iter().copied().collect();
        let is_on = |(id, record): &(&RequestId, &RequestRecord)| match record.within {
            None => self.planner.placed(**id).iter().any(|of| nodes.contains(&(of.node as usize))),
            Some(_) => true,
        };
        let rows = self.records.iter().filter(is_on).filter_map(|(&id, _)| self.row(id));
        let is_down =
            |of: &str| self.nodes_out.get(of).is_some_and(|of| of.state == NodeState::Down);
        let is_left = |row: &Row| {
            row.nodes.iter().any(|part| !names.contains(&*part.node) && !is_down(&part.node))
        };
        let runs = |row: &Row| row.state == State::Running && !(row.is_reservation && is_left(row));
        // A reservation has nodes with other numbers, and the same names.
        let lost = |row: &Row| {
            let lost = row.nodes.iter().find(|part| names.contains(&*part.node));
            lost.map(|part| part.node.clone())
        };
        let with_name = rows.filter(runs).filter_map(|row| lost(&row).map(|name| (row, name)));
        with_name.collect()
    }

    pub(crate) fn node(&self, name: &str) -> Result<usize, Error> {
        let node = self.machine.node_by_name(name);
        node.ok_or_else(|| Error::NoNode(name.into()))
    }

    /// Returns nodes by their names, each of them once.
    fn nodes_named(&self, names: &[&str]) -> Result<Vec<NamedNode>, Error> {
        let named = names.iter().map(|name| Ok((self.node(name)?, (*name).to_owned())));
        let mut nodes = named.collect::<Result<Vec<NamedNode>, Error>>()?;
        let mut seen = HashSet::new();
        nodes.retain(|(node, _)| seen.insert(*node));
        Ok(nodes)
    }
}

/// Says that nodes are in some state. Some of them are named; there may be thousands.
pub(crate) fn nodes_are<'a>(names: impl Iterator<Item = &'a str>, state: &str) -> String {
    let mut all = names.collect::<Vec<_>>();
    let more = all.len().saturating_sub(MOST_NAMED);
    all.truncate(MOST_NAMED);
    match (all.len(), more) {
        (1, _) => format!("node {} is {state}", all[0]),
        (_, 0) => format!("nodes {} are {state}", all.join(" ")),
        _ => format!("nodes {} and {more} others are {state}", all.join(" ")),
    }
}
