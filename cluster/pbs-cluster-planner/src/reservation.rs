// SPDX-License-Identifier: GPL-2.0
//! Reservations: nodes are held for requests that come later (Keller, 5.4).
//!
//! What a reservation holds is a cluster of its own, in which the same code plans: Keller's
//! rRS. Its requests are over when it is.

use std::ops::Range;
use std::sync::Arc;

use crate::budget::SearchBudget;
use crate::machine::{Machine, NodeSpec, ResourceId};
use crate::planner::Planner;
use crate::request::{Refusal, Request, When};
use crate::types::RequestId;

impl Machine {
    /// The parts of some nodes, as nodes of their own.
    fn part(&self, nodes: &[(usize, Vec<u64>)], job_wide: &[(ResourceId, u64)]) -> Self {
        let mut resources = self.resources().to_vec();
        for (index, resource) in resources.iter_mut().enumerate() {
            if resource.job_wide.is_some() {
                let held = job_wide.iter().find(|&&(of, _)| of == index);
                resource.job_wide = Some(held.map_or(0, |&(_, amount)| amount));
            }
        }
        let specs: Vec<NodeSpec> = nodes
            .iter()
            .map(|(node, has)| NodeSpec {
                words: self.class(*node).words.clone(),
                ..NodeSpec::new(&self.names[*node], has.clone())
            })
            .collect();
        Self::new(resources, &specs)
    }
}

impl Planner {
    /// Holds what a request needs, for requests that come later.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`].
    pub fn reserve(&mut self, now_s: u64, request: &Request) -> Result<RequestId, Refusal> {
        let id = self.submit(now_s, request)?;
        self.hold(id);
        Ok(id)
    }

    /// Makes a cluster of what a request has.
    pub(crate) fn hold(&mut self, id: RequestId) {
        let nodes = self.used_by(id);
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let part = self.machine.part(&nodes, &entry.need.job_wide);
        let mut inside = Self::new(Arc::new(part), self.system.rules().inside());
        for &(node, _) in &nodes {
            let name = self.machine.node_name(node);
            if let (false, Some(place)) =
                (self.nodes.is_usable(node), inside.machine.node_by_name(name))
            {
                inside.node_offline(0, place);
            }
        }
        if self.changes.is_some() {
            inside.follow_changes();
        }
        entry.inside = Some(Box::new(inside));
    }

    /// Plans a request in a reservation, all of it in the reservation's time.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`], and [`Refusal::NoSuchRequest`] if there is no such reservation.
    pub fn submit_in(
        &mut self,
        now_s: u64,
        reservation: RequestId,
        request: &Request,
    ) -> Result<RequestId, Refusal> {
        self.submit_in_within(now_s, reservation, request, &SearchBudget::default())
    }

    /// Plans one of several requests of a call in a reservation; see [`Self::submit_in`] and
    /// [`Self::submit_within`].
    ///
    /// # Errors
    ///
    /// Refusals of [`Self::submit_in`].
    pub fn submit_in_within(
        &mut self,
        now_s: u64,
        reservation: RequestId,
        request: &Request,
        budget: &SearchBudget,
    ) -> Result<RequestId, Refusal> {
        let refused = Refusal::NoSuchRequest(reservation);
        let next_id = self.next_id;
        let entry = self.entries.get_mut(&reservation).ok_or(refused.clone())?;
        let over = entry.over().ok_or(refused.clone())?;
        let inside = entry.inside.as_mut().ok_or(refused)?;
        inside.next_id = next_id;
        let duration_s = request.duration_s.max(1);
        let within =
            Request { when: inside_of(request.when, &over, duration_s), ..request.clone() };
        let id = inside.submit_within(now_s.max(over.start), &within, budget)?;
        self.next_id = inside.next_id;
        Ok(id)
    }

    /// The planner of what a reservation holds.
    pub fn inside(&self, reservation: RequestId) -> Option<&Self> {
        self.entries.get(&reservation)?.inside.as_deref()
    }

    /// Returns the planner of a reservation, for starting and ending requests in it.
    pub fn inside_mut(&mut self, reservation: RequestId) -> Option<&mut Self> {
        self.entries.get_mut(&reservation)?.inside.as_deref_mut()
    }
}

/// Restricts a desired time to the interval of a reservation.
fn inside_of(when: When, over: &Range<u64>, duration_s: u64) -> When {
    let window = when.window(over.start, duration_s);
    When::Between {
        start_s: window.start,
        end_s: window.end.min(over.end),
        late: matches!(when, When::Deadline { late: true, .. }),
    }
}
