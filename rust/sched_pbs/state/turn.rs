// SPDX-License-Identifier: GPL-2.0

//! The time that threads take while it is another's turn.

/// The time out of turn on one CPU.
#[derive(Default)]
pub(crate) struct TimeOutOfTurn {
    /// Time since which the running thread has the CPU out of turn, 0: it does not.
    since_ns: u64,
    /// Whether no more of the present window may be taken.
    is_budget_spent: bool,
    /// Time for which threads had the CPU out of turn.
    total_ns: u64,
    /// The number of windows of which no more could be taken.
    budgets_spent: u64,
}

impl TimeOutOfTurn {
    /// Whether the running thread has the CPU out of turn.
    pub(crate) fn is_taken(&self) -> bool {
        self.since_ns != 0
    }

    /// Notes that the running thread has the CPU out of turn from now on.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// Ends the time out of turn of the running thread. Returns the time that it has taken.
    pub(crate) fn end(&mut self, now_ns: u64) -> u64 {
        let took_ns = now_ns.saturating_sub(core::mem::take(&mut self.since_ns));
        self.total_ns = self.total_ns.saturating_add(took_ns);
        took_ns
    }

    /// Whether no more of the present window may be taken.
    pub(crate) fn is_budget_spent(&self) -> bool {
        self.is_budget_spent
    }

    /// Notes whether no more of the present window may be taken. Returns whether that is new.
    pub(crate) fn note_budget(&mut self, is_spent: bool) -> bool {
        let had = core::mem::replace(&mut self.is_budget_spent, is_spent);
        let is_new = is_spent && !had;
        self.budgets_spent += u64::from(is_new);
        is_new
    }

    /// Total time for which threads had the CPU out of turn.
    pub(crate) fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The number of windows of which no more could be taken.
    pub(crate) fn budgets_spent(&self) -> u64 {
        self.budgets_spent
    }
}
