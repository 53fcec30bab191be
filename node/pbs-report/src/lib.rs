// SPDX-License-Identifier: GPL-2.0
//! Reports on the run of a plan.
//!
//! [`Report::new`] combines the plan and the events of its run. The report is available as JSON (it
//! serialises), as a [`table`], and as a picture ([`gantt`]). A [`Schedule`] is a plan that has not
//! been run yet. [`Placements`] are several schedules of tasks that have implementations for
//! several devices.

mod axis;
mod bars;
mod chart;
mod curves;
mod deadline;
mod event;
mod figures;
pub mod gantt;
mod histogram;
mod lanes;
mod net;
mod number;
mod page;
mod placements;
mod point;
mod process_style;
mod recording;
mod replay;
mod report;
mod schedule;
mod series;
mod sizes;
mod svg;
mod table;
mod thin;
mod timeline;
pub mod trace;
mod waits;

pub use bars::{bars, Bar, BarColour, Bars};
pub use curves::{curves, Band, Curve, Plot};
pub use deadline::Deadline;
pub use event::{describe, is_push, tier_name, EventView};
pub use histogram::Histogram;
pub use lanes::{lanes, Lane, Stay};
pub use net::{net_picture, Net, NetEdge, NetTask};
pub use page::Page;
pub use placements::{
    placements_page, placements_picture, Panel, PlacedProcess, PlacedTask, Placements,
};
pub use point::Point;
pub use recording::{config_by_name, Opened, RecordedPlan, Recording, Source};
pub use report::{Exit, Facts, Outcome, ProcessReport, Report, TaskReport};
pub use schedule::{
    held, schedule_chart, schedule_picture, schedule_tables, Schedule, ScheduleAfter, ScheduleCore,
    ScheduleNode, ScheduleResource, ScheduleTask,
};
pub use series::{CpuSeries, ProcessSeries, Selection, Series, Signal, SlotStay, TaskSeries};
pub use table::{signal_table, table};
pub use timeline::{
    ActualSegment, CpuTimeline, LaterPlan, Mark, MarkKind, PlannedMessage, PlannedSlot,
};
pub use waits::{wait_table, waited, Edge, Waited};
