// SPDX-License-Identifier: GPL-2.0
//! A non-predictably evolving application (Klein and Pérez 2011, 4) of anybody: somebody
//! else says when it needs how many nodes, and this is how it gets them.
//!
//! Sure execution: the pre-allocation is the most that it may ever need. Probable execution:
//! the pre-allocation is good enough; if an update beyond it can't be, the application writes
//! down what it has done, gives all back and comes again with a larger one, at the back of
//! the queue.

use crate::{Application, How, Kind, Label, Request, Wish, FOREVER};

/// Choice of the pre-allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The most that it may need, which is known.
    Sure {
        /// n_max.
        most: u64,
    },
    /// Guess that is expected to be enough.
    Probable {
        /// The first one.
        guess: u64,
    },
}

/// The application.
#[derive(Clone, Debug)]
pub struct Nea {
    execution: Execution,
    pre_allocation: u64,
    needed: u64,
    /// Requested number of nodes that was not granted yet.
    asked: Option<u64>,
    held: u64,
    checkpoints: u64,
    has_ended: bool,
    /// First label of this attempt's requests; another attempt has others.
    first_label: u32,
}

impl Nea {
    /// Creates an application that begins with that many nodes, at least one.
    pub fn new(execution: Execution, nodes: u64) -> Self {
        let (Execution::Sure { most: first } | Execution::Probable { guess: first }) = execution;
        let pre_allocation = first.max(1);
        Self {
            execution,
            pre_allocation,
            needed: nodes.clamp(1, pre_allocation),
            asked: None,
            held: 0,
            checkpoints: 0,
            has_ended: false,
            first_label: 0,
        }
    }

    /// Returns the label of the pre-allocation.
    pub fn pre_allocation_label(&self) -> Label {
        Label(self.first_label)
    }

    /// Returns the label of the request that has nodes.
    pub fn nodes_label(&self) -> Label {
        Label(self.first_label.wrapping_add(1))
    }

    /// Returns the number of nodes that are pre-allocated, or requested for it.
    pub fn pre_allocation(&self) -> u64 {
        self.pre_allocation
    }

    /// Returns the number of nodes that the application has; 0 while it waits.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of restarts with a larger pre-allocation.
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// Sets the number of nodes needed from now on. Under sure execution, it is capped at the
    /// declared maximum.
    pub fn need(&mut self, nodes: u64) -> Vec<Wish> {
        self.needed = match self.execution {
            Execution::Sure { most } => nodes.clamp(1, most.max(1)),
            Execution::Probable { .. } => nodes.max(1),
        };
        self.ask()
    }

    /// Ends the application after it has computed everything.
    pub fn end(&mut self) -> Vec<Wish> {
        self.has_ended = true;
        self.give_back()
    }

    fn ask(&mut self) -> Vec<Wish> {
        let waits = self.held == 0 || self.asked.is_some() || self.has_ended;
        if waits || self.needed == self.held {
            return Vec::new();
        }
        self.asked = Some(self.needed);
        vec![Wish::Update {
            label: self.nodes_label(),
            nodes: self.needed,
            duration_ns: FOREVER,
            announce_ns: 0,
        }]
    }

    fn submit(&self) -> Vec<Wish> {
        let of = |label, kind, nodes| {
            Wish::Request(Request { label, kind, nodes, duration_ns: FOREVER, how: How::Free })
        };
        let nodes = self.needed.min(self.pre_allocation);
        vec![
            of(self.pre_allocation_label(), Kind::PreAllocation, self.pre_allocation),
            of(self.nodes_label(), Kind::NonPreemptible, nodes),
        ]
    }

    fn give_back(&mut self) -> Vec<Wish> {
        self.held = 0;
        self.asked = None;
        let labels = [self.nodes_label(), self.pre_allocation_label()];
        labels.map(|label| Wish::Done { label, released: 0 }).to_vec()
    }
}

impl Application for Nea {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        self.submit()
    }

    fn started(&mut self, _: u64, label: Label, nodes: u64) -> Vec<Wish> {
        if label != self.nodes_label() || self.has_ended {
            return Vec::new();
        }
        self.held = nodes;
        self.asked = None;
        self.ask()
    }

    fn refused(&mut self, _: u64, label: Label) -> Vec<Wish> {
        if label != self.nodes_label() || self.has_ended {
            return Vec::new();
        }
        let Some(wanted) = self.asked.take() else {
            return Vec::new();
        };
        if wanted <= self.pre_allocation {
            // A manager that refuses this does not keep its promise; another change of
            // what is needed asks again.
            return Vec::new();
        }
        let mut wishes = vec![Wish::Checkpoint];
        wishes.extend(self.give_back());
        self.checkpoints += 1;
        self.first_label = self.first_label.wrapping_add(2);
        // Twice as much, so that an application that goes on growing does not come again for
        // every node.
        self.pre_allocation = self.pre_allocation.saturating_mul(2).max(self.needed);
        wishes.extend(self.submit());
        wishes
    }

    fn wake(&mut self, _: u64) -> Vec<Wish> {
        Vec::new()
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
