// SPDX-License-Identifier: GPL-2.0
//! Files of columns that semicolons separate, below a line with their names.

use std::num::NonZeroU32;

use pbs_text::reader::closest;
use pbs_text::{Line, Problem, Problems};

use super::{number, UNIT_NS};
use crate::MAX_NS;

/// The rows of a file with `N` columns that are wanted.
pub(super) struct Columns<'t, const N: usize> {
    rows: Box<dyn Iterator<Item = (Line, &'t str)> + 't>,
    /// Index of each wanted column.
    places: [usize; N],
    /// Number of columns of the header.
    width: usize,
    problems: Problems,
}

/// The lines that are not empty.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (Line, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).map(NonZeroU32::new).zip(text.lines());
    lines.filter(|(_, line)| !line.trim().is_empty())
}

impl<'t, const N: usize> Columns<'t, N> {
    pub(super) fn new(text: &'t str, wanted: [&str; N]) -> Self {
        let mut rows = lines(text);
        let (line, header) = rows.next().unwrap_or((None, ""));
        let header: Vec<_> = header.split(';').map(str::trim).collect();
        let mut problems = Problems::default();
        let places = wanted.map(|name| {
            let place = header.iter().position(|&column| column == name);
            place.unwrap_or_else(|| {
                let close = closest(name, header.iter().copied());
                let close = close.filter(|close| !wanted.contains(close));
                let instead = match close {
                    Some(close) => format!("is {close} meant?"),
                    None => format!("the first line names them: {}", wanted.join(";")),
                };
                let message = format!("there is no column {name}; {instead}");
                problems.push(Problem::at(line, message));
                0
            })
        });
        Self {
            rows: if problems.is_empty() { Box::new(rows) } else { Box::new(std::iter::empty()) },
            places,
            width: header.len(),
            problems,
        }
    }

    /// The wanted columns of the next row that has as many as the header.
    pub(super) fn next_row(&mut self) -> Option<(Line, [&'t str; N])> {
        loop {
            let (line, row) = self.rows.next()?;
            let fields: Vec<_> = row.split(';').map(str::trim).collect();
            if fields.len() == self.width {
                return Some((line, self.places.map(|place| fields[place])));
            }
            let message = format!(
                "the line has {} columns, but the first line names {}",
                fields.len(),
                self.width
            );
            self.problem(line, message);
        }
    }

    pub(super) fn number(&mut self, line: Line, what: &str, text: &str) -> Option<u64> {
        let number = number(line, what, text);
        // The problem is noted, and the file is refused with all of them.
        number.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// A time in the prototype's units.
    pub(super) fn time(&mut self, line: Line, what: &str, text: &str) -> Option<u64> {
        let units = self.number(line, what, text)?;
        let ns = units.checked_mul(UNIT_NS).filter(|&ns| ns <= MAX_NS);
        if ns.is_none() {
            let most = MAX_NS / UNIT_NS;
            self.problem(line, format!("{what} is {units}; at most {most} are allowed"));
        }
        ns
    }

    pub(super) fn problem(&mut self, line: Line, message: impl Into<String>) {
        self.problems.add(line, || message.into());
    }

    /// Whether nothing was wrong so far.
    pub(super) fn is_content(&self) -> bool {
        self.problems.is_empty()
    }

    /// The first things that were wrong.
    pub(super) fn problems(self) -> Vec<Problem> {
        self.problems.into_vec()
    }
}
