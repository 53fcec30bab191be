// SPDX-License-Identifier: GPL-2.0

//! Queue of the candidates for idle slots, the most urgent first: a binary heap of process
//! indices.  Each process knows its place in it.

use super::config::IdlePolicy;
use super::memory::{Memory, NoMemory};
use super::run::{Run, NOT_QUEUED};

/// Number of windows for which the most urgent candidates may go first.
const ROUND_WINDOWS: u64 = 10;

/// The queue of candidates.  Ties go to the lower index: the same inputs give the same
/// decisions.  Policies that serve the first comer order by the number with which a
/// candidate entered.
///
/// No candidate starves: one that entered [`ROUND_WINDOWS`] windows later than another
/// comes after it, however urgent it is.
pub(super) struct Queue<M: Memory> {
    heap: M::Slice<u32>,
    len: usize,
    /// Number of candidates that entered so far.
    tickets: u64,
    policy: IdlePolicy,
}

impl<M: Memory> Queue<M> {
    /// A queue for `processes` processes, empty.
    pub(super) fn new(processes: usize, policy: IdlePolicy) -> Result<Queue<M>, NoMemory> {
        Ok(Queue {
            heap: M::alloc(processes, 0)?,
            len: 0,
            tickets: 0,
            policy,
        })
    }

    /// The policy by which the queue is ordered.
    #[inline]
    pub(super) fn policy(&self) -> IdlePolicy {
        self.policy
    }

    /// The most urgent candidate.
    pub(super) fn first(&self) -> Option<u32> {
        self.at(0)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn at(&self, place: usize) -> Option<u32> {
        self.heap.get(..self.len)?.get(place).copied()
    }

    /// Inserts `p`, which is not in the queue, in the window of that number.
    #[inline]
    pub(super) fn insert(&mut self, runs: &mut [Run], p: u32, window: u64) {
        let place = self.len;
        if place < self.heap.len() {
            self.len += 1;
            if let Some(run) = runs.get_mut(p as usize) {
                run.round = window / ROUND_WINDOWS;
                run.ticket = self.tickets;
            }
            self.tickets = self.tickets.wrapping_add(1);
            self.put(runs, place, p);
            if place != 0 {
                self.sift_up(runs, place);
            }
        }
    }

    /// Moves `p` to where its urgency puts it.
    pub(super) fn shift(&mut self, runs: &mut [Run], p: u32) {
        if let Some(run) = runs.get(p as usize) {
            let place = self.sift_up(runs, run.queued as usize);
            self.sift_down(runs, place);
        }
    }

    /// Removes `p`, if it is in the queue.
    #[inline]
    pub(super) fn remove(&mut self, runs: &mut [Run], p: u32) {
        let Some(run) = runs
            .get_mut(p as usize)
            .filter(|run| run.queued != NOT_QUEUED)
        else {
            return;
        };
        let place = core::mem::replace(&mut run.queued, NOT_QUEUED);
        self.len = self.len.saturating_sub(1);
        if self.len != 0 {
            self.fill(runs, place as usize);
        }
    }

    /// Removes `p`.  `None` if it is not in the queue.
    pub(super) fn take(&mut self, runs: &mut [Run], p: u32) -> Option<u32> {
        let run = runs.get(p as usize)?;
        if run.queued == NOT_QUEUED {
            return None;
        }
        self.remove(runs, p);
        Some(p)
    }

    /// Removes the most urgent candidate.
    #[inline]
    pub(super) fn take_first(&mut self, runs: &mut [Run]) -> Option<u32> {
        let first = self.first()?;
        self.remove(runs, first);
        Some(first)
    }

    /// Moves the last entry, which is beyond the end now, to a place that was vacated, unless that
    /// is its own.
    fn fill(&mut self, runs: &mut [Run], place: usize) {
        let last = self.heap.get(self.len).copied();
        if let Some(last) = last.filter(|_| place < self.len) {
            self.put(runs, place, last);
            let place = self.sift_up(runs, place);
            self.sift_down(runs, place);
        }
    }

    /// Does `a` come before `b`?
    pub(super) fn before(&self, runs: &[Run], a: u32, b: u32) -> bool {
        let (Some(run_a), Some(run_b)) = (runs.get(a as usize), runs.get(b as usize)) else {
            return false;
        };
        let urgency_a = run_a.urgency(self.policy);
        let urgency_b = run_b.urgency(self.policy);
        (run_a.round, urgency_b, a) < (run_b.round, urgency_a, b)
    }

    fn put(&mut self, runs: &mut [Run], place: usize, p: u32) {
        if let (Some(entry), Some(run)) = (self.heap.get_mut(place), runs.get_mut(p as usize)) {
            *entry = p;
            run.queued = place as u32;
        }
    }

    fn sift_up(&mut self, runs: &mut [Run], mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            let (Some(p), Some(above)) = (self.at(place), self.at(parent)) else {
                break;
            };
            if !self.before(runs, p, above) {
                break;
            }
            self.put(runs, parent, p);
            self.put(runs, place, above);
            place = parent;
        }
        place
    }

    fn sift_down(&mut self, runs: &mut [Run], mut place: usize) {
        loop {
            let left_child = place.saturating_mul(2).saturating_add(1);
            let right_child = left_child.saturating_add(1);
            let (Some(p), Some(left)) = (self.at(place), self.at(left_child)) else {
                break;
            };
            let (child, below) = match self.at(right_child) {
                Some(right) if self.before(runs, right, left) => (right_child, right),
                _ => (left_child, left),
            };
            if !self.before(runs, below, p) {
                break;
            }
            self.put(runs, child, p);
            self.put(runs, place, below);
            place = child;
        }
    }
}
