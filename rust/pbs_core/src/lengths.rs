// SPDX-License-Identifier: GPL-2.0

//! Planned lengths of a new plan against those of the plan before: the cause of stress
//! (Leppert 2021, 6.2.3).

use super::config::StressCause;
use super::run::Run;

/// Planned lengths of the rest of a process, against those in the plan before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    /// The process was not in the plan before.
    New,
    /// Lengths that did not change.
    Kept,
    /// Lengths that changed.  `failed`: the plan deals with a failure of the process, or of the
    /// node.
    Changed { failed: bool },
}

impl Lengths {
    /// The lengths of `run`, which continues from `before`.
    pub(super) fn of(run: &Run, before: &Run, failed: bool) -> Lengths {
        let lengths = |run: &Run| (run.task, run.planned_insns, run.rest_insns);
        if lengths(run) == lengths(before) {
            Lengths::Kept
        } else {
            Lengths::Changed { failed }
        }
    }
}

/// The planned lengths of all processes of a plan, against those of the plan before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LengthChanges {
    /// Processes whose lengths are the same.
    kept: u32,
    /// Processes with a failure that the plan deals with, and other lengths.
    failed: u32,
}

impl LengthChanges {
    /// No process was in the plan before.
    pub(super) const NONE: LengthChanges = LengthChanges { kept: 0, failed: 0 };

    /// Replaces what was known of a process by what is known now.
    pub(super) fn replace(&mut self, old: Lengths, new: Lengths) {
        let count = |lengths, of| u32::from(lengths == of);
        let failed = Lengths::Changed { failed: true };
        self.kept = self.kept.wrapping_sub(count(old, Lengths::Kept)) + count(new, Lengths::Kept);
        self.failed = self.failed.wrapping_sub(count(old, failed)) + count(new, failed);
    }

    /// Whether a plan of so many processes sets stress.
    pub(super) fn set_stress(&self, cause: StressCause, processes: usize) -> bool {
        match cause {
            StressCause::Every => true,
            StressCause::NewLengths => self.kept as usize != processes,
            StressCause::FailedLengths => self.failed != 0,
        }
    }
}

impl super::words::Saved for Lengths {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(match self {
            Lengths::New => 0,
            Lengths::Kept => 1,
            Lengths::Changed { failed: false } => 2,
            Lengths::Changed { failed: true } => 3,
        });
    }
}

#[cfg(any(test, feature = "std"))]
impl super::restored::Restored for Lengths {
    fn load(
        from: &mut super::restored::Words<'_>,
    ) -> Result<Lengths, super::restored::SnapshotError> {
        match <u64 as super::restored::Restored>::load(from)? {
            0 => Ok(Lengths::New),
            1 => Ok(Lengths::Kept),
            2 => Ok(Lengths::Changed { failed: false }),
            3 => Ok(Lengths::Changed { failed: true }),
            _ => Err(from.refusal()),
        }
    }
}
