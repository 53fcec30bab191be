// SPDX-License-Identifier: GPL-2.0
//! All or nothing: what is reserved bit by bit, and may be taken back.

use std::ops::Range;

use pbs_profile::Error;

use super::{HeldAmount, Needs, Run, RunId, Store};
use crate::budget::Budget;

/// Steps of work of a change, with those of taking it back.
const CHANGE: u64 = 64;

/// Changes of a [`Store`] that are taken back unless they are committed: a job
/// that is refused leaves no trace.
#[derive(Debug)]
#[must_use = "what is not committed is taken back"]
pub struct Booking<'a> {
    pub(super) store: &'a mut Store,
    done: Vec<Change>,
}

/// Progress of a [`Booking`] at some time; see [`Booking::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

#[derive(Debug)]
enum Change {
    CoreTaken { core: usize, over: Range<u64> },
    CoreGiven { core: usize, over: Range<u64> },
    LinkTaken { link: usize, over: Range<u64> },
    LinkGiven { link: usize, over: Range<u64> },
    MemoryTaken { core: usize, over: Range<u64>, bytes: u64 },
    MemoryGiven { core: usize, over: Range<u64>, bytes: u64 },
    ResourceTaken { held: HeldAmount, over: Range<u64> },
    ResourceGiven { held: HeldAmount, over: Range<u64> },
    Recorded(RunId),
    Removed(RunId, Run),
}

impl<'a> Booking<'a> {
    pub(super) fn new(store: &'a mut Store) -> Self {
        Self { store, done: Vec::new() }
    }

    /// The store as it is with what was done so far.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// Reserves the time of a core.
    ///
    /// # Errors
    ///
    /// [`Error::TooLittle`] if it is not free all of that time,
    /// [`Error::NoProfile`] if there is no such core. Nothing is changed then.
    pub fn take_core(&mut self, core: usize, over: Range<u64>) -> Result<(), Error> {
        self.store.take_core(core, &over)?;
        self.done.push(Change::CoreTaken { core, over });
        Ok(())
    }

    /// Gives time of a core back that was taken.
    pub(crate) fn give_core(&mut self, core: usize, over: Range<u64>) -> Result<(), Error> {
        self.store.give_core(core, &over)?;
        self.done.push(Change::CoreGiven { core, over });
        Ok(())
    }

    /// Reserves the time of a link.
    ///
    /// # Errors
    ///
    /// As [`take_core`](Self::take_core).
    pub fn take_link(&mut self, link: usize, over: Range<u64>) -> Result<(), Error> {
        self.store.take_link(link, &over)?;
        self.done.push(Change::LinkTaken { link, over });
        Ok(())
    }

    /// Reserves memory of what a core's processes share.
    ///
    /// # Errors
    ///
    /// As [`take_core`](Self::take_core).
    pub fn take_memory(&mut self, core: usize, over: Range<u64>, bytes: u64) -> Result<(), Error> {
        self.store.take_memory(core, &over, bytes)?;
        self.done.push(Change::MemoryTaken { core, over, bytes });
        Ok(())
    }

    /// Gives memory back that was taken.
    ///
    /// # Errors
    ///
    /// [`Error::TooMuch`] if there would be more than 64 bits can say,
    /// [`Error::NoProfile`] if there is no such core. Nothing is changed then.
    pub fn give_memory(&mut self, core: usize, over: Range<u64>, bytes: u64) -> Result<(), Error> {
        self.store.give_memory(core, &over, bytes)?;
        self.done.push(Change::MemoryGiven { core, over, bytes });
        Ok(())
    }

    /// Reserves an amount of a resource.
    ///
    /// # Errors
    ///
    /// Fails like [`take_core`](Self::take_core).
    fn take_resource(&mut self, held: HeldAmount, over: Range<u64>) -> Result<(), Error> {
        self.store.take_resource(held, &over)?;
        self.done.push(Change::ResourceTaken { held, over });
        Ok(())
    }

    /// Gives an amount of a resource back that was taken.
    fn give_resource(&mut self, held: HeldAmount, over: Range<u64>) -> Result<(), Error> {
        self.store.give_resource(held, &over)?;
        self.done.push(Change::ResourceGiven { held, over });
        Ok(())
    }

    /// Reserves memory and resources of a process on that core.
    ///
    /// # Errors
    ///
    /// Fails like [`take_core`](Self::take_core). Nothing is changed then.
    pub(crate) fn take_needs(
        &mut self,
        core: usize,
        over: Range<u64>,
        needs: &Needs,
    ) -> Result<(), Error> {
        let mark = self.mark();
        let mut taken = self.take_memory(core, over.clone(), needs.memory_bytes);
        for &held in &needs.resources {
            taken = taken.and_then(|()| self.take_resource(held, over.clone()));
        }
        if taken.is_err() {
            self.rollback(mark);
        }
        taken
    }

    /// Gives memory and resources of a process back that were taken on that core.
    ///
    /// # Errors
    ///
    /// Fails like [`give_memory`](Self::give_memory).
    pub(crate) fn give_needs(
        &mut self,
        core: usize,
        over: Range<u64>,
        needs: &Needs,
    ) -> Result<(), Error> {
        self.give_memory(core, over.clone(), needs.memory_bytes)?;
        needs.resources.iter().try_for_each(|&held| self.give_resource(held, over.clone()))
    }

    /// Reserves all that the run says, and records it. Nothing of a run that
    /// has the same number may be recorded; if there is, it is removed.
    ///
    /// # Errors
    ///
    /// As [`take_core`](Self::take_core). What had been taken until then
    /// remains until the booking is dropped or rolled back.
    pub fn reserve(&mut self, id: RunId, run: Run) -> Result<(), Error> {
        self.remove(id);
        for task in &run.tasks {
            for over in run.stretches(task) {
                self.take_core(task.core, over)?;
            }
        }
        for message in &run.messages {
            self.take_link(message.link, message.start_ns..message.end_ns)?;
        }
        for process in &run.processes {
            let over = process.start_ns..process.end_ns;
            self.take_memory(process.core, over.clone(), process.memory_bytes)?;
            for &held in &process.resources {
                self.take_resource(held, over.clone())?;
            }
        }
        self.record(id, run);
        Ok(())
    }

    /// Records the run for which all was taken that it says.
    pub(crate) fn record(&mut self, id: RunId, run: Run) {
        self.store.runs.insert(id, run);
        self.done.push(Change::Recorded(id));
    }

    /// Gives back what is reserved for the run, and forgets it. Whether there
    /// was such a run.
    pub fn remove(&mut self, id: RunId) -> bool {
        let Some(run) = self.store.runs.remove(&id) else {
            return false;
        };
        for (core, over) in busy(&run) {
            if self.store.give_core(core, &over).is_ok() {
                self.done.push(Change::CoreGiven { core, over });
            }
        }
        for message in &run.messages {
            let (link, over) = (message.link, message.start_ns..message.end_ns);
            if self.store.give_link(link, &over).is_ok() {
                self.done.push(Change::LinkGiven { link, over });
            }
        }
        for process in &run.processes {
            let (core, over) = (process.core, process.start_ns..process.end_ns);
            let bytes = process.memory_bytes;
            if self.store.give_memory(core, &over, bytes).is_ok() {
                self.done.push(Change::MemoryGiven { core, over: over.clone(), bytes });
            }
            for &held in &process.resources {
                if self.store.give_resource(held, &over).is_ok() {
                    self.done.push(Change::ResourceGiven { held, over: over.clone() });
                }
            }
        }
        self.done.push(Change::Removed(id, run));
        true
    }

    /// Removes like [`remove`](Self::remove), and counts what is given back.
    pub(crate) fn remove_within(&mut self, id: RunId, work: &Budget) {
        let mark = self.mark();
        self.remove(id);
        self.count_since(mark, work);
    }

    /// Counts the work of all changes since the mark.
    pub(crate) fn count_since(&self, mark: Mark, work: &Budget) {
        work.add(CHANGE * (self.done.len() - mark.0) as u64);
    }

    /// Returns the point to which [`rollback`](Self::rollback) can return.
    pub fn mark(&self) -> Mark {
        Mark(self.done.len())
    }

    /// Takes back what was done since the mark.
    pub fn rollback(&mut self, mark: Mark) {
        while self.done.len() > mark.0 {
            let Some(change) = self.done.pop() else {
                return;
            };
            let store = &mut *self.store;
            // All comes back to what it was, so nothing of it can fail.
            let back = match change {
                Change::CoreTaken { core, over } => store.give_core(core, &over),
                Change::CoreGiven { core, over } => store.take_core(core, &over),
                Change::LinkTaken { link, over } => store.give_link(link, &over),
                Change::LinkGiven { link, over } => store.take_link(link, &over),
                Change::MemoryTaken { core, over, bytes } => store.give_memory(core, &over, bytes),
                Change::MemoryGiven { core, over, bytes } => store.take_memory(core, &over, bytes),
                Change::ResourceTaken { held, over } => store.give_resource(held, &over),
                Change::ResourceGiven { held, over } => store.take_resource(held, &over),
                Change::Recorded(id) => {
                    store.runs.remove(&id);
                    Ok(())
                }
                Change::Removed(id, run) => {
                    store.runs.insert(id, run);
                    Ok(())
                }
            };
            debug_assert_eq!(back, Ok(()));
        }
    }

    /// Keeps what was done.
    pub fn commit(mut self) {
        self.done.clear();
    }
}

impl Drop for Booking<'_> {
    fn drop(&mut self) {
        self.rollback(Mark(0));
    }
}

/// Returns the stretches of time in which cores work for the run. Tasks that follow each other
/// without a gap make one stretch.
fn busy(run: &Run) -> Vec<(usize, Range<u64>)> {
    let mut stretches: Vec<(usize, Range<u64>)> = Vec::with_capacity(run.tasks.len());
    let some = run.tasks.iter().filter(|task| task.start_ns < task.end_ns);
    stretches.extend(some.flat_map(|task| run.stretches(task).map(move |over| (task.core, over))));
    stretches.sort_unstable_by_key(|(core, over)| (*core, over.start));
    stretches.dedup_by(|next, before| {
        let follows = next.0 == before.0 && next.1.start == before.1.end;
        if follows {
            before.1.end = next.1.end;
        }
        follows
    });
    stretches
}
