// SPDX-License-Identifier: GPL-2.0
//! Why a text could not be read.

use std::fmt;

/// What is wrong with a text, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The character it is about, counted from 1.
    pub column: usize,
    /// What is wrong and what would be right, in one line.
    pub message: String,
}

impl Error {
    pub(crate) fn new(column: usize, message: impl Into<String>) -> Self {
        Self { column, message: message.into() }
    }

    /// The same error in a text that begins so many characters further left.
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
