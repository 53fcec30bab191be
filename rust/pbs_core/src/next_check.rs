// SPDX-License-Identifier: GPL-2.0

//! Moments at which thresholds must be checked again.

/// The next check of the lateness thresholds of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextCheck {
    /// Count of its current task at which they must be checked.
    pub(super) at_insns: u64,
    /// Time at which they must be checked, at the latest.
    pub(super) at_ns: u64,
}

impl NextCheck {
    pub(super) const NEVER: NextCheck = NextCheck {
        at_insns: u64::MAX,
        at_ns: u64::MAX,
    };

    /// The earlier of two checks.
    pub(super) fn or_earlier(self, other: NextCheck) -> NextCheck {
        NextCheck {
            at_insns: self.at_insns.min(other.at_insns),
            at_ns: self.at_ns.min(other.at_ns),
        }
    }
}

/// The result of a check of lateness thresholds: until when another check would find
/// nothing new.
///
/// It holds as long as the progress of the node's processes does, from which all
/// thresholds are computed: see [`Sums::replace`](super::sums::Sums::replace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedCheck {
    /// Progress of the node at the time of the check.
    progress: u32,
    /// The next check; of the node, `at_insns` is a lateness.
    next: NextCheck,
}

impl CachedCheck {
    /// The absence of a check.
    pub(super) const NONE: CachedCheck = CachedCheck {
        progress: 0,
        next: NextCheck {
            at_insns: 0,
            at_ns: 0,
        },
    };

    pub(super) fn new(progress: u32, next: NextCheck) -> CachedCheck {
        CachedCheck { progress, next }
    }

    pub(super) fn next(&self) -> NextCheck {
        self.next
    }

    /// Whether the check holds at that progress, count or lateness, and time.
    pub(super) fn holds(&self, progress: u32, insns: u64, now_ns: u64) -> bool {
        self.progress == progress && insns < self.next.at_insns && now_ns < self.next.at_ns
    }

    /// The check as it holds at `progress`, however often that has changed before.
    #[cfg(test)]
    pub(super) fn still(&self, progress: u32) -> CachedCheck {
        if self.progress == progress {
            CachedCheck::new(1, self.next)
        } else {
            CachedCheck::NONE
        }
    }
}

saved!([super] NextCheck {
    at_insns,
    at_ns,
});
saved!([super] CachedCheck {
    progress,
    next,
});
