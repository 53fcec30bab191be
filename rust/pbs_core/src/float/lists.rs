// SPDX-License-Identifier: GPL-2.0

//! Processes in the order of deadlines, where slots float.

use super::super::heap::{Heap, Members, NOT_QUEUED};
use super::super::memory::{Memory, NoMemory};
#[cfg(any(test, feature = "std"))]
use super::super::restored::{Restored, SnapshotError, Words};
use super::super::run::Run;
use super::super::words::Saved;
use super::place::{List, Place};

/// The places of the processes of a node whose slots float, and the lists in which the
/// processes stand.  Without any process where slots do not float.
pub(in super::super) struct Floating<M: Memory> {
    places: M::Slice<Place>,
    ready: Heap<M>,
    missing: Heap<M>,
    /// First slot that is not over; the number of all slots if there is none.
    pub(super) front: u32,
    /// A slot may be over that was not when `front` was advanced.
    pub(super) moved: bool,
    /// Plan time until which the plan waits for processes whose absence was reported.
    pub(super) waits_until_ns: u64,
    /// Process for which it waits longest.
    waits_for: Option<u32>,
}

/// The order of the processes.
struct ByRank<'a> {
    runs: &'a mut [Run],
    places: &'a [Place],
}

impl Members for ByRank<'_> {
    #[inline]
    fn runs(&mut self) -> &mut [Run] {
        self.runs
    }

    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        before(self.places, a, b)
    }
}

/// Ties go to the lower index: the same inputs give the same decisions.
fn before(places: &[Place], a: u32, b: u32) -> bool {
    let (Some(place_a), Some(place_b)) = (places.get(a as usize), places.get(b as usize)) else {
        return false;
    };
    (place_a.rank(), a) < (place_b.rank(), b)
}

impl<M: Memory> Floating<M> {
    /// The places of `processes` processes, none of which stands in a list.
    pub(in super::super) fn new(processes: usize) -> Result<Floating<M>, NoMemory> {
        Ok(Floating {
            places: M::alloc(processes, Place::NONE)?,
            ready: Heap::new(processes)?,
            missing: Heap::new(processes)?,
            front: 0,
            moved: true,
            waits_until_ns: 0,
            waits_for: None,
        })
    }

    pub(in super::super) fn place(&self, p: u32) -> Option<&Place> {
        self.places.get(p as usize)
    }

    /// The place of `p`, for a change after which `p` is [put](Floating::put) into its list
    /// again.
    pub(in super::super) fn place_mut(&mut self, p: u32) -> Option<&mut Place> {
        self.places.get_mut(p as usize)
    }

    /// Notes that a grant of the slot of `p` is reported.  Returns whether it is the first.
    pub(in super::super) fn show(&mut self, p: u32) -> bool {
        let place = self.places.get_mut(p as usize);
        place.is_some_and(|place| !core::mem::replace(&mut place.shown, true))
    }

    /// First slot that is not over.
    pub(in super::super) fn front(&self) -> u32 {
        self.front
    }

    /// Whether `a` comes before `b`.
    pub(in super::super) fn before(&self, a: u32, b: u32) -> bool {
        before(&self.places, a, b)
    }

    /// First of the processes that can run, except for the one that is granted.
    pub(super) fn first_ready(&self) -> Option<u32> {
        self.ready.first()
    }

    /// First of the processes that can't run, which was not reported.
    pub(super) fn first_missing(&self) -> Option<u32> {
        self.missing.first()
    }

    /// Number of processes that can run, except for the one that is granted.
    pub(in super::super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Number of processes that can't run, which was not reported.
    pub(in super::super) fn missing_len(&self) -> usize {
        self.missing.len()
    }

    /// Notes that the plan waits for `p`, which is absent, until that plan time.
    pub(super) fn wait_for(&mut self, p: u32, until_ns: u64) {
        if until_ns > self.waits_until_ns {
            self.waits_until_ns = until_ns;
            self.waits_for = Some(p);
        }
    }

    /// Notes that `p` is there: the plan does not wait for it any more.
    pub(super) fn arrived(&mut self, p: u32) {
        if self.waits_for == Some(p) {
            self.waits_until_ns = 0;
            self.waits_for = None;
        }
    }

    /// Puts `p` into `list`, or moves it to where its rank puts it.
    pub(in super::super) fn put(&mut self, runs: &mut [Run], p: u32, list: List) {
        let before = self.place(p).map_or(List::None, |place| place.list);
        if before == list {
            self.in_heap(list, runs, |heap, members| heap.shift(members, p));
            return;
        }
        self.in_heap(before, runs, |heap, members| heap.remove(members, p));
        self.in_heap(list, runs, |heap, members| heap.insert(members, p));
        if let Some(place) = self.places.get_mut(p as usize) {
            place.list = list;
        }
    }

    /// Takes `p` out of its list.
    #[inline]
    pub(in super::super) fn take(&mut self, runs: &mut [Run], p: u32) {
        self.put(runs, p, List::None);
    }

    #[inline(always)]
    fn in_heap(
        &mut self,
        list: List,
        runs: &mut [Run],
        change: impl FnOnce(&mut Heap<M>, &mut ByRank<'_>),
    ) {
        let places = &self.places;
        let members = &mut ByRank { runs, places };
        match list {
            List::None => {}
            List::Ready => change(&mut self.ready, members),
            List::Missing => change(&mut self.missing, members),
        }
    }

    /// Whether the process stands where its list records it, and behind none that it comes before.
    pub(super) fn is_placed(&self, p: u32, queued: u32) -> bool {
        let heap = match self.place(p).map(|place| place.list) {
            Some(List::Ready) => &self.ready,
            Some(List::Missing) => &self.missing,
            Some(List::None) | None => return queued == NOT_QUEUED,
        };
        let above = (queued as usize)
            .checked_sub(1)
            .and_then(|at| heap.at(at / 2));
        heap.at(queued as usize) == Some(p) && !above.is_some_and(|above| self.before(p, above))
    }
}

impl<M: Memory> Floating<M> {
    /// Saves what is not about one process.
    pub(in super::super) fn save_whole(&self, to: &mut impl FnMut(u64)) {
        self.front.save(to);
        self.moved.save(to);
        self.waits_until_ns.save(to);
        self.waits_for.save(to);
    }
}

#[cfg(any(test, feature = "std"))]
impl<M: Memory> Floating<M> {
    pub(in super::super) fn load_whole(
        &mut self,
        from: &mut Words<'_>,
    ) -> Result<(), SnapshotError> {
        self.front = Restored::load(from)?;
        self.moved = Restored::load(from)?;
        self.waits_until_ns = Restored::load(from)?;
        self.waits_for = Restored::load(from)?;
        Ok(())
    }

    /// Puts the processes into their lists, where they say that they are.  Returns whether the
    /// places in each list follow each other.
    pub(in super::super) fn derive(&mut self, runs: &[Run]) -> bool {
        let places = &self.places;
        let members = |list: List| {
            let all = (0..).zip(runs.iter().zip(places.iter()));
            let members = all.filter(move |(_, (_, place))| place.list == list);
            members.map(|(p, (run, _))| (p, run.queued))
        };
        let mut placed = members(List::None).all(|(_, queued)| queued == NOT_QUEUED);
        placed &= self.ready.place_all(members(List::Ready));
        placed & self.missing.place_all(members(List::Missing))
    }
}
