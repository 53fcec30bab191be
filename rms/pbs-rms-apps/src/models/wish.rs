// SPDX-License-Identifier: GPL-2.0
//! Inputs and wishes of applications: plain values, for any manager.
//!
//! All applications here want nodes of one cluster, as those of the evaluation do (Klein and Pérez
//! 2011, 5.1.3), and count them. The driver of an application chooses the nodes that it gives back,
//! because the driver knows where its tasks run.

use std::ops::Range;

use crate::View;

/// Label of a request. An update keeps the label, which then refers to the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// The types of requests (3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Marks nodes for what may be wanted later; nobody else gets them for good.
    PreAllocation,
    /// Runs to completion.
    NonPreemptible,
    /// Shrinks at any time, if the manager demands it.
    Preemptible,
}

/// The constraints of requests (3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// None.
    Free,
    /// Starts with the other one.
    Coalloc(Label),
    /// Starts when the other one ends, and keeps its nodes.
    Next(Label),
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Label of the request from now on.
    pub label: Label,
    /// Type of the request.
    pub kind: Kind,
    /// Number of nodes, at least one.
    pub nodes: u64,
    /// [`FOREVER`](crate::FOREVER): until it is done.
    pub duration_ns: u64,
    /// Constraint of the request.
    pub how: How,
}

/// Wish of an application to its manager or to its nodes. Several wishes are carried out in their
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// request().
    Request(Request),
    /// An update (3.1.3): spontaneous, or announced so long before. Where it wants fewer
    /// nodes, those without a task are given back.
    Update {
        /// Label of the updated request.
        label: Label,
        /// New number of nodes.
        nodes: u64,
        /// New duration.
        duration_ns: u64,
        /// 0: spontaneous.
        announce_ns: u64,
    },
    /// done(): a request ends, or is taken back.
    Done {
        /// Label of the request.
        label: Label,
        /// Number of nodes that a successor (NEXT) does not get.
        released: u64,
    },
    /// Tasks start, each on a node of its own that has none.
    Start {
        /// Their numbers.
        tasks: Range<u64>,
    },
    /// Tasks are killed; what they have done is lost.
    Kill {
        /// Their numbers.
        tasks: Vec<u64>,
    },
    /// The results up to now are written down, to continue from there later.
    Checkpoint,
}

/// Views of an application (3.1.4).
#[derive(Clone, Copy, Debug)]
pub struct Views<'a> {
    /// Nodes that pre-allocations and non-preemptible requests could get.
    pub non_preemptible: &'a View,
    /// Nodes that preemptible requests could get. They must give back any more than these.
    pub preemptible: &'a View,
}

/// An application without clock and manager: it is told what happens, and says what it wants.
///
/// Times never go back. What falls together comes in this order: ends, views, starts.
pub trait Application {
    /// Handles the connection: the application may send requests from now on.
    fn connect(&mut self, now_ns: u64) -> Vec<Wish>;

    /// Handles new views.
    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        let _ = (now_ns, views);
        Vec::new()
    }

    /// A request, or the successor that an update has made of it, has started and has so many
    /// nodes in all.
    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish>;

    /// An update can't be, and its request is as it was before.
    fn refused(&mut self, now_ns: u64, label: Label) -> Vec<Wish> {
        let _ = (now_ns, label);
        Vec::new()
    }

    /// The duration of a request is over, and it has none of its nodes any more.
    fn run_out(&mut self, now_ns: u64, label: Label) -> Vec<Wish> {
        let _ = (now_ns, label);
        Vec::new()
    }

    /// A task that runs is expected to end then. A model of which the tasks only last is not
    /// told.
    fn task_expected(&mut self, now_ns: u64, task: u64, end_ns: u64) -> Vec<Wish> {
        let _ = (now_ns, task, end_ns);
        Vec::new()
    }

    /// A task has ended, or could not start. A model of which the tasks only last is not told.
    fn task_ended(&mut self, now_ns: u64, task: u64) -> Vec<Wish> {
        let _ = (now_ns, task);
        Vec::new()
    }

    /// Time has come to that of [`Application::next_ns`].
    fn wake(&mut self, now_ns: u64) -> Vec<Wish>;

    /// Returns the time at which the application wants to be woken if nothing happens before.
    fn next_ns(&self) -> Option<u64>;

    /// All is done; it wants nothing any more.
    fn has_ended(&self) -> bool;
}

impl<A: Application + ?Sized> Application for Box<A> {
    fn connect(&mut self, now_ns: u64) -> Vec<Wish> {
        (**self).connect(now_ns)
    }

    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        (**self).views(now_ns, views)
    }

    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish> {
        (**self).started(now_ns, label, nodes)
    }

    fn refused(&mut self, now_ns: u64, label: Label) -> Vec<Wish> {
        (**self).refused(now_ns, label)
    }

    fn run_out(&mut self, now_ns: u64, label: Label) -> Vec<Wish> {
        (**self).run_out(now_ns, label)
    }

    fn task_expected(&mut self, now_ns: u64, task: u64, end_ns: u64) -> Vec<Wish> {
        (**self).task_expected(now_ns, task, end_ns)
    }

    fn task_ended(&mut self, now_ns: u64, task: u64) -> Vec<Wish> {
        (**self).task_ended(now_ns, task)
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        (**self).wake(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        (**self).next_ns()
    }

    fn has_ended(&self) -> bool {
        (**self).has_ended()
    }
}
