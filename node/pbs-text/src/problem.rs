// SPDX-License-Identifier: GPL-2.0
//! Problems of a plan, with their place.

use std::fmt;
use std::num::NonZeroU32;

/// A line of the file a thing was read from.
pub type Line = Option<NonZeroU32>;

/// One thing that is wrong, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, `None` where it is about the whole.
    pub line: Line,
    /// Description of the problem, and what to write instead.
    pub message: String,
}

impl Problem {
    /// A problem at a line.
    pub fn at(line: Line, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }

    /// The problem as `file:line: message`.
    pub fn in_file<'a>(&'a self, file: &'a str) -> impl fmt::Display + 'a {
        InFile { file, problem: self }
    }
}

struct InFile<'a> {
    file: &'a str,
    problem: &'a Problem,
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem.message),
            None => write!(f, "{}: {}", self.file, self.problem.message),
        }
    }
}
