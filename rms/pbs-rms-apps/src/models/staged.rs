// SPDX-License-Identifier: GPL-2.0
//! A marginally-predictably evolving application (Klein and Pérez 2011, 4) whose tasks are
//! jobs: stages one after the other, each of so many tasks, one on each of its nodes.
//!
//! How long a stage takes is known about: so long are its nodes asked for. It is told when
//! each task is expected to end. What a stage needs longer than it has its nodes is announced, as
//! is the next stage's number of nodes, so that whoever has those sees them go; where it is
//! not announced, the next stage asks when the one before it has ended.

use std::collections::BTreeMap;

use crate::{Application, How, Kind, Label, Request, Step, Wish, FOREVER};

/// Divisor of a task's expected duration for the additional time that is requested: a quarter.
const SPARE: u64 = 4;

/// Request that has not started yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// The nodes of the stage that is next.
    Next,
    /// The nodes that it has, for longer.
    Longer,
}

/// The last request of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastRequest {
    /// Expected begin, if it has not started.
    begin_ns: u64,
    end_ns: u64,
    pending: Option<Pending>,
}

/// The application.
#[derive(Clone, Debug)]
pub struct Staged {
    stages: Vec<Step>,
    pre_allocation: u64,
    announce_ns: u64,
    /// Index of the stage that has nodes, or waits for its first ones.
    stage: usize,
    next_task: u64,
    /// Tasks of stages that have nodes, and which have not started.
    to_start: u64,
    /// Expected end of each running task.
    running: BTreeMap<u64, u64>,
    held: u64,
    asked: LastRequest,
    /// Request that remains if the last one is refused.
    before: LastRequest,
    /// The next stage's nodes could not be announced: that is tried again when something has
    /// started, and they are asked for when they are needed.
    is_unannounced: bool,
    extended: u64,
    has_ended: bool,
}

impl Staged {
    /// Label of the pre-allocation.
    pub const PRE_ALLOCATION: Label = Label(0);
    /// Label of the request that has nodes.
    pub const NODES: Label = Label(1);

    /// Stages of so many nodes for about so long; those without nodes or time are none. It
    /// announces the nodes of the next stage so long before it is expected to begin; 0: it asks
    /// when they are needed.
    pub fn new(mut stages: Vec<Step>, announce_ns: u64) -> Self {
        stages.retain(|stage| stage.nodes > 0 && stage.duration_ns > 0);
        Self {
            pre_allocation: stages.iter().map(|stage| stage.nodes).max().unwrap_or(0),
            announce_ns,
            stage: 0,
            next_task: 0,
            to_start: stages.first().map_or(0, |stage| stage.nodes),
            running: BTreeMap::new(),
            held: 0,
            asked: LastRequest::default(),
            before: LastRequest::default(),
            is_unannounced: false,
            extended: 0,
            has_ended: stages.is_empty(),
            stages,
        }
    }

    /// Returns the number of nodes; 0 while the application waits for its first ones.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of running tasks.
    pub fn running(&self) -> u64 {
        self.running.len() as u64
    }

    /// Returns the number of requests for more time.
    pub fn extended(&self) -> u64 {
        self.extended
    }

    /// Returns the expected end of the last running task.
    fn expected_ns(&self) -> Option<u64> {
        self.running.values().copied().max()
    }

    fn next_stage(&self) -> Option<Step> {
        self.stages.get(self.stage + 1).copied()
    }

    /// Starts what there are nodes for; if nothing is left of the stage, goes on.
    fn react(&mut self, now_ns: u64) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if self.has_ended || self.held == 0 {
            return wishes;
        }
        let starts = self.to_start.min(self.held.saturating_sub(self.running()));
        if starts > 0 {
            let tasks = self.next_task..self.next_task + starts;
            let task_ns = self.stages[self.stage].duration_ns;
            // In time, until something else is told.
            let end_ns = now_ns.saturating_add(task_ns).min(self.asked.end_ns);
            self.running.extend(tasks.clone().map(|task| (task, end_ns)));
            self.next_task += starts;
            self.to_start -= starts;
            wishes.push(Wish::Start { tasks });
        }
        if self.running.is_empty() && self.asked.pending != Some(Pending::Next) {
            wishes.extend(self.go_on(now_ns));
        } else {
            wishes.extend(self.keep(now_ns));
            wishes.extend(self.announce(now_ns));
        }
        wishes
    }

    /// All tasks have ended: asks for the nodes of the next stage, or ends.
    fn go_on(&mut self, now_ns: u64) -> Vec<Wish> {
        let Some(next) = self.next_stage() else {
            return self.end();
        };
        vec![self.ask(now_ns, 0, next, Pending::Next)]
    }

    fn end(&mut self) -> Vec<Wish> {
        self.has_ended = true;
        self.held = 0;
        let done = |label| Wish::Done { label, released: 0 };
        vec![done(Self::NODES), done(Self::PRE_ALLOCATION)]
    }

    /// Asks for the nodes for longer, if a task is expected to need them for longer.
    fn keep(&mut self, now_ns: u64) -> Option<Wish> {
        let LastRequest { begin_ns, end_ns, pending } = self.asked;
        let late_ns = self.expected_ns()?.saturating_sub(end_ns);
        if late_ns == 0 {
            return None;
        }
        self.extended += 1;
        let more_ns = late_ns.saturating_add(late_ns / SPARE);
        let nodes = match (pending, self.next_stage()) {
            (Some(Pending::Next), Some(next)) => next.nodes,
            _ => self.held,
        };
        let Some(pending) = pending else {
            let announce_ns = end_ns.saturating_sub(now_ns).max(1);
            let longer = Step::new(more_ns, nodes);
            return Some(self.ask(now_ns, announce_ns, longer, Pending::Longer));
        };
        let longer = Step::new((end_ns - begin_ns).saturating_add(more_ns), nodes);
        Some(self.change(now_ns, longer, pending))
    }

    /// Announces the nodes of the next stage, if it is time to.
    fn announce(&mut self, now_ns: u64) -> Option<Wish> {
        let next = self.next_stage()?;
        if self.announce_at_ns()? > now_ns {
            return None;
        }
        let expected_ns = self.expected_ns()?;
        if self.asked.pending.is_none() {
            let until_ns = expected_ns.saturating_sub(now_ns).max(1);
            return Some(self.ask(now_ns, until_ns, next, Pending::Next));
        }
        // What it is to have for longer may be the next stage's as well, if that is said
        // earlier so than when it has begun.
        let begin_ns = self.asked.begin_ns;
        if begin_ns.saturating_sub(now_ns) < expected_ns.saturating_sub(begin_ns) {
            self.is_unannounced = true;
            return None;
        }
        Some(self.change(now_ns, next, Pending::Next))
    }

    /// Returns the time at which the nodes of the next stage must be announced.
    fn announce_at_ns(&self) -> Option<u64> {
        let is_said = self.is_unannounced || self.asked.pending == Some(Pending::Next);
        let can = self.announce_ns > 0 && !is_said && self.to_start == 0;
        // What it gives back nobody has to make room for.
        self.next_stage().filter(|next| can && next.nodes > self.held)?;
        Some(self.expected_ns()?.saturating_sub(self.announce_ns))
    }

    /// Replaces the pending request with another one.
    fn change(&mut self, now_ns: u64, step: Step, pending: Pending) -> Wish {
        let begin_ns = self.asked.begin_ns;
        let wish = self.ask(now_ns, 0, step, pending);
        self.asked.begin_ns = begin_ns;
        self.asked.end_ns = begin_ns.saturating_add(step.duration_ns);
        wish
    }

    fn ask(&mut self, now_ns: u64, announce_ns: u64, step: Step, pending: Pending) -> Wish {
        let begin_ns = now_ns.saturating_add(announce_ns);
        self.before = self.asked;
        self.asked = LastRequest {
            begin_ns,
            end_ns: begin_ns.saturating_add(step.duration_ns),
            pending: Some(pending),
        };
        Wish::Update {
            label: Self::NODES,
            nodes: step.nodes,
            duration_ns: step.duration_ns,
            announce_ns,
        }
    }

    fn begin_stage(&mut self) {
        self.stage += 1;
        self.to_start += self.stages[self.stage].nodes;
        self.is_unannounced = false;
    }
}

impl Application for Staged {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        let Some(first) = self.stages.first() else {
            return Vec::new();
        };
        let of = |label, kind, step: Step, how| {
            Wish::Request(Request {
                label,
                kind,
                nodes: step.nodes,
                duration_ns: step.duration_ns,
                how,
            })
        };
        let all = Step::new(FOREVER, self.pre_allocation);
        let (mark, inside) = (Self::PRE_ALLOCATION, How::Coalloc(Self::PRE_ALLOCATION));
        vec![
            of(mark, Kind::PreAllocation, all, How::Free),
            of(Self::NODES, Kind::NonPreemptible, *first, inside),
        ]
    }

    fn started(&mut self, now_ns: u64, label: Label, nodes: u64) -> Vec<Wish> {
        if label != Self::NODES || self.has_ended {
            return Vec::new();
        }
        let is_first = self.held == 0;
        self.held = nodes;
        match self.asked.pending.take() {
            Some(Pending::Next) => self.begin_stage(),
            Some(Pending::Longer) => self.is_unannounced = false,
            None if is_first => {
                let stage_ns = self.stages[self.stage].duration_ns;
                self.asked.end_ns = now_ns.saturating_add(stage_ns);
            }
            None => {}
        }
        self.react(now_ns)
    }

    /// The old request runs on: with its nodes the tasks of the next stage are run, a few at a
    /// time if need be, or what is late until its nodes are taken away.
    fn refused(&mut self, now_ns: u64, label: Label) -> Vec<Wish> {
        if label != Self::NODES || self.has_ended {
            return Vec::new();
        }
        let refused = std::mem::replace(&mut self.asked, self.before);
        if refused.pending != Some(Pending::Next) || self.asked.pending == Some(Pending::Next) {
            return Vec::new();
        }
        if !self.running.is_empty() || self.asked.pending.is_some() {
            self.is_unannounced = true;
            return Vec::new();
        }
        self.begin_stage();
        self.react(now_ns)
    }

    fn run_out(&mut self, _: u64, label: Label) -> Vec<Wish> {
        // Its tasks have been killed with that.
        if label == Self::NODES && !self.has_ended {
            self.end()
        } else {
            Vec::new()
        }
    }

    fn task_expected(&mut self, now_ns: u64, task: u64, end_ns: u64) -> Vec<Wish> {
        match self.running.get_mut(&task) {
            Some(expected_ns) => *expected_ns = end_ns,
            None => return Vec::new(),
        }
        self.react(now_ns)
    }

    fn task_ended(&mut self, now_ns: u64, task: u64) -> Vec<Wish> {
        self.running.remove(&task);
        self.react(now_ns)
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        self.react(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        self.announce_at_ns().filter(|_| self.held > 0)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
