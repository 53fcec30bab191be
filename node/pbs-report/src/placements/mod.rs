// SPDX-License-Identifier: GPL-2.0
//! Tasks of several processes on CPU threads and accelerators: several schedules of
//! the same tasks below each other, on one axis of time.

mod labels;
mod page;
mod picture;

pub use page::placements_page;
pub use picture::placements_picture;

/// Schedules that are compared.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    /// Title of the picture, in a few words.
    pub title: String,
    /// Processes of the tasks.
    pub processes: Vec<PlacedProcess>,
    /// The threads of the CPU, and below them the accelerators; together they are rows,
    /// from 0 on.
    pub threads: Vec<String>,
    /// See [`threads`](Self::threads).
    pub accelerators: Vec<String>,
    /// The schedules.
    pub panels: Vec<Panel>,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct PlacedProcess {
    /// Name of the process.
    pub name: String,
    /// Arrival of the process.
    pub arrival_ns: u64,
    /// Deadline of the process.
    pub deadline_ns: Option<u64>,
}

/// A schedule.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Title of the schedule.
    pub title: String,
    /// Tasks of the schedule.
    pub tasks: Vec<PlacedTask>,
    /// Times and names of decisions. If there is not room for all names, the first ones are shown.
    pub marks: Vec<(u64, String)>,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub struct PlacedTask {
    /// Index into [`Placements::processes`].
    pub process: usize,
    /// Name of the task.
    pub task: String,
    /// Additional information in a few words: the variant, the round.
    pub label: String,
    /// Rows: first threads, then accelerators.
    pub rows: Vec<usize>,
    /// From then on.
    pub start_ns: u64,
    /// Until then.
    pub end_ns: u64,
}

impl Panel {
    /// Returns the end of the last task.
    fn end_ns(&self) -> u64 {
        self.tasks.iter().map(|task| task.end_ns).max().unwrap_or(0)
    }
}
