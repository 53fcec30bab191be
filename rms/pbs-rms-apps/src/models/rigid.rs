// SPDX-License-Identifier: GPL-2.0
//! A rigid application (Klein and Pérez 2011, 4): so many nodes for so long. It adapts to
//! nothing and ignores its views.

use crate::{Application, How, Kind, Label, Request, Wish};

/// The application.
#[derive(Clone, Copy, Debug)]
pub struct Rigid {
    nodes: u64,
    duration_ns: u64,
    ends_ns: Option<u64>,
    has_ended: bool,
}

impl Rigid {
    /// Label of the request.
    pub const NODES: Label = Label(0);

    /// Creates an application with that many nodes, at least one, for a duration.
    pub fn new(nodes: u64, duration_ns: u64) -> Self {
        Self { nodes: nodes.max(1), duration_ns, ends_ns: None, has_ended: false }
    }
}

impl Application for Rigid {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        vec![Wish::Request(Request {
            label: Self::NODES,
            kind: Kind::NonPreemptible,
            nodes: self.nodes,
            duration_ns: self.duration_ns,
            how: How::Free,
        })]
    }

    fn started(&mut self, now_ns: u64, label: Label, _: u64) -> Vec<Wish> {
        if label == Self::NODES && self.ends_ns.is_none() {
            self.ends_ns = Some(now_ns.saturating_add(self.duration_ns));
        }
        Vec::new()
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        if self.has_ended || self.ends_ns.is_none_or(|ns| ns > now_ns) {
            return Vec::new();
        }
        self.has_ended = true;
        vec![Wish::Done { label: Self::NODES, released: self.nodes }]
    }

    fn next_ns(&self) -> Option<u64> {
        self.ends_ns.filter(|_| !self.has_ended)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
