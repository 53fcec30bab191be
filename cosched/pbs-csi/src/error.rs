// SPDX-License-Identifier: GPL-2.0
//! What can go wrong, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the shared memory could not be used. None of these harms the process: it goes on
/// without co-scheduling.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    Io {
        /// Which file, or what of the system.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is truncated, foreign, of another layout or another boot, or its content
    /// can't be.
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else than those whom we share with may write the file.
    NotTrusted {
        /// Which.
        path: PathBuf,
        /// Who or what.
        why: String,
    },
    /// The lock was not to be had in the time that there was.
    Locked {
        /// Which file.
        path: PathBuf,
        /// Who holds it as the file says; 0: it does not say.
        holder_pid: u32,
    },
    /// There is no room for so much.
    Full {
        /// What there is too much of.
        what: &'static str,
        /// Most that there may be.
        capacity: usize,
    },
    /// A device has the name of another that is not the same.
    DeviceDiffers {
        /// Its name.
        name: String,
        /// What differs.
        why: String,
    },
    /// Another has taken the part of the master meanwhile; the result is void.
    Superseded,
    /// A process that was forked uses what its parent opened.
    Forked,
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::Io { path: path.into(), error }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), why: why.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Damaged { path, why } => {
                write!(f, "{}: {why}; remove it with: pbsctl csi clean --force", path.display())
            }
            Self::NotTrusted { path, why } => write!(
                f,
                "{}: {why}; have its owner remove it, or name another directory",
                path.display()
            ),
            Self::Locked { path, holder_pid } => {
                write!(f, "{}: the lock was not released in time", path.display())?;
                match holder_pid {
                    0 => Ok(()),
                    pid => write!(f, "; process {pid} seems to hold it: is it stopped?"),
                }
            }
            Self::Full { what, capacity } => {
                write!(f, "more than {capacity} {what} have no room in shared memory")
            }
            Self::DeviceDiffers { name, why } => write!(
                f,
                "device {name} is another than that of the running processes: {why}; \
                 use the same machine file, or another name"
            ),
            Self::Superseded => write!(
                f,
                "one process after the other becomes master, and none has a result: see \
                 pbsctl csi list"
            ),
            Self::Forked => write!(
                f,
                "this was opened before the process was forked; open it anew in the child"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
