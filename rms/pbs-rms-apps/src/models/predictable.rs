// SPDX-License-Identifier: GPL-2.0
//! A fully-predictably evolving application (Klein and Pérez 2011, 4): all that it will want
//! is known at its start, and asked for as a chain of NEXT.

use crate::{Application, How, Kind, Label, Request, Step, Wish};

/// The application.
#[derive(Clone, Debug)]
pub struct Predictable {
    phases: Vec<Step>,
    /// Running phase, and its end.
    running: Option<(usize, u64)>,
    has_ended: bool,
}

impl Predictable {
    /// Creates an application with consecutive phases; phases without nodes or time are dropped.
    pub fn new(mut phases: Vec<Step>) -> Self {
        phases.retain(|phase| phase.nodes > 0 && phase.duration_ns > 0);
        Self { has_ended: phases.is_empty(), phases, running: None }
    }

    /// Returns the label of a phase, counted from 0.
    pub fn label(phase: usize) -> Label {
        Label(u32::try_from(phase).unwrap_or(u32::MAX))
    }

    /// Returns the number of nodes released at the end of a phase: those that the next phase does
    /// not have.
    pub fn released(&self, phase: usize) -> u64 {
        let nodes = |phase: usize| self.phases.get(phase).map_or(0, |phase| phase.nodes);
        nodes(phase).saturating_sub(nodes(phase + 1))
    }
}

impl Application for Predictable {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        let phases = self.phases.iter().enumerate();
        let requests = phases.map(|(place, phase)| {
            Wish::Request(Request {
                label: Self::label(place),
                kind: Kind::NonPreemptible,
                nodes: phase.nodes,
                duration_ns: phase.duration_ns,
                how: match place.checked_sub(1) {
                    Some(before) => How::Next(Self::label(before)),
                    None => How::Free,
                },
            })
        });
        requests.collect()
    }

    fn started(&mut self, now_ns: u64, label: Label, _: u64) -> Vec<Wish> {
        let phases = self.phases.iter().enumerate();
        let mut of_label = phases.filter(|&(place, _)| Self::label(place) == label);
        if let Some((place, phase)) = of_label.next() {
            self.running = Some((place, now_ns.saturating_add(phase.duration_ns)));
        }
        Vec::new()
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        let Some((phase, _)) = self.running.filter(|&(_, ends_ns)| ends_ns <= now_ns) else {
            return Vec::new();
        };
        // The next begins as soon as it has its nodes.
        self.running = None;
        self.has_ended = phase + 1 >= self.phases.len();
        vec![Wish::Done { label: Self::label(phase), released: self.released(phase) }]
    }

    fn next_ns(&self) -> Option<u64> {
        self.running.map(|(_, ends_ns)| ends_ns)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
