// SPDX-License-Identifier: GPL-2.0
//! Record of an unfinished request, beside its plan.

use pbs_cluster_planner::{Machine, Placed, Request, RequestId, Standing};
use pbs_resources::Rset;
use pbs_site::{Promise, User};

use crate::ledger::{After, Outcome, Phase, Row, State};

/// A request as it is kept in memory: all that its planner does not know.
#[derive(Clone, Debug)]
pub(crate) struct RequestRecord {
    pub(crate) request: Request,
    pub(crate) within: Option<RequestId>,
    pub(crate) is_reservation: bool,
    /// Bytes that count for the user, about; [`Records`](crate::records::Records) has their sums.
    pub(crate) held_bytes: usize,
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) array_index: Option<u64>,
    pub(crate) run_s: Option<u64>,
    pub(crate) notify_s: Option<u64>,
    pub(crate) notify_signal: Option<String>,
    /// User who submitted the request.
    pub(crate) submitted_by: Option<User>,
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
                user: row.owner(),
                group: row.group.clone(),
                priority: row.priority,
                is_of_array: row.is_of_array,
                throttle: row.throttle(),
                promise: Promise::of_name(&row.promise)?,
                after: numbers(&row.after),
                is_held: is_held(&row.after),
            },
            within: row.within,
            is_reservation: row.is_reservation,
            // The cluster that puts the record back counts them.
            held_bytes: 0,
            name: row.name.clone(),
            command: row.command.clone(),
            array_index: row.array_index,
            run_s: row.run_s,
            notify_s: row.notify_s,
            notify_signal: row.notify_signal.clone(),
            submitted_by: row.submitter(),
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

/// Parts of a request on which its memory depends.
pub(crate) struct Parts<'a> {
    pub(crate) rset: &'a Rset,
    /// Name, user and group.
    pub(crate) texts: [&'a str; 3],
    pub(crate) command: &'a [String],
    pub(crate) after: &'a [After],
    pub(crate) is_reservation: bool,
    /// Length of the name of the request's set.
    pub(crate) set_bytes: usize,
}

/// Bytes of a node in the cluster that a reservation is.
const RESERVED_NODE_BYTES: usize = 1024;

impl Parts<'_> {
    /// Returns the bytes that a request takes in memory, about, on a machine: its
    /// texts, the requests that it follows, its part of the plans of nodes, the nodes that it holds
    /// for others, and what is the same of all.
    pub(crate) fn held_bytes(&self, machine: &Machine) -> usize {
        let words = self.command.iter().map(|word| size_of::<String>() + word.len());
        let texts = self.texts.iter().map(|text| text.len());
        // The planner has the number too, once with the request and once with those who follow.
        let after = self.after.len() * (size_of::<After>() + 2 * size_of::<RequestId>());
        let chunks = self.rset.chunks.iter().map(|chunk| chunk.count);
        let chunks = chunks.fold(0, u64::saturating_add);
        let nodes = usize::try_from(chunks).unwrap_or(usize::MAX).min(machine.node_count());
        // Its begin and its end are two steps on each node, with the use of each resource.
        let steps = 2 * (1 + machine.resources().len()) * size_of::<u64>();
        let planned = nodes * (size_of::<Placed>() + steps);
        let reserved = if self.is_reservation { nodes * RESERVED_NODE_BYTES } else { 0 };
        let rset = self.rset.to_string().len();
        let sum = size_of::<RequestRecord>() + rset + texts.sum::<usize>() + words.sum::<usize>();
        sum + after + planned + reserved + self.set_bytes
    }
}

impl RequestRecord {
    /// Returns the parts on which the memory of the request depends.
    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts {
            rset: &self.request.rset,
            texts: [&self.name, &self.request.user.name, &self.request.group],
            command: &self.command,
            after: &self.after,
            is_reservation: self.is_reservation,
            set_bytes: self.request.throttle.as_ref().map_or(0, |of| of.set.len()),
        }
    }
}

/// Returns the numbers of the followed requests.
pub(crate) fn numbers(after: &[After]) -> Vec<RequestId> {
    after.iter().map(|after| after.request).collect()
}

/// Whether the request is held because an outcome that it needs may never occur.
pub(crate) fn is_held(after: &[After]) -> bool {
    after.iter().any(|after| after.outcome == Outcome::NotOk)
}
