// SPDX-License-Identifier: GPL-2.0
//! A request as the manager keeps it (A.1).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Ask, Kind, RequestId};

/// A request that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Number of the request.
    pub id: RequestId,
    /// Attributes set by the application. An announcement or a done changes the duration.
    pub ask: Ask,
    /// Time of the start, if the request has started.
    pub started_ns: Option<u64>,
    /// Expected start, if the request has not started and will at some time.
    pub scheduled_ns: Option<u64>,
    /// Number of nodes that the request may have since it started: for a preemptible one perhaps
    /// fewer than requested.
    pub granted: u64,
    /// The nodes that it has. Fewer than granted: it waits for others to release theirs.
    #[serde(with = "crate::runs")]
    pub nodes: Vec<u32>,
    /// The application has been told of its start and its nodes.
    pub is_notified: bool,
    /// For a request that hangs on one that has started: its nodes are kept for it.
    pub is_reserved: bool,
    /// The nodes that its successor will not get.
    #[serde(with = "crate::runs")]
    pub leaving: Vec<u32>,
    /// Time for which the requests before this one had its nodes.
    #[serde(default)]
    pub kept_ns: u64,
}

impl Request {
    pub(crate) fn new(id: RequestId, ask: Ask) -> Self {
        Self {
            id,
            ask,
            started_ns: None,
            scheduled_ns: None,
            granted: 0,
            nodes: Vec::new(),
            is_notified: false,
            is_reserved: false,
            leaving: Vec::new(),
            kept_ns: 0,
        }
    }

    pub(crate) fn start(&mut self, now_ns: u64) {
        self.started_ns = Some(now_ns);
        self.scheduled_ns = None;
        self.granted = match self.ask.kind {
            // What it gets is for the next pass to say.
            Kind::Preemptible => self.nodes.len() as u64,
            Kind::PreAllocation | Kind::NonPreemptible => self.ask.nodes,
        };
    }

    /// Grants a preemptible request what it wants of what there is, and what it has already.
    pub(crate) fn take_of(&mut self, left: &mut u64) {
        self.granted = self.ask.nodes.min(*left).max(self.nodes.len() as u64);
        *left = left.saturating_sub(self.granted);
    }

    /// The time for which it would run if it began then.
    pub(crate) fn span_from(&self, begin_ns: u64) -> Range<u64> {
        begin_ns..begin_ns.saturating_add(self.ask.duration_ns)
    }

    /// Returns the time for which its nodes are kept at a time, also by the requests before it.
    pub fn kept_until(&self, now_ns: u64) -> u64 {
        let own_ns = self.started_ns.map_or(0, |ns| now_ns.saturating_sub(ns));
        self.kept_ns.saturating_add(own_ns)
    }

    /// Returns the end of the duration; `None` if the request has not started.
    pub fn end_ns(&self) -> Option<u64> {
        self.started_ns.map(|ns| self.span_from(ns).end)
    }

    /// Returns the number of nodes for which the request still waits.
    pub fn lacks(&self) -> u64 {
        match (self.ask.kind, self.started_ns) {
            (Kind::PreAllocation, _) | (_, None) => 0,
            _ => self.granted.saturating_sub(self.nodes.len() as u64),
        }
    }
}
