// SPDX-License-Identifier: GPL-2.0
//! The Standard Workload Format, version 2.2: a line for each job with 18 numbers, of which
//! −1 is unknown (Chapin et al. 1999; Parallel Workloads Archive).

use std::fmt;
use std::io::{self, BufRead, Write};

use crate::{Outcome, TraceJob};

/// A line that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Why a trace can't be read.
#[derive(Debug)]
pub enum Error {
    /// The file.
    Io(io::Error),
    /// Its lines: the first dozen that are wrong, and how many there are.
    Lines(Vec<Problem>, usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Lines(problems, count) => {
                for problem in problems {
                    writeln!(f, "{problem}")?;
                }
                match count - problems.len() {
                    0 => Ok(()),
                    more => writeln!(f, "and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for Error {}

/// A trace as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In the order of submission.
    pub jobs: Vec<TraceJob>,
    /// `MaxProcs` of the header.
    pub max_cores: Option<u64>,
    /// `UnixStartTime` of the header.
    pub unix_start_s: Option<u64>,
    /// Jobs left out: they never started, or took no core or no time.
    pub left_out: usize,
}

const FIELDS: usize = 18;
const SHOWN: usize = 12;

/// Reads a trace. Jobs that were cancelled before they started are left out.
///
/// # Errors
///
/// What can't be read, by line.
pub fn read(reader: impl BufRead) -> Result<Trace, Error> {
    let mut trace = Trace::default();
    let mut problems = Vec::new();
    let mut wrong = 0;
    for (index, line) in reader.lines().enumerate() {
        let line = line.map_err(Error::Io)?;
        let text = line.trim();
        if let Some(comment) = text.strip_prefix(';') {
            header(&mut trace, comment);
        } else if !text.is_empty() {
            match job(text) {
                Ok(Some(job)) => trace.jobs.push(job),
                Ok(None) => trace.left_out += 1,
                Err(message) => {
                    wrong += 1;
                    if problems.len() < SHOWN {
                        problems.push(Problem {
                            line: index + 1,
                            message,
                        });
                    }
                }
            }
        }
    }
    if wrong > 0 {
        return Err(Error::Lines(problems, wrong));
    }
    trace.jobs.sort_by_key(|job| job.submit_s);
    Ok(trace)
}

fn header(trace: &mut Trace, comment: &str) {
    let Some((key, value)) = comment.split_once(':') else {
        return;
    };
    let number = value.split_whitespace().next().and_then(|text| text.parse().ok());
    match key.trim() {
        "MaxProcs" => trace.max_cores = number,
        "UnixStartTime" => trace.unix_start_s = number,
        _ => {}
    }
}

/// One line; `None`: no job that ran.
fn job(text: &str) -> Result<Option<TraceJob>, String> {
    let mut fields = [-1i64; FIELDS];
    let mut count = 0;
    for word in text.split_whitespace() {
        let Some(field) = fields.get_mut(count) else {
            return Err(format!("more than {FIELDS} fields"));
        };
        count += 1;
        // Some archives have fractions of seconds.
        let number: f64 = word
            .parse()
            .map_err(|_| format!("field {count} is {word:?}; write a number, -1 if it is unknown"))?;
        *field = number as i64;
    }
    if count < FIELDS {
        return Err(format!("{count} fields of {FIELDS}; write -1 for what is unknown"));
    }
    let known = |at: usize| u64::try_from(fields[at]).ok();
    let submit_s = known(1).ok_or("a job without a time of submission")?;
    let run_s = known(3).unwrap_or(0);
    let cores = known(4).filter(|&cores| cores > 0).or(known(7)).unwrap_or(0);
    const CANCELLED: i64 = 5;
    if cores == 0 || run_s == 0 && fields[10] == CANCELLED {
        return Ok(None);
    }
    Ok(Some(TraceJob {
        number: known(0).unwrap_or(0),
        submit_s,
        run_s: run_s.max(1),
        requested_s: known(8).filter(|&of| of > 0).unwrap_or(run_s).max(1),
        cores,
        user: known(11).unwrap_or(0),
        group: known(12).unwrap_or(0),
    }))
}

/// Writes a trace, with what became of it if that is known.
///
/// # Errors
///
/// Those of the writer.
pub fn write(
    mut to: impl Write,
    jobs: &[TraceJob],
    outcomes: Option<&[Outcome]>,
    max_cores: u64,
) -> io::Result<()> {
    writeln!(to, "; Version: 2.2")?;
    writeln!(to, "; MaxProcs: {max_cores}")?;
    for (index, job) in jobs.iter().enumerate() {
        let start_s = outcomes.and_then(|of| of.get(index)?.start_s);
        let wait_s = start_s.map_or(-1, |start_s| (start_s - job.submit_s) as i64);
        let run_s = job.run_s.min(job.requested_s);
        writeln!(
            to,
            "{} {} {wait_s} {run_s} {} -1 -1 {} {} -1 1 {} {} -1 -1 -1 -1 -1",
            job.number, job.submit_s, job.cores, job.cores, job.requested_s, job.user, job.group
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let jobs = crate::workload::oculus(500, 1000, 3);
        let mut text = Vec::new();
        write(&mut text, &jobs, None, 64).unwrap();
        let trace = read(&text[..]).unwrap();
        assert_eq!((trace.jobs, trace.max_cores), (jobs, Some(64)));
    }

    #[test]
    fn bad_lines_are_told_a_dozen_at_most() {
        let text = "1 2 three\n".repeat(20);
        let Err(Error::Lines(problems, count)) = read(text.as_bytes()) else {
            panic!("it was read");
        };
        assert_eq!((problems.len(), count), (12, 20));
        assert!(problems[0].message.contains("field 3"), "{}", problems[0]);
    }

    #[test]
    fn who_never_started_is_left_out() {
        let text = "1 0 -1 -1 4 -1 -1 4 60 -1 5 1 1 -1 -1 -1 -1 -1\n\
                    2 5 0 30 -1 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n";
        let trace = read(text.as_bytes()).unwrap();
        assert_eq!((trace.jobs.len(), trace.left_out), (1, 1));
        assert_eq!((trace.jobs[0].cores, trace.jobs[0].requested_s), (4, 60));
    }
}
