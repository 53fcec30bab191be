// SPDX-License-Identifier: GPL-2.0

//! Binary heap of process indices.  Each process knows its place in it.

use super::memory::{Memory, NoMemory};
use super::run::Run;

/// Place of a process that is in no heap.
pub(super) const NOT_QUEUED: u32 = u32::MAX;

/// The order of the members of a heap, and their places.
pub(super) trait Members {
    /// The processes, which know their places.
    fn runs(&mut self) -> &mut [Run];

    /// Whether `a` comes before `b`.
    fn before(&self, a: u32, b: u32) -> bool;

    /// Place of `p`, or [`NOT_QUEUED`].
    #[inline]
    fn place(&mut self, p: u32) -> u32 {
        self.runs()
            .get(p as usize)
            .map_or(NOT_QUEUED, |run| run.queued)
    }

    /// Sets the place of `p`.
    #[inline]
    fn set_place(&mut self, p: u32, place: u32) {
        if let Some(run) = self.runs().get_mut(p as usize) {
            run.queued = place;
        }
    }
}

/// A binary heap with room for a number of processes.
pub(super) struct Heap<M: Memory> {
    entries: M::Slice<u32>,
    len: usize,
}

impl<M: Memory> Heap<M> {
    /// Room for `processes` processes, empty.
    pub(super) fn new(processes: usize) -> Result<Heap<M>, NoMemory> {
        Ok(Heap {
            entries: M::alloc(processes, 0)?,
            len: 0,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.at(0)
    }

    pub(super) fn at(&self, place: usize) -> Option<u32> {
        self.entries.get(..self.len)?.get(place).copied()
    }

    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.len < self.entries.len()
    }

    /// Puts `p` in, which is in no heap, if there is room.
    #[inline]
    pub(super) fn insert(&mut self, members: &mut impl Members, p: u32) {
        let place = self.len;
        if place < self.entries.len() {
            self.len += 1;
            self.put(members, place, p);
            if place != 0 {
                self.sift_up(members, place);
            }
        }
    }

    /// Moves `p`, which is in it, to where its order puts it.
    pub(super) fn shift(&mut self, members: &mut impl Members, p: u32) {
        let place = members.place(p) as usize;
        let place = self.sift_up(members, place);
        self.sift_down(members, place);
    }

    /// Puts all in order, after the order has changed.
    pub(super) fn reorder(&mut self, members: &mut impl Members) {
        for place in (0..self.len / 2).rev() {
            self.sift_down(members, place);
        }
    }

    /// Takes `p` out, if it is in it.
    #[inline]
    pub(super) fn remove(&mut self, members: &mut impl Members, p: u32) {
        let place = members.place(p);
        if place == NOT_QUEUED {
            return;
        }
        members.set_place(p, NOT_QUEUED);
        self.len = self.len.saturating_sub(1);
        if self.len != 0 {
            self.fill(members, place as usize);
        }
    }

    /// Puts the last one, which is beyond the end now, in a place that was given
    /// up, unless that is its own.
    fn fill(&mut self, members: &mut impl Members, place: usize) {
        let last = self.entries.get(self.len).copied();
        if let Some(last) = last.filter(|_| place < self.len) {
            self.put(members, place, last);
            let place = self.sift_up(members, place);
            self.sift_down(members, place);
        }
    }

    fn put(&mut self, members: &mut impl Members, place: usize, p: u32) {
        if let Some(entry) = self.entries.get_mut(place) {
            *entry = p;
            members.set_place(p, place as u32);
        }
    }

    fn sift_up(&mut self, members: &mut impl Members, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            let (Some(p), Some(above)) = (self.at(place), self.at(parent)) else {
                break;
            };
            if !members.before(p, above) {
                break;
            }
            self.put(members, parent, p);
            self.put(members, place, above);
            place = parent;
        }
        place
    }

    fn sift_down(&mut self, members: &mut impl Members, mut place: usize) {
        loop {
            let left_child = place.saturating_mul(2).saturating_add(1);
            let right_child = left_child.saturating_add(1);
            let (Some(p), Some(left)) = (self.at(place), self.at(left_child)) else {
                break;
            };
            let (child, below) = match self.at(right_child) {
                Some(right) if members.before(right, left) => (right_child, right),
                _ => (left_child, left),
            };
            if !members.before(below, p) {
                break;
            }
            self.put(members, child, p);
            self.put(members, place, below);
            place = child;
        }
    }
}

#[cfg(any(test, feature = "std"))]
impl<M: Memory> Heap<M> {
    /// Puts processes where their places are.  Returns whether the places follow each other, each
    /// once.
    pub(super) fn place_all(&mut self, members: impl Iterator<Item = (u32, u32)>) -> bool {
        self.entries.fill(NOT_QUEUED);
        self.len = 0;
        for (p, place) in members {
            match self.entries.get_mut(place as usize) {
                Some(entry) if *entry == NOT_QUEUED => *entry = p,
                _ => return false,
            }
            self.len += 1;
        }
        self.entries
            .get(..self.len)
            .is_some_and(|placed| !placed.contains(&NOT_QUEUED))
    }
}
