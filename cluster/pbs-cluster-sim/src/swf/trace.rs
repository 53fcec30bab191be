// SPDX-License-Identifier: GPL-2.0
//! All of a file as a trace.

use std::io::BufRead;

use super::notes::{Notes, Why};
use super::{Error, Header, NoJob, Reader, Record, Stop};
use crate::preceding::predecessors;
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
    /// Lines of the jobs, with all their fields.
    pub records: Vec<Record>,
    /// Lines that are left out, or read only in part.
    pub notes: Notes,
}

/// Reads all jobs that can be replayed. Lines without such a job, and lines with numbers that no
/// job has, are left out and noted.
///
/// # Errors
///
/// The file fails, or has lines that are none of the format: all are counted, and the first dozen
/// reported.
pub fn read(from: impl BufRead) -> Result<Trace, Error> {
    let mut lines: Vec<(TraceJob, Record, u64)> = Vec::new();
    let mut notes = Notes::default();
    let mut problems = Vec::new();
    let mut wrong = 0;
    let mut reader = Reader::new(from);
    while let Some(record) = reader.next() {
        let line = reader.line();
        match record {
            Ok(record) => match record.job() {
                Ok(job) => {
                    if record.requested_s.is_none_or(|requested_s| requested_s == 0) {
                        notes.note(Why::NoEstimate, line, &record.to_string());
                    }
                    lines.push((job, record, line));
                }
                Err(no_job) => notes.note(why(no_job), line, &record.to_string()),
            },
            Err(Stop::Io(error)) => return Err(Error::Io(error)),
            Err(Stop::Impossible(problem)) => {
                notes.note(Why::Impossible, problem.line, &problem.message);
            }
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
    notes.extend(reader.notes());
    lines.sort_by_key(|(job, _, _)| job.submit_s);
    let jobs: Vec<TraceJob> = lines.iter().map(|(job, _, _)| *job).collect();
    for ((job, record, line), predecessor) in lines.iter().zip(predecessors(&jobs)) {
        if job.preceding.is_some() && predecessor.is_none() {
            notes.note(Why::NoPredecessor, *line, &record.to_string());
        }
    }
    let records = lines.into_iter().map(|(_, record, _)| record).collect();
    Ok(Trace { header: reader.into_header(), jobs, records, notes })
}

fn why(no_job: NoJob) -> Why {
    match no_job {
        NoJob::Cancelled => Why::Cancelled,
        NoJob::Part => Why::Part,
        NoJob::Unknown => Why::Unknown,
    }
}
