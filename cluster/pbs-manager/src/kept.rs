// SPDX-License-Identifier: GPL-2.0
//! From what is in memory to the rows of the ledger, and back.

use pbs_cluster::{Machine, Placed, Request, RequestId, Standing, NCPUS};
use pbs_ledger::{Part, Row, State};

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
}

impl Known {
    /// What a row says; `None` if it is of no version of ours.
    pub(crate) fn of_row(row: &Row) -> Option<Self> {
        Some(Self {
            request: Request {
                rset: row.rset.parse().ok()?,
                duration_s: row.duration_s,
                when: row.when.parse().ok()?,
                user: row.user.clone(),
                group: row.group.clone(),
                priority: row.priority,
                is_of_array: row.is_of_array,
            },
            within: row.within,
            is_reservation: row.is_reservation,
            name: row.name.clone(),
            command: row.command.clone(),
            array_index: row.array_index,
            run_s: row.run_s,
            notify_s: row.notify_s,
            is_restartable: row.is_restartable,
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
            is_running: row.state == State::Running,
            is_reservation: row.is_reservation,
            start_s: None,
            nodes: Vec::new(),
        })
    }
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
            priority: standing.priority,
            submit_s: standing.submit_s,
            duration_s: standing.duration_s,
            first_duration_s: standing.first_duration_s,
            state,
            start_s: standing.start_s,
            end_s: standing
                .start_s
                .map(|start_s| start_s + standing.duration_s),
            outcome: None,
            nodes: nodes.collect(),
            cores,
        })
    }
}
