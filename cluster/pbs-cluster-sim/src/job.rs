// SPDX-License-Identifier: GPL-2.0
//! A job of a trace.

use pbs_cluster_planner::run_times::JobKind;
use serde::Serialize;

/// Job of a trace. Times are whole seconds from the begin of the trace.
///
/// The job is rigid: it uses the same cores from its start to its end, at whatever time it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceJob {
    /// Number in the trace. No code relies on it, because traces contain duplicate or missing
    /// numbers.
    pub number: u64,
    /// Time of submission.
    pub submit_s: u64,
    /// Run time if nothing ends the job. Less than a second counts as one second.
    pub run_s: u64,
    /// Maximum run time according to the user. The job is killed at that time, as sites do.
    pub requested_s: u64,
    /// Number of cores; a job without cores can't run.
    pub cores: u64,
    /// Memory that it takes on all of its cores together, in bytes.
    pub memory_bytes: Option<u64>,
    /// User who submits the job.
    pub user: u64,
    /// Group whose account is charged.
    pub group: u64,
    /// Number of the program that the job runs; `None`: it is unknown.
    pub application: Option<u64>,
    /// Deadline for the end. The Standard Workload Format has no such field: see
    /// [`workload::add_deadlines`](crate::workload::add_deadlines).
    pub deadline_s: Option<u64>,
    /// Number of a job after whose end this one comes, if that is known; see
    /// [`as_they_came`](crate::as_they_came).
    pub preceding: Option<u64>,
    /// Time between the end of that job and the submission of this one.
    pub think_s: u64,
    /// Status of the job in the recorded trace.
    pub status: Status,
}

/// Status of a job in the recorded trace: field 11 of the Standard Workload Format.
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
    /// Returns the status for a number of the format.
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

    /// Returns the number of the status in the format.
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

/// Estimates of run times that schedulers receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimates {
    /// Estimates of the users.
    Users,
    /// Actual run times.
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
            application: None,
            deadline_s: None,
            preceding: None,
            think_s: 0,
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

    /// Returns the job as it comes after the end of its predecessor: not before its own time, and
    /// with as much time to its deadline.
    pub(crate) fn after(&self, end_s: u64) -> Self {
        let submit_s = self.submit_s.max(end_s.saturating_add(self.think_s));
        let later_s = submit_s - self.submit_s;
        let deadline_s = self.deadline_s.map(|deadline_s| deadline_s.saturating_add(later_s));
        Self { submit_s, deadline_s, ..*self }
    }

    /// Returns the time for which the job occupies its cores: until it is over, or until it is
    /// killed at the end of its requested time. At least a second.
    pub fn occupies_s(&self) -> u64 {
        self.run_s.min(self.requested_s).max(1)
    }

    /// Whether the job would run longer than it may.
    pub fn is_killed(&self) -> bool {
        self.run_s.max(1) > self.requested_s.max(1)
    }

    /// Returns the properties by which run times are learned.
    pub(crate) fn kind(&self) -> JobKind<u64> {
        let (cores, limit_s) = (self.cores, self.requested_s.max(1));
        JobKind { user: self.user, application: self.application, cores, limit_s }
    }

    /// Returns the job as a scheduler may see it: without the actual run time.
    pub(crate) fn as_told(&self) -> Self {
        let requested_s = self.requested_s.max(1);
        Self { run_s: requested_s, requested_s, status: Status::Unknown, ..*self }
    }
}
