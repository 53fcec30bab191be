// SPDX-License-Identifier: GPL-2.0
//! A moldable application (Klein and Pérez 2011, 4): it chooses a node count by its view,
//! and chooses again with each new view until it has started.
//!
//! How it chooses the report leaves to the application. Here it takes what ends first by the
//! view, and of those that end together the one with the fewest nodes.

use crate::{Application, How, Kind, Label, Request, View, Views, Wish};

/// Number of nodes and duration of a possible run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// On how many nodes.
    pub nodes: u64,
    /// Duration on these nodes.
    pub duration_ns: u64,
}

/// The application.
#[derive(Clone, Debug)]
pub struct Moldable {
    choices: Vec<Choice>,
    /// Current request: its label and the choice.
    asked: Option<(Label, Choice)>,
    ends_ns: Option<u64>,
    has_ended: bool,
}

impl Moldable {
    /// Creates an application with these choices. Choices without nodes are dropped.
    pub fn new(mut choices: Vec<Choice>) -> Self {
        choices.retain(|choice| choice.nodes > 0);
        Self { has_ended: choices.is_empty(), choices, asked: None, ends_ns: None }
    }

    /// Returns the choice that ends first in a view; `None` if none ever starts.
    pub fn choose(&self, now_ns: u64, view: &View) -> Option<Choice> {
        let end = |choice: &Choice| {
            let start_ns = view.first_hole_ns(choice.nodes, choice.duration_ns, now_ns)?;
            Some(start_ns.saturating_add(choice.duration_ns))
        };
        let possible = self.choices.iter().copied();
        let ends = possible.filter_map(|choice| Some((end(&choice)?, choice.nodes, choice)));
        ends.min_by_key(|&(end_ns, nodes, _)| (end_ns, nodes)).map(|best| best.2)
    }

    /// Returns the last request: its label and the choice.
    pub fn asked(&self) -> Option<(Label, Choice)> {
        self.asked
    }
}

impl Application for Moldable {
    fn connect(&mut self, _: u64) -> Vec<Wish> {
        // It waits for a view.
        Vec::new()
    }

    fn views(&mut self, now_ns: u64, views: Views<'_>) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if self.ends_ns.is_some() || self.has_ended {
            return wishes;
        }
        let Some(choice) = self.choose(now_ns, views.non_preemptible) else {
            return wishes;
        };
        let mut label = Label(0);
        if let Some((before, asked)) = self.asked {
            if asked == choice {
                return wishes;
            }
            wishes.push(Wish::Done { label: before, released: 0 });
            label = Label(before.0.wrapping_add(1));
        }
        self.asked = Some((label, choice));
        wishes.push(Wish::Request(Request {
            label,
            kind: Kind::NonPreemptible,
            nodes: choice.nodes,
            duration_ns: choice.duration_ns,
            how: How::Free,
        }));
        wishes
    }

    fn started(&mut self, now_ns: u64, label: Label, _: u64) -> Vec<Wish> {
        if let Some((asked, choice)) = self.asked {
            if asked == label && self.ends_ns.is_none() {
                self.ends_ns = Some(now_ns.saturating_add(choice.duration_ns));
            }
        }
        Vec::new()
    }

    fn wake(&mut self, now_ns: u64) -> Vec<Wish> {
        let is_over = self.ends_ns.is_some_and(|ns| ns <= now_ns);
        let Some((label, choice)) = self.asked.filter(|_| is_over && !self.has_ended) else {
            return Vec::new();
        };
        self.has_ended = true;
        vec![Wish::Done { label, released: choice.nodes }]
    }

    fn next_ns(&self) -> Option<u64> {
        self.ends_ns.filter(|_| !self.has_ended)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
