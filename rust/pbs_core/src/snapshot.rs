// SPDX-License-Identifier: GPL-2.0

//! Snapshot of a node: its whole state as words, from which the same code makes the node again.
//!
//! A recording that begins in the middle of a plan has no inputs before its beginning.  The
//! snapshot takes their place: a node that is restored from it continues event for event.
//!
//! The caller owns the node, and takes a snapshot between two calls.  No call changes the node
//! meanwhile.  A snapshot visits each process, each place and each awaited predecessor once, and is
//! no decision: a caller under a lock bounds its length by [`Node::most_words`].
//!
//! The words are, in this order:
//!
//! 1. [`VERSION`], the number of processes, and the number of awaited predecessors.  Another
//!    version, or another plan, is refused.
//! 2. The rate of the CPU, and the state of the node as a whole.
//! 3. The state of each process, whether others see its progress, and its place where slots float.
//! 4. The state of each awaited predecessor.
//! 5. A check over all words before it.
//!
//! The plan and the configuration are not among the words: a recording has them anyway.  Derived
//! values are not among them either, but computed anew: sums, counts of processes, the heaps of
//! candidates, and numbers of the policy.  A process that was copied for the next plan counts as
//! not copied: the plan that takes over from a restored node copies all.
//!
//! The length follows from the plan.  [`Node::restore`] reads no more.  It refuses every value that
//! no type has, every list that does not end, and every contradiction that a running kernel would
//! find ([`Node::contradiction`]).

use super::event::EventKind;
use super::memory::Memory;
use super::node::Node;
use super::words::{Saved, VERSION};

/// Most words about a process, an awaited predecessor, and the node as a whole.
const OF_PROCESS: usize = 112;
const OF_PREDECESSOR: usize = 8;
const OF_NODE: usize = 256;

/// The check after another word.
pub(super) const fn checked(check: u64, word: u64) -> u64 {
    // An odd factor loses nothing.
    let mixed = (check ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

impl<M: Memory> Node<M> {
    /// Bound of the number of words of a snapshot, at any moment of this plan.
    pub fn most_words(&self) -> usize {
        let processes = self.processes.len().saturating_mul(OF_PROCESS);
        let predecessors = self.plan.predecessors.len().saturating_mul(OF_PREDECESSOR);
        OF_NODE
            .saturating_add(processes)
            .saturating_add(predecessors)
    }

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
        self.save_whole(to);
        for (run, process) in self.processes.runs().iter().zip(self.plan.processes.iter()) {
            run.save(to);
            process.shared.save(to);
        }
        for p in 0..self.processes.len() as u32 {
            if let Some(place) = self.floating.place(p) {
                place.save(to);
            }
        }
        self.wait_lists.save_awaited(to);
    }

    /// Saves the state of the node as a whole.
    fn save_whole(&self, to: &mut impl FnMut(u64)) {
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
        self.timetable.save(to);
    }
}

/// Receiver of words.
#[cfg(test)]
type ToWords<'a> = &'a mut dyn FnMut(u64);

#[cfg(test)]
impl<M: Memory> Node<M> {
    /// Panics where a part of a snapshot is longer than its share of [`Node::most_words`].
    pub fn check_words(&self) {
        let count = |save: &dyn Fn(ToWords<'_>)| {
            let mut words = 0;
            save(&mut |_| words += 1);
            words
        };
        // The check is a word, too.
        let of_node = 1 + count(&|mut to| self.save_whole(&mut to));
        assert!(of_node <= OF_NODE, "the node has {of_node} words");
        let mut all = of_node;
        for (run, p) in self.processes.runs().iter().zip(0..) {
            let place = self.floating.place(p);
            let of_place = place.map_or(0, |place| count(&|mut to| place.save(&mut to)));
            let of_process = 1 + of_place + count(&|mut to| run.save(&mut to));
            assert!(of_process <= OF_PROCESS, "process {p}: {of_process} words");
            all += of_process;
        }
        let awaited = self.plan.predecessors.len();
        let of_awaited = count(&|mut to| self.wait_lists.save_awaited(&mut to));
        assert!(of_awaited <= awaited * OF_PREDECESSOR);
        assert_eq!(count(&|to| self.save(to)), all + of_awaited);
    }
}
