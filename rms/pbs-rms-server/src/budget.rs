// SPDX-License-Identifier: GPL-2.0
//! Bytes that the changes of a user may add to the journal: all users share the disk, and wait
//! while the journal is rewritten.

/// Bytes that a user may add at once.
pub(crate) const BURST_BYTES: u64 = 64 << 20;
/// Bytes that a user may add in a second, beyond that.
const BYTES_PER_S: u64 = 4 << 20;

const SECOND_NS: u64 = 1_000_000_000;

/// Bytes that a user has added, less those that were permitted since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    pub(crate) added_bytes: u64,
    at_ns: u64,
}

impl Budget {
    fn left_bytes(self, now_ns: u64) -> u64 {
        let past_ns = u128::from(now_ns.saturating_sub(self.at_ns));
        let permitted = past_ns * u128::from(BYTES_PER_S) / u128::from(SECOND_NS);
        self.added_bytes.saturating_sub(u64::try_from(permitted).unwrap_or(u64::MAX))
    }

    /// Adds bytes of a change.
    pub(crate) fn add(&mut self, now_ns: u64, bytes: u64) {
        *self = Self { added_bytes: self.left_bytes(now_ns).saturating_add(bytes), at_ns: now_ns };
    }

    /// Returns the time for which the user has to wait with further changes, if there is one.
    pub(crate) fn wait_ns(self, now_ns: u64) -> Option<u64> {
        let over_bytes = self.left_bytes(now_ns).checked_sub(BURST_BYTES)?;
        let wait_ns = (u128::from(over_bytes) + 1) * u128::from(SECOND_NS);
        let wait_ns = wait_ns.div_ceil(u128::from(BYTES_PER_S));
        Some(u64::try_from(wait_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Budget {
        fn is_spent(self, now_ns: u64) -> bool {
            self.wait_ns(now_ns).is_some()
        }
    }

    #[test]
    fn a_spent_budget_is_there_again_later() {
        let mut budget = Budget::default();
        budget.add(5, BURST_BYTES - 1);
        assert!(!budget.is_spent(5));
        budget.add(5, 1 + 2 * BYTES_PER_S);
        assert!(budget.is_spent(5) && budget.is_spent(5 + 2 * SECOND_NS));
        let wait_ns = budget.wait_ns(5).expect("it is spent");
        assert!(budget.is_spent(4 + wait_ns) && !budget.is_spent(5 + wait_ns));
        assert!(!budget.is_spent(5 + 3 * SECOND_NS));
        // A clock that stands still permits nothing more.
        budget.add(5 + 3 * SECOND_NS, BYTES_PER_S);
        assert!(budget.is_spent(5 + 3 * SECOND_NS));
        budget.add(u64::MAX, u64::MAX);
        assert!(budget.is_spent(u64::MAX) && budget.is_spent(0));
    }
}
