// SPDX-License-Identifier: GPL-2.0
//! Patience with tasks of other processes that are before in a queue, have room, and don't start.

use std::time::{Duration, Instant};

/// The task of each device that is behind such a task, and since when.
#[derive(Debug)]
pub(crate) struct Behind(Vec<Option<(usize, Instant)>>);

impl Behind {
    pub(crate) fn new(devices: usize) -> Self {
        Self(vec![None; devices])
    }

    /// Notes that a task has not got its device because of one that is before it.
    pub(crate) fn note(&mut self, device: usize, task: usize, now: Instant) {
        if self.0[device].is_none_or(|(of, _)| of != task) {
            self.0[device] = Some((task, now));
        }
    }

    /// Whether a task has been behind for longer than the patience.
    pub(crate) fn is_over(
        &self,
        device: usize,
        task: usize,
        patience: Duration,
        now: Instant,
    ) -> bool {
        self.0[device].is_some_and(|(of, since)| {
            of == task && now.saturating_duration_since(since) > patience
        })
    }

    /// Notes that no task waits for the device because of one that is before it.
    pub(crate) fn forget(&mut self, device: usize) {
        self.0[device] = None;
    }

    /// Begins anew, as behind other tasks.
    pub(crate) fn forget_all(&mut self) {
        self.0.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    #[test]
    fn patience_counts_from_the_first_refusal() {
        let mut behind = Behind::new(2);
        let begin = Instant::now();
        let is_over = |behind: &Behind, task, after_ms| {
            behind.is_over(1, task, PATIENCE, begin + Duration::from_millis(after_ms))
        };
        behind.note(1, 7, begin);
        behind.note(1, 7, begin + PATIENCE);
        assert!(!is_over(&behind, 7, 1000));
        assert!(is_over(&behind, 7, 1001));
        // Another task, and the same on another device.
        assert!(!is_over(&behind, 8, 1001));
        assert!(!behind.is_over(0, 7, PATIENCE, begin + 2 * PATIENCE));
        behind.forget(1);
        assert!(!is_over(&behind, 7, 1001));
    }

    /// A task that is first in the queue again begins anew.
    #[test]
    fn another_task_of_the_device_ends_the_patience_of_the_one_before() {
        let mut behind = Behind::new(1);
        let begin = Instant::now();
        behind.note(0, 7, begin);
        behind.note(0, 3, begin + PATIENCE);
        behind.note(0, 7, begin + 2 * PATIENCE);
        assert!(!behind.is_over(0, 7, PATIENCE, begin + 3 * PATIENCE));
        assert!(behind.is_over(0, 7, PATIENCE, begin + 4 * PATIENCE));
    }
}
