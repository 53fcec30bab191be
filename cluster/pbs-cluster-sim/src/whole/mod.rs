// SPDX-License-Identifier: GPL-2.0
//! The whole system in virtual time: a cluster that is planned, of nodes that run plans.
//!
//! Jobs come ([`jobs`]), each a chunk of cores on one node with a deadline. The planner of
//! `pbs-cluster-planner` accepts or declines them; what starts is planned by `pbs-control` on just
//! its cores and run by `pbs-sim`, with the policy that the kernel compiles: t1, t2, signals
//! and new plans. What a node predicts to end late is told upwards, and what ends early is
//! given back ([`planned`]). Beside it stand the same cluster without plans on its nodes, once
//! with all time for jobs and once with what plans leave to others, and EASY backfilling and
//! FCFS ([`yardstick`]), with the same jobs. [`compare`] puts all into one table.
//!
//! Pure: no clock and no files. The same options give the same numbers on every machine.

mod error;
mod fate;
mod figures;
mod job;
mod node;
mod options;
mod planned;
mod yardstick;

pub use error::Error;
pub use fate::Fate;
pub use figures::{Comparison, Figures};
pub use job::{jobs, Length, WholeJob};
pub use node::{course, list_beside_others_s, list_s, span_s, Course, Prediction};
pub use options::Options;
pub use pbs_text::Format;
pub use planned::{planned, Nodes, MOST_EXTENSION_PERMILLE};
pub use yardstick::{yardstick, Yardstick};

/// All policies over the same jobs.
///
/// # Errors
///
/// A job can't be generated, planned or simulated.
pub fn compare(options: &Options) -> Result<Comparison, Error> {
    let jobs = jobs(options)?;
    let mut comparison = Comparison::new(options);
    let nodes = [
        ("planned", Nodes::Plans),
        ("no node plans", Nodes::Lists),
        ("no plans, 5 % left", Nodes::ListsBesideOthers),
    ];
    for (name, nodes) in nodes {
        comparison.push(name, &jobs, &planned(options, &jobs, nodes)?);
    }
    for policy in [Yardstick::Easy, Yardstick::Fcfs] {
        let fates = yardstick(options, &jobs, policy)?;
        comparison.push(policy.name(), &jobs, &fates);
    }
    Ok(comparison)
}
