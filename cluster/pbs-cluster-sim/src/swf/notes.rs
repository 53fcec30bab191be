// SPDX-License-Identifier: GPL-2.0
//! Lines of a trace that are left out, or read only in part.

use std::fmt;

use serde::Serialize;

/// Longest part of a line that a note shows.
const SHOWN: usize = 100;

/// Reason for a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The job was taken back before it started.
    Cancelled,
    /// The line is a part of a job that another line has all of.
    Part,
    /// Submission, run time or number of cores is unknown.
    Unknown,
    /// A number is one that no job has, such as a negative time.
    Impossible,
    /// The line has titles of columns, and is no comment.
    Titles,
    /// The line has more than 18 columns; the others are not read.
    MoreColumns,
    /// The requested time is unknown; schedulers are told the run time instead.
    NoEstimate,
    /// The preceding job is not among the jobs before; the job comes at its own time.
    NoPredecessor,
}

impl Why {
    /// Whether lines are left out for this reason.
    pub fn is_left_out(self) -> bool {
        !matches!(self, Self::MoreColumns | Self::NoEstimate | Self::NoPredecessor)
    }

    fn text(self, is_one: bool) -> &'static str {
        let by_number = |one, many| if is_one { one } else { many };
        match self {
            Self::Cancelled => by_number(
                "line has a job that was cancelled before it started; left out",
                "lines have jobs that were cancelled before they started; left out",
            ),
            Self::Part => by_number(
                "line is a part of a job that another line has all of; left out",
                "lines are parts of jobs that other lines have all of; left out",
            ),
            Self::Unknown => by_number(
                "line lacks the submission, the run time or the cores; left out",
                "lines lack the submission, the run time or the cores; left out",
            ),
            Self::Impossible => by_number(
                "line has a number that no job has; left out",
                "lines have numbers that no job has; left out",
            ),
            Self::Titles => by_number(
                "line before the jobs is no comment; left out",
                "lines before the jobs are no comments; left out",
            ),
            Self::MoreColumns => by_number(
                "line has more than 18 columns; the others are not read",
                "lines have more than 18 columns; the others are not read",
            ),
            Self::NoEstimate => by_number(
                "job has no requested time; schedulers are told its run time instead",
                "jobs have no requested time; schedulers are told their run times instead",
            ),
            Self::NoPredecessor => by_number(
                "job names a preceding job that is not before it; it comes at its own time",
                "jobs name preceding jobs that are not before them; they come at their own times",
            ),
        }
    }
}

/// Lines with the same reason for a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The reason.
    pub why: Why,
    /// Number of lines.
    pub count: u64,
    /// First of these lines, counted from 1.
    pub line: u64,
    /// Description of that line, or its beginning.
    pub example: String,
}

/// Says how many lines there are, why, and which is the first.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = pbs_text::grouped(self.count);
        let text = self.why.text(self.count == 1);
        let first = if self.count == 1 { "" } else { "the first is " };
        write!(f, "{count} {text} ({first}line {}: {})", self.line, self.example)
    }
}

/// All notes on a trace, in the order of their first lines' reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// Returns the notes.
    pub fn iter(&self) -> std::slice::Iter<'_, Note> {
        self.0.iter()
    }

    /// Returns the number of lines that were left out.
    pub fn left_out(&self) -> u64 {
        self.0.iter().filter(|note| note.why.is_left_out()).map(|note| note.count).sum()
    }

    /// Returns the number of lines with a reason.
    pub fn count(&self, why: Why) -> u64 {
        self.0.iter().find(|note| note.why == why).map_or(0, |note| note.count)
    }

    /// Adds a line.
    pub(super) fn note(&mut self, why: Why, line: u64, example: &str) {
        match self.0.iter_mut().find(|note| note.why == why) {
            Some(note) => note.count += 1,
            None => {
                let mut shown: String = example.chars().take(SHOWN).collect();
                if shown.len() < example.len() {
                    shown += "…";
                }
                self.0.push(Note { why, count: 1, line, example: shown });
            }
        }
    }

    /// Adds all notes of others.
    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }
}
