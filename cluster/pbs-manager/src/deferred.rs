// SPDX-License-Identifier: GPL-2.0
//! Operations of a service: it answers many calls before it waits for the disk, and looks for
//! better places between them.

use pbs_cluster_planner::{Planner, RequestId, SearchBudget};

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::Event;
use crate::manager::Manager;

/// Looks of searches after which a piece of work ends, for the next call.
const PIECE_LOOKS: u64 = 1 << 20;

/// Does so many steps of work, and fewer if they take many looks.
fn in_piece<T>(most: usize, budget: &SearchBudget, mut step: impl FnMut() -> T) {
    for _ in 0..most {
        step();
        if budget.used() > PIECE_LOOKS {
            break;
        }
    }
}

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
        let events = self.journal.write(self.clock_s, self.planner.next_id())?;
        self.engine.written();
        Ok(events)
    }

    /// Writes the changes, and lets other processes write that wait for that. Returns whether none
    /// has: otherwise, the plan that is known here is old, and the ledger must be opened again.
    ///
    /// # Errors
    ///
    /// Errors of the ledger, which can't be written any more then.
    pub fn let_others_write(&mut self) -> Result<bool, Error> {
        self.write()?;
        self.journal.let_others_write()
    }

    /// Whether requests wait for their turn to look for a better place, or a better plan is sought.
    pub fn is_settling(&self) -> bool {
        self.is_moving_up() || self.is_seeking()
    }

    /// Whether a better plan is sought, or will be when no request waits for its turn.
    pub fn is_seeking(&self) -> bool {
        self.site.optimise.is_some() && !self.better_plan.is_sought(self.planner.version())
    }

    /// Whether requests wait for their turn to look for a better place, or for any.
    pub fn is_moving_up(&self) -> bool {
        let has_work = |of: &Planner| of.is_backfilling() || of.is_planning_waiting();
        let mut inside = self.reservations.iter().filter_map(|&id| self.planner.inside(id));
        has_work(&self.planner) || inside.any(has_work)
    }

    /// Gives so many requests their turn for a better place. Nobody moves to later. The cluster and
    /// its reservations have turns. After each pass over all requests, those that wait have their
    /// turns, also where another pass follows: before all others, until many of them have found
    /// nothing, and then by turns with the others. When nobody has a turn any more, as many
    /// requests are placed in the search for a better plan.
    pub fn settle_some(&mut self, most: usize) {
        let clock_s = self.clock_s;
        let budget = SearchBudget::default();
        let next = self.next_to_settle();
        let is_first = !self.planner.is_waiting_in_vain() || !self.has_tried_waiting;
        self.has_tried_waiting = self.planner.is_planning_waiting() && (is_first || next.is_none());
        if self.has_tried_waiting {
            in_piece(most, &budget, || self.planner.plan_some_waiting(clock_s, 1, &budget));
            return;
        }
        let Some(within) = next else {
            return self.improve_some(most);
        };
        self.settled = within;
        let Some(planner) = self.planner_of_mut(within) else {
            return;
        };
        if within.is_some() && planner.is_planning_waiting() {
            in_piece(most, &budget, || planner.plan_some_waiting(clock_s, 1, &budget));
            return;
        }
        let passes = planner.passes();
        in_piece(most, &budget, || planner.backfill_within(clock_s, 1, &budget));
        if within.is_none() && planner.passes() > passes {
            planner.plan_waiting_later();
        }
    }

    /// Plans all that wait, or makes that due for a service.
    pub(crate) fn plan_waiting(&mut self) {
        self.planner.plan_waiting_later();
        if !self.is_deferred {
            self.plan_all_waiting();
        }
    }

    /// Plans all that wait, if that is due.
    pub(crate) fn plan_all_waiting(&mut self) {
        while self.planner.is_planning_waiting() {
            self.planner.plan_some_waiting(self.clock_s, 1, &SearchBudget::default());
        }
    }

    /// Returns the planner whose turn it is to look for better places: that of a reservation, or
    /// `None` for the cluster's.
    fn next_to_settle(&self) -> Option<Option<RequestId>> {
        let of = |id: &RequestId| Some(*id);
        let after = self.settled.map_or(0, |id| id.saturating_add(1));
        let later = self.reservations.range(after..).map(of);
        let first = std::iter::once(None).chain(self.reservations.iter().map(of));
        let mut turns = later.chain(first);
        turns.find(|within| {
            let waits = |of: &Planner| within.is_some() && of.is_planning_waiting();
            self.planner_of(*within).is_some_and(|of| of.is_backfilling() || waits(of))
        })
    }

    /// Makes all requests look for a better place, though nothing became free: a service that was
    /// stopped may have left some of them without their turn.
    pub fn look_again(&mut self) {
        self.planner.look_again(self.clock_s);
    }
}
