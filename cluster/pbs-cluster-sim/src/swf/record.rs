// SPDX-License-Identifier: GPL-2.0
//! A line with names for its fields.

use std::fmt;

use super::line::FIELDS;
use crate::job::Status;
use crate::{Outcome, TraceJob};

const KIB: u64 = 1024;

/// A line of a file: all 18 fields, `None` where it is −1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// 1: counted from 1, in the order of the file.
    pub number: Option<u64>,
    /// 2: seconds since the begin of the trace.
    pub submit_s: Option<u64>,
    /// 3: seconds from submission to start.
    pub wait_s: Option<u64>,
    /// 4: seconds from start to end.
    pub run_s: Option<u64>,
    /// 5: what it got.
    pub allocated_cores: Option<u64>,
    /// 6: seconds, averaged over its cores and rounded.
    pub average_cpu_s: Option<u64>,
    /// 7: in KiB for each core, on average.
    pub used_kib: Option<u64>,
    /// 8: what it asked for.
    pub requested_cores: Option<u64>,
    /// 9: seconds that it asked for.
    pub requested_s: Option<u64>,
    /// 10: in KiB for each core.
    pub requested_kib: Option<u64>,
    /// 11: what became of it.
    pub status: Status,
    /// 12.
    pub user: Option<u64>,
    /// 13.
    pub group: Option<u64>,
    /// 14: which program it ran.
    pub executable: Option<u64>,
    /// 15: 0 is for people who wait at a terminal.
    pub queue: Option<u64>,
    /// 16: which part of the cluster.
    pub partition: Option<u64>,
    /// 17: the number of a job that had to end before.
    pub preceding: Option<u64>,
    /// 18: seconds from that one's end to this one's submission.
    pub think_s: Option<u64>,
}

/// Reason for which a line is not a job that can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoJob {
    /// The job was cancelled before it started.
    Cancelled,
    /// The line is a part of a job that another line covers completely.
    Part,
    /// Submission, run time or number of cores is unknown, or the job used no cores.
    Unknown,
}

impl Record {
    pub(super) fn of_numbers(numbers: &[i64; FIELDS]) -> Result<Self, String> {
        let known = |field: usize| u64::try_from(numbers[field - 1]).ok();
        let status = numbers[10];
        Ok(Self {
            number: known(1),
            submit_s: known(2),
            wait_s: known(3),
            run_s: known(4),
            allocated_cores: known(5),
            average_cpu_s: known(6),
            used_kib: known(7),
            requested_cores: known(8),
            requested_s: known(9),
            requested_kib: known(10),
            status: Status::of_number(status).ok_or_else(|| {
                format!("field 11 (status) is {status}; write −1 or one of 0 to 5")
            })?,
            user: known(12),
            group: known(13),
            executable: known(14),
            queue: known(15),
            partition: known(16),
            preceding: known(17),
            think_s: known(18),
        })
    }

    /// Converts the line to a job that can be replayed. Some traces of the archive have
    /// contradictory or missing fields:
    ///
    /// - The job takes the allocated cores. If these are unknown, it takes the requested cores.
    /// - The requested time is the run time, if the former is unknown.
    /// - The job takes the requested memory. If this is unknown, it takes the used memory.
    ///
    /// # Errors
    ///
    /// Reason for which the line can't be replayed.
    pub fn job(&self) -> Result<TraceJob, NoJob> {
        if self.status.is_part() {
            return Err(NoJob::Part);
        }
        let run_s = self.run_s.unwrap_or(0);
        if self.status == Status::Cancelled && run_s == 0 {
            return Err(NoJob::Cancelled);
        }
        let positive = |field: Option<u64>| field.filter(|&number| number > 0);
        let cores = positive(self.allocated_cores).or(positive(self.requested_cores));
        let (Some(submit_s), Some(_), Some(cores)) = (self.submit_s, self.run_s, cores) else {
            return Err(NoJob::Unknown);
        };
        // Of less than a second that it ran, traces say 0.
        let run_s = run_s.max(1);
        let kib = positive(self.requested_kib).or(positive(self.used_kib));
        Ok(TraceJob {
            number: self.number.unwrap_or(0),
            submit_s,
            run_s,
            requested_s: positive(self.requested_s).unwrap_or(run_s),
            cores,
            memory_bytes: kib.map(|kib| (kib * KIB).saturating_mul(cores)),
            user: self.user.unwrap_or(0),
            group: self.group.unwrap_or(0),
            application: self.executable,
            deadline_s: None,
            preceding: positive(self.preceding),
            think_s: self.think_s.unwrap_or(0),
            status: self.status,
        })
    }

    /// Builds the line for a job with its outcome. A killed job has failed, and a job that never
    /// started was cancelled. Any other job has the status of its trace, if that is known.
    pub fn of(job: &TraceJob, outcome: Option<&Outcome>) -> Self {
        let start_s = outcome.and_then(|outcome| outcome.start_s);
        let has_run = outcome.is_none_or(|outcome| outcome.start_s.is_some());
        let run_s = match outcome {
            None => job.run_s,
            Some(_) => job.occupies_s(),
        };
        Self {
            number: Some(job.number),
            submit_s: Some(job.submit_s),
            wait_s: start_s.map(|start_s| start_s.saturating_sub(job.submit_s)),
            run_s: has_run.then_some(run_s),
            allocated_cores: has_run.then_some(job.cores),
            requested_cores: Some(job.cores),
            requested_s: Some(job.requested_s),
            requested_kib: job.memory_bytes.map(|bytes| bytes.div_ceil(KIB * job.cores.max(1))),
            status: match outcome {
                None => job.status,
                Some(outcome) if outcome.start_s.is_none() => Status::Cancelled,
                Some(outcome) if outcome.killed => Status::Failed,
                // What failed or was cancelled while it ran did so here, too.
                Some(_) if job.status == Status::Unknown => Status::Completed,
                Some(_) => job.status,
            },
            user: Some(job.user),
            group: Some(job.group),
            executable: job.application,
            preceding: job.preceding,
            think_s: job.preceding.map(|_| job.think_s),
            ..Self::default()
        }
    }

    /// Returns the line with the outcome of its job in a replay. All fields that no replay changes
    /// stay as they were read; what was unknown stays unknown.
    pub fn replayed(&self, job: &TraceJob, outcome: &Outcome) -> Self {
        let of = Self::of(job, Some(outcome));
        let is_unknown = self.status == Status::Unknown && of.status == Status::Completed;
        Self {
            submit_s: of.submit_s,
            wait_s: of.wait_s,
            run_s: of.run_s,
            allocated_cores: of.allocated_cores,
            status: if is_unknown { self.status } else { of.status },
            ..*self
        }
    }
}

/// Formats the line as in a file: 18 numbers separated by spaces.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = [
            self.number,
            self.submit_s,
            self.wait_s,
            self.run_s,
            self.allocated_cores,
            self.average_cpu_s,
            self.used_kib,
            self.requested_cores,
            self.requested_s,
            self.requested_kib,
        ];
        let after = [
            self.user,
            self.group,
            self.executable,
            self.queue,
            self.partition,
            self.preceding,
            self.think_s,
        ];
        for field in before {
            number(f, field)?;
            f.write_str(" ")?;
        }
        write!(f, "{}", self.status.number())?;
        for field in after {
            f.write_str(" ")?;
            number(f, field)?;
        }
        Ok(())
    }
}

fn number(f: &mut fmt::Formatter<'_>, field: Option<u64>) -> fmt::Result {
    match field {
        Some(number) => write!(f, "{number}"),
        None => f.write_str("-1"),
    }
}
