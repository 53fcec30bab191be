// SPDX-License-Identifier: GPL-2.0
//! Lengths and ceilings under slow-down.
//!
//! A task beside others retires what it retires alone, and takes longer. So
//! lengths stay, and only the ceiling of slots on the clock must be raised
//! ([`ceiling_factor_permille`]); but on the clock tier the count is the time, and
//! lengths are times: they are planned longer ([`planned_on_clock_insns`]), and
//! what was counted is recorded as if the task had been alone
//! ([`alone_on_clock_insns`]).

use crate::{Sample, Slowdowns, LEAST_SLOWDOWN, MOST_SLOWDOWN};

/// Returns the clock's count of a task with this length alone and this slow-down.
pub fn planned_on_clock_insns(alone_insns: u64, slowdown: f64) -> u64 {
    libm::round(alone_insns as f64 * bounded(slowdown)) as u64
}

/// Returns the clock's count that the run would have had alone: Σ d_c/s_c of the time, for the part
/// of the count that belongs to it.
pub fn alone_on_clock_insns(sample: &Sample, slowdowns: &Slowdowns) -> u64 {
    let (mut ran, mut alone) = (0.0, 0.0);
    for beside in &sample.beside {
        let duration = beside.duration_ns as f64;
        ran += duration;
        let told = slowdowns.of(sample.victim, &beside.neighbours);
        alone += duration / told.slowdown;
    }
    if ran > 0.0 {
        libm::round(sample.insns as f64 * alone / ran) as u64
    } else {
        sample.insns
    }
}

/// The least `ceiling_factor_permille` of a plan in which no task is slowed more
/// than `worst`: by it, and by `margin_permille` more. Not below `now_permille`,
/// what it would have been.
pub fn ceiling_factor_permille(worst: f64, margin_permille: u64, now_permille: u64) -> u64 {
    let needed = libm::ceil(1000.0 * bounded(worst)) as u64;
    needed.saturating_add(margin_permille).max(now_permille)
}

fn bounded(slowdown: f64) -> f64 {
    slowdown.clamp(LEAST_SLOWDOWN, MOST_SLOWDOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Beside, Entry, Key, Level, Neighbour};

    const S: u64 = 1_000_000_000;

    #[test]
    fn lengths_by_the_clock_are_planned_longer_and_recorded_as_alone() {
        let key = |fingerprint| Key { fingerprint, ..Key::default() };
        let table = Slowdowns::new(vec![Entry {
            victim: key(1),
            beside: vec![(Level::Llc, key(2))],
            slowdown: 1.5,
            low: 1.5,
            high: 1.5,
            samples: 8,
        }]);
        let by = Neighbour { level: Level::Llc, key: key(2) };
        assert_eq!(planned_on_clock_insns(S, 1.5), 3 * S / 2);
        let mut sample = Sample {
            victim: key(1),
            insns: 3 * S / 2,
            ran_ns: 3 * S / 2,
            beside: vec![Beside { neighbours: vec![by], duration_ns: 3 * S / 2 }],
        };
        assert_eq!(alone_on_clock_insns(&sample, &table), S);
        // Half of the time alone: 0.75 and 0.5 of 10^9.
        sample.beside[0].duration_ns = 3 * S / 4;
        sample.beside.insert(0, Beside { neighbours: Vec::new(), duration_ns: 3 * S / 4 });
        assert_eq!(alone_on_clock_insns(&sample, &table), 5 * S / 4);
        sample.beside.clear();
        assert_eq!(alone_on_clock_insns(&sample, &table), 3 * S / 2);
    }

    #[test]
    fn the_ceiling_is_raised_and_never_lowered() {
        assert_eq!(ceiling_factor_permille(2.5, 100, 2000), 2600);
        assert_eq!(ceiling_factor_permille(1.2, 100, 2000), 2000);
        assert_eq!(ceiling_factor_permille(f64::INFINITY, 0, 2000), 1_000_000);
    }
}
