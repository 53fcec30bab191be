// SPDX-License-Identifier: GPL-2.0

//! Values that are read from the words of a snapshot.

use core::fmt;

use super::memory::NoMemory;
use super::words::{Saved, VERSION};

/// A value that is read from its words.
pub(super) trait Restored: Saved {
    /// Reads the value from the next words.
    fn load(from: &mut Words<'_>) -> Result<Self, SnapshotError>;
}

/// Reason why a node is not restored from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// The snapshot has another version.
    Version(u64),
    /// The snapshot is that of a plan with so many processes.
    OtherPlan(u64),
    /// The snapshot has more or fewer words than the plan needs.
    Length,
    /// The words differ from those that were saved.
    Changed,
    /// The word of that number has a value that does not exist.
    Value(usize),
    /// Parts of the state contradict each other.
    Contradiction(&'static str),
    /// There is no memory for the node.
    NoMemory,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Version(version) => write!(
                f,
                "the snapshot has version {version}, not {VERSION}; replay it with the pbsctl that \
                 recorded it"
            ),
            SnapshotError::OtherPlan(processes) => write!(
                f,
                "the snapshot is that of another plan: the number of its processes is {processes}"
            ),
            SnapshotError::Length => f.write_str("the snapshot is too long or too short"),
            SnapshotError::Changed => f.write_str("the snapshot was changed"),
            SnapshotError::Value(word) => {
                write!(
                    f,
                    "word {word} of the snapshot has a value that does not exist"
                )
            }
            SnapshotError::Contradiction(what) => {
                write!(f, "the snapshot contradicts itself: {what}")
            }
            SnapshotError::NoMemory => f.write_str("there is no memory for the node"),
        }
    }
}

impl core::error::Error for SnapshotError {}

/// The words of a snapshot that were not read yet.
pub(super) struct Words<'a> {
    words: &'a [u64],
    /// Number of words that were read.
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(words: &'a [u64]) -> Words<'a> {
        Words { words, at: 0 }
    }

    /// Whether all words were read.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.words.len()
    }

    pub(super) fn next(&mut self) -> Result<u64, SnapshotError> {
        let word = self.words.get(self.at).ok_or(SnapshotError::Length)?;
        self.at += 1;
        Ok(*word)
    }

    /// The refusal of the word that was read last.
    pub(super) fn refusal(&self) -> SnapshotError {
        SnapshotError::Value(self.at.saturating_sub(1))
    }
}

impl From<NoMemory> for SnapshotError {
    fn from(_: NoMemory) -> SnapshotError {
        SnapshotError::NoMemory
    }
}

impl Restored for u64 {
    fn load(from: &mut Words<'_>) -> Result<u64, SnapshotError> {
        from.next()
    }
}

impl Restored for i64 {
    fn load(from: &mut Words<'_>) -> Result<i64, SnapshotError> {
        Ok(from.next()?.cast_signed())
    }
}

impl Restored for u32 {
    fn load(from: &mut Words<'_>) -> Result<u32, SnapshotError> {
        u32::try_from(from.next()?).map_err(|_| from.refusal())
    }
}

impl Restored for u16 {
    fn load(from: &mut Words<'_>) -> Result<u16, SnapshotError> {
        u16::try_from(from.next()?).map_err(|_| from.refusal())
    }
}

impl Restored for bool {
    fn load(from: &mut Words<'_>) -> Result<bool, SnapshotError> {
        match from.next()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(from.refusal()),
        }
    }
}

impl<T: Restored> Restored for Option<T> {
    fn load(from: &mut Words<'_>) -> Result<Option<T>, SnapshotError> {
        if bool::load(from)? {
            T::load(from).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl<T: Restored, U: Restored> Restored for (T, U) {
    fn load(from: &mut Words<'_>) -> Result<(T, U), SnapshotError> {
        Ok((T::load(from)?, U::load(from)?))
    }
}
