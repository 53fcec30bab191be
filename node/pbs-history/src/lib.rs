// SPDX-License-Identifier: GPL-2.0
//! History of the resources that jobs have used, and predictions from it.
//!
//! The job scheduler plans from a prediction model that uses data of previous runs (Leppert 2021,
//! 6.2.3). Its memory consumption model holds for each process the maximum that was observed (Glaß
//! 2024, 4.4). Figures that a user sent with the first request are replaced after the first run
//! (4.1). This crate implements that model: a [`Store`] is one file with the figures of each task
//! of each run. A [`JobHistory`] predicts from them, with the uncertainty of each prediction.
//! The statistics are those of [`pbs_random::estimate`]. A [`Collector`] makes the figures of a run from
//! the kernel's events.
//!
//! Beside the runs, the file has measurements of variants of tasks, of transfers, of decisions, and
//! of tasks that ran beside each other ([`VariantRun`], [`Transfer`], [`Decision`], [`Corun`]).
//!
//! The same file lists the runs that are planned or under way. This way a planner can take over
//! from one that died.

mod collect;
mod digest;
mod error;
mod export;
mod fit;
mod forget;
mod history;
mod lease;
mod limits;
mod measured;
mod measured_rows;
mod measured_store;
mod open;
mod options;
mod pack;
mod record;
mod schema;
mod store;
mod tables;
mod usage;

pub use collect::{Collector, Expected, ExpectedTask};
pub use digest::Fingerprint;
pub use error::Error;
pub use export::{to_csv, RunFigures};
pub use history::{JobHistory, Prediction, RatePrediction, Source, TaskKey, User};
pub use lease::{boot_id, started_ticks};
pub use measured::{
    Corun, Decision, DecisionCost, TimePrediction, Transfer, TransferCost, VariantKey, VariantRun,
};
pub use options::{EndedLimits, Options};
pub use record::{
    InForce, Kind, Last, NewRun, Order, Outcome, ProcessRun, Run, RunId, State, Takeover, TaskRun,
};
pub use store::{JobSummary, RunEnd, Store};
pub use usage::RunUsage;
