// SPDX-License-Identifier: GPL-2.0
//! From what is in memory to the rows of the ledger, and back.

use crate::ledger::{After, Outcome, Part, Phase, Row, State};
use pbs_cluster_planner::{Machine, Placed, Request, RequestId, Standing, NCPUS};

use crate::engine::Engine;
use crate::manager::Manager;

/// What the planner does not know of a request.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) request: Request,
    pub(crate) within: Option<RequestId>,
    pub(crate) is_reservation: bool,
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) array_index: Option<u64>,
    pub(crate) run_s: Option<u64>,
    pub(crate) notify_s: Option<u64>,
    pub(crate) is_restartable: bool,
    /// What has to be over before it starts, of that which is not.
    pub(crate) after: Vec<After>,
    /// What of its time is for making nodes ready, and for cleaning them.
    pub(crate) allocate_s: u64,
    pub(crate) release_s: u64,
    pub(crate) phase: Option<Phase>,
    pub(crate) ready_s: Option<u64>,
    /// How it ended, while its nodes are cleaned.
    pub(crate) outcome: Option<String>,
}

impl Known {
    /// What a row says; `None` if it is of no version of ours.
    pub(crate) fn of_row(row: &Row) -> Option<Self> {
        let margin_s = row.allocate_s + row.release_s;
        let margin_s = margin_s.min(row.duration_s.saturating_sub(1));
        Some(Self {
            request: Request {
                rset: row.rset.parse().ok()?,
                duration_s: row.duration_s - margin_s,
                margin_s,
                when: row.when.parse().ok()?,
                user: row.user.clone(),
                group: row.group.clone(),
                priority: row.priority,
                is_of_array: row.is_of_array,
                after: numbers(&row.after),
                is_held: is_held(&row.after),
            },
            within: row.within,
            is_reservation: row.is_reservation,
            name: row.name.clone(),
            command: row.command.clone(),
            array_index: row.array_index,
            run_s: row.run_s,
            notify_s: row.notify_s,
            is_restartable: row.is_restartable,
            after: row.after.clone(),
            allocate_s: row.allocate_s,
            release_s: row.release_s,
            phase: row.phase,
            ready_s: row.ready_s,
            outcome: row.outcome.clone(),
        })
    }

    /// How the row says that it stands; `None` where a node is not there any more. Inside
    /// a reservation nodes are known by their names, too.
    pub(crate) fn standing(&self, row: &Row, machine: &Machine) -> Option<Standing> {
        let placed = row.nodes.iter().map(|part| {
            Some(Placed {
                node: u32::try_from(machine.node_by_name(&part.node)?).ok()?,
                kind: part.kind,
                count: part.count,
            })
        });
        let mut nodes: Vec<Placed> = placed.collect::<Option<_>>()?;
        // Nodes are in the order of their weights, which another site may have changed.
        nodes.sort_unstable();
        Some(Standing {
            start_s: row.start_s,
            nodes,
            ..Self::waiting(row, self)?
        })
    }

    /// The same without a place.
    pub(crate) fn waiting(row: &Row, known: &Self) -> Option<Standing> {
        Some(Standing {
            when: known.request.when,
            priority: row.priority,
            submit_s: row.submit_s,
            duration_s: row.duration_s,
            first_duration_s: row.first_duration_s,
            after: numbers(&row.after),
            is_held: is_held(&row.after),
            is_running: row.state == State::Running,
            is_reservation: row.is_reservation,
            start_s: None,
            nodes: Vec::new(),
        })
    }
}

/// What is followed.
pub(crate) fn numbers(after: &[After]) -> Vec<RequestId> {
    after.iter().map(|after| after.request).collect()
}

/// Who follows what need not come has no place before it has come.
pub(crate) fn is_held(after: &[After]) -> bool {
    after.iter().any(|after| after.outcome == Outcome::NotOk)
}

impl<E: Engine> Manager<E> {
    /// A request that has not ended, as it stands.
    pub(crate) fn row(&self, id: RequestId) -> Option<Row> {
        let known = self.known.get(&id)?;
        let planner = self.planner_of(known.within)?;
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
        let cores = match used.is_empty() {
            true => known.request.rset.total("ncpus"),
            false => used.iter().map(|(_, amounts)| amounts[NCPUS]).sum(),
        };
        Some(Row {
            id,
            within: known.within,
            user: known.request.user.clone(),
            group: known.request.group.clone(),
            name: known.name.clone(),
            rset: known.request.rset.to_string(),
            when: standing.when.to_string(),
            is_of_array: known.request.is_of_array,
            array_index: known.array_index,
            is_reservation: known.is_reservation,
            command: known.command.clone(),
            run_s: known.run_s,
            notify_s: known.notify_s,
            is_restartable: known.is_restartable,
            after: known.after.clone(),
            priority: standing.priority,
            submit_s: standing.submit_s,
            duration_s: standing.duration_s,
            allocate_s: known.allocate_s,
            release_s: known.release_s,
            first_duration_s: standing.first_duration_s,
            state,
            phase: known.phase.filter(|_| standing.is_running),
            ready_s: known.ready_s,
            start_s: standing.start_s,
            end_s: standing
                .start_s
                .map(|start_s| start_s + standing.duration_s),
            outcome: known.outcome.clone(),
            nodes: nodes.collect(),
            cores,
        })
    }
}
