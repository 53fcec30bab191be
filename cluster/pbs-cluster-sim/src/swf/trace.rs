// SPDX-License-Identifier: GPL-2.0
//! All of a file as a trace.

use std::io::BufRead;

use super::{Error, Header, NoJob, Reader, Stop};
use crate::TraceJob;

/// Maximum number of wrong lines that are reported.
const TOLD: usize = 12;

/// A trace as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Header comments that describe the cluster.
    pub header: Header,
    /// In the order of submission; those that come at the same time, in that of the file.
    pub jobs: Vec<TraceJob>,
    /// Number of lines that are not jobs that can be replayed.
    pub left_out: LeftOut,
}

/// Number of lines that are not jobs that can be replayed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Taken back before they started.
    pub cancelled: u64,
    /// Parts of a job that another line has all of.
    pub parts: u64,
    /// Jobs whose submission, run time or number of cores is unknown.
    pub unknown: u64,
}

impl LeftOut {
    /// Returns the number of all such lines.
    pub fn total(&self) -> u64 {
        self.cancelled + self.parts + self.unknown
    }
}

/// Reads all jobs that can be replayed. A line that is wrong is no reason not to read on:
/// all are counted, and the first dozen told.
///
/// # Errors
///
/// The file fails, or has wrong lines.
pub fn read(from: impl BufRead) -> Result<Trace, Error> {
    let mut trace = Trace::default();
    let mut problems = Vec::new();
    let mut wrong = 0;
    let mut reader = Reader::new(from);
    for record in &mut reader {
        let left_out = &mut trace.left_out;
        match record.map(|record| record.job()) {
            Ok(Ok(job)) => trace.jobs.push(job),
            Ok(Err(NoJob::Cancelled)) => left_out.cancelled += 1,
            Ok(Err(NoJob::Part)) => left_out.parts += 1,
            Ok(Err(NoJob::Unknown)) => left_out.unknown += 1,
            Err(Stop::Io(error)) => return Err(Error::Io(error)),
            Err(Stop::Line(problem)) => {
                wrong += 1;
                if problems.len() < TOLD {
                    problems.push(problem);
                }
            }
        }
    }
    if wrong > 0 {
        return Err(Error::Lines(problems, wrong));
    }
    trace.header = reader.into_header();
    trace.jobs.sort_by_key(|job| job.submit_s);
    Ok(trace)
}
