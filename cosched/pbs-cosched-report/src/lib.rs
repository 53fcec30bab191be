// SPDX-License-Identifier: GPL-2.0
//! Decisions of co-scheduling about task graphs, for people and programs.
//!
//! A [`Case`] is a workload on a node at a time, with its running tasks. [`plan`] decides about it
//! once. [`explain`] explains the choice of each task. [`sim`] lets the processes arrive one after
//! the other. [`compare`] does so with all schedulers and all determinations. Each answer
//! serialises, prints itself as tables, and is drawn by [`pbs_report::Placements`]. Results are
//! always compared with not co-scheduling (§2.5.1).
//!
//! This crate has no clock and reads no files.

mod case;
mod compare;
mod explain;
pub mod lanes;
mod measures;
mod names;
mod picture;
mod plan;
mod rounds;
mod rows;
mod settings;
mod sim;
mod slowed;
mod words;

pub use case::Case;
pub use compare::{compare, Compared, ComparisonRow};
pub use explain::{explain, Alternative, DeterminationAnswer, Explained, Explanation};
pub use measures::{Measured, Turnaround, WithAndWithout};
pub use names::Names;
pub use plan::{plan, Planned, Verdict};
pub use rounds::{GreedyAssignment, Rounds};
pub use rows::{Placed, TaskRow};
pub use settings::{SchedulerName, Settings, When};
pub use sim::{sim, DecisionRow, Simulated};
pub use slowed::Slowed;
