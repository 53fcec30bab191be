// SPDX-License-Identifier: GPL-2.0
//! Error of reading a text.

use std::fmt;

/// Error in a text: description, place and correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The character it is about, counted from 1.
    pub column: usize,
    /// Description of the error and of its correction, in one line.
    pub message: String,
}

impl Error {
    pub(crate) fn new(column: usize, message: impl Into<String>) -> Self {
        Self { column, message: message.into() }
    }

    /// Moves the error to the right by that many characters, for a text that begins further left.
    pub(crate) fn after(mut self, characters: usize) -> Self {
        self.column += characters;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for Error {}
