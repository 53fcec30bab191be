// SPDX-License-Identifier: GPL-2.0
//! Errors of the shared memory, with their remedies.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reason for which the shared memory could not be used. No error harms the process: it continues
/// without co-scheduling.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    Io {
        /// File, or part of the system.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The file is truncated, foreign, of another layout or another boot, or its content
    /// can't be.
    Damaged {
        /// Damaged file.
        path: PathBuf,
        /// Description of the damage.
        why: String,
    },
    /// Somebody else than those whom we share with may write the file.
    NotTrusted {
        /// File that is not trusted.
        path: PathBuf,
        /// User or property that is not trusted.
        why: String,
    },
    /// The lock was not to be had in the time that there was.
    Locked {
        /// Locked file.
        path: PathBuf,
        /// Holder of the lock according to the file; 0: the file names none.
        holder_pid: u32,
    },
    /// The capacity is exceeded.
    Full {
        /// Kind of the items that exceed the capacity.
        what: &'static str,
        /// Most that there may be.
        capacity: usize,
    },
    /// A device has the name of another that is not the same.
    DeviceDiffers {
        /// Name of the device.
        name: String,
        /// Description of the difference.
        why: String,
    },
    /// Another process has become master meanwhile; the result is void.
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
                write!(
                    f,
                    "{}: {why}; remove it with: pbsctl cosched csi clean --force",
                    path.display()
                )
            }
            Self::NotTrusted { path, why } => write!(
                f,
                "{}: {why}; ask its owner to remove it, or name another directory",
                path.display()
            ),
            Self::Locked { path, holder_pid } => {
                write!(f, "{}: the lock was not released in time", path.display())?;
                match holder_pid {
                    0 => Ok(()),
                    pid => {
                        write!(f, "; process {pid} seems to hold it; continue or end that process")
                    }
                }
            }
            Self::Full { what, capacity } => {
                write!(f, "there is no room in shared memory for more than {capacity} {what}")
            }
            Self::DeviceDiffers { name, why } => write!(
                f,
                "device {name} differs from the one of the running processes: {why}; use the same \
                 machine file, or another name"
            ),
            Self::Superseded => write!(
                f,
                "one process after the other becomes master, and none has a result: see \
                 pbsctl cosched csi list"
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
