// SPDX-License-Identifier: GPL-2.0

//! Distance of a lateness from its threshold.

use super::event::Cause;
use super::fraction::fraction;
use super::level::FAILURE;

/// A lateness on the way to its threshold.
pub(super) struct Approach {
    pub(super) cause: Cause,
    pub(super) lateness_insns: i64,
    pub(super) limit_insns: u64,
    /// The threshold without stress.
    pub(super) calm_insns: u64,
    pub(super) slope: Slope,
}

/// The rise of a threshold with progress: where it is above `floor_insns`, by
/// `rise_insns` in every `per_insns` that are retired, and that for
/// `left_insns` more.
#[derive(Clone, Copy)]
pub(super) struct Slope {
    pub(super) floor_insns: u64,
    pub(super) rise_insns: u64,
    pub(super) per_insns: u64,
    pub(super) left_insns: u64,
}

pub(super) const FLAT: Slope = Slope {
    floor_insns: u64::MAX,
    rise_insns: 0,
    per_insns: 1,
    left_insns: 0,
};

impl Approach {
    pub(super) fn exceeds(&self, limit_insns: u64, percent: u32) -> bool {
        let level_insns = level_insns(limit_insns, percent);
        u64::try_from(self.lateness_insns).is_ok_and(|lateness_insns| lateness_insns > level_insns)
    }

    /// Number of instructions after which the lateness, which grows with each of
    /// them, may exceed `percent` of the threshold that is at `limit_insns`
    /// now.
    ///
    /// A threshold that rises more than half as fast is checked again after steps that
    /// find the crossing to a thousandth of the limit.
    pub(super) fn crossing_insns(&self, limit_insns: u64, percent: u32) -> u64 {
        let Slope {
            floor_insns,
            rise_insns,
            per_insns,
            left_insns,
        } = self.slope;
        let level = level_insns(limit_insns, percent);
        // The lateness may grow at least by this much.
        let room = i128::from(level) - i128::from(self.lateness_insns);
        let room_insns = u64::try_from(room.max(0)).unwrap_or(u64::MAX);
        let growth_insns = if limit_insns <= floor_insns {
            room_insns
        } else {
            let rise_insns = level_insns(rise_insns, percent);
            let rest_insns = per_insns.saturating_sub(rise_insns);
            let growth_insns = if rise_insns <= rest_insns {
                // A share of a rise that is itself rounded down lags behind.
                let lag_insns = u64::from(percent != FAILURE);
                let sure_insns = room_insns.saturating_sub(lag_insns);
                sure_insns.saturating_add(fraction(sure_insns, rise_insns, rest_insns))
            } else {
                room_insns.saturating_mul(2).max(level >> 10)
            };
            growth_insns.min(left_insns.max(room_insns))
        };
        growth_insns.saturating_add(1)
    }
}

/// `percent` of a limit, rounded down.
fn level_insns(limit_insns: u64, percent: u32) -> u64 {
    fraction(limit_insns, percent.into(), FAILURE.into())
}
