// SPDX-License-Identifier: GPL-2.0
//! Record of an unfinished request, beside its plan.

use pbs_cluster_planner::{Machine, Placed, Request, RequestId, Standing};

use crate::ledger::{After, Outcome, Phase, Row, State};

/// A request as it is kept in memory: all that its planner does not know.
#[derive(Clone, Debug)]
pub(crate) struct RequestRecord {
    pub(crate) request: Request,
    pub(crate) within: Option<RequestId>,
    pub(crate) is_reservation: bool,
    /// Bytes of the texts when the request was accepted.
    pub(crate) held_bytes: usize,
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) array_index: Option<u64>,
    pub(crate) run_s: Option<u64>,
    pub(crate) notify_s: Option<u64>,
    pub(crate) is_restartable: bool,
    /// Unfinished requests that must end before this one starts.
    pub(crate) after: Vec<After>,
    /// Part of the request's time for making nodes ready.
    pub(crate) allocate_s: u64,
    pub(crate) release_s: u64,
    pub(crate) phase: Option<Phase>,
    pub(crate) ready_s: Option<u64>,
    /// Outcome of the request, while its nodes are cleaned.
    pub(crate) outcome: Option<String>,
}

impl RequestRecord {
    /// Builds the record of a row; `None` if no version of this software wrote the row.
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
            held_bytes: held_bytes(&row.rset, &row.name, &row.command),
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

    /// Returns the state in the plan according to the row; `None` if a node does not exist any
    /// more. Nodes inside a reservation are named, too.
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
        Some(Standing { start_s: row.start_s, nodes, ..Self::waiting(row, self)? })
    }

    /// Returns the state in the plan without a place.
    pub(crate) fn waiting(row: &Row, record: &Self) -> Option<Standing> {
        Some(Standing {
            when: record.request.when,
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

/// Returns the bytes that a request takes in memory, about: its texts, and what is the same of all.
pub(crate) fn held_bytes(rset: &str, name: &str, command: &[String]) -> usize {
    let words = command.iter().map(|word| size_of::<String>() + word.len());
    size_of::<RequestRecord>() + rset.len() + name.len() + words.sum::<usize>()
}

/// Returns the numbers of the followed requests.
pub(crate) fn numbers(after: &[After]) -> Vec<RequestId> {
    after.iter().map(|after| after.request).collect()
}

/// Whether the request is held because an outcome that it needs may never occur.
pub(crate) fn is_held(after: &[After]) -> bool {
    after.iter().any(|after| after.outcome == Outcome::NotOk)
}
