// SPDX-License-Identifier: GPL-2.0

//! Snapshot of a node: its whole state as words, from which the same code makes the node again.
//!
//! A recording that begins in the middle of a plan has no inputs before its beginning.  The
//! snapshot takes their place: a node that is restored from it continues event for event.
//!
//! The caller owns the node, and takes a snapshot between two calls.  No call changes the node
//! meanwhile.  A snapshot visits each process, each place and each awaited predecessor once.
//! Therefore only user space takes one: under the lock of a run queue, a loop over a plan is too
//! long.
//!
//! The words are, in this order:
//!
//! 1. [`VERSION`], the number of processes, and the number of awaited predecessors.  Another
//!    version, or another plan, is refused.
//! 2. The rate of the CPU, and the state of the node as a whole.
//! 3. The state of each process, and its place where slots float.
//! 4. The state of each awaited predecessor.
//! 5. A check over all words before it.
//!
//! The plan and the configuration are not among the words: a recording has them anyway.  Derived
//! values are not among them either, but computed anew: sums, counts of processes, the heaps of
//! candidates, and numbers of the policy.  A process that was copied for the next plan counts as
//! not copied: the plan that takes over from a restored node copies all.
//!
//! The length follows from the plan, and [`Node::restore`] reads no more.  It refuses every value
//! that no type has, every list that does not end, and every contradiction that a running kernel
//! would find ([`Node::contradiction`]).

use super::config::Config;
use super::event::{Counts, EventKind};
use super::float::Floating;
use super::memory::{Memory, NoMemory};
use super::node::Node;
use super::plan::Plan;
use super::rate::Rate;
use super::wait_lists::NOBODY;
use super::words::{Saved, SnapshotError, Words, VERSION};

impl From<NoMemory> for SnapshotError {
    fn from(_: NoMemory) -> SnapshotError {
        SnapshotError::NoMemory
    }
}

/// The check after another word.
const fn checked(check: u64, word: u64) -> u64 {
    // An odd factor loses nothing.
    let mixed = (check ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

impl<M: Memory> Node<M> {
    /// Passes the words of a snapshot, in order.
    ///
    /// Save [`Node::config`] and the plan with it.
    pub fn save(&self, mut to: impl FnMut(u64)) {
        let mut check = 0;
        self.save_state(&mut |word| {
            check = checked(check, word);
            to(word);
        });
        to(check);
    }

    fn save_state(&self, to: &mut impl FnMut(u64)) {
        to(VERSION);
        to(self.processes.len() as u64);
        to(self.plan.predecessors.len() as u64);
        to(self.rates.cpu().insns_per_ms());
        self.policy.reschedule_time_insns.save(to);
        self.status.save(to);
        self.windows.save(to);
        self.budget.save(to);
        self.slot.save(to);
        self.grant.save(to);
        self.grant_reports.save(to);
        self.standing.save(to);
        self.signals.save(to);
        self.responses.save(to);
        for kind in EventKind::ALL {
            self.counts.get(kind).save(to);
        }
        self.queue.tickets().save(to);
        self.processes.save_derived(to);
        self.floating.save_whole(to);
        self.wait_lists.save_whole(to);
        for run in self.processes.runs() {
            run.save(to);
        }
        for p in 0..self.processes.len() as u32 {
            if let Some(place) = self.floating.place(p) {
                place.save(to);
            }
        }
        self.wait_lists.save_awaited(to);
    }

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
        node.policy.reschedule_time_insns = Saved::load(from)?;
        node.status = Saved::load(from)?;
        node.windows = Saved::load(from)?;
        node.budget = Saved::load(from)?;
        node.slot = Saved::load(from)?;
        node.grant = Saved::load(from)?;
        node.grant_reports = Saved::load(from)?;
        node.standing = Saved::load(from)?;
        node.signals = Saved::load(from)?;
        node.responses = Saved::load(from)?;
        node.counts = Counts::load(from)?;
        node.queue.set_tickets(Saved::load(from)?);
        node.processes.load_derived(from)?;
        node.floating = Floating::new(if node.floats() {
            node.processes.len()
        } else {
            0
        })?;
        node.floating.load_whole(from)?;
        node.wait_lists.load_whole(from)?;
        for run in node.processes.runs_mut() {
            *run = Saved::load(from)?;
            run.copied = false;
            run.noted = false;
        }
        for p in 0..node.processes.len() as u32 {
            if let Some(place) = node.floating.place_mut(p) {
                *place = Saved::load(from)?;
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
            counts.set(kind, Saved::load(from)?);
        }
        Ok(counts)
    }
}
