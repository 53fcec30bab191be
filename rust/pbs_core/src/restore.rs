// SPDX-License-Identifier: GPL-2.0

//! Restoration of a node from its snapshot.  The kernel restores none.

use super::config::Config;
use super::event::{Counts, EventKind};
use super::float::Floating;
use super::memory::Memory;
use super::node::Node;
use super::plan::Plan;
use super::rate::Rate;
use super::restored::{Restored, SnapshotError, Words};
use super::snapshot::checked;
use super::timeliness::Timetable;
use super::wait_lists::NOBODY;
use super::words::VERSION;

impl<M: Memory> Node<M> {
    /// Restores a node of `plan` and `config` from a snapshot.
    pub fn restore(plan: Plan<M>, config: Config, words: &[u64]) -> Result<Node<M>, SnapshotError> {
        let (check, words) = words.split_last().ok_or(SnapshotError::Length)?;
        if words.iter().fold(0, |check, word| checked(check, *word)) != *check {
            return Err(SnapshotError::Changed);
        }
        Node::restore_state(plan, config, Words::new(words))
    }

    /// Like [`Node::restore`], of words without their check.
    #[cfg(test)]
    pub fn restore_unchecked(
        plan: Plan<M>,
        config: Config,
        words: &[u64],
    ) -> Result<Node<M>, SnapshotError> {
        Node::restore_state(plan, config, Words::new(words))
    }

    fn restore_state(
        plan: Plan<M>,
        config: Config,
        mut words: Words<'_>,
    ) -> Result<Node<M>, SnapshotError> {
        let from = &mut words;
        let version = from.next()?;
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let processes = from.next()?;
        if (processes, from.next()?)
            != (plan.processes.len() as u64, plan.predecessors.len() as u64)
        {
            return Err(SnapshotError::OtherPlan(processes));
        }
        let rate = Rate::new(from.next()?);
        let mut node = Node::new(plan, config, rate, 0, 0)?;
        node.policy.reschedule_time_insns = Restored::load(from)?;
        node.status = Restored::load(from)?;
        node.windows = Restored::load(from)?;
        node.budget = Restored::load(from)?;
        node.slot = Restored::load(from)?;
        node.grant = Restored::load(from)?;
        node.grant_reports = Restored::load(from)?;
        node.standing = Restored::load(from)?;
        node.signals = Restored::load(from)?;
        node.responses = Restored::load(from)?;
        node.counts = Counts::load(from)?;
        node.queue.set_tickets(Restored::load(from)?);
        node.processes.load_derived(from)?;
        node.floating = Floating::new(if node.floats() {
            node.processes.len()
        } else {
            0
        })?;
        node.floating.load_whole(from)?;
        node.wait_lists.load_whole(from)?;
        node.timetable = Timetable::load(from, &node.plan, &node.rates)?;
        let processes = node.plan.processes.iter_mut();
        for (run, process) in node.processes.runs_mut().iter_mut().zip(processes) {
            *run = Restored::load(from)?;
            run.copied = false;
            run.noted = false;
            process.shared = Restored::load(from)?;
        }
        for p in 0..node.processes.len() as u32 {
            if let Some(place) = node.floating.place_mut(p) {
                *place = Restored::load(from)?;
            }
        }
        node.wait_lists.load_awaited(from)?;
        if !from.is_empty() {
            return Err(SnapshotError::Length);
        }
        node.derive()?;
        Ok(node)
    }

    /// Computes what is derived from the processes, and looks for contradictions.
    fn derive(&mut self) -> Result<(), SnapshotError> {
        let found = SnapshotError::Contradiction;
        if !self.windows.is_sound() {
            return Err(found(
                "a window is longer than its period, or has no length",
            ));
        }
        self.processes.derive();
        for run in self.processes.runs() {
            self.lengths
                .replace(super::lengths::Lengths::New, run.lengths);
        }
        let placed = if self.floats() {
            self.floating.derive(self.processes.runs())
        } else {
            self.queue.derive(self.processes.runs())
        };
        if !placed {
            return Err(found(
                "the places of processes in a queue do not follow each other",
            ));
        }
        if !self.waits_end() {
            return Err(found("a list of processes that wait does not end"));
        }
        let processes = self.processes.len() as u32;
        self.contradiction(0, processes)
            .map_or(Ok(()), |what| Err(found(what)))
    }

    /// Whether all lists of processes that wait, and of predecessors, end.
    fn waits_end(&self) -> bool {
        let runs = self.processes.runs();
        let mut left = runs.len();
        for predecessor in 0..self.plan.predecessors.len() as u32 {
            let mut next = self.wait_lists.first(predecessor);
            while next != NOBODY {
                // No process is in two lists.
                let Some(run) = runs.get(next as usize).filter(|_| left > 0) else {
                    return false;
                };
                left -= 1;
                next = run.next_waiting;
            }
        }
        self.wait_lists.are_sound(runs.len())
    }
}

impl Counts {
    fn load(from: &mut Words<'_>) -> Result<Counts, SnapshotError> {
        let mut counts = Counts::ZERO;
        for kind in EventKind::ALL {
            counts.set(kind, Restored::load(from)?);
        }
        Ok(counts)
    }
}
