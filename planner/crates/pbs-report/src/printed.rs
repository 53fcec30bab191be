// SPDX-License-Identifier: GPL-2.0
//! Tables for the terminal and for the documentation.

use crate::columns;

/// How tables are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For the terminal.
    Text,
    /// reStructuredText.
    Rst,
}

/// Rows below a row of titles; the first columns are words.
#[derive(Clone, Debug)]
pub struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    /// With no row yet; `left` columns are words and stand to the left.
    pub fn new(titles: &[&str], left: usize) -> Self {
        Self {
            titles: titles.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
            left,
        }
    }

    /// Adds a row, with a cell for each title.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The lines of the table.
    pub fn print(&self, format: Format) -> String {
        let rows: Vec<_> = std::iter::once(&self.titles).chain(&self.rows).collect();
        let rule: Vec<_> = (0..self.titles.len())
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                "=".repeat(cells.map(|cell| cell.chars().count()).max().unwrap_or(0))
            })
            .collect();
        let mut all: Vec<Vec<String>> = rows.into_iter().cloned().collect();
        if let Format::Rst = format {
            all.insert(1, rule.clone());
            all.insert(0, rule.clone());
            all.push(rule);
        }
        columns(&all, self.left)
    }
}
