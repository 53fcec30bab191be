// SPDX-License-Identifier: GPL-2.0
//! Time goes on.

use std::iter::Peekable;
use std::vec::IntoIter;

use pbs_cluster_planner::{RequestId, SearchBudget};
use pbs_resources::format_duration;

use crate::engine::{Engine, Happened};
use crate::error::Error;
use crate::ledger::NodeState;
use crate::manager::Manager;
use crate::nodes::NamedNode;
use crate::phases::run_end_s;

/// Maximum number of requests that one pass searches for a better place. Replays have the same
/// default.
pub const MOST_BACKFILLS: usize = 1024;

impl<E: Engine> Manager<E> {
    /// Advances the time to `until_s`, from event to event: requests end, start, exceed their time
    /// or remain unconfirmed. Changes are written once, at the end. Time never goes back.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn advance(&mut self, until_s: u64) -> Result<(), Error> {
        while let Some(next_s) = self.next_s().filter(|&next_s| next_s <= until_s) {
            self.clock_s = self.clock_s.max(next_s);
            self.step();
        }
        self.clock_s = self.clock_s.max(until_s);
        // Not all that happens was known before.
        self.step();
        self.commit()
    }

    /// Resumes after a time without a manager, in which only the engine could start requests. `did`
    /// returns the start of each request that the engine started. The others are planned anew.
    /// Events of requests that ran before are reported as usual.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn wake(
        &mut self,
        now_s: u64,
        did: &dyn Fn(RequestId) -> Option<u64>,
    ) -> Result<(), Error> {
        self.clock_s = self.clock_s.max(now_s);
        let started = self.planner.wake(self.clock_s, &|id| did(id).is_some());
        for id in started {
            self.tell(Some(id), "started", "while the planner was away".into());
            if let (Some(row), Some(start_s)) = (self.row(id), did(id)) {
                self.make_up(&row, start_s);
            }
            self.begin(id);
        }
        // At once, as far as a call may: new requests would take their room.
        self.planner.plan_waiting(self.clock_s);
        self.settle();
        self.commit()
    }

    /// Returns the time of the next action.
    pub fn next_s(&self) -> Option<u64> {
        let inside = self.reservations.iter().filter_map(|&id| {
            let is_running = self.planner.standing(id)?.is_running;
            let next_s = self.planner.inside(id)?.next_start_s();
            next_s.filter(|_| is_running)
        });
        [
            self.planner.next_start_s(),
            self.planner.next_drop_s(),
            self.planner.next_look_s(),
            self.next_watch_s(),
            self.engine.next_s(),
            self.deadlines.next_s(),
            inside.min(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Performs all work that is due.
    fn step(&mut self) {
        let mut told = self.engine.happened(self.clock_s).into_iter().peekable();
        while let Some(happened) = told.next() {
            match happened {
                Happened::Ended { request, outcome } => self.ended(request, &outcome),
                Happened::Allocated { request } => self.allocated(request),
                Happened::Released { request } => self.released(request),
                Happened::PredictedEnd { request, end_s } => self.predicted(request, end_s),
                Happened::NotStarted { request, why } => self.not_started(request, &why),
                Happened::RunsElsewhere { request, nodes } => {
                    self.runs_elsewhere(request, &nodes);
                }
                // What is planned on many nodes is planned again once, where their reports stand
                // together and say the same.
                Happened::NodeFailed { node, why } => {
                    let nodes = self.nodes_told(node, &mut told, |next| match next {
                        Happened::NodeFailed { node, why: theirs } if *theirs == why => Some(node),
                        _ => None,
                    });
                    self.out_as_told(&nodes, NodeState::Down, &why);
                }
                Happened::NodeDrained { node, why } => {
                    let nodes = self.nodes_told(node, &mut told, |next| match next {
                        Happened::NodeDrained { node, why: theirs } if *theirs == why => Some(node),
                        _ => None,
                    });
                    self.out_as_told(&nodes, NodeState::Offline, &why);
                }
                Happened::NodeBack { node } => {
                    let nodes = self.nodes_told(node, &mut told, |next| match next {
                        Happened::NodeBack { node } => Some(node),
                        _ => None,
                    });
                    if !nodes.is_empty() {
                        self.bring_back(&nodes);
                    }
                }
            }
        }
        self.watch();
        while let Some(id) = self.deadlines.pop_end(self.clock_s) {
            self.is_due(id);
        }
        for id in self.planner.unconfirmed(self.clock_s) {
            self.end(id, "not confirmed in time");
        }
        for id in self.planner.hopeless(self.clock_s) {
            self.end(id, "no place in its time");
        }
        self.settle();
        if self.planner.next_look_s().is_some_and(|look_s| look_s <= self.clock_s) {
            self.plan_waiting();
        }
        self.start();
        while let Some(id) = self.deadlines.pop_notice(self.clock_s) {
            self.engine.notify(id);
            self.tell(Some(id), "notified", "it ends soon".into());
        }
        self.planner.forget_before(self.clock_s);
    }

    /// Takes reports that say the same of other nodes off `told`, and returns the nodes of all,
    /// `first` among them, in the order of the machine. `node` names the node of a report that says
    /// the same.
    fn nodes_told(
        &self,
        first: String,
        told: &mut Peekable<IntoIter<Happened>>,
        node: impl Fn(&Happened) -> Option<&String>,
    ) -> Vec<NamedNode> {
        let mut names = vec![first];
        while let Some(name) = told.peek().and_then(&node) {
            names.push(name.clone());
            told.next();
        }
        let known = |name: String| Some((self.machine.node_by_name(&name)?, name));
        let mut nodes: Vec<NamedNode> = names.into_iter().filter_map(known).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn out_as_told(&mut self, nodes: &[NamedNode], state: NodeState, why: &str) {
        if !nodes.is_empty() {
            self.withdraw(nodes, state, why);
        }
    }

    /// Everybody gets its turn for a better place. Nobody moves to later.
    pub(crate) fn settle(&mut self) {
        if self.is_deferred {
            return;
        }
        let clock_s = self.clock_s;
        self.plan_all_waiting();
        if self.planner.is_backfilling() {
            while self.planner.is_backfilling() {
                self.planner.backfill(clock_s, MOST_BACKFILLS);
            }
            self.plan_waiting();
        }
        for &reservation in &self.reservations {
            if let Some(inside) = self.planner.inside_mut(reservation) {
                while inside.is_planning_waiting() {
                    inside.plan_some_waiting(clock_s, 1, &SearchBudget::default());
                }
                while inside.is_backfilling() {
                    inside.backfill(clock_s, MOST_BACKFILLS);
                }
            }
        }
    }

    fn start(&mut self) {
        let clock_s = self.clock_s;
        let mut started = Vec::new();
        self.planner.start(clock_s, &mut started);
        for &reservation in &self.reservations {
            let is_running = self.planner.standing(reservation).is_some_and(|it| it.is_running);
            if let Some(inside) = self.planner.inside_mut(reservation).filter(|_| is_running) {
                inside.start(clock_s, &mut started);
            }
        }
        for id in started {
            self.tell(Some(id), "started", String::new());
            self.begin(id);
        }
    }

    /// A request will need longer than it may: it gets that, as far as the site allows and
    /// nobody else is planned; otherwise it is aborted at its end.
    fn predicted(&mut self, id: RequestId, end_s: u64) {
        let Some(until_s) = self.row(id).and_then(|row| run_end_s(&row)) else {
            return;
        };
        let by_s = end_s.saturating_sub(until_s);
        if by_s == 0 {
            return;
        }
        match self.lengthen(id, by_s) {
            Ok(()) => self.tell(
                Some(id),
                "extended",
                format!("by {}, as predicted", format_duration(by_s)),
            ),
            Err(why) => self.tell(
                Some(id),
                "late",
                format!("by {}, as predicted; {why}", format_duration(by_s)),
            ),
        }
    }

    /// Ends the requests inside a reservation that ends.
    pub(crate) fn drop_inside(&mut self, reservation: RequestId, outcome: &str) {
        if !self.reservations.contains(&reservation) {
            return;
        }
        self.end_inside(reservation, outcome);
        self.reservations.remove(&reservation);
    }

    /// Ends all requests inside a reservation.
    pub(crate) fn end_inside(&mut self, reservation: RequestId, outcome: &str) {
        let inside = self.records.iter();
        let inside = inside.filter(|(_, record)| record.within == Some(reservation));
        let ids: Vec<RequestId> = inside.map(|(&id, _)| id).collect();
        for id in ids {
            self.end(id, outcome);
        }
    }
}
