// SPDX-License-Identifier: GPL-2.0
//! From the moment at which a request has its nodes until it has them no more.
//!
//! On some engines nodes are made ready before and cleaned afterwards (Keller, 5.4: time
//! to allocate and to release, which is in the plan). A node that takes longer than the site allows
//! has failed, and is down. With an engine that starts requests by itself such a node only gets
//! nothing new until the engine reports that it is free.
//!
//! ```text
//! planned -> allocating -> running -> releasing -> ended
//! ```

use crate::ledger::{NodeState, Phase, Row, State, NOT_FREE};
use pbs_cluster_planner::RequestId;
use pbs_resources::{format_duration, Rset, Value};

use crate::engine::{Allocation, Engine};
use crate::manager::Manager;
use crate::outcome::ABORTED;

/// Threads that a request wants its programs to start: the greatest number of its chunks, since
/// all of them run the same command.
fn omp_threads(rset: &Rset) -> Option<u64> {
    let items = rset.chunks.iter().flat_map(|chunk| &chunk.items);
    let threads = items.filter(|item| item.resource == "ompthreads");
    let amounts = threads.filter_map(|item| match item.value {
        Value::Amount(amount) => Some(amount),
        Value::Word(_) => None,
    });
    amounts.max()
}

impl<E: Engine> Manager<E> {
    /// Returns the maximum times to make nodes ready, and to clean them.
    pub(crate) fn margins_s(&self) -> (u64, u64) {
        if self.engine.has_phases() {
            (self.site.allocate_timeout_s, self.site.release_timeout_s)
        } else {
            (0, 0)
        }
    }

    /// A request has its nodes, or has them again after a restart: the engine is told, and
    /// its end is expected.
    pub(crate) fn begin(&mut self, id: RequestId) {
        let has_phases = self.engine.has_phases();
        if let Some(record) = self.records.get_mut(&id) {
            let is_new = record.phase.is_none() && record.ready_s.is_none();
            if is_new && has_phases && !record.is_reservation {
                record.phase = Some(Phase::Allocating);
            }
        }
        self.expect_end(id);
        let Some(record) = self.records.get(&id) else {
            return;
        };
        if record.is_reservation {
            return;
        }
        if record.phase == Some(Phase::Releasing) {
            self.engine.stop(id);
        } else if let Some(allocation) = self.allocation(id) {
            self.engine.start(&allocation);
        }
    }

    /// Builds the engine's description of a request that has its nodes.
    pub(crate) fn allocation(&self, id: RequestId) -> Option<Allocation> {
        let (row, record) = (self.row(id)?, self.records.get(&id)?);
        let planner = self.planner_of(record.within)?;
        let resources = planner.machine().resources();
        let nodes = planner.used_by(id).into_iter().map(|(node, amounts)| {
            let given = resources.iter().zip(amounts);
            let given = given.filter(|(_, amount)| *amount > 0);
            let given = given.map(|(resource, amount)| (resource.name.clone(), amount));
            let name = planner.machine().node_name(node).to_string();
            (name, given.collect())
        });
        let nodes = nodes.collect();
        Some(Allocation {
            request: id,
            nodes,
            from_s: row.start_s?,
            until_s: run_end_s(&row)?,
            user: row.owner(),
            submitted_by: row.submitter(),
            command: row.command,
            run_s: row.run_s,
            array_index: row.array_index,
            notify_signal: row.notify_signal,
            omp_threads: omp_threads(&record.request.rset),
        })
    }

    /// The nodes of a request are ready: its time counts from now on.
    pub(crate) fn allocated(&mut self, id: RequestId) {
        let Some(row) = self.row(id) else { return };
        if row.phase != Some(Phase::Allocating) {
            return;
        }
        self.forget_end(&row);
        if let Some(record) = self.records.get_mut(&id) {
            record.phase = None;
            record.ready_s = Some(self.clock_s);
        }
        self.make_up(&row, self.clock_s);
        self.expect_end(id);
        let row = self.row(id);
        self.journal.rows(row);
        self.tell(Some(id), "allocated", String::new());
        if let Some(until_s) = self.row(id).and_then(|row| run_end_s(&row)) {
            self.engine.extend(id, until_s);
        }
    }

    /// Extends a request whose nodes became ready late, if nothing else is planned there. This way
    /// it has its whole time although its preparation took longer.
    pub(crate) fn make_up(&mut self, row: &Row, start_s: u64) {
        let asked_s = row.limit_s();
        let needs_s = start_s.saturating_add(asked_s + row.release_s);
        let by_s = needs_s.saturating_sub(row.end_s.unwrap_or(needs_s));
        let planner = self.planner_of_mut(row.within).filter(|_| by_s > 0);
        // No user has asked for that, so the site's bound is none here.
        if planner.is_some_and(|planner| planner.extend(row.id, by_s, u64::MAX).is_ok()) {
            if let Some(record) = self.records.get_mut(&row.id) {
                record.allocate_s += by_s;
                record.request.margin_s += by_s;
            }
        }
    }

    /// A request did not start: it is planned anew, from now on, or waits.
    pub(crate) fn not_started(&mut self, id: RequestId, why: &str) {
        let Some(row) = self.row(id) else { return };
        if row.state != State::Running || row.phase == Some(Phase::Releasing) {
            return;
        }
        self.begin_again(&row, why);
        self.planner.not_started(self.clock_s, id);
    }

    /// A request that had its nodes has them no more, and waits for others.
    pub(crate) fn begin_again(&mut self, row: &Row, why: &str) {
        self.forget_end(row);
        self.engine.stop(row.id);
        self.planner.start_again(row.id);
        if let Some(record) = self.records.get_mut(&row.id) {
            (record.phase, record.ready_s) = (None, None);
        }
        self.tell(Some(row.id), "restarted", why.into());
    }

    /// Handles the end of the time of a request or of its phase.
    pub(crate) fn is_due(&mut self, id: RequestId) {
        let Some(row) = self.row(id) else { return };
        match row.phase {
            None if row.is_reservation => self.end(id, "over"),
            None => self.end(id, ABORTED),
            Some(Phase::Allocating) if self.engine.fixed_before_s().is_some() => {}
            Some(Phase::Allocating) => {
                let limit_s = row.allocate_s;
                self.nodes_failed(
                    &row,
                    &format!("not ready for request {id} within {}", format_duration(limit_s)),
                );
            }
            Some(Phase::Releasing) => {
                let limit_s = row.release_s;
                let why = format!("{NOT_FREE}{id} within {}", format_duration(limit_s));
                if self.engine.fixed_before_s().is_some() {
                    self.nodes_late(&self.silent_nodes(&row), &why);
                    return;
                }
                let outcome = row.outcome.clone().unwrap_or_default();
                self.finish(id, &outcome);
                self.nodes_failed(&row, &why);
            }
        }
    }

    /// Takes those nodes of a request out of use that have not reported in time.
    fn nodes_failed(&mut self, row: &Row, why: &str) {
        let named = |name: String| Some((self.machine.node_by_name(&name)?, name));
        let nodes: Vec<_> = self.silent_nodes(row).into_iter().filter_map(named).collect();
        if !nodes.is_empty() {
            self.withdraw(&nodes, NodeState::Down, why);
        }
    }

    /// Plans nothing new on nodes that are not free of a request in time. Whatever runs there
    /// continues.
    fn nodes_late(&mut self, names: &[String], why: &str) {
        let in_use = names.iter().filter(|name| !self.nodes_out.contains_key(*name));
        let named = |name: &String| Some((self.machine.node_by_name(name)?, name.clone()));
        let nodes: Vec<_> = in_use.filter_map(named).collect();
        if !nodes.is_empty() {
            self.withdraw(&nodes, NodeState::Offline, why);
        }
    }

    /// Names of the nodes of a request that have not reported: all, if it is not known which.
    fn silent_nodes(&self, row: &Row) -> Vec<String> {
        let mut late = self.engine.late_nodes(row.id);
        if late.is_empty() {
            late = row.nodes.iter().map(|part| part.node.clone()).collect();
            late.dedup();
        }
        late
    }

    /// A request runs on those nodes, whatever was planned: the plan follows it. If that can't be,
    /// the nodes get nothing new until they are free of it.
    pub(crate) fn runs_elsewhere(&mut self, id: RequestId, names: &[String]) {
        let Some(row) = self.row(id).filter(|row| row.phase != Some(Phase::Releasing)) else {
            return;
        };
        let nodes: Vec<usize> =
            names.iter().filter_map(|name| self.machine.node_by_name(name)).collect();
        let is_known = nodes.len() == names.len() && row.within.is_none();
        let clock_s = self.clock_s;
        let adopted = is_known.then(|| self.planner.adopt(clock_s, id, &nodes)).flatten();
        let Some(replanned) = adopted else {
            let why = format!("{NOT_FREE}{id}, which runs there outside its plan");
            self.nodes_late(names, &why);
            return;
        };
        self.forget_end(&row);
        if let Some(record) = self.records.get_mut(&id) {
            (record.phase, record.ready_s) = (None, None);
        }
        self.tell(Some(id), "started", format!("on {}, outside its plan", names.join(" ")));
        for moved in replanned.moved {
            self.tell(Some(moved), "moved", format!("request {id} runs in its place"));
        }
        for waits in replanned.waiting {
            self.tell(Some(waits), "waits", format!("request {id} runs in its place"));
        }
        self.begin(id);
    }

    /// A running request is over at its end at the latest, and its user is told before.
    pub(crate) fn expect_end(&mut self, id: RequestId) {
        let Some(row) = self.row(id) else { return };
        let Some(due_s) = due_s(&row) else { return };
        self.deadlines.expect_end(due_s, id);
        if let (Some(notify_s), None) = (row.notify_s, row.phase) {
            let notice_s = due_s.saturating_sub(notify_s);
            if notice_s > self.clock_s {
                self.deadlines.expect_notice(notice_s, id);
            }
        }
    }

    pub(crate) fn forget_end(&mut self, row: &Row) {
        let due_s = due_s(row).unwrap_or(0);
        let notice_s = due_s.saturating_sub(row.notify_s.unwrap_or(0));
        self.deadlines.forget(due_s, notice_s, row.id);
    }

    /// The engine reports that a request is over. If its time was over before, it may have used the
    /// time that the engine gave it beyond its plan: then the reported outcome counts.
    pub(crate) fn ended(&mut self, id: RequestId, outcome: &str) {
        let record = self.records.get_mut(&id);
        let late = record.filter(|it| it.outcome.as_deref() == Some(ABORTED));
        if let Some(record) = late.filter(|it| it.phase == Some(Phase::Releasing)) {
            record.outcome = Some(outcome.into());
        }
        self.end(id, outcome);
    }

    /// A request is over, or not wanted any more. Where its nodes have to be cleaned it
    /// keeps them for that.
    pub(crate) fn end(&mut self, id: RequestId, outcome: &str) {
        let Some(row) = self.row(id) else { return };
        let is_running = row.state == State::Running;
        let is_clean = row.is_reservation || !self.engine.has_phases();
        if !is_running || is_clean {
            self.finish(id, outcome);
            return;
        }
        if row.phase == Some(Phase::Releasing) {
            return;
        }
        self.forget_end(&row);
        self.engine.stop(id);
        let clock_s = self.clock_s;
        let until_s = clock_s.saturating_add(row.release_s);
        if let Some(planner) = self.planner_of_mut(row.within) {
            planner.shorten(clock_s, id, until_s);
        }
        if let Some(record) = self.records.get_mut(&id) {
            record.phase = Some(Phase::Releasing);
            record.outcome = Some(outcome.into());
        }
        self.expect_end(id);
        let row = self.row(id);
        self.journal.rows(row);
        self.tell(Some(id), "releasing", outcome.into());
    }

    /// The nodes of a request are free of it.
    pub(crate) fn released(&mut self, id: RequestId) {
        let record = self.records.get(&id);
        let record = record.filter(|record| record.phase == Some(Phase::Releasing));
        if let Some(outcome) = record.and_then(|record| record.outcome.clone()) {
            self.finish(id, &outcome);
        }
    }

    /// A request is over, and others are that followed it in vain.
    pub(crate) fn finish(&mut self, id: RequestId, outcome: &str) {
        let mut over = vec![(id, outcome.to_string())];
        while let Some((id, outcome)) = over.pop() {
            let Some(row) = self.row(id) else { continue };
            self.drop_inside(id, "its reservation is over");
            self.forget_end(&row);
            if row.phase != Some(Phase::Releasing) {
                self.engine.stop(id);
            }
            let followers: Vec<RequestId> = self.planner.followers(id).collect();
            let clock_s = self.clock_s;
            if let Some(planner) = self.planner_of_mut(row.within) {
                planner.remove(clock_s, id);
            }
            self.records.remove(&id);
            over.extend(self.release_followers(id, &followers, &outcome));
            self.over(row, &outcome);
        }
    }
}

/// Returns the latest end of a request. A request that became ready late has the time that is left.
pub(crate) fn run_end_s(row: &Row) -> Option<u64> {
    let asked_s = row.limit_s();
    let booked_s = row.end_s.map(|end_s| end_s.saturating_sub(row.release_s));
    match row.ready_s {
        Some(ready_s) => {
            let end_s = ready_s.saturating_add(asked_s);
            Some(end_s.min(booked_s.unwrap_or(end_s)))
        }
        None => booked_s,
    }
}

/// Returns the latest end of the current phase.
fn due_s(row: &Row) -> Option<u64> {
    match row.phase {
        Some(Phase::Allocating) => Some(row.start_s?.saturating_add(row.allocate_s)),
        Some(Phase::Releasing) => row.end_s,
        None => run_end_s(row),
    }
}
