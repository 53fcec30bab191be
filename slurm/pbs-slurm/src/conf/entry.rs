// SPDX-License-Identifier: GPL-2.0
//! Lines of Slurm's files, and errors that name them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// No configuration is longer; what is, is something else.
pub(crate) const MOST_FILE_BYTES: u64 = 8 << 20;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Reason why Slurm's files can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file.
    pub file: PathBuf,
    /// The line; none: the file itself can't be read.
    pub line: Option<usize>,
    /// The problem.
    pub message: String,
}

impl Error {
    pub(crate) fn at(place: &Place, message: impl Into<String>) -> Self {
        Self { file: place.file.clone(), line: Some(place.line), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            Some(line) => write!(f, "{file}:{line}: {}", self.message),
            None => write!(f, "{file}: {}", self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Value of a key, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value, without quotes.
    pub value: String,
    /// Place of the setting.
    pub place: Place,
}

/// A line that begins with `NodeName=`, `PartitionName=` or the like: its keys, in lower
/// case, belong together.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) place: Place,
}
