// SPDX-License-Identifier: GPL-2.0
//! Time goes on.

use pbs_cluster::RequestId;
use pbs_ledger::{NodeState, Row};

use crate::engine::{Allocation, Engine, Happened};
use crate::error::Error;
use crate::manager::Manager;

/// So many requests are looked at for a better place at once.
const LOOKS: usize = 1024;

impl<E: Engine> Manager<E> {
    /// Lets time go on until then, from event to event: what ends, starts, is over its time
    /// or unconfirmed. It is written down once, at the end. Time does not go back.
    ///
    /// # Errors
    ///
    /// What the disk says.
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

    /// When something is to be done next.
    pub fn next_s(&self) -> Option<u64> {
        let inside = self.reservations.iter().filter_map(|&id| {
            let is_running = self.planner.standing(id)?.is_running;
            let next_s = self.planner.inside(id)?.next_start_s();
            next_s.filter(|_| is_running)
        });
        let first = |of: &std::collections::BTreeSet<(u64, RequestId)>| of.first().map(|it| it.0);
        [
            self.planner.next_start_s(),
            self.planner.next_drop_s(),
            self.engine.next_s(),
            first(&self.ends),
            first(&self.notices),
            inside.min(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// All that is to be done by now.
    fn step(&mut self) {
        for happened in self.engine.happened(self.clock_s) {
            match happened {
                Happened::Ended { request, outcome } => self.end(request, &outcome),
                Happened::PredictedEnd { request, end_s } => self.predicted(request, end_s),
                Happened::NodeFailed { node, why } => {
                    if let Some(place) = self.machine.node_by_name(&node) {
                        self.withdraw(place, &node, NodeState::Down, &why);
                    }
                }
            }
        }
        while let Some(&(_, id)) = self.ends.first().filter(|it| it.0 <= self.clock_s) {
            self.ends.pop_first();
            let is_reservation = self.reservations.contains(&id);
            self.end(
                id,
                if is_reservation {
                    "over"
                } else {
                    "aborted at its end"
                },
            );
        }
        for id in self.planner.unconfirmed(self.clock_s) {
            self.end(id, "not confirmed in time");
        }
        for id in self.planner.hopeless(self.clock_s) {
            self.end(id, "no place in its time");
        }
        self.settle();
        self.start();
        while let Some(&(_, id)) = self.notices.first().filter(|it| it.0 <= self.clock_s) {
            self.notices.pop_first();
            self.engine.notify(id);
            self.tell(Some(id), "notified", "it ends soon".into());
        }
        self.planner.forget_before(self.clock_s);
    }

    /// Everybody gets its turn for a better place. Nobody moves to later.
    pub(crate) fn settle(&mut self) {
        let clock_s = self.clock_s;
        if self.planner.is_backfilling() {
            while self.planner.is_backfilling() {
                self.planner.backfill(clock_s, LOOKS);
            }
            self.planner.plan_waiting(clock_s);
        }
        for &reservation in &self.reservations {
            if let Some(inside) = self.planner.inside_mut(reservation) {
                while inside.is_backfilling() {
                    inside.backfill(clock_s, LOOKS);
                }
            }
        }
    }

    fn start(&mut self) {
        let clock_s = self.clock_s;
        let mut started = Vec::new();
        self.planner.start(clock_s, &mut started);
        for &reservation in &self.reservations {
            let is_running = self
                .planner
                .standing(reservation)
                .is_some_and(|it| it.is_running);
            if let Some(inside) = self.planner.inside_mut(reservation).filter(|_| is_running) {
                inside.start(clock_s, &mut started);
            }
        }
        for id in started {
            self.tell(Some(id), "started", String::new());
            self.begin(id);
        }
    }

    /// A request has its nodes: the engine is told, and its end is expected.
    pub(crate) fn begin(&mut self, id: RequestId) {
        self.expect_end(id);
        let (Some(row), Some(known)) = (self.row(id), self.known.get(&id)) else {
            return;
        };
        let (Some(from_s), Some(until_s)) = (row.start_s, row.end_s) else {
            return;
        };
        if known.is_reservation {
            return;
        }
        let Some(planner) = self.planner_of(known.within) else {
            return;
        };
        let resources = planner.machine().resources();
        let nodes = planner.used_by(id).into_iter().map(|(node, amounts)| {
            let given = resources
                .iter()
                .zip(amounts)
                .filter(|(_, amount)| *amount > 0);
            let given = given.map(|(resource, amount)| (resource.name.clone(), amount));
            (
                planner.machine().node_name(node).to_string(),
                given.collect(),
            )
        });
        let allocation = Allocation {
            request: id,
            user: row.user,
            command: row.command,
            nodes: nodes.collect(),
            from_s,
            until_s,
            run_s: row.run_s,
        };
        self.engine.start(&allocation);
    }

    /// A request will need longer than it may: it gets that, as far as the site allows and
    /// nobody else is planned; otherwise it is aborted at its end.
    fn predicted(&mut self, id: RequestId, end_s: u64) {
        let Some(until_s) = self.row(id).and_then(|row| row.end_s) else {
            return;
        };
        let by_s = end_s.saturating_sub(until_s);
        if by_s == 0 {
            return;
        }
        match self.lengthen(id, by_s) {
            Ok(()) => self.tell(Some(id), "extended", format!("by {by_s} s, as predicted")),
            Err(why) => self.tell(
                Some(id),
                "late",
                format!("by {by_s} s, as predicted; {why}"),
            ),
        }
    }

    /// A running request is over at its end at the latest, and its user is told before.
    pub(crate) fn expect_end(&mut self, id: RequestId) {
        let Some(row) = self.row(id) else { return };
        let Some(end_s) = row.end_s else { return };
        self.ends.insert((end_s, id));
        if let Some(notify_s) = row.notify_s {
            let notice_s = end_s.saturating_sub(notify_s);
            if notice_s > self.clock_s {
                self.notices.insert((notice_s, id));
            }
        }
    }

    pub(crate) fn forget_end(&mut self, row: &Row) {
        let end_s = row.end_s.unwrap_or(0);
        self.ends.remove(&(end_s, row.id));
        let notice_s = end_s.saturating_sub(row.notify_s.unwrap_or(0));
        self.notices.remove(&(notice_s, row.id));
    }

    /// A request is over, or not wanted any more.
    pub(crate) fn end(&mut self, id: RequestId, outcome: &str) {
        let Some(row) = self.row(id) else { return };
        let clock_s = self.clock_s;
        self.drop_inside(id, "its reservation is over");
        self.forget_end(&row);
        self.engine.stop(id);
        if let Some(planner) = self.planner_of_mut(row.within) {
            planner.remove(clock_s, id);
        }
        self.known.remove(&id);
        self.over(row, outcome);
    }

    /// What is in a reservation is over with it.
    pub(crate) fn drop_inside(&mut self, reservation: RequestId, outcome: &str) {
        if !self.reservations.contains(&reservation) {
            return;
        }
        self.end_inside(reservation, outcome);
        self.reservations.remove(&reservation);
    }

    /// All that is in a reservation is over.
    pub(crate) fn end_inside(&mut self, reservation: RequestId, outcome: &str) {
        let inside = self.known.iter();
        let inside = inside.filter(|(_, known)| known.within == Some(reservation));
        let ids: Vec<RequestId> = inside.map(|(&id, _)| id).collect();
        for id in ids {
            self.end(id, outcome);
        }
    }
}
