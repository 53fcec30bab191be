// SPDX-License-Identifier: GPL-2.0
//! Why a file can't be read.

use std::fmt;
use std::io;

/// A line that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub line: u64,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// What a [`Reader`](super::Reader) comes upon. After a wrong line it goes on with the next,
/// after the file failed it has ended.
#[derive(Debug)]
pub enum Stop {
    /// The file failed.
    Io(io::Error),
    /// A line is wrong.
    Line(Problem),
}

/// Why a trace can't be read.
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
            Self::Line(problem) => problem.fmt(f),
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
