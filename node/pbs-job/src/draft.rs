// SPDX-License-Identifier: GPL-2.0
//! A job as it was written down: tasks that name the next tasks. Nothing is
//! known of it yet; [`Draft::check`] makes a [`Job`](crate::Job) of it.

use pbs_plan::Start;
use pbs_text::Line;

use crate::{Action, Amount, Checkpoint, Worth};

/// A job request that nobody has checked.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Name of the job; see [`Job::name`](crate::Job::name).
    pub name: String,
    /// Earliest start; see [`Job::start_ns`](crate::Job::start_ns).
    pub start_ns: u64,
    /// Deadline; see [`Job::deadline_ns`](crate::Job::deadline_ns).
    pub deadline_ns: u64,
    /// Priority; see [`Job::priority`](crate::Job::priority).
    pub priority: u32,
    /// Value and penalty; see [`Job::worth`](crate::Job::worth).
    pub worth: Worth,
    /// Way in which programs save their work; see [`Job::checkpoint`](crate::Job::checkpoint).
    pub checkpoint: Option<Checkpoint>,
    /// Whether the job asks for no promise; see [`Job::best_effort`](crate::Job::best_effort).
    pub best_effort: bool,
    /// Estimated time; see [`Job::runtime_ns`](crate::Job::runtime_ns).
    pub runtime_ns: Option<u64>,
    /// Estimated memory; see [`Job::memory_bytes`](crate::Job::memory_bytes).
    pub memory_bytes: Option<u64>,
    /// CPUs of the job, in any order; see [`Job::cpus`](crate::Job::cpus).
    pub cpus: Vec<u32>,
    /// Resources of the job, in any order; see [`Job::resources`](crate::Job::resources).
    pub resources: Vec<Amount>,
    /// In the order of the file.
    pub processes: Vec<DraftProcess>,
    /// In the order of the file.
    pub tasks: Vec<DraftTask>,
}

/// A process of a [`Draft`].
#[derive(Clone, Debug, Default)]
pub struct DraftProcess {
    /// Number of the process.
    pub id: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Memory of the process; see [`Process::memory_bytes`](crate::Process::memory_bytes).
    pub memory_bytes: u64,
    /// Estimated time; see [`Process::runtime_ns`](crate::Process::runtime_ns).
    pub runtime_ns: Option<u64>,
    /// Rate of the process; see [`Process::rate_insns_per_s`](crate::Process::rate_insns_per_s).
    pub rate_insns_per_s: Option<u64>,
    /// CPUs of the process, in any order; see [`Process::cpus`](crate::Process::cpus).
    pub cpus: Vec<u32>,
    /// Resources of the process, in any order; see
    /// [`Process::resources`](crate::Process::resources).
    pub resources: Vec<Amount>,
    /// Way in which the process is started.
    pub start: Start,
    /// Line of the file that declares the process.
    pub line: Line,
}

/// A task of a [`Draft`].
#[derive(Clone, Debug, Default)]
pub struct DraftTask {
    /// Number of the task.
    pub id: u32,
    /// Readable name.
    pub name: Option<String>,
    /// The number of its process.
    pub process: u32,
    /// Kind of the task.
    pub kind: Kind,
    /// Length of the task in instructions.
    pub insns: u64,
    /// The greatest memory that it uses; `None`: all of its process's.
    pub memory_bytes: Option<u64>,
    /// The number of the task that it sends a message to.
    pub partner: Option<u32>,
    /// Size of the message; see [`Task::message_bytes`](crate::Task::message_bytes).
    pub message_bytes: Option<u64>,
    /// Whether the next task of its process waits until the message has been received.
    pub synchronous: bool,
    /// The numbers of the tasks of other processes that it waits for besides.
    pub after: Vec<u32>,
    /// The numbers of the tasks that can start once it has ended: the next of
    /// its process, the first task of the process that it forks, the join task
    /// that waits for it.
    pub next: Vec<u32>,
    /// Line of the file that declares the task.
    pub line: Line,
}

/// The action type of a task (Glaß 2024, 5.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// See [`Action::Start`](Action::Start).
    Start,
    /// See [`Action::End`](Action::End).
    End,
    /// See [`Action::Fork`](Action::Fork).
    Fork,
    /// See [`Action::ForkEnd`](Action::ForkEnd).
    ForkEnd,
    /// See [`Action::Join`](Action::Join).
    Join,
    /// See [`Action::Calculation`](Action::Calculation).
    #[default]
    Calculation,
    /// See [`Action::Communication`](Action::Communication).
    Communication,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::End,
        Self::Fork,
        Self::ForkEnd,
        Self::Join,
        Self::Calculation,
        Self::Communication,
    ];

    /// Returns the name of the kind, as files contain it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Fork => "fork",
            Self::ForkEnd => "fork_end",
            Self::Join => "join",
            Self::Calculation => "calculation",
            Self::Communication => "communication",
        }
    }

    /// Whether a task of this kind always takes instructions.
    pub(crate) fn works(self) -> bool {
        matches!(self, Self::Calculation | Self::Communication)
    }
}

impl DraftProcess {
    /// Returns the name of the process, or its number if it has none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

impl DraftTask {
    /// Returns the task's label in messages: its number and its name.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("task {} ({name})", self.id),
            None => format!("task {}", self.id),
        }
    }
}

impl From<Action> for Kind {
    fn from(action: Action) -> Self {
        match action {
            Action::Start => Self::Start,
            Action::End => Self::End,
            Action::Calculation => Self::Calculation,
            Action::Communication { .. } => Self::Communication,
            Action::Fork { .. } => Self::Fork,
            Action::ForkEnd => Self::ForkEnd,
            Action::Join { .. } => Self::Join,
        }
    }
}
