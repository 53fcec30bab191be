// SPDX-License-Identifier: GPL-2.0
//! Stored state of a request: enough to write it to a file and to restore it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::need::Need;
use crate::placed::{by_node, taken, Placed};
use crate::planner::{Entry, Planner};
use crate::request::{Refusal, Request, When};
use crate::search::Place;
use crate::types::{RequestId, Who};

/// Complete state of a request in the plan. The plan consists of the requests and these states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Desired time. A confirmed provisional request is best effort.
    pub when: When,
    /// Greater goes first where several are planned anew.
    pub priority: i64,
    /// Time of submission.
    pub submit_s: u64,
    /// Time for which the nodes are booked, in seconds, with the margin.
    pub duration_s: u64,
    /// Booked time before any extension, in seconds.
    pub first_duration_s: u64,
    /// Unfinished requests that must end before this one starts.
    pub after: Vec<RequestId>,
    /// Whether the request has no place until it is released.
    pub is_held: bool,
    /// Whether it has its nodes.
    pub is_running: bool,
    /// Whether it holds its nodes for others: a reservation.
    pub is_reservation: bool,
    /// Planned or actual start; `None` while the request waits.
    pub start_s: Option<u64>,
    /// Placement of the chunks.
    pub nodes: Vec<Placed>,
}

impl Planner {
    /// Notes from now on which requests change: see [`Self::take_changes`].
    pub fn follow_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Returns the requests that were added, removed, moved or altered since the last call.
    /// Requests inside reservations are left out: these have planners of their own.
    pub fn take_changes(&mut self) -> BTreeSet<RequestId> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn changed(&mut self, id: RequestId) {
        self.version += 1;
        if let Some(changes) = &mut self.changes {
            changes.insert(id);
        }
    }

    /// Returns the state of a request; `None` once it has ended.
    pub fn standing(&self, id: RequestId) -> Option<Standing> {
        let entry = self.entries.get(&id)?;
        let place = entry.place.as_ref();
        Some(Standing {
            when: entry.when,
            priority: entry.priority,
            submit_s: entry.submit_s,
            duration_s: entry.need.duration_s,
            first_duration_s: entry.first_duration_s,
            after: entry.after.clone(),
            is_held: entry.is_held,
            is_running: entry.is_running,
            is_reservation: entry.inside.is_some(),
            start_s: place.map(|place| place.start_s),
            nodes: place.map_or_else(Vec::new, |place| place.nodes.clone()),
        })
    }

    /// Puts a request back where it stood, with its number. Nodes that are out of use are
    /// so already. `of` says what was asked for and whose it is; how long, when and how
    /// important, `standing`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Impossible`] if the machine has become too small, and
    /// [`Refusal::NotInTime`] if the place is taken or is none; nothing is changed then.
    pub fn restore(
        &mut self,
        id: RequestId,
        of: &Request,
        standing: &Standing,
    ) -> Result<(), Refusal> {
        let asked_s = standing.duration_s.saturating_sub(of.margin_s).max(1);
        let need = Need::new(&self.machine, &of.rset, asked_s)?.with_margin(of.margin_s);
        let who = Who::of(of);
        let place = match standing.start_s {
            None => None,
            Some(start_s) => {
                let place = self.place_of(&need, start_s, standing);
                Some(place.ok_or(Refusal::NotInTime { earliest_end_s: None })?)
            }
        };
        self.system.prepare(&need.sums, need.asked_s(), &who);
        // The limit may have changed since those that run were planned.
        if !standing.is_running || !self.system.throttles.has(&who) {
            self.system.throttles.prepare(&who);
        }
        let entry = Entry {
            need: Arc::new(need),
            who: Arc::new(who),
            when: standing.when,
            priority: standing.priority,
            submit_s: standing.submit_s,
            first_duration_s: standing.first_duration_s,
            is_of_array: of.is_of_array,
            promise: of.promise,
            after: standing.after.clone(),
            is_held: standing.is_held,
            is_running: standing.is_running,
            place,
            inside: None,
        };
        self.next_id = self.next_id.max(id + 1);
        self.insert(id, entry);
        if standing.is_reservation {
            self.hold(id);
        }
        Ok(())
    }

    /// The number of the next request.
    pub fn next_id(&self) -> RequestId {
        self.next_id
    }

    /// Requests that come get this number at least: those that have ended keep theirs.
    pub fn continue_from(&mut self, id: RequestId) {
        self.next_id = self.next_id.max(id);
    }

    /// The place that the chunks have, if all of them fit there.
    pub(crate) fn place_of(&self, need: &Need, start_s: u64, standing: &Standing) -> Option<Place> {
        let over = start_s..start_s.checked_add(need.duration_s)?;
        let mut counts = vec![0; need.kinds.len()];
        for placed in &standing.nodes {
            *counts.get_mut(placed.kind as usize)? += u64::from(placed.count);
            let class = *self.machine.class_of.get(placed.node as usize)?;
            need.kinds[placed.kind as usize].fits[class].as_ref()?;
        }
        if need.kinds.iter().zip(&counts).any(|(kind, &count)| kind.count != count) {
            return None;
        }
        let mut amounts = Vec::new();
        let mut sums = need.job_wide.clone();
        for on_node in by_node(&standing.nodes) {
            let node = on_node[0].node as usize;
            taken(&self.machine, need, on_node, &mut amounts);
            if !self.nodes.is_usable(node) {
                // What runs there ends there, and takes nothing of the cluster; a reservation has
                // its other nodes.
                if standing.is_running || standing.is_reservation {
                    continue;
                }
                return None;
            }
            let free = self.nodes.free_over(&self.machine, node, &over)?;
            if amounts.iter().any(|&(of, amount)| free[of] < amount) {
                return None;
            }
            for &(resource, amount) in &amounts {
                match sums.iter_mut().find(|(of, _)| *of == resource) {
                    Some((_, sum)) => *sum += amount,
                    None => sums.push((resource, amount)),
                }
            }
        }
        Some(Place { start_s, nodes: standing.nodes.clone(), sums })
    }
}
