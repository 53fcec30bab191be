// SPDX-License-Identifier: GPL-2.0
//! Nodes that are out of use, late, or back.

use std::collections::{BTreeMap, HashMap, HashSet};

use pbs_manager::ledger::{NodeRow, NodeState as Out, Phase};
use pbs_manager::{Happened, Manager};

use super::{is_where_planned, Steer, TOLD};
use crate::steer::link::Link;
use crate::steer::seen::{JobSeen, JobState, NodeState};

/// Seconds after the end of a reservation for which the batch system may show its nodes as reserved:
/// it updates that every five seconds, and is read every ten.
const SHOWN_AFTER_S: u64 = 20;

impl Steer {
    /// Nodes that are out of use, or back.
    pub(super) fn nodes(&mut self, manager: &mut Manager<Link>, now_s: u64) {
        let mut told = Vec::new();
        self.note_reserved(now_s);
        let busy = self.busy_nodes(manager);
        let nodes_out: HashMap<&str, &NodeRow> =
            manager.nodes_out().map(|row| (row.name.as_str(), row)).collect();
        for seen in &self.world.nodes {
            let node = seen.name.clone();
            let out = nodes_out.get(node.as_str());
            let state = out.map(|row| row.state);
            let is_told = out.is_some_and(|row| row.why.starts_with(TOLD));
            let is_late = out.is_some_and(|row| row.is_late());
            let is_busy = busy.contains(&node);
            let why = format!("{TOLD}{}", seen.why);
            let seen_state = match seen.state {
                // The plan has the time of the reservation. Without that, nothing is planned there.
                NodeState::Reserved if self.reserved.contains_key(&node) => NodeState::Up,
                NodeState::Reserved => NodeState::Drained,
                state => state,
            };
            match seen_state {
                NodeState::Down if state != Some(Out::Down) => {
                    told.push(Happened::NodeFailed { node, why });
                }
                NodeState::Drained if state.is_none() || is_late && !is_busy => {
                    told.push(Happened::NodeDrained { node, why });
                }
                // What an operator took out with our own command stays out.
                NodeState::Up if !is_busy && (state == Some(Out::Down) || is_told || is_late) => {
                    self.news.push(format!("node {node} is in use again"));
                    told.push(Happened::NodeBack { node });
                }
                _ => {}
            }
        }
        if told.iter().any(|it| matches!(it, Happened::NodeBack { .. })) {
            self.try_declined_again();
        }
        for happened in told {
            manager.engine_mut().tell(now_s, happened);
        }
    }

    /// Notes which nodes known reservations keep, or kept a moment ago.
    fn note_reserved(&mut self, now_s: u64) {
        for closing in self.world.closed.iter().filter(|of| of.keeps_at(now_s)) {
            self.reserved.extend(closing.nodes.iter().map(|node| (node.clone(), now_s)));
        }
        self.reserved.retain(|_, at_s| now_s <= at_s.saturating_add(SHOWN_AFTER_S));
    }

    /// Nodes that are being cleaned, and nodes on which jobs run that the plan does not have there,
    /// or not any more.
    fn busy_nodes(&self, manager: &Manager<Link>) -> HashSet<String> {
        let has_late = manager.nodes_out().any(NodeRow::is_late);
        let is_busy = |job: &&JobSeen| match &job.state {
            JobState::Completing(_) => true,
            JobState::Running if has_late => {
                let row = self.jobs.get(&job.key).and_then(|of| manager.open_row(of.id));
                row.is_none_or(|row| {
                    row.phase == Some(Phase::Releasing) || !is_where_planned(manager, row.id, job)
                })
            }
            _ => false,
        };
        let busy = self.world.jobs.iter().filter(is_busy);
        busy.flat_map(|job| job.nodes.iter().cloned()).collect()
    }

    /// Reports each node once that is not free of a job in time.
    pub(super) fn report_late(&mut self, manager: &Manager<Link>) {
        let late = manager.nodes_out().filter(|row| row.is_late());
        let late: BTreeMap<String, String> =
            late.map(|row| (row.name.clone(), row.why.clone())).collect();
        for (node, why) in &late {
            if !self.late.contains_key(node) {
                let what = format!("node {node}: {why}; it gets nothing new until it is free");
                self.news.push(what);
            }
        }
        self.late = late;
    }
}
