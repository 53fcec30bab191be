// SPDX-License-Identifier: GPL-2.0
//! Traces as files.

use std::io::{self, Write};

use super::{Header, Record};
use crate::{Outcome, TraceJob};

/// Writes a file job by job.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
}

impl<W: Write> Writer<W> {
    /// Begins a file with its header; `Version` is written first, whatever it says of that.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn new(mut to: W, header: &Header) -> io::Result<Self> {
        writeln!(to, "; Version: 2.2")?;
        for (name, value) in header.fields() {
            if !name.eq_ignore_ascii_case("Version") {
                writeln!(to, "; {name}: {value}")?;
            }
        }
        Ok(Self { to })
    }

    /// Writes a line.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        writeln!(self.to, "{record}")
    }

    /// Ends the file and gives it back.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Writes a trace of lines that have all their fields.
///
/// # Errors
///
/// Those of the file.
pub fn write_records(to: impl Write, header: &Header, records: &[Record]) -> io::Result<()> {
    let mut writer = Writer::new(to, header)?;
    records.iter().try_for_each(|record| writer.record(record))?;
    writer.finish().map(drop)
}

/// Writes the outcomes of a replay on a cluster of `cores`, with the header and all other fields of
/// the trace that was read. Records, jobs as they came and outcomes are in the same order.
///
/// # Errors
///
/// Errors of the file.
pub fn write_replayed(
    to: impl Write,
    header: &Header,
    records: &[Record],
    jobs: &[TraceJob],
    outcomes: &[Outcome],
    cores: u64,
) -> io::Result<()> {
    let mut written = sizes(jobs.len(), cores);
    let is_ours = |name: &str| ["MaxJobs", "MaxRecords", "MaxProcs"].contains(&name);
    for (name, value) in header.fields().filter(|(name, _)| !is_ours(name)) {
        written.push(name, value);
    }
    let mut writer = Writer::new(to, &written)?;
    for ((record, job), outcome) in records.iter().zip(jobs).zip(outcomes) {
        writer.record(&record.replayed(job, outcome))?;
    }
    writer.finish().map(drop)
}

fn sizes(jobs: usize, cores: u64) -> Header {
    let mut header = Header::default();
    header.push("MaxJobs", &jobs.to_string());
    header.push("MaxRecords", &jobs.to_string());
    header.push("MaxProcs", &cores.to_string());
    header
}

/// Writes a trace of a cluster of `cores`. With outcomes, which are in the order of the
/// trace, it is what was replayed: waits, run times as jobs had them, and what was killed.
///
/// # Errors
///
/// Those of the file.
pub fn write(
    to: impl Write,
    jobs: &[TraceJob],
    outcomes: Option<&[Outcome]>,
    cores: u64,
) -> io::Result<()> {
    let mut writer = Writer::new(to, &sizes(jobs.len(), cores))?;
    for (index, job) in jobs.iter().enumerate() {
        let outcome = outcomes.and_then(|outcomes| outcomes.get(index));
        writer.record(&Record::of(job, outcome))?;
    }
    writer.finish().map(drop)
}
