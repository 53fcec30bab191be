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
    /// What is shown, in a few words.
    pub title: String,
    /// Whose tasks they are.
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
    /// What it is called.
    pub name: String,
    /// When it comes.
    pub arrival_ns: u64,
    /// When it should have ended.
    pub deadline_ns: Option<u64>,
}

/// A schedule.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What it is.
    pub title: String,
    /// Its tasks.
    pub tasks: Vec<PlacedTask>,
    /// When something was decided, and what; the first are named where not all have room.
    pub marks: Vec<(u64, String)>,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub struct PlacedTask {
    /// Index into [`Placements::processes`].
    pub process: usize,
    /// What it is called.
    pub task: String,
    /// What else is known of it, in a few words: its variant, its round.
    pub label: String,
    /// Rows: first threads, then accelerators.
    pub rows: Vec<usize>,
    /// From then on.
    pub start_ns: u64,
    /// Until then.
    pub end_ns: u64,
}

impl Panel {
    /// When its last task ends.
    fn end_ns(&self) -> u64 {
        self.tasks.iter().map(|task| task.end_ns).max().unwrap_or(0)
    }
}
