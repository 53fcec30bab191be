// SPDX-License-Identifier: GPL-2.0
//! Errors of the ledger's file, with their remedies.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Reason for which the ledger did not do its work. The file is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file does not exist.
    Missing(PathBuf),
    /// A ledger is to be made, and something is there already.
    Exists(PathBuf),
    /// The file is something else.
    NotLedger(PathBuf),
    /// A newer version wrote it: that version, and the one that is known.
    Newer(PathBuf, i64, i64),
    /// The file is damaged; where.
    Damaged(PathBuf, String),
    /// Somebody else has it, for longer than one waits.
    Busy(PathBuf),
    /// Another process carries the plan out.
    Served(PathBuf),
    /// The file or its directory can't be written.
    ReadOnly(PathBuf),
    /// The user may not read the file.
    Unreadable(PathBuf),
    /// The disk is full.
    Full(PathBuf),
    /// Anything else that the disk or the database says.
    Failed(PathBuf, String),
}

impl Error {
    /// Translates an error of a file that is to be written.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_path_buf();
        match error.kind() {
            ErrorKind::AlreadyExists => Self::Exists(path),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full(path),
            // An error of the system has no text of ours, which would have the remedy.
            ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                if error.raw_os_error().is_some() =>
            {
                Self::ReadOnly(path)
            }
            _ => Self::Failed(path, error.to_string()),
        }
    }

    /// Translates an error of a file that is to be read.
    pub(crate) fn unread(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            // A file that can't be seen is not missing.
            ErrorKind::PermissionDenied => Self::Unreadable(path.into()),
            _ => Self::Failed(path.into(), error.to_string()),
        }
    }

    /// Translates an error of SQLite.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let (path, text) = (path.to_path_buf(), error.to_string());
        let rusqlite::Error::SqliteFailure(cause, _) = error else {
            return Self::Damaged(path, text);
        };
        match cause.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy(path),
            ErrorCode::DatabaseCorrupt | ErrorCode::ConstraintViolation => {
                Self::Damaged(path, text)
            }
            ErrorCode::NotADatabase => Self::NotLedger(path),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                Self::ReadOnly(path)
            }
            ErrorCode::DiskFull => Self::Full(path),
            _ => Self::Failed(path, text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "{}: there is no such ledger; create one with pbsctl cluster new",
                path.display()
            ),
            Self::Exists(path) => {
                write!(f, "{}: the file exists; name another file, or remove it", path.display())
            }
            Self::NotLedger(path) => {
                write!(
                    f,
                    "{}: this is not a ledger of a cluster; name another file",
                    path.display()
                )
            }
            Self::Newer(path, version, known) => write!(
                f,
                "{}: a newer version wrote it ({version}; this one knows {known}); use that \
                 version",
                path.display()
            ),
            Self::Damaged(path, why) => {
                write!(f, "{}: the ledger is damaged ({why}); restore a copy of it", path.display())
            }
            Self::Busy(path) => {
                write!(
                    f,
                    "{}: another process has held it for a minute; stop the planner that has it \
                     (pbs-clusterd with its socket, or pbsctl cluster serve), or try again later",
                    path.display()
                )
            }
            Self::Served(path) => write!(
                f,
                "{}: another process carries out this ledger, by the clock of the machine; end it \
                 first",
                path.display()
            ),
            Self::ReadOnly(path) => {
                write!(
                    f,
                    "{}: the file or its directory can't be written; make both writable for you",
                    path.display()
                )
            }
            Self::Unreadable(path) => write!(
                f,
                "{}: Permission denied: its owner and its group may read this ledger; let an \
                 operator add you to that group; over Slurm, squeue --start shows planned starts \
                 to everybody, and scontrol show job the reason why a job waits",
                path.display()
            ),
            Self::Full(path) => {
                write!(
                    f,
                    "{}: the disk is full; nothing was changed; make room and try again",
                    path.display()
                )
            }
            Self::Failed(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
