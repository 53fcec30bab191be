// SPDX-License-Identifier: GPL-2.0
//! Expectations about a task or process that deviated from its plan.

/// Estimate for the rest of a late process.
///
/// Leppert's sketch stretches all remaining tasks of a process by a constant (listing 6). Here, a
/// late task is expected to continue for a share of what it has retired; this way an endless task
/// is checked less and less often. The remaining tasks of its process are stretched in proportion
/// to the lateness of the tasks before them, up to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// A late task goes on for this share of what it has retired.
    pub goes_on_permille: u64,
    /// The tasks to come are stretched by no more than this.
    pub most_stretch_permille: u64,
    /// A process that has outgrown its memory grows by this share of what it uses.
    pub grows_permille: u64,
}

impl Default for Outlook {
    fn default() -> Self {
        Self { goes_on_permille: 250, most_stretch_permille: 2000, grows_permille: 250 }
    }
}

impl Outlook {
    /// The length of a task that has retired `retired_insns` and was to take
    /// `expected_insns`.
    pub fn of_running(&self, expected_insns: u64, retired_insns: u64) -> u64 {
        if retired_insns < expected_insns {
            return expected_insns;
        }
        let more_insns = scaled(retired_insns, self.goes_on_permille);
        retired_insns.saturating_add(more_insns.max(1))
    }

    /// The length of a task that has retired `retired_insns` and that the node has not
    /// signalled: it ends soon.
    pub fn of_unsignalled(&self, expected_insns: u64, retired_insns: u64) -> u64 {
        let soon_insns = (retired_insns / 50).max(1);
        if retired_insns < expected_insns {
            expected_insns
        } else {
            retired_insns.saturating_add(soon_insns)
        }
    }

    /// The length of a task to come that was expected to take `expected_insns`,
    /// where those of its process before it took `retired_insns` instead of
    /// `planned_insns`.
    pub fn of_coming(&self, expected_insns: u64, planned_insns: u64, retired_insns: u64) -> u64 {
        if retired_insns <= planned_insns || planned_insns == 0 {
            return expected_insns;
        }
        let stretch = u128::from(retired_insns) * 1000 / u128::from(planned_insns);
        let stretch = stretch.min(self.most_stretch_permille.max(1000).into());
        scaled(expected_insns, stretch as u64)
    }
}

impl Outlook {
    /// The memory of a process for which `reserved_bytes` were reserved, and which was
    /// seen using `used_bytes`: that is but a lower bound of what it will use. Never
    /// more than there is, unless it uses that.
    pub fn of_memory(&self, reserved_bytes: u64, used_bytes: u64, node_bytes: u64) -> u64 {
        if used_bytes <= reserved_bytes {
            return reserved_bytes;
        }
        let more_bytes = scaled(used_bytes, self.grows_permille);
        let grown_bytes = used_bytes.saturating_add(more_bytes);
        grown_bytes.min(node_bytes.max(used_bytes))
    }
}

pub(crate) fn scaled(insns: u64, permille: u64) -> u64 {
    let scaled = u128::from(insns) * u128::from(permille) / 1000;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Outlook;

    #[test]
    fn a_task_in_time_keeps_its_length() {
        assert_eq!(Outlook::default().of_running(1000, 999), 1000);
    }

    #[test]
    fn a_late_task_is_longer_than_it_is() {
        let outlook = Outlook::default();
        assert_eq!(outlook.of_running(1000, 1600), 2000);
        // A task that never ends is planned a number of times that grows with
        // the logarithm of its length.
        let (mut length, mut times) = (1000, 0);
        while length < 1_000_000_000 {
            length = outlook.of_running(length, length);
            times += 1;
        }
        assert!(times < 70, "{times}");
        assert_eq!(outlook.of_running(0, 0), 1);
        assert_eq!(outlook.of_running(1, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_task_without_a_signal_ends_soon() {
        let outlook = Outlook::default();
        assert_eq!(outlook.of_unsignalled(1000, 999), 1000);
        assert_eq!(outlook.of_unsignalled(1000, 1000), 1020);
        assert_eq!(outlook.of_unsignalled(0, 0), 1);
        assert_eq!(outlook.of_unsignalled(1, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_process_that_has_outgrown_its_memory_is_expected_to_grow() {
        let outlook = Outlook::default();
        assert_eq!(outlook.of_memory(400, 400, 1000), 400);
        assert_eq!(outlook.of_memory(400, 600, 1000), 750);
        // There is no more than there is, but it may use that.
        assert_eq!(outlook.of_memory(400, 900, 1000), 1000);
        assert_eq!(outlook.of_memory(400, 1200, 1000), 1200);
        assert_eq!(outlook.of_memory(400, u64::MAX, 1000), u64::MAX);
    }

    #[test]
    fn what_comes_is_stretched_by_what_was() {
        let outlook = Outlook::default();
        assert_eq!(outlook.of_coming(100, 1000, 1500), 150);
        assert_eq!(outlook.of_coming(100, 1000, 9000), 200);
        // Who was early before may be late now.
        assert_eq!(outlook.of_coming(100, 1000, 500), 100);
        assert_eq!(outlook.of_coming(100, 0, 500), 100);
    }
}
