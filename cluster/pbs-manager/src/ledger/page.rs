// SPDX-License-Identifier: GPL-2.0
//! Parts of a long list of requests.

use crate::ledger::row::Row;

/// Size of a part of a list. A row that exceeds the bytes is the last of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Greatest number of rows.
    pub rows: usize,
    /// Bytes of rows, about, after which no other one is added.
    pub bytes: usize,
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paged {
    /// Requests in the order of their numbers.
    pub rows: Vec<Row>,
    /// Whether no other requests follow.
    pub is_last: bool,
}

impl Page {
    /// Whether a part with so many rows and bytes has no room for another row.
    pub(crate) fn is_full(&self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows || bytes >= self.bytes
    }
}
