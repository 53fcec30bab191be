// SPDX-License-Identifier: GPL-2.0
//! Opening the file.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::schema::{self, FileContent};
use crate::Error;

/// Whether the file is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// For writing; the file is created if it does not exist.
    Write,
    Read,
}

/// The least page that SQLite has.
const LEAST_BYTES: u64 = 512;

/// Opens the file. One that is to be written is seen to be whole first: nothing is written to a file
/// that is not ours or is damaged. Who only reads keeps nobody from writing for so long, and finds
/// damage in what is read. A new file is for its user alone: a service writes environments to it,
/// whoever makes it.
pub(crate) fn open(path: &Path, access: Access, wait: Duration) -> Result<Connection, Error> {
    if !look(path)? {
        match access {
            Access::Read => return Err(Error::Missing(path.into())),
            Access::Write => {
                look_for_directory(path)?;
                make(path)?;
            }
        }
    }
    let flags = match access {
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
    } | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let failed = |error: rusqlite::Error| Error::sqlite(path, &error);
    let opened = Connection::open_with_flags(path, flags).map_err(failed);
    let mut connection = opened.map_err(|error| match error {
        Error::ReadOnly(path) if access == Access::Read => Error::Unreadable(path),
        other => other,
    })?;
    connection.busy_timeout(wait).map_err(failed)?;
    // A transaction that was told to be there survives a loss of power, too.
    for (name, value) in [("foreign_keys", "ON"), ("synchronous", "EXTRA")] {
        connection.pragma_update(None, name, value).map_err(failed)?;
    }
    match (schema::identify(path, &connection)?, access) {
        (is @ FileContent::History(_), access) => {
            if access == Access::Write {
                schema::verify(path, &connection)?;
            }
            schema::has_tables(path, &connection, is)?;
            match access {
                _ if is == FileContent::CURRENT => {}
                Access::Read => schema::pretend(path, &connection, is)?,
                Access::Write => schema::create(path, &mut connection)?,
            }
        }
        (FileContent::Empty, Access::Read) => return Err(Error::Missing(path.into())),
        (FileContent::Empty, Access::Write) => schema::create(path, &mut connection)?,
    }
    // SQLite opens a file that may not be written all the same.
    if access == Access::Write && connection.is_readonly("main").map_err(failed)? {
        return Err(Error::ReadOnly(path.into()));
    }
    Ok(connection)
}

/// Whether the file is there; says what SQLite would not.
fn look(path: &Path) -> Result<bool, Error> {
    match path.metadata() {
        // SQLite takes a file that is shorter than its header for a new one.
        Ok(file) if file.is_file() && (1..LEAST_BYTES).contains(&file.len()) => {
            Err(Error::NotHistory(path.into()))
        }
        Ok(file) if file.is_file() => Ok(true),
        Ok(_) => Err(cannot_open(path, "this is not a file; name one".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(cannot_open(path, error.to_string())),
    }
}

/// Makes the file, unless somebody else just did.
fn make(path: &Path) -> Result<(), Error> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Err(Error::ReadOnly(path.into()))
            }
            io::ErrorKind::StorageFull => Err(Error::Full(path.into())),
            _ => Err(cannot_open(path, error.to_string())),
        },
    }
}

/// Whether a file can be made there.
fn look_for_directory(path: &Path) -> Result<(), Error> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if directory.is_dir() {
        return Ok(());
    }
    let directory = directory.display();
    let why = format!("there is no directory {directory}; make it first");
    Err(cannot_open(path, why))
}

fn cannot_open(path: &Path, why: String) -> Error {
    Error::CannotOpen(path.into(), why)
}
