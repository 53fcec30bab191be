// SPDX-License-Identifier: GPL-2.0
//! A job of a trace.

use serde::Serialize;

/// What a trace says of a job. Times are whole seconds from the begin of the trace.
///
/// Rigid: it takes the same cores from its start to its end, whenever that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceJob {
    /// Its number in the trace. Nothing relies on it: traces have numbers twice, or none.
    pub number: u64,
    /// When it comes.
    pub submit_s: u64,
    /// How long it would run if nobody ended it. Less than a second counts as one.
    pub run_s: u64,
    /// How long its user says that it runs at most. It is ended then, as sites do.
    pub requested_s: u64,
    /// How many cores it takes; none can't run.
    pub cores: u64,
    /// Memory that it takes on all of its cores together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Whose it is.
    pub user: u64,
    /// On whose account.
    pub group: u64,
    /// When it has to have ended. The Standard Workload Format has no such field: see
    /// [`workload::add_deadlines`](crate::workload::add_deadlines).
    pub deadline_s: Option<u64>,
    /// What became of it where the trace was recorded.
    pub status: Status,
}

/// What became of a job where the trace was recorded: field 11 of the Standard Workload
/// Format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Ran, and failed or was killed: 0.
    Failed,
    /// Ran to its end: 1.
    Completed,
    /// A part of a job that goes on in another line: 2.
    Partial,
    /// The last part of a job, which completed: 3.
    LastCompleted,
    /// The last part of a job, which failed: 4.
    LastFailed,
    /// Taken back, before or after it started: 5.
    Cancelled,
    /// Not recorded: −1.
    #[default]
    Unknown,
}

impl Status {
    /// That of a number of the format.
    pub fn of_number(number: i64) -> Option<Self> {
        Some(match number {
            -1 => Self::Unknown,
            0 => Self::Failed,
            1 => Self::Completed,
            2 => Self::Partial,
            3 => Self::LastCompleted,
            4 => Self::LastFailed,
            5 => Self::Cancelled,
            _ => return None,
        })
    }

    /// Its number in the format.
    pub fn number(self) -> i64 {
        match self {
            Self::Unknown => -1,
            Self::Failed => 0,
            Self::Completed => 1,
            Self::Partial => 2,
            Self::LastCompleted => 3,
            Self::LastFailed => 4,
            Self::Cancelled => 5,
        }
    }

    /// A line for a part of a job, beside the one for all of it.
    pub fn is_part(self) -> bool {
        matches!(self, Self::Partial | Self::LastCompleted | Self::LastFailed)
    }
}

/// What schedulers are told of how long jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimates {
    /// What users said.
    Users,
    /// How long they do run.
    Perfect,
}

impl TraceJob {
    /// A job of nobody in particular.
    pub fn new(submit_s: u64, run_s: u64, requested_s: u64, cores: u64) -> Self {
        Self {
            number: 0,
            submit_s,
            run_s,
            requested_s,
            cores,
            memory_bytes: None,
            user: 0,
            group: 0,
            deadline_s: None,
            status: Status::Unknown,
        }
    }

    /// The job with other estimates. What is killed at the end of its time is so with
    /// either of them, so that both replays do the same work.
    pub fn with(&self, estimates: Estimates) -> Self {
        Self {
            requested_s: match estimates {
                Estimates::Users => self.requested_s.max(1),
                Estimates::Perfect => self.occupies_s(),
            },
            ..*self
        }
    }

    /// The job as a site that kills nobody treats it: where it runs longer than its user
    /// said, as if the user had said so. Otherwise jobs are killed at the end of the time
    /// that they asked for, and do less than where the trace was recorded.
    pub fn unlimited(&self) -> Self {
        Self { requested_s: self.requested_s.max(self.run_s), ..*self }
    }

    /// How long it has its cores: until it is over, or until it is killed at the end of the
    /// time that it asked for; at least a second.
    pub fn occupies_s(&self) -> u64 {
        self.run_s.min(self.requested_s).max(1)
    }

    /// It would run longer than it may.
    pub fn is_killed(&self) -> bool {
        self.run_s.max(1) > self.requested_s.max(1)
    }

    /// What a scheduler may know: how long it really runs is no part of that.
    pub(crate) fn as_told(&self) -> Self {
        let requested_s = self.requested_s.max(1);
        Self { run_s: requested_s, requested_s, status: Status::Unknown, ..*self }
    }
}
