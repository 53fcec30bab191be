// SPDX-License-Identifier: GPL-2.0
//! Load that jobs put on a machine.

use crate::TraceJob;

/// In how many seconds jobs come that ask for so much of a machine.
pub(crate) fn span_s(jobs: &[TraceJob], cores: u64, load_percent: u64) -> u64 {
    let work = jobs.iter().map(|job| u128::from(job.occupies_s()) * u128::from(job.cores));
    let per_second = u128::from(cores.max(1)) * u128::from(load_percent.max(1));
    let span_s = work.sum::<u128>() * 100 / per_second;
    u64::try_from(span_s).unwrap_or(u64::MAX).max(1)
}
