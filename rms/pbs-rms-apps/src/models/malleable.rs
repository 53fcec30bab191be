// SPDX-License-Identifier: GPL-2.0
//! A malleable application (Klein and Pérez 2011, 4): r_min, which it needs, and r_extra,
//! which it takes as long as it may.

use crate::{Application, How, Kind, Label, Request, View, Views, Wish};

/// Numbers of nodes that the application can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any, up to so many.
    UpTo(u64),
    /// Powers of two, up to so many: of 36 that it sees it takes 32 and leaves 4 to others.
    PowerOfTwo(u64),
}

impl Shape {
    /// The most that it can use of so many.
    pub fn fit(self, nodes: u64) -> u64 {
        match self {
            Self::UpTo(most) => nodes.min(most),
            Self::PowerOfTwo(most) => nodes.min(most).checked_ilog2().map_or(0, |log| 1 << log),
        }
    }
}

/// The application.
#[derive(Clone, Debug)]
pub struct Malleable {
    least: u64,
    shape: Shape,
    duration_ns: u64,
    view: View,
    /// Number of requested extra nodes; 0: there is no such request.
    extra: u64,
    held_extra: u64,
    started_ns: Option<u64>,
    told_ns: u64,
    has_ended: bool,
}

impl Malleable {
    /// Label of r_min.
    pub const LEAST: Label = Label(0);
    /// Label of r_extra.
    pub const EXTRA: Label = Label(1);

    /// At least so many nodes, one or more, and besides what the shape can use, for so long.
    pub fn new(least: u64, shape: Shape, duration_ns: u64) -> Self {
        Self {
            least: least.max(1),
            shape,
            duration_ns,
            view: View::default(),
            extra: 0,
            held_extra: 0,
            started_ns: None,
            told_ns: 0,
            has_ended: false,
        }
    }

    /// Returns the number of nodes on which the application works.
    pub fn nodes(&self) -> u64 {
        match self.started_ns {
            Some(_) if !self.has_ended => self.least + self.held_extra,
            _ => 0,
        }
    }

    fn ends_ns(&self) -> Option<u64> {
        Some(self.started_ns?.saturating_add(self.duration_ns))
    }

    /// Asks for what the view has now, if that is something else.
    fn react(&mut self, now_ns: u64) -> Vec<Wish> {
        self.told_ns = now_ns;
        let nodes = self.shape.fit(self.view.at(now_ns));
        if self.has_ended || nodes == self.extra {
            return Vec::new();
        }
        let left_ns = match self.ends_ns() {
            Some(ns) => ns.saturating_sub(now_ns),
            None => self.duration_ns,
        };
        let label = Self::EXTRA;
        let wish = match self.extra {
            0 => Wish::Request(Request {
                label,
                kind: Kind::Preemptible,
                nodes,
                duration_ns: left_ns,
                // Where r_min runs already it can start with it no more.
                how: match self.started_ns {
                    Some(_) => How::Free,
                    None => How::Coalloc(Self::LEAST),
                },
            }),
            _ if nodes == 0 => Wish::Done { label, released: 0 },
            _ => Wish::Update { label, nodes, duration_ns: left_ns, announce_ns: 0 },
        };
        self.extra = nodes;
        self.held_extra = self.held_extra.min(nodes);
        vec![wish]
    }
}

impl Application for Malleable {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        vec![Wish::Request(Request {
            label: Self::LEAST,
            kind: Kind::NonPreemptible,
            nodes: self.least,
            duration_ns: self.duration_ns,
            how: How::Free,
        })]
    }

    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        self.view = views.preemptible.clone();
        self.react(now_ns)
    }

    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish> {
        self.told_ns = now_ns;
        if label == Self::LEAST && self.started_ns.is_none() {
            self.started_ns = Some(now_ns);
        } else if label == Self::EXTRA && self.extra > 0 {
            // Perhaps fewer than it asked for; a view says when there are more.
            self.held_extra = nodes;
            self.extra = nodes;
        }
        Vec::new()
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        if self.has_ended || self.ends_ns().is_none_or(|ns| ns > now_ns) {
            return self.react(now_ns);
        }
        self.has_ended = true;
        let extra = (self.extra > 0).then_some((Self::EXTRA, self.held_extra));
        let both = extra.into_iter().chain([(Self::LEAST, self.least)]);
        both.map(|(label, released)| Wish::Done { label, released }).collect()
    }

    fn next_ns(&self) -> Option<u64> {
        if self.has_ended {
            return None;
        }
        let change_ns = self.view.next_change_ns(self.told_ns);
        self.ends_ns().into_iter().chain(change_ns).min()
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
