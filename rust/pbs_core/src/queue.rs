// SPDX-License-Identifier: GPL-2.0

//! Queue of the candidates for idle slots, the most urgent first.

use super::config::IdlePolicy;
use super::heap::{Heap, Members, NOT_QUEUED};
use super::memory::{Memory, NoMemory};
use super::run::Run;

/// Number of windows for which the most urgent candidates may go first.
const ROUND_WINDOWS: u64 = 10;

/// The queue of candidates.  Ties go to the lower index: the same inputs give the same
/// decisions.  Policies that serve the first comer order by the number with which a
/// candidate entered.
///
/// No candidate starves: one that entered [`ROUND_WINDOWS`] windows later than another
/// comes after it, however urgent it is.
pub(super) struct Queue<M: Memory> {
    heap: Heap<M>,
    /// Number of candidates that entered so far.
    tickets: u64,
    policy: IdlePolicy,
}

/// The order of the candidates.
struct ByUrgency<'a> {
    runs: &'a mut [Run],
    policy: IdlePolicy,
}

impl Members for ByUrgency<'_> {
    #[inline]
    fn runs(&mut self) -> &mut [Run] {
        self.runs
    }

    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        before(self.runs, self.policy, a, b)
    }
}

fn before(runs: &[Run], policy: IdlePolicy, a: u32, b: u32) -> bool {
    let (Some(run_a), Some(run_b)) = (runs.get(a as usize), runs.get(b as usize)) else {
        return false;
    };
    let urgency_a = policy.urgency(run_a);
    let urgency_b = policy.urgency(run_b);
    (run_a.round, urgency_b, a) < (run_b.round, urgency_a, b)
}

impl<M: Memory> Queue<M> {
    /// A queue for `processes` processes, empty.
    pub(super) fn new(processes: usize, policy: IdlePolicy) -> Result<Queue<M>, NoMemory> {
        Ok(Queue {
            heap: Heap::new(processes)?,
            tickets: 0,
            policy,
        })
    }

    /// The policy by which the queue is ordered.
    #[inline]
    pub(super) fn policy(&self) -> IdlePolicy {
        self.policy
    }

    /// Orders the candidates by another policy.  They keep the time for which they have waited.
    pub(super) fn set_policy(&mut self, runs: &mut [Run], policy: IdlePolicy) {
        self.policy = policy;
        self.heap.reorder(&mut ByUrgency { runs, policy });
    }

    /// The most urgent candidate.
    pub(super) fn first(&self) -> Option<u32> {
        self.heap.first()
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn at(&self, place: usize) -> Option<u32> {
        self.heap.at(place)
    }

    /// Inserts `p`, which is not in the queue, in the window of that number.
    #[inline]
    pub(super) fn insert(&mut self, runs: &mut [Run], p: u32, window: u64) {
        if self.heap.has_room() {
            if let Some(run) = runs.get_mut(p as usize) {
                run.round = window / ROUND_WINDOWS;
                run.ticket = self.tickets;
            }
            self.tickets = self.tickets.wrapping_add(1);
            let policy = self.policy;
            self.heap.insert(&mut ByUrgency { runs, policy }, p);
        }
    }

    /// Gives `p` the round and the number with which it entered the queue of the plan before, if it
    /// is in the queue.
    pub(super) fn keep_turn(&mut self, runs: &mut [Run], p: u32, round: u64, ticket: u64) {
        let Some(run) = runs.get_mut(p as usize) else {
            return;
        };
        if run.queued != NOT_QUEUED {
            (run.round, run.ticket) = (round, ticket);
            self.shift(runs, p);
        }
    }

    /// Gives `p` a new turn in the window of that number, if it is in the queue.
    pub(super) fn renew_turn(&mut self, runs: &mut [Run], p: u32, window: u64) {
        if self.take(runs, p).is_some() {
            self.insert(runs, p, window);
        }
    }

    /// Continues the numbers of the queue of the plan before.
    pub(super) fn follow(&mut self, old: &Queue<M>) {
        self.tickets = old.tickets;
    }

    /// Moves `p` to where its urgency puts it.
    pub(super) fn shift(&mut self, runs: &mut [Run], p: u32) {
        let policy = self.policy;
        self.heap.shift(&mut ByUrgency { runs, policy }, p);
    }

    /// Removes `p`, if it is in the queue.
    #[inline]
    pub(super) fn remove(&mut self, runs: &mut [Run], p: u32) {
        let policy = self.policy;
        self.heap.remove(&mut ByUrgency { runs, policy }, p);
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

    /// Whether `a` comes before `b`.
    pub(super) fn before(&self, runs: &[Run], a: u32, b: u32) -> bool {
        before(runs, self.policy, a, b)
    }
}

impl<M: Memory> Queue<M> {
    /// Number of candidates that entered so far.
    pub(super) fn tickets(&self) -> u64 {
        self.tickets
    }
}

#[cfg(any(test, feature = "std"))]
impl<M: Memory> Queue<M> {
    pub(super) fn set_tickets(&mut self, tickets: u64) {
        self.tickets = tickets;
    }

    /// Puts the candidates where they say that they are.  Returns whether their places follow each
    /// other.
    pub(super) fn derive(&mut self, runs: &[Run]) -> bool {
        let places = (0..).zip(runs).map(|(p, run)| (p, run.queued));
        self.heap
            .place_all(places.filter(|(_, place)| *place != NOT_QUEUED))
    }
}
