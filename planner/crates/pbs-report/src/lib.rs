// SPDX-License-Identifier: GPL-2.0
//! What became of a plan.
//!
//! [`Report::new`] puts the plan and the events of its run side by side. The
//! report goes out as JSON (it serialises), as a [`table`], and as a picture
//! ([`gantt`]).

mod event;
pub mod gantt;
mod number;
mod recording;
mod report;
mod svg;
mod table;
mod timeline;

pub use event::{describe, EventView};
pub use number::grouped;
pub use recording::{config_by_name, Opened, RecordedPlan, Recording, Source};
pub use report::{tier_name, Exit, Facts, Outcome, ProcessReport, Report, TaskReport};
pub use table::{columns, table};
pub use timeline::{ActualSegment, CpuTimeline, Mark, MarkKind, PlannedSlot};
