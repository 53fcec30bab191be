// SPDX-License-Identifier: GPL-2.0
//! Traces of clusters, replayed in virtual time: what a scheduler makes of them.
//!
//! A trace is read ([`swf`]) or made ([`workload`], [`Lublin`]); a [`Policy`] is told what happens and
//! says what starts ([`replay`]); what came of it is measured ([`metrics`]). The planner of
//! `pbs-cluster-planner` is one policy ([`Planned`]); FCFS, EASY and conservative backfilling, the
//! usual yardsticks, are others.

mod against;
mod arrivals;
mod check;
mod comparison;
mod conservative;
mod driver;
mod easy;
mod fcfs;
mod job;
mod load;
mod lublin;
pub mod metrics;
mod optimised;
mod planned;
mod policy;
mod preceding;
mod requests;
mod run_time_errors;
mod running;
mod site_queue;
mod sjf_easy;
mod summary;
pub mod swf;
mod unstarted;
mod waiting;
pub mod whole;
pub mod workload;

pub use against::{against, against_text, Against, Gain};
pub use arrivals::as_they_came;
pub use check::{check, Invalid};
pub use comparison::{Compared, Comparison, Planning};
pub use conservative::Conservative;
pub use driver::{replay, Fault, Outcome};
pub use easy::Easy;
pub use fcfs::Fcfs;
pub use job::{Estimates, Status, TraceJob};
pub use lublin::Lublin;
pub use optimised::{Express, Optimised, Optimising};
pub use planned::Planned;
pub use policy::{Policy, Work};
pub use run_time_errors::{ErrorsByRule, ErrorsOfUser, EstimateErrors, RunTimeErrors};
pub use site_queue::{Overtaking, SiteQueue};
pub use sjf_easy::SjfEasy;
pub use summary::{Size, Summary};
pub use unstarted::{NeverRan, Unstarted};

pub use pbs_cluster_planner::run_times::Expect;
pub use pbs_site::{Learner, Promise};
pub use pbs_text::Format;
