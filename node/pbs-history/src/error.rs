// SPDX-License-Identifier: GPL-2.0
//! Errors of the file, and their remedies.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::{RunId, State};

/// Reason for which the history did not fulfil a request. The file is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file does not exist, and was to be opened for reading only.
    Missing(PathBuf),
    /// The file could not be opened or made; why.
    CannotOpen(PathBuf, String),
    /// The file is something else.
    NotHistory(PathBuf),
    /// A newer pbsctl wrote it; its version, and the one that is known.
    Newer(PathBuf, i64, i64),
    /// The file is damaged; where.
    Damaged(PathBuf, String),
    /// The file cannot be read.
    Unreadable(PathBuf),
    /// The file or its directory cannot be written.
    ReadOnly(PathBuf),
    /// The disk is full.
    Full(PathBuf),
    /// Somebody else is writing, for longer than one waits.
    Busy(PathBuf),
    /// Another planner has the file; its process id.
    Planner(PathBuf, u32),
    /// Anything else that the disk or the database says.
    Failed(PathBuf, String),
    /// No run has that number.
    NoRun(RunId),
    /// The run is not in a state in which that can be done.
    WrongState(RunId, State),
    /// A figure is larger than can be kept; which.
    TooLarge(String),
    /// A figure stands twice in a run; which.
    Twice(String),
    /// A number of the configuration is out of its range; which, and the range.
    Config(&'static str, u64, u64),
}

impl Error {
    /// Translates an error of SQLite.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let text = error.to_string();
        match error {
            rusqlite::Error::SqliteFailure(cause, _) => match cause.code {
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy(path),
                ErrorCode::DatabaseCorrupt | ErrorCode::ConstraintViolation => {
                    Self::Damaged(path, text)
                }
                ErrorCode::NotADatabase => Self::NotHistory(path),
                // The journal beside the file could not be made.
                ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                    Self::ReadOnly(path)
                }
                ErrorCode::DiskFull => Self::Full(path),
                _ => Self::Failed(path, text),
            },
            // Where a value is not of the type that it was written with.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::Utf8Error(..) => Self::Damaged(path, text),
            _ => Self::Failed(path, text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "{}: there is no history yet; the first run creates it, or name another file",
                path.display()
            ),
            Self::CannotOpen(path, why) => write!(f, "{}: {why}", path.display()),
            Self::NotHistory(path) => write!(
                f,
                "{}: this is not a history of pbsctl, or its beginning is damaged; name another \
                 file, or move it away to start a new one",
                path.display()
            ),
            Self::Newer(path, found, known) => write!(
                f,
                "{}: a newer pbsctl wrote it (version {found}, and this one knows {known}); use \
                 that pbsctl, or name another file",
                path.display()
            ),
            Self::Damaged(path, what) => write!(
                f,
                "{}: the history is damaged ({what}); nothing was changed. Restore a copy of it, \
                 or move it away to start a new one",
                path.display()
            ),
            Self::Unreadable(path) => write!(
                f,
                "{}: cannot be read; ask its owner, or name another file",
                path.display()
            ),
            Self::ReadOnly(path) => write!(
                f,
                "{}: cannot be written; the file and its directory must be writable for you",
                path.display()
            ),
            Self::Full(path) => write!(
                f,
                "{}: the disk is full; nothing was recorded. Make room and try again",
                path.display()
            ),
            Self::Busy(path) => write!(
                f,
                "{}: another process is using it; try again when it is done",
                path.display()
            ),
            Self::Planner(path, pid) => write!(
                f,
                "{}: process {pid} plans this node with it, and only one planner may. If that is the \
                 service pbsd, submit jobs to it with pbsctl job submit; otherwise wait for the \
                 process, or end it",
                path.display()
            ),
            Self::Failed(path, what) => write!(
                f,
                "{}: {what}; nothing was recorded. See that the disk works and has room, and \
                 try again",
                path.display()
            ),
            Self::NoRun(run) => {
                write!(f, "there is no run {run}; pbsctl job history lists the runs")
            }
            Self::WrongState(run, state) => {
                write!(f, "run {run} is {state}, and its record can no longer be changed")
            }
            Self::TooLarge(what) => {
                write!(f, "{what} is too large; at most {} can be stored", i64::MAX)
            }
            Self::Twice(what) => write!(f, "{what} is recorded twice in one run"),
            Self::Config(name, low, high) => {
                write!(f, "{name} must be {low} to {high}")
            }
        }
    }
}

impl std::error::Error for Error {}
