// SPDX-License-Identifier: GPL-2.0

//! Moments at which thresholds must be checked again.

/// When the lateness thresholds are to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    /// When the current task of who runs has retired as much.
    pub(super) at_insns: u64,
    /// When it is that late.
    pub(super) at_ns: u64,
}

impl Watch {
    pub(super) const NEVER: Watch = Watch {
        at_insns: u64::MAX,
        at_ns: u64::MAX,
    };

    pub(super) fn earlier(&mut self, other: &Watch) {
        self.at_insns = self.at_insns.min(other.at_insns);
        self.at_ns = self.at_ns.min(other.at_ns);
    }
}

/// What a look at the lateness thresholds found: until when another one would
/// find nothing new.
///
/// It holds as long as the progress of the node's processes does, of which all
/// thresholds are made: see [`Sums::replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// The node's progress at that time.
    pub(super) progress: u32,
    /// When the lateness is as much.
    pub(super) at_insns: u64,
    /// When it is that late.
    pub(super) at_ns: u64,
}

impl Look {
    /// Nothing was looked at.
    pub(super) const NONE: Look = Look {
        progress: 0,
        at_insns: 0,
        at_ns: 0,
    };

    /// What is left of it, however often the sums have changed on the way.
    #[cfg(test)]
    pub(super) fn still(&self, progress: u32) -> Look {
        let look = Look {
            progress: 1,
            ..*self
        };
        if self.progress == progress {
            look
        } else {
            Look::NONE
        }
    }

    pub(super) fn holds(&self, progress: u32, insns: u64, now_ns: u64) -> bool {
        self.progress == progress && insns < self.at_insns && now_ns < self.at_ns
    }
}
