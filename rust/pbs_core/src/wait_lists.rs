// SPDX-License-Identifier: GPL-2.0

//! Lists of the processes that wait for tasks of others.

use super::event::Ended;
use super::memory::{Memory, NoMemory};
use super::plan::Plan;
#[cfg(any(test, feature = "std"))]
use super::restored::{Restored, SnapshotError, Words};
use super::words::Saved;

/// No process and no predecessor.
pub(super) const NOBODY: u32 = u32::MAX;

/// A process for which others wait.
#[derive(Clone, Copy)]
struct Awaited {
    /// Progress of the process, if it is on another CPU.
    ended: Ended,
    /// The first process that waits for it.
    first: u32,
    /// Whether it is in the list of those whose waiting processes must be checked.
    due: bool,
    next_due: u32,
    /// Whether it is in the list of those on other CPUs for which a process may wait.
    elsewhere: bool,
    next_elsewhere: u32,
}

/// The first check of the processes of a plan, as a decision finds and leaves it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstCheck {
    /// No check: it was over before.
    Past,
    /// Some processes are still to be checked, and not all candidates are known.
    Runs,
    /// The last part of the check, which is over now.
    Ends,
}

/// The processes that wait, by the predecessor for which they wait.
pub(super) struct WaitLists<M: Memory> {
    /// Awaited processes, by predecessor.
    awaited: M::Slice<Awaited>,
    /// The first predecessor whose waiting processes must be checked.
    due: u32,
    /// The first predecessor on another CPU for which a process may wait.
    elsewhere: u32,
    /// The first process that was not checked since the plan came into force; nor were those after
    /// it.
    unseen: u32,
    /// Whether a check is pending.
    pending: bool,
    /// Whether the processes are checked for the first time since the plan came into force.
    first_check: bool,
    /// Whether all processes must be checked once more, after this check.
    once_more: bool,
    /// Number of processes that become candidates when they are checked, until the plan comes into
    /// force.
    entering: u32,
    /// Whether the end of a predecessor was reported to a process that still waits for it, and is
    /// in no list.
    forlorn: bool,
}

impl<M: Memory> WaitLists<M> {
    pub(super) fn new(plan: &Plan<M>) -> Result<WaitLists<M>, NoMemory> {
        let nobody = Awaited {
            ended: Ended::NOTHING,
            first: NOBODY,
            due: false,
            next_due: NOBODY,
            elsewhere: false,
            next_elsewhere: NOBODY,
        };
        let mut lists = WaitLists {
            awaited: M::alloc(plan.predecessors.len(), nobody)?,
            due: NOBODY,
            elsewhere: NOBODY,
            unseen: 0,
            pending: false,
            first_check: false,
            once_more: false,
            entering: 0,
            forlorn: false,
        };
        lists.begin();
        Ok(lists)
    }

    /// Begins with a plan that comes into force: all processes must be checked.
    pub(super) fn begin(&mut self) {
        self.unseen = 0;
        self.pending = !self.awaited.is_empty() || self.entering != 0;
        self.first_check = self.pending;
    }

    /// Counts a process that becomes a candidate when it is checked, in place of what was counted
    /// of it.
    pub(super) fn replace_entering(&mut self, before: bool, after: bool) {
        self.entering = self.entering.wrapping_sub(before.into());
        self.entering = self.entering.wrapping_add(after.into());
    }

    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Notes that all processes were checked.
    pub(super) fn finish(&mut self) {
        self.first_check = false;
        if core::mem::take(&mut self.once_more) {
            self.unseen = 0;
        } else {
            self.pending = false;
        }
    }

    /// Whether the processes are checked for the first time since the plan came into force.
    pub(super) fn is_first_check(&self) -> bool {
        self.first_check
    }

    /// Notes that a process waits for a predecessor that is gone.
    pub(super) fn note_forlorn(&mut self) {
        self.forlorn = true;
    }

    /// Requires a check of all processes, if one waits for a predecessor that is gone.  Returns
    /// whether one does.
    ///
    /// A check that is not over continues first: where these calls follow each other quickly, the
    /// last processes would never be checked otherwise.
    pub(super) fn revive_forlorn(&mut self) -> bool {
        if self.forlorn {
            self.forlorn = false;
            if core::mem::replace(&mut self.pending, true) {
                self.once_more = true;
            } else {
                self.unseen = 0;
            }
            return true;
        }
        false
    }

    /// Whether one of `processes` processes is left that was not checked yet.
    pub(super) fn has_unseen(&self, processes: usize) -> bool {
        (self.unseen as usize) < processes
    }

    /// Takes the next process that was not checked yet.
    pub(super) fn take_unseen(&mut self) -> u32 {
        self.unseen += 1;
        self.unseen - 1
    }

    /// Progress of a predecessor on another CPU, as far as it is known.
    pub(super) fn ended(&self, predecessor: u32) -> Ended {
        let awaited = self.awaited.get(predecessor as usize);
        awaited.map_or(Ended::NOTHING, |awaited| awaited.ended)
    }

    pub(super) fn set_ended(&mut self, predecessor: u32, ended: Ended) {
        if let Some(awaited) = self.awaited.get_mut(predecessor as usize) {
            awaited.ended = ended;
        }
    }

    /// The first process that waits for a predecessor, or [`NOBODY`].
    pub(super) fn first(&self, predecessor: u32) -> u32 {
        let awaited = self.awaited.get(predecessor as usize);
        awaited.map_or(NOBODY, |awaited| awaited.first)
    }

    pub(super) fn set_first(&mut self, predecessor: u32, first: u32) {
        if let Some(awaited) = self.awaited.get_mut(predecessor as usize) {
            awaited.first = first;
        }
    }

    /// The first predecessor whose waiting processes must be checked.
    pub(super) fn due(&self) -> Option<u32> {
        (self.due != NOBODY).then_some(self.due)
    }

    /// Requires a check of the processes that wait for the predecessor.
    pub(super) fn make_due(&mut self, predecessor: u32) {
        let Some(awaited) = self.awaited.get_mut(predecessor as usize) else {
            return;
        };
        if !core::mem::replace(&mut awaited.due, true) {
            awaited.next_due = core::mem::replace(&mut self.due, predecessor);
        }
        self.pending = true;
    }

    /// Takes the first predecessor out of the list of those that are due.
    pub(super) fn drop_due(&mut self) {
        if let Some(awaited) = self.awaited.get_mut(self.due as usize) {
            awaited.due = false;
            self.due = awaited.next_due;
        }
    }

    /// Notes that a process waits for the predecessor, which is on another CPU.
    pub(super) fn watch_elsewhere(&mut self, predecessor: u32) {
        if let Some(awaited) = self.awaited.get_mut(predecessor as usize) {
            if !core::mem::replace(&mut awaited.elsewhere, true) {
                awaited.next_elsewhere = core::mem::replace(&mut self.elsewhere, predecessor);
            }
        }
    }

    /// Empties the list of predecessors on other CPUs.  Returns the first of them, from which
    /// [`next_elsewhere`](WaitLists::next_elsewhere) continues.
    pub(super) fn take_elsewhere(&mut self) -> u32 {
        core::mem::replace(&mut self.elsewhere, NOBODY)
    }

    /// Takes the predecessor `next` from the list, and moves `next` on.
    pub(super) fn next_elsewhere(&mut self, next: &mut u32) -> Option<u32> {
        let awaited = self.awaited.get_mut(*next as usize)?;
        awaited.elsewhere = false;
        Some(core::mem::replace(next, awaited.next_elsewhere))
    }
}

saved!([super] Awaited {
    ended,
    first,
    due,
    next_due,
    elsewhere,
    next_elsewhere,
});

impl<M: Memory> WaitLists<M> {
    /// Saves the lists as a whole.
    pub(super) fn save_whole(&self, to: &mut impl FnMut(u64)) {
        self.due.save(to);
        self.elsewhere.save(to);
        self.unseen.save(to);
        self.pending.save(to);
        self.first_check.save(to);
        self.once_more.save(to);
        self.forlorn.save(to);
    }

    /// Saves the awaited predecessors.
    pub(super) fn save_awaited(&self, to: &mut impl FnMut(u64)) {
        self.awaited.iter().for_each(|awaited| awaited.save(to));
    }
}

#[cfg(any(test, feature = "std"))]
impl<M: Memory> WaitLists<M> {
    pub(super) fn load_whole(&mut self, from: &mut Words<'_>) -> Result<(), SnapshotError> {
        self.due = Restored::load(from)?;
        self.elsewhere = Restored::load(from)?;
        self.unseen = Restored::load(from)?;
        self.pending = Restored::load(from)?;
        self.first_check = Restored::load(from)?;
        self.once_more = Restored::load(from)?;
        self.forlorn = Restored::load(from)?;
        Ok(())
    }

    pub(super) fn load_awaited(&mut self, from: &mut Words<'_>) -> Result<(), SnapshotError> {
        for awaited in self.awaited.iter_mut() {
            *awaited = Restored::load(from)?;
        }
        Ok(())
    }

    /// Whether both lists of predecessors end, and no more than `processes` processes were checked.
    pub(super) fn are_sound(&self, processes: usize) -> bool {
        self.ends(self.due, |awaited| awaited.next_due)
            && self.ends(self.elsewhere, |awaited| awaited.next_elsewhere)
            && self.unseen as usize <= processes
    }

    fn ends(&self, first: u32, after: impl Fn(&Awaited) -> u32) -> bool {
        let mut next = first;
        for _ in 0..=self.awaited.len() {
            if next == NOBODY {
                return true;
            }
            match self.awaited.get(next as usize) {
                Some(awaited) => next = after(awaited),
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
impl<M: Memory> WaitLists<M> {
    /// Each predecessor's first waiting process, and whether it is due.
    pub(super) fn lists(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        self.awaited
            .iter()
            .map(|awaited| (awaited.first, awaited.due))
    }

    /// Whether a check of `p` is still to come.
    pub(super) fn is_unseen(&self, p: u32) -> bool {
        self.pending && (self.once_more || self.unseen <= p)
    }
}
