// SPDX-License-Identifier: GPL-2.0
//! Claims of the thesis on co-scheduling, recomputed, and the costs of co-scheduling.
//!
//! [`claims`] and [`gaps`] give the same results on every machine: each recomputed figure is a
//! result of the schedulers or of arithmetic, never taken from a table of results. [`overheads`]
//! and [`costs`] measure time.

mod gap;
mod heterogeneous;
mod homogeneous;
mod memory;
mod overhead;
mod row;
mod several;
mod strategies;
mod table_2_3;
mod workloads;

pub use gap::{gaps, Gap};
pub use overhead::{costs, overheads, Fitted, Overhead};
pub use row::{ComparedClaim, Verdict};

/// All claims, in the order of the thesis's sections, and what it left open (§7.3).
pub fn claims() -> Vec<ComparedClaim> {
    let mut rows = table_2_3::rows();
    rows.extend(memory::mappings_of_one_task());
    rows.extend(heterogeneous::rows());
    rows.extend(homogeneous::rows());
    rows.extend(overhead::published());
    rows.extend(memory::rows());
    rows.extend(strategies::rows());
    rows.extend(several::rows());
    rows
}
