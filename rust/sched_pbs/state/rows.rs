// SPDX-License-Identifier: GPL-2.0

//! Rows: names of processes that last longer than a plan.
//!
//! The index of a process changes with the plan. Therefore seats name their process by a row, which
//! the process keeps as long as it is in the plan of the CPU. The tables of rows and indices are
//! made outside the lock of the run queue and replaced with the plan, in constant time: no seat has
//! to be touched for a new plan.

use crate::{linux::storage::table, pbs_core::wire};
use kernel::{alloc::KVVec, prelude::*};

/// Number of a row; [`NO_ROW`] is none.
pub(crate) type RowNumber = u32;

/// No row.
pub(crate) const NO_ROW: RowNumber = u32::MAX;

/// Number of rows: enough for the processes of a plan and of the one that follows it.
pub(crate) const ROWS: usize = 2 * wire::MAX_PROCESSES as usize;

/// Index of no process.
const NO_PROCESS: u32 = u32::MAX;

/// The process of a row.
#[derive(Clone, Copy)]
struct RowEntry {
    /// Index of the process in the plan; [`NO_PROCESS`] if there is none, or if it went with its
    /// plan.
    process: u32,
    /// The planner's number for the process, also for one that went with the last change of plans.
    id: u32,
}

impl RowEntry {
    const FREE: RowEntry = RowEntry {
        process: NO_PROCESS,
        id: wire::IDLE,
    };
}

/// Copies all elements at once; a loop over them would take several times as long.
fn copy<T: Copy>(to: &mut [T], from: &[T]) {
    let len = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}

/// The rows of the processes of a plan.
pub(crate) struct Rows {
    by_process: KVVec<RowNumber>,
    by_row: KVVec<RowEntry>,
}

impl Rows {
    /// Tables for a plan of `processes` processes, which have no rows yet.
    pub(crate) fn new(processes: usize) -> Result<Self> {
        Ok(Self {
            by_process: table(processes, || NO_ROW)?,
            by_row: table(ROWS, || RowEntry::FREE)?,
        })
    }

    /// The rows of a plan whose processes have these `ids`, ascending, and which follows one with
    /// the rows `old`: processes that are in both keep theirs.
    pub(crate) fn following(old: &Rows, ids: impl ExactSizeIterator<Item = u32>) -> Result<Self> {
        let mut rows = Self::new(ids.len())?;
        let mut before = old
            .by_process
            .iter()
            .filter_map(|row| Some((*row, old.by_row.get(*row as usize)?.id)))
            .peekable();
        for (row, id) in before.clone() {
            if let Some(place) = rows.by_row.get_mut(row as usize) {
                place.id = id;
            }
        }
        let mut unused: RowNumber = 0;
        for (process, id) in (0..).zip(ids) {
            while before.next_if(|(_, other)| *other < id).is_some() {}
            let row = match before.next_if(|(_, other)| *other == id) {
                Some((row, _)) => row,
                None => {
                    let taken = |place: &RowEntry| place.id != wire::IDLE;
                    while rows.by_row.get(unused as usize).is_some_and(taken) {
                        unused += 1;
                    }
                    unused
                }
            };
            // There are enough rows for both plans.
            *rows.by_row.get_mut(row as usize).ok_or(EINVAL)? = RowEntry { process, id };
            *rows.by_process.get_mut(process as usize).ok_or(EINVAL)? = row;
        }
        Ok(rows)
    }

    /// Becomes a copy of `other`, which has as many processes.
    pub(crate) fn copy_from(&mut self, other: &Rows) {
        copy(&mut self.by_process, &other.by_process);
        copy(&mut self.by_row, &other.by_row);
    }

    /// Number of processes.
    pub(crate) fn processes(&self) -> usize {
        self.by_process.len()
    }

    /// The row of a process, by its index in the plan.
    pub(crate) fn row(&self, process: u32) -> RowNumber {
        self.by_process
            .get(process as usize)
            .copied()
            .unwrap_or(NO_ROW)
    }

    /// The process of a row, by its index in the plan.
    pub(crate) fn process(&self, row: RowNumber) -> Option<u32> {
        let place = self.by_row.get(row as usize)?;
        (place.process != NO_PROCESS).then_some(place.process)
    }

    /// Lets a process keep its threads, or lose them when the plan comes into force.
    pub(crate) fn keep_threads(&mut self, process: u32, keep: bool) {
        let row = self.row(process);
        if let Some(place) = self.by_row.get_mut(row as usize) {
            place.process = if keep { process } else { NO_PROCESS };
        }
    }

    /// Lets all processes lose their threads.
    pub(crate) fn lose_all(&mut self) {
        for place in self.by_row.iter_mut() {
            place.process = NO_PROCESS;
        }
    }

    /// The id of the process of a row, if that went with its plan.
    pub(crate) fn id_of_lost(&self, row: RowNumber) -> Option<u32> {
        let place = self.by_row.get(row as usize)?;
        (place.process == NO_PROCESS).then_some(place.id)
    }
}
