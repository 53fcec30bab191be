// SPDX-License-Identifier: GPL-2.0
//! Requests that have not ended, as rows of the ledger.

use pbs_cluster_planner::{RequestId, NCPUS};

use crate::engine::Engine;
use crate::ledger::{Part, Row, State};
use crate::manager::Manager;

impl<E: Engine> Manager<E> {
    /// A request that has not ended, as it stands.
    pub(crate) fn row(&self, id: RequestId) -> Option<Row> {
        let record = self.records.get(&id)?;
        let planner = self.planner_of(record.within)?;
        let standing = planner.standing(id)?;
        let state = match (standing.start_s, standing.is_running) {
            (None, _) => State::Waiting,
            (Some(_), false) => State::Planned,
            (Some(_), true) => State::Running,
        };
        let nodes = standing.nodes.iter().map(|placed| Part {
            node: planner.machine().node_name(placed.node as usize).into(),
            kind: placed.kind,
            count: placed.count,
        });
        let used = planner.used_by(id);
        let cores = if used.is_empty() {
            record.request.rset.total("ncpus")
        } else {
            used.iter().map(|(_, amounts)| amounts[NCPUS]).sum()
        };
        Some(Row {
            id,
            within: record.within,
            user: record.request.user.name.clone(),
            uid: record.request.user.uid,
            group: record.request.group.clone(),
            name: record.name.clone(),
            rset: record.request.rset.to_string(),
            when: standing.when.to_string(),
            is_of_array: record.request.is_of_array,
            set: record.request.throttle.as_ref().map(|of| of.set.clone()),
            set_most: record.request.throttle.as_ref().map(|of| of.most),
            array_index: record.array_index,
            is_reservation: record.is_reservation,
            command: record.command.clone(),
            run_s: record.run_s,
            expected_run_s: self.expected_run_s(id),
            notify_s: record.notify_s,
            notify_signal: record.notify_signal.clone(),
            submitted_by: record.submitted_by.as_ref().map(|user| user.name.clone()),
            submitted_by_uid: record.submitted_by.as_ref().and_then(|user| user.uid),
            is_restartable: record.is_restartable,
            promise: record.request.promise.name().into(),
            after: record.after.clone(),
            priority: standing.priority,
            submit_s: standing.submit_s,
            duration_s: standing.duration_s,
            allocate_s: record.allocate_s,
            release_s: record.release_s,
            first_duration_s: standing.first_duration_s,
            state,
            phase: record.phase.filter(|_| standing.is_running),
            ready_s: record.ready_s,
            start_s: standing.start_s,
            end_s: standing.start_s.map(|start_s| start_s + standing.duration_s),
            outcome: record.outcome.clone(),
            nodes: nodes.collect(),
            cores,
        })
    }
}
