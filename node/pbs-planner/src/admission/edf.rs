// SPDX-License-Identifier: GPL-2.0
//! Preemptive scheduling by earliest deadline on one core, and the demand that it
//! cannot serve.
//!
//! On one core this order keeps all deadlines if any order does, also beside time
//! that is reserved for others. The schedule is therefore an exact test. Where it
//! fails there is an interval that asks for more than it has ([`Overload`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Work that may be interrupted by other work at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Earliest start of the work.
    pub(crate) release_ns: u64,
    /// Latest end of the work; `u64::MAX`: it has no deadline.
    pub(crate) deadline_ns: u64,
    /// The core's time that it takes.
    pub(crate) length_ns: u64,
}

/// An interval in which a core has less time than is asked for: all work that is
/// released in the interval and must end in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// Start of the interval.
    pub from_ns: u64,
    /// End of the interval.
    pub until_ns: u64,
    /// Time that is not reserved for others.
    pub supply_ns: u64,
    /// Time that the work takes, more than the supply.
    pub demand_ns: u64,
}

impl Overload {
    /// Time that is asked for beyond the supply.
    pub(crate) fn excess_ns(&self) -> u64 {
        self.demand_ns.saturating_sub(self.supply_ns)
    }
}

/// A stretch of time in which one work is executed.
#[derive(Clone, Debug)]
struct Piece {
    work: usize,
    over: Range<u64>,
    /// The core had nothing to do in free time before.
    after_idle: bool,
}

/// Places all work into the free stretches of a core, which ascend. Returns the
/// stretches of each work, in order.
///
/// # Errors
///
/// An interval that has too little time.
pub(crate) fn earliest_deadline_first(
    work: &[Work],
    free: impl IntoIterator<Item = Range<u64>>,
) -> Result<Vec<Vec<Range<u64>>>, Overload> {
    let mut run = Schedule::new(work);
    for stretch in free {
        if run.is_done() {
            break;
        }
        run.fill(stretch);
        if let Some(late) = run.late {
            return Err(run.overload(late));
        }
    }
    match run.next_unfinished() {
        Some(late) => Err(run.overload(late)),
        None => Ok(run.stretches()),
    }
}

struct Schedule<'a> {
    work: &'a [Work],
    /// Places of the work that is not released yet, the last to be released first.
    to_come: Vec<usize>,
    /// Released work, by its deadline. Of equal deadlines the first to be released is
    /// first, which interrupts nothing without need.
    ready: BinaryHeap<Reverse<(u64, u64, usize)>>,
    left_ns: Vec<u64>,
    pieces: Vec<Piece>,
    /// Free time has passed since the last piece.
    is_idle: bool,
    free: Vec<Range<u64>>,
    /// The first work that has missed its deadline.
    late: Option<usize>,
}

impl<'a> Schedule<'a> {
    fn new(work: &'a [Work]) -> Self {
        let takes_time = |&place: &usize| work[place].length_ns > 0;
        let mut to_come: Vec<usize> = (0..work.len()).filter(takes_time).collect();
        to_come.sort_by_key(|&place| Reverse((work[place].release_ns, place)));
        Self {
            work,
            to_come,
            ready: BinaryHeap::new(),
            left_ns: work.iter().map(|work| work.length_ns).collect(),
            pieces: Vec::new(),
            is_idle: false,
            free: Vec::new(),
            late: None,
        }
    }

    fn is_done(&self) -> bool {
        self.to_come.is_empty() && self.ready.is_empty()
    }

    /// The work that has the earliest deadline of all that has not ended.
    fn next_unfinished(&self) -> Option<usize> {
        let unfinished = (0..self.work.len()).filter(|&place| self.left_ns[place] > 0);
        unfinished.min_by_key(|&place| self.work[place].deadline_ns)
    }

    fn release(&mut self, time_ns: u64) {
        while let Some(&place) = self.to_come.last() {
            let Work { release_ns, deadline_ns, .. } = self.work[place];
            if release_ns > time_ns {
                return;
            }
            self.to_come.pop();
            self.ready.push(Reverse((deadline_ns, release_ns, place)));
        }
    }

    fn fill(&mut self, stretch: Range<u64>) {
        let mut time_ns = stretch.start;
        while time_ns < stretch.end && self.late.is_none() {
            self.release(time_ns);
            let next_ns = self.to_come.last().map(|&place| self.work[place].release_ns);
            let Some(Reverse((deadline_ns, release_ns, place))) = self.ready.pop() else {
                let Some(next_ns) = next_ns else { break };
                time_ns = next_ns.min(stretch.end);
                self.is_idle = true;
                continue;
            };
            let most_ns = stretch.end.min(next_ns.unwrap_or(u64::MAX)) - time_ns;
            let length_ns = self.left_ns[place].min(most_ns);
            let end_ns = time_ns + length_ns;
            let after_idle = std::mem::take(&mut self.is_idle);
            self.execute(Piece { work: place, over: time_ns..end_ns, after_idle });
            self.left_ns[place] -= length_ns;
            if end_ns > deadline_ns {
                self.late = Some(place);
            }
            if self.left_ns[place] > 0 {
                self.ready.push(Reverse((deadline_ns, release_ns, place)));
            }
            time_ns = end_ns;
        }
        self.free.push(stretch);
    }

    fn execute(&mut self, piece: Piece) {
        let same = |last: &&mut Piece| last.work == piece.work && last.over.end == piece.over.start;
        match self.pieces.last_mut().filter(same) {
            Some(last) => last.over.end = piece.over.end,
            None => self.pieces.push(piece),
        }
    }

    /// The interval that ends at the deadline of the late work. It starts where the core
    /// last was idle, or did what has a later deadline: all that was executed since then
    /// was released since then and has to end in the interval.
    fn overload(&self, late: usize) -> Overload {
        let until_ns = self.work[late].deadline_ns;
        let mut from_ns = self.work[late].release_ns;
        for piece in self.pieces.iter().rev() {
            let Work { release_ns, deadline_ns, .. } = self.work[piece.work];
            if deadline_ns > until_ns {
                break;
            }
            from_ns = from_ns.min(release_ns);
            if piece.after_idle {
                break;
            }
        }
        let inside = self.work.iter().filter(|work| {
            work.release_ns >= from_ns && work.deadline_ns <= until_ns && work.length_ns > 0
        });
        let demand_ns = inside.fold(0, |sum: u64, work| sum.saturating_add(work.length_ns));
        let supply_ns = self.free.iter().map(|free| {
            let over = free.start.max(from_ns)..free.end.min(until_ns);
            over.end.saturating_sub(over.start)
        });
        Overload { from_ns, until_ns, supply_ns: supply_ns.sum(), demand_ns }
    }

    fn stretches(self) -> Vec<Vec<Range<u64>>> {
        let mut of_work = vec![Vec::new(); self.work.len()];
        for piece in self.pieces {
            of_work[piece.work].push(piece.over);
        }
        of_work
    }
}

#[cfg(test)]
mod tests;
