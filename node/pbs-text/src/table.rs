// SPDX-License-Identifier: GPL-2.0
//! Tables for the terminal and for the documentation.

use crate::{append, escaped, shown};

/// Format in which tables are printed.
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
        Self { titles: titles.iter().map(ToString::to_string).collect(), rows: Vec::new(), left }
    }

    /// Adds a row, with a cell for each title.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The table in HTML.
    pub fn html(&self) -> String {
        let mut out = String::from("<table>\n");
        for (rows, cell) in [(std::slice::from_ref(&self.titles), "th"), (&self.rows[..], "td")] {
            for row in rows {
                out.push_str("<tr>");
                for (column, text) in row.iter().enumerate() {
                    let class = if column < self.left { "" } else { " class=\"number\"" };
                    append!(out, "<{cell}{class}>{}</{cell}>", escaped(text));
                }
                out.push_str("</tr>\n");
            }
        }
        out + "</table>\n"
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

/// Rows as aligned columns; the first `left` columns to the left, the others
/// to the right.
///
/// A cell is on one line, whatever its text is ([`shown`]).
pub fn columns(rows: &[Vec<String>], left: usize) -> String {
    let rows = rows.iter().map(|row| row.iter().map(|cell| shown(cell)).collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            if column > 0 {
                line.push_str("  ");
            }
            if column < left {
                append!(line, "{cell:<width$}");
            } else {
                append!(line, "{cell:>width$}");
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
