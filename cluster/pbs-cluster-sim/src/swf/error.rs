// SPDX-License-Identifier: GPL-2.0
//! Errors of reading a file.

use std::fmt;
use std::io;

/// A line that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub line: u64,
    /// Description of the problem and of its correction.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Problem that a [`Reader`](super::Reader) meets. After a wrong line it continues with the next;
/// after a failure of the file it has ended.
#[derive(Debug)]
pub enum Stop {
    /// The file failed.
    Io(io::Error),
    /// A line is wrong.
    Line(Problem),
    /// A line has a number that no job has, such as a negative time.
    Impossible(Problem),
}

/// Reason for which a trace can't be read.
#[derive(Debug)]
pub enum Error {
    /// The file failed.
    Io(io::Error),
    /// The first dozen lines that are wrong, and how many there are in all.
    Lines(Vec<Problem>, usize),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Line(problem) | Self::Impossible(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for Stop {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Lines(problems, count) => {
                for (index, problem) in problems.iter().enumerate() {
                    let end = if index > 0 { "\n" } else { "" };
                    write!(f, "{end}{problem}")?;
                }
                match count.saturating_sub(problems.len()) {
                    0 => Ok(()),
                    more => write!(f, "\nand {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for Error {}
