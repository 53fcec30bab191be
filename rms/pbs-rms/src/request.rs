// SPDX-License-Identifier: GPL-2.0
//! A request as the manager keeps it (A.1).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Ask, Kind, RequestId};

/// A request that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// What the application asked for. An announcement or a done sets its duration.
    pub ask: Ask,
    /// When it started, if it has.
    pub started_ns: Option<u64>,
    /// When it starts as things are, if it has not and ever does.
    pub scheduled_ns: Option<u64>,
    /// How many nodes it may have since it started: for a preemptible one perhaps fewer
    /// than it asked for.
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

    /// When it ends by itself; none if it has not started.
    pub fn end_ns(&self) -> Option<u64> {
        self.started_ns.map(|ns| self.span_from(ns).end)
    }

    /// How many nodes it still waits for.
    pub fn lacks(&self) -> u64 {
        match (self.ask.kind, self.started_ns) {
            (Kind::PreAllocation, _) | (_, None) => 0,
            _ => self.granted.saturating_sub(self.nodes.len() as u64),
        }
    }
}
