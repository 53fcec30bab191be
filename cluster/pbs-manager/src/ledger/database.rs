// SPDX-License-Identifier: GPL-2.0
//! The file: opening, reading, and one transaction for each operation.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{params, Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::ledger::error::Error;
use crate::ledger::row::{Event, NodeRow, Row, State};

/// `PBSC`, by which a file of ours is known.
const APPLICATION: i64 = 0x5042_5343;
/// The version of the tables.
const VERSION: i64 = 1;
/// Maximum time to wait for another process.
const WAIT: Duration = Duration::from_secs(10);
/// Interval at which a held lock is tried again.
const POLL: Duration = Duration::from_millis(20);

const TABLES: &str = "
CREATE TABLE site (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL,
	clock_s INTEGER NOT NULL, next_id INTEGER NOT NULL) STRICT;
CREATE TABLE request (id INTEGER PRIMARY KEY, is_open INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE INDEX request_open ON request (id) WHERE is_open;
CREATE TABLE node (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, request INTEGER, body TEXT NOT NULL) STRICT;
CREATE INDEX event_request ON event (request) WHERE request IS NOT NULL;
";

/// Whether the file is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Exclusive write access: no other process writes until the ledger is closed.
    Write,
    /// Read access to the current state, even while another process writes.
    Read,
}

/// Changes of an operation.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Requests as they stand now.
    pub rows: Vec<Row>,
    /// Nodes that are out of use now.
    pub nodes_out: Vec<NodeRow>,
    /// Nodes that are in use again, by name.
    pub nodes_back: Vec<String>,
    /// Events, in their order.
    pub events: Vec<Event>,
    /// Current time of the clock.
    pub clock_s: u64,
    /// The number of the next request.
    pub next_id: u64,
}

impl Changes {
    /// Whether there is nothing but the clock and the next number.
    pub fn is_empty(&self) -> bool {
        let nodes = self.nodes_out.len() + self.nodes_back.len();
        self.rows.len() + nodes + self.events.len() == 0
    }
}

/// The file.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Connection,
    /// Locked for as long as it is open to be written, or to be read as one that does not change.
    claim: Option<File>,
}

impl Ledger {
    /// Makes a new one.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if something is there, and what the disk says.
    pub fn create(path: &Path, site: &str, clock_s: u64) -> Result<Self, Error> {
        if path.exists() {
            return Err(Error::Exists(path.into()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut this = Self::connect(path, flags)?;
        this.transact(|all| {
            all.execute_batch(TABLES)?;
            all.execute("INSERT INTO site VALUES (1, ?1, ?2, 1)", params![site, signed(clock_s)])?;
            all.pragma_update(None, "application_id", APPLICATION)?;
            all.pragma_update(None, "user_version", VERSION)
        })?;
        this.claim(Access::Write)?;
        Ok(this)
    }

    /// Opens one that there is.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], [`Error::NotLedger`], [`Error::Newer`] and [`Error::Damaged`] of
    /// the file, [`Error::Busy`] if another process writes to it.
    pub fn open(path: &Path, access: Access) -> Result<Self, Error> {
        match std::fs::metadata(path) {
            Ok(of) if of.is_file() => {}
            Ok(_) => return Err(Error::NotLedger(path.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing(path.into()));
            }
            // A file that can't be seen is not missing.
            Err(error) => return Err(Error::Failed(path.into(), error.to_string())),
        }
        let mut this = match access {
            Access::Write => Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?,
            Access::Read => Self::connect_to_read(path)?,
        };
        let number =
            |name| this.done(this.connection.pragma_query_value(None, name, |row| row.get(0)));
        let (application, version): (i64, i64) =
            (number("application_id")?, number("user_version")?);
        if application != APPLICATION {
            return Err(Error::NotLedger(path.into()));
        }
        if version != VERSION {
            return Err(Error::Newer(path.into(), version, VERSION));
        }
        this.claim(access)?;
        Ok(this)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let failed = |error: rusqlite::Error| Error::sqlite(path, &error);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(WAIT).map_err(failed)?;
        Ok(Self { path: path.into(), connection, claim: None })
    }

    /// Connects a reader. SQLite makes files beside the ledger for a reader too; where it can't, a
    /// ledger that no process writes to is read as a file that does not change. A shared lock keeps
    /// writers away meanwhile.
    fn connect_to_read(path: &Path) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let this = Self::connect(path, flags)?;
        let number =
            this.connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
        let needs_files = number.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        if !matches!(needs_files, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
            return Ok(this);
        }
        let file = File::open(path).map_err(|error| this.failed(&error))?;
        let log = path.with_file_name(format!("{}-wal", file_name(path)));
        let is_free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let has_log = std::fs::metadata(&log).is_ok_and(|of| of.len() > 0);
        if !is_free || has_log {
            // The first attempt says what is wrong.
            return Ok(this);
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_URI;
        let mut this = Self { path: path.into(), ..Self::connect(&unchanging(path), flags)? };
        this.claim = Some(file);
        Ok(this)
    }

    /// Keeps other writers away for as long as the file is open: what is known of it is in
    /// memory, and must not become old.
    fn claim(&mut self, access: Access) -> Result<(), Error> {
        if access == Access::Read {
            return Ok(());
        }
        let file = File::open(&self.path).map_err(|error| self.failed(&error))?;
        let begun = Instant::now();
        // SQLite's own locks are of another kind: who reads goes on reading.
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK && error != Errno::INTR {
                return Err(self.failed(&error.into()));
            }
            if begun.elapsed() >= WAIT {
                return Err(Error::Busy(self.path.clone()));
            }
            sleep(POLL);
        }
        self.claim = Some(file);
        let all = &self.connection;
        let mode =
            all.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        self.done(mode)?;
        self.done(all.pragma_update(None, "synchronous", "FULL"))?;
        self.done(all.execute_batch("BEGIN IMMEDIATE; COMMIT"))?;
        let whole = all.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
        match self.done(whole)? {
            text if text == "ok" => Ok(()),
            text => Err(Error::Damaged(self.path.clone(), text)),
        }
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::Failed(self.path.clone(), error.to_string())
    }

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|error| Error::sqlite(&self.path, &error))
    }

    fn transact(
        &mut self,
        what: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        let path = &self.path;
        let failed = |error: rusqlite::Error| Error::sqlite(path, &error);
        let all = self.connection.transaction().map_err(failed)?;
        what(&all).map_err(failed)?;
        all.commit().map_err(failed)
    }

    /// The text of the site, what time it is, and the number of the next request.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn site(&self) -> Result<(String, u64, u64), Error> {
        let of = self.connection.query_row("SELECT text, clock_s, next_id FROM site", [], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let (text, clock_s, next_id) = self.done(of)?;
        Ok((text, clock_s as u64, next_id as u64))
    }

    /// Replaces the text of the site.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn set_site(&mut self, text: &str) -> Result<(), Error> {
        self.transact(|all| all.execute("UPDATE site SET text = ?1", [text]).map(drop))
    }

    /// Writes what an operation changed: all of it, or nothing.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn write(&mut self, changes: &Changes) -> Result<(), Error> {
        self.transact(|all| {
            let mut put = all.prepare_cached(
                "INSERT INTO request VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET is_open = ?2, body = ?3",
            )?;
            for row in &changes.rows {
                let is_open = row.state != State::Ended;
                put.execute(params![signed(row.id), is_open, text(row)])?;
            }
            for node in &changes.nodes_out {
                all.execute(
                    "INSERT OR REPLACE INTO node VALUES (?1, ?2)",
                    params![node.name, text(node)],
                )?;
            }
            for name in &changes.nodes_back {
                all.execute("DELETE FROM node WHERE name = ?1", [name])?;
            }
            let mut tell =
                all.prepare_cached("INSERT INTO event (request, body) VALUES (?1, ?2)")?;
            for event in &changes.events {
                tell.execute(params![event.request.map(signed), text(event)])?;
            }
            all.execute(
                "UPDATE site SET clock_s = ?1, next_id = ?2",
                [signed(changes.clock_s), signed(changes.next_id)],
            )
            .map(drop)
        })
    }

    /// Requests that have not ended, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn open_rows(&self) -> Result<Vec<Row>, Error> {
        self.read("SELECT body FROM request WHERE is_open ORDER BY id", [])
    }

    /// All requests that there ever were, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn rows(&self) -> Result<Vec<Row>, Error> {
        self.read("SELECT body FROM request ORDER BY id", [])
    }

    /// Returns requests with numbers above that: as many of them as are wanted, in the order of
    /// their numbers.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn rows_above(&self, id: u64, most: usize) -> Result<Vec<Row>, Error> {
        let query = "SELECT body FROM request WHERE id > ?1 ORDER BY id LIMIT ?2";
        self.read(query, [signed(id), signed(most as u64)])
    }

    /// Returns a request, whether it has ended or not.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn row(&self, id: u64) -> Result<Option<Row>, Error> {
        let body = self
            .connection
            .query_row("SELECT body FROM request WHERE id = ?1", [signed(id)], |row| {
                row.get::<_, String>(0)
            })
            .optional();
        self.done(body)?.map(|body| self.parse(&body)).transpose()
    }

    /// The nodes that are out of use.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn nodes_out(&self) -> Result<Vec<NodeRow>, Error> {
        self.read("SELECT body FROM node ORDER BY name", [])
    }

    /// Returns the events of a request, in their order.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn events_of(&self, id: u64) -> Result<Vec<Event>, Error> {
        let of = [signed(id)];
        self.read("SELECT body FROM event WHERE request = ?1 ORDER BY seq", of)
    }

    fn read<T: DeserializeOwned>(
        &self,
        query: &str,
        of: impl rusqlite::Params,
    ) -> Result<Vec<T>, Error> {
        let mut query = self.done(self.connection.prepare(query))?;
        let bodies = query.query_map(of, |row| row.get::<_, String>(0));
        let bodies = self.done(bodies)?;
        bodies.map(|body| self.parse(&self.done(body)?)).collect()
    }

    fn parse<T: DeserializeOwned>(&self, body: &str) -> Result<T, Error> {
        let damaged =
            |error: serde_json::Error| Error::Damaged(self.path.clone(), error.to_string());
        serde_json::from_str(body).map_err(damaged)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Address of a file for SQLite that does not change while it is open.
fn unchanging(path: &Path) -> PathBuf {
    let mut address = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        if b"?#%".contains(&byte) {
            address.extend(format!("%{byte:02x}").bytes());
        } else {
            address.push(byte);
        }
    }
    address.extend(b"?immutable=1");
    OsString::from_vec(address).into()
}

/// SQLite's numbers are signed; the same bits come back.
fn signed(number: u64) -> i64 {
    number as i64
}

fn text(of: &impl Serialize) -> String {
    // Structures of numbers and texts always become JSON.
    serde_json::to_string(of).unwrap_or_default()
}
