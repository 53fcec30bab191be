// SPDX-License-Identifier: GPL-2.0
//! An application with an adaptive mesh (Klein and Pérez 2011, 5.1.1): non-predictably
//! evolving, inside a pre-allocation; marginally predictable where it announces (5.3).
//!
//! Nodes and data are constant during a step (2.2). So a step goes on with the nodes that it
//! began with; those that come in the middle work from the next step on, and a step never
//! begins on nodes that are to be given back before it ends.
//!
//! There is one update at a time: the next is asked for when the last has taken effect. The
//! report does not say so, but with more the peaks of figure 10 would be nowhere.

use crate::{ns, Allocation, Application, How, Kind, Label, Request, Wish, FOREVER};

/// Kind of updates by which the application changes its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updates {
    /// Not at all: it has all of its pre-allocation from begin to end (5.2).
    Never,
    /// At once (5.2).
    Spontaneous,
    /// Announced an interval ahead (5.3).
    Announced {
        /// The announce interval; 0 is spontaneous.
        interval_ns: u64,
    },
}

impl Updates {
    fn announce_ns(self) -> u64 {
        match self {
            Self::Announced { interval_ns } => interval_ns,
            Self::Never | Self::Spontaneous => 0,
        }
    }
}

/// The application.
#[derive(Clone, Debug)]
pub struct Amr {
    steps: Allocation,
    pre_allocation: u64,
    updates: Updates,
    /// The step that runs, or would.
    step: usize,
    running: Option<Running>,
    held: u64,
    asked: Option<PendingUpdate>,
    ended_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    nodes: u64,
    began_ns: u64,
    ends_ns: u64,
}

/// An update that has not taken effect yet.
#[derive(Clone, Copy, Debug)]
struct PendingUpdate {
    nodes: u64,
    from_ns: u64,
}

impl Amr {
    /// Label of the pre-allocation.
    pub const PRE_ALLOCATION: Label = Label(0);
    /// Label of the request that has nodes.
    pub const NODES: Label = Label(1);

    /// Creates an application with these steps inside a pre-allocation of that many nodes.
    pub fn new(steps: Allocation, pre_allocation: u64, updates: Updates) -> Self {
        Self {
            steps,
            pre_allocation: pre_allocation.max(1),
            updates,
            step: 0,
            running: None,
            held: 0,
            asked: None,
            ended_ns: None,
        }
    }

    /// Returns the number of nodes that a step wants: n_i, as far as the pre-allocation permits.
    /// The application itself does not know it for future steps.
    pub fn wanted(&self, step: usize) -> u64 {
        match (self.updates, self.steps.nodes.get(step)) {
            (Updates::Never, _) => self.pre_allocation,
            (_, Some(&nodes)) => nodes.min(self.pre_allocation),
            (_, None) => 0,
        }
    }

    /// Returns the duration of a step on that many nodes.
    pub fn step_ns(&self, step: usize, nodes: u64) -> u64 {
        let size_mib = self.steps.sizes_mib.get(step);
        size_mib.map_or(0, |&size_mib| ns(self.steps.model.seconds(nodes as f64, size_mib)))
    }

    /// The step that runs, counted from 0.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Returns the number of working nodes.
    pub fn working(&self) -> u64 {
        self.running.map_or(0, |running| running.nodes)
    }

    /// Returns the number of nodes that the application has.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the end of the last step.
    pub fn ended_ns(&self) -> Option<u64> {
        self.ended_ns
    }

    /// Begins the step whose turn it is.
    fn begin(&mut self, now_ns: u64, wishes: &mut Vec<Wish>) {
        self.running = None;
        if self.step >= self.steps.sizes_mib.len() {
            self.ended_ns = Some(now_ns);
            self.held = 0;
            wishes.extend(
                [Self::NODES, Self::PRE_ALLOCATION].map(|label| Wish::Done { label, released: 0 }),
            );
            return;
        }
        self.ask(now_ns, wishes);
        let ends_with = |nodes| now_ns.saturating_add(self.step_ns(self.step, nodes));
        let nodes = match self.asked {
            Some(asked) if ends_with(self.held) > asked.from_ns => self.held.min(asked.nodes),
            _ => self.held,
        };
        self.running = Some(Running { nodes, began_ns: now_ns, ends_ns: ends_with(nodes) });
    }

    /// Asks for the nodes of the present step, if it has others.
    fn ask(&mut self, now_ns: u64, wishes: &mut Vec<Wish>) {
        let nodes = self.wanted(self.step);
        if self.asked.is_some() || nodes == self.held {
            return;
        }
        let announce_ns = self.updates.announce_ns();
        let from_ns = now_ns.saturating_add(announce_ns);
        // Those that the running step works on stay until it has ended.
        let is_taken = |running: Running| running.nodes > nodes && running.ends_ns > from_ns;
        if self.running.is_some_and(is_taken) {
            return;
        }
        self.asked = Some(PendingUpdate { nodes, from_ns });
        wishes.push(Wish::Update { label: Self::NODES, nodes, duration_ns: FOREVER, announce_ns });
    }
}

impl Application for Amr {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        let of = |label, kind, nodes| {
            Wish::Request(Request { label, kind, nodes, duration_ns: FOREVER, how: How::Free })
        };
        vec![
            of(Self::PRE_ALLOCATION, Kind::PreAllocation, self.pre_allocation),
            of(Self::NODES, Kind::NonPreemptible, self.wanted(0).max(1)),
        ]
    }

    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if label != Self::NODES || self.has_ended() {
            return wishes;
        }
        self.held = nodes;
        // The first part of an announced update has the nodes of before.
        if self.asked.is_some_and(|asked| asked.nodes == nodes) {
            self.asked = None;
        }
        match self.running {
            // Nothing has been done on the old ones.
            Some(running) if running.began_ns < now_ns => self.ask(now_ns, &mut wishes),
            _ => self.begin(now_ns, &mut wishes),
        }
        wishes
    }

    fn refused(&mut self, _: u64, label: Label) -> Vec<Wish> {
        // The next step asks anew.
        if label == Self::NODES {
            self.asked = None;
        }
        Vec::new()
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if self.running.is_some_and(|running| running.ends_ns <= now_ns) {
            self.step += 1;
            self.begin(now_ns, &mut wishes);
        }
        wishes
    }

    fn next_ns(&self) -> Option<u64> {
        self.running.map(|running| running.ends_ns)
    }

    fn has_ended(&self) -> bool {
        self.ended_ns.is_some()
    }
}
