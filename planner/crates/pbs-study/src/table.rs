// SPDX-License-Identifier: GPL-2.0
//! Tables for the terminal and for the documentation.

use pbs_report::columns;

use crate::Format;

/// Rows below a row of titles; the first `left` columns are words.
pub(crate) struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    pub(crate) fn new(titles: &[&str], left: usize) -> Self {
        Self {
            titles: titles.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
            left,
        }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) fn print(&self, format: Format) -> String {
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

/// `part` of `whole` in percent, to a tenth.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
