// SPDX-License-Identifier: GPL-2.0
//! Narrow and wide jobs apart: backfilling serves the one at the cost of the other.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::{Ran, Spread};

/// One core; less than a node of sixteen; up to eight of them; up to 64; the widest.
const CLASSES: [RangeInclusive<u64>; 5] = [1..=1, 2..=15, 16..=128, 129..=1024, 1025..=u64::MAX];

/// Jobs of about as many cores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeClass {
    /// Range of cores: `1`, `2–15`, …, `over 1024`.
    pub cores: String,
    /// Number of jobs that ran.
    pub jobs: usize,
    /// Core seconds that these jobs used.
    pub core_seconds: u128,
    /// From submission to start, in seconds.
    pub wait_s: Spread,
    /// Bounded slowdown of these jobs.
    pub bounded_slowdown: Spread,
}

impl SizeClass {
    pub(super) fn all(ran: &[Ran<'_>], bound_s: u64) -> Vec<Self> {
        let classes = CLASSES.into_iter().map(|cores| {
            let of: Vec<_> = ran.iter().filter(|ran| cores.contains(&ran.job.cores)).collect();
            let slowdown = |ran: &&Ran<'_>| ran.bounded_slowdown(bound_s);
            Self {
                cores: match (*cores.start(), *cores.end()) {
                    (least, most) if least == most => least.to_string(),
                    (least, u64::MAX) => format!("over {}", least - 1),
                    (least, most) => format!("{least}–{most}"),
                },
                jobs: of.len(),
                core_seconds: of.iter().map(|ran| ran.core_seconds(&(0..u64::MAX))).sum(),
                wait_s: Spread::of_seconds(of.iter().map(|ran| ran.wait_s()).collect()),
                bounded_slowdown: Spread::of_ratios(of.iter().map(slowdown).collect()),
            }
        });
        classes.filter(|class| class.jobs > 0).collect()
    }
}
