// SPDX-License-Identifier: GPL-2.0
//! Operations of a service: it answers many calls before it waits for the disk, and looks for
//! better places between them.

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::Event;
use crate::manager::Manager;

impl<E: Engine> Manager<E> {
    /// From now on, operations neither wait for the disk nor look for better places: the caller
    /// calls [`Self::write`] before it answers, and [`Self::settle_some`] when it has time.
    pub fn defer(&mut self) {
        self.is_deferred = true;
    }

    /// Writes the changes of all operations since the last call in one transaction. Returns the
    /// events among them, in their order.
    ///
    /// # Errors
    ///
    /// The error that the disk reports; no operation since the last call can be relied on.
    pub fn write(&mut self) -> Result<Vec<Event>, Error> {
        self.note_changes();
        self.forget()?;
        self.journal.write(self.clock_s, self.planner.next_id())
    }

    /// Whether requests wait for their turn to look for a better place.
    pub fn is_settling(&self) -> bool {
        let inside = self.reservations.iter().filter_map(|&id| self.planner.inside(id));
        self.planner.is_backfilling() || inside.into_iter().any(|inside| inside.is_backfilling())
    }

    /// Gives so many requests their turn for a better place. Nobody moves to later.
    pub fn settle_some(&mut self, most: usize) {
        let clock_s = self.clock_s;
        if self.planner.is_backfilling() {
            self.planner.backfill(clock_s, most);
            if !self.planner.is_backfilling() {
                self.planner.plan_waiting(clock_s);
            }
            return;
        }
        for &reservation in &self.reservations {
            let inside = self.planner.inside_mut(reservation);
            if let Some(inside) = inside.filter(|inside| inside.is_backfilling()) {
                inside.backfill(clock_s, most);
                return;
            }
        }
    }

    /// Has all requests look for a better place, though nothing became free: a service that was
    /// stopped may have left some of them without their turn.
    pub fn look_again(&mut self) {
        self.planner.look_again(self.clock_s);
    }
}
