// SPDX-License-Identifier: GPL-2.0
//! The file: opening, reading, and one transaction for each operation.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{params, Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

use crate::ledger::error::Error;
use crate::ledger::files::{create, guard_index, is_own, open_lock, Copy};
use crate::ledger::owners::{accounts, attribute, Attributed};
use crate::ledger::page::{Page, Paged};
use crate::ledger::row::{text, ClosedRow, DefectRow, Event, NodeRow, Row, State, Total};

/// `PBSC`, by which a file of ours is known.
const APPLICATION: i64 = 0x5042_5343;
/// Version of the tables. Since version 2, owners have the numbers of their accounts.
const VERSION: i64 = 2;
/// Version whose owners have names only.
const WITH_NAMES_ONLY: i64 = 1;
/// Maximum time to wait for another process.
const WAIT: Duration = Duration::from_secs(60);
/// Interval at which a held lock is tried again.
pub(super) const POLL: Duration = Duration::from_millis(20);

const TABLES: &str = "
CREATE TABLE site (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL,
	clock_s INTEGER NOT NULL, next_id INTEGER NOT NULL) STRICT;
CREATE TABLE request (id INTEGER PRIMARY KEY, is_open INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE INDEX request_open ON request (id) WHERE is_open;
CREATE TABLE node (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, request INTEGER, body TEXT NOT NULL) STRICT;
CREATE INDEX event_request ON event (request) WHERE request IS NOT NULL;
";

/// Tables for what is forgotten, which ledgers of older versions get when they are written. The
/// ends of requests are in their order, and events of no request have an index of their own.
const FORGETTING: &str = "
CREATE TABLE IF NOT EXISTS total (kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
	PRIMARY KEY (kind, name)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS forgotten (one INTEGER PRIMARY KEY CHECK (one = 1),
	ended_s INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS request_ended ON request (json_extract(body, '$.end_s'), id)
	WHERE NOT is_open;
CREATE INDEX IF NOT EXISTS event_of_none ON event (seq) WHERE request IS NULL;
";
/// Tables for parts of nodes that are out of use, and for times in which nodes are closed. Ledgers
/// of older versions get them when they are written.
const DEFECTS: &str = "
CREATE TABLE IF NOT EXISTS defect (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS closed (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
";
/// Maximum number of events of an unfinished request, which its user may cause without end. The
/// oldest are forgotten.
const MOST_EVENTS: u64 = 1000;
/// Maximum number of events of no request.
const MOST_EVENTS_OF_NONE: u64 = 10_000;

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
    /// Nodes whose defective parts have changed.
    pub defects: Vec<DefectRow>,
    /// Nodes whose closed times have changed.
    pub closed: Vec<ClosedRow>,
    /// Events, in their order.
    pub events: Vec<Event>,
    /// Ended requests that are forgotten, with their events.
    pub forgotten: Vec<u64>,
    /// Latest end of these requests.
    pub forgotten_end_s: Option<u64>,
    /// Totals that have changed by that.
    pub totals: Vec<Total>,
    /// Current time of the clock.
    pub clock_s: u64,
    /// The number of the next request.
    pub next_id: u64,
}

impl Changes {
    /// Whether there is nothing but the clock and the next number.
    pub fn is_empty(&self) -> bool {
        let nodes = self.nodes_out.len() + self.nodes_back.len();
        let nodes = nodes + self.defects.len() + self.closed.len();
        self.rows.len() + nodes + self.events.len() + self.forgotten.len() == 0
    }
}

/// The file.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Connection,
    /// Locked for as long as the ledger is open to be written.
    claim: Option<File>,
    /// Number of requests in the file that have ended, as far as this process writes it.
    ended_count: u64,
    /// Time before which requests have ended that were forgotten.
    forgotten_before_s: Option<u64>,
}

impl Ledger {
    /// Makes a new one.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if something is there, and what the disk says.
    pub fn create(path: &Path, site: &str, clock_s: u64) -> Result<Self, Error> {
        create(path).map_err(|error| Error::io(path, &error))?;
        let mut this = Self::connect_to_write(path)?;
        this.transact(|all| {
            all.execute_batch(TABLES)?;
            all.execute_batch(FORGETTING)?;
            all.execute_batch(DEFECTS)?;
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
    /// the file, [`Error::Busy`] if another process writes to it for a minute.
    pub fn open(path: &Path, access: Access) -> Result<Self, Error> {
        let mut this = Self::open_any(path, access)?;
        if access == Access::Write && this.version()? != VERSION {
            // Owners without a number keep their names only.
            this.transact(|all| all.pragma_update(None, "user_version", VERSION))?;
        }
        Ok(this)
    }

    fn open_any(path: &Path, access: Access) -> Result<Self, Error> {
        match std::fs::metadata(path) {
            Ok(of) if of.is_file() => {}
            Ok(_) => return Err(Error::NotLedger(path.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing(path.into()));
            }
            Err(error) => return Err(Error::unread(path, &error)),
        }
        let mut this = match access {
            Access::Write => Self::connect_to_write(path)?,
            Access::Read => Self::connect_to_read(path)?,
        };
        let number =
            |name| this.done(this.connection.pragma_query_value(None, name, |row| row.get(0)));
        let (application, version): (i64, i64) =
            (number("application_id")?, number("user_version")?);
        if application != APPLICATION {
            return Err(Error::NotLedger(path.into()));
        }
        if version != VERSION && version != WITH_NAMES_ONLY {
            return Err(Error::Newer(path.into(), version, VERSION));
        }
        this.claim(access)?;
        this.find_forgotten(access)?;
        Ok(this)
    }

    /// Gives the owners in a ledger of an older version the numbers of the accounts that have their
    /// names now. The others keep their names only. This is done once, because a name that gets an
    /// account later may be another person's. `None`: it was done before, or a ledger of this
    /// version was opened for writing without it.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::open`], and [`Error::Unreadable`] if the accounts can't be read.
    pub fn attribute(path: &Path) -> Result<Option<Attributed>, Error> {
        // What keeps the file from being read is told when it is opened.
        if header_version(path).ok() != Some(WITH_NAMES_ONLY) {
            return Ok(None);
        }
        let accounts = accounts()?;
        let mut this = Self::open_any(path, Access::Write)?;
        if this.version()? != WITH_NAMES_ONLY {
            return Ok(None);
        }
        let mut attributed = Attributed::default();
        this.transact(|all| {
            attributed = attribute(all, &accounts)?;
            all.pragma_update(None, "user_version", VERSION)
        })?;
        Ok(Some(attributed))
    }

    fn version(&self) -> Result<i64, Error> {
        self.done(self.connection.pragma_query_value(None, "user_version", |row| row.get(0)))
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let failed = |error: rusqlite::Error| Error::sqlite(path, &error);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(WAIT).map_err(failed)?;
        Ok(Self {
            path: path.into(),
            connection,
            claim: None,
            ended_count: 0,
            forgotten_before_s: None,
        })
    }

    fn connect_to_write(path: &Path) -> Result<Self, Error> {
        guard_index(path).map_err(|error| Error::io(path, &error))?;
        Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Connects a reader. Its owner reads the ledger itself. Others read a copy, and so does an
    /// owner who may not make the files that SQLite needs beside the ledger.
    fn connect_to_read(path: &Path) -> Result<Self, Error> {
        if is_own(path) && guard_index(path).is_ok() {
            let this = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let failed = this.first_read().err();
            let cause = failed.as_ref().and_then(rusqlite::Error::sqlite_error_code);
            if !matches!(cause, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
                return Ok(this);
            }
        }
        let copy = Copy::of(path).map_err(|error| Error::unread(path, &error))?;
        let copy = copy.ok_or_else(|| Error::Busy(path.into()))?;
        let this = Self::connect(&copy.ledger(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let this = Self { path: path.into(), ..this };
        // The index of its log is in memory, and after the first read all of its files are open:
        // the directory is not needed any more.
        this.done(this.connection.pragma_update(None, "locking_mode", "EXCLUSIVE"))?;
        this.done(this.first_read())?;
        Ok(this)
    }

    fn first_read(&self) -> rusqlite::Result<i64> {
        self.connection.pragma_query_value(None, "schema_version", |row| row.get(0))
    }

    /// Keeps other writers away for as long as the file is open: what is known of it is in
    /// memory, and must not become old.
    fn claim(&mut self, access: Access) -> Result<(), Error> {
        if access == Access::Read {
            return Ok(());
        }
        let file = open_lock(&self.path).map_err(|error| Error::io(&self.path, &error))?;
        self.lock(&file)?;
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

    /// Waits until no other process writes, and keeps others away from then on.
    fn lock(&self, file: &File) -> Result<(), Error> {
        let begun = Instant::now();
        // SQLite's own locks are of another kind: who reads goes on reading.
        while let Err(error) = flock(file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK && error != Errno::INTR {
                return Err(self.failed(&error.into()));
            }
            if begun.elapsed() >= WAIT {
                return Err(Error::Busy(self.path.clone()));
            }
            sleep(POLL);
        }
        Ok(())
    }

    /// Lets another process write that waits for that, and waits until it has done so. Returns
    /// whether none has written: otherwise, what the caller knows of the ledger is old, and it must
    /// be opened again.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if another still writes after a minute, and errors of the disk. After an
    /// error, the ledger can't be written any more.
    pub(crate) fn let_others_write(&mut self) -> Result<bool, Error> {
        let Some(file) = self.claim.take() else {
            return Ok(true);
        };
        let before = self.data_version()?;
        flock(&file, FlockOperation::Unlock).map_err(|error| self.failed(&error.into()))?;
        // One that waits looks at intervals of POLL.
        sleep(2 * POLL);
        self.lock(&file)?;
        self.claim = Some(file);
        Ok(self.data_version()? == before)
    }

    /// A number that another process changes by writing.
    fn data_version(&self) -> Result<i64, Error> {
        self.done(self.connection.pragma_query_value(None, "data_version", |row| row.get(0)))
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
    /// The error that the disk reports.
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
    /// The error that the disk reports.
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
            for defect in &changes.defects {
                if defect.parts.is_empty() {
                    all.execute("DELETE FROM defect WHERE name = ?1", [&defect.name])?;
                } else {
                    all.execute(
                        "INSERT OR REPLACE INTO defect VALUES (?1, ?2)",
                        params![defect.name, text(defect)],
                    )?;
                }
            }
            for closed in &changes.closed {
                if closed.times.is_empty() {
                    all.execute("DELETE FROM closed WHERE name = ?1", [&closed.name])?;
                } else {
                    all.execute(
                        "INSERT OR REPLACE INTO closed VALUES (?1, ?2)",
                        params![closed.name, text(closed)],
                    )?;
                }
            }
            let mut tell =
                all.prepare_cached("INSERT INTO event (request, body) VALUES (?1, ?2)")?;
            for event in &changes.events {
                tell.execute(params![event.request.map(signed), text(event)])?;
            }
            forget_events(all, &changes.events)?;
            forget_requests(all, changes)?;
            all.execute(
                "UPDATE site SET clock_s = ?1, next_id = ?2",
                [signed(changes.clock_s), signed(changes.next_id)],
            )
            .map(drop)
        })?;
        let ended = changes.rows.iter().filter(|row| row.state == State::Ended).count() as u64;
        self.ended_count =
            (self.ended_count + ended).saturating_sub(changes.forgotten.len() as u64);
        self.forgotten_before_s = self.forgotten_before_s.max(changes.forgotten_end_s);
        Ok(())
    }

    /// Finds out how many requests have ended, and which of them were forgotten.
    fn find_forgotten(&mut self, access: Access) -> Result<(), Error> {
        if access == Access::Write {
            self.transact(|all| {
                all.execute_batch(FORGETTING)?;
                all.execute_batch(DEFECTS)
            })?;
            let count = "SELECT count(*) FROM request WHERE NOT is_open";
            self.ended_count = self.done(self.number(count))?.unwrap_or(0);
        }
        if self.has_forgotten()? {
            let before = "SELECT ended_s FROM forgotten";
            self.forgotten_before_s = self.done(self.number(before))?;
        }
        Ok(())
    }

    /// Whether the file has the tables of what is forgotten.
    fn has_forgotten(&self) -> Result<bool, Error> {
        let tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('total', 'forgotten')";
        Ok(self.done(self.number(tables))? == Some(2))
    }

    fn number(&self, query: &str) -> rusqlite::Result<Option<u64>> {
        let number = self.connection.prepare_cached(query)?.query_row([], |row| row.get(0));
        Ok(number.optional()?.flatten())
    }

    /// Returns the number of requests that have ended and are in the file.
    pub fn ended_count(&self) -> u64 {
        self.ended_count
    }

    /// Returns the time before which requests have ended that were forgotten.
    pub fn forgotten_before_s(&self) -> Option<u64> {
        self.forgotten_before_s
    }

    /// Returns the end of the request in the file that ended first.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn first_end_s(&self) -> Result<Option<u64>, Error> {
        self.done(self.number(FIRST_END))
    }

    /// The requests that ended first, in that order.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn first_ended(&self, most: usize) -> Result<Vec<Row>, Error> {
        self.read(FIRST_ENDED, [most as u64])
    }

    /// All totals of forgotten requests.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn totals(&self) -> Result<Vec<Total>, Error> {
        if !self.has_forgotten()? {
            return Ok(Vec::new());
        }
        let query = self.connection.prepare("SELECT kind, name, body FROM total");
        let mut query = self.done(query)?;
        let totals = query.query_map([], |row| {
            Ok(Total { kind: row.get(0)?, name: row.get(1)?, body: row.get(2)? })
        });
        let totals = self.done(totals)?.collect();
        self.done(totals)
    }

    /// The error for a file of which this can't be read.
    pub(crate) fn damaged(&self, what: &str) -> Error {
        Error::Damaged(self.path.clone(), what.into())
    }

    /// Requests that have not ended, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn open_rows(&self) -> Result<Vec<Row>, Error> {
        self.read("SELECT body FROM request WHERE is_open ORDER BY id", [])
    }

    /// All requests in the file, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn rows(&self) -> Result<Vec<Row>, Error> {
        self.read("SELECT body FROM request ORDER BY id", [])
    }

    /// Returns requests with numbers above that: as many of them as are wanted, in the order of
    /// their numbers.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn rows_above(&self, id: u64, page: Page) -> Result<Paged, Error> {
        let query = "SELECT body FROM request WHERE id > ?1 ORDER BY id";
        let mut query = self.done(self.connection.prepare(query))?;
        let bodies = query.query_map([signed(id)], |row| row.get::<_, String>(0));
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for body in self.done(bodies)? {
            if page.is_full(rows.len(), bytes) {
                return Ok(Paged { rows, is_last: false });
            }
            let body = self.done(body)?;
            bytes += body.len();
            rows.push(self.parse(&body)?);
        }
        Ok(Paged { rows, is_last: true })
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
    /// The error that the disk reports.
    pub fn nodes_out(&self) -> Result<Vec<NodeRow>, Error> {
        self.read("SELECT body FROM node ORDER BY name", [])
    }

    /// The nodes with parts that are out of use.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn defects(&self) -> Result<Vec<DefectRow>, Error> {
        self.read_if_there("defect")
    }

    /// The nodes that are closed in some times.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn closed(&self) -> Result<Vec<ClosedRow>, Error> {
        self.read_if_there("closed")
    }

    /// Rows of a table that ledgers of older versions lack.
    fn read_if_there<T: DeserializeOwned>(&self, table: &str) -> Result<Vec<T>, Error> {
        let is_there = format!("SELECT count(*) FROM sqlite_master WHERE name = '{table}'");
        if self.done(self.number(&is_there))? == Some(0) {
            return Ok(Vec::new());
        }
        self.read(&format!("SELECT body FROM {table} ORDER BY name"), [])
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

/// Version in the header of the file, where SQLite has it in the bytes from 60 on. It is looked at
/// before each command that writes, and another connection would copy or check the whole file. The
/// log may have a later version, and never an earlier one.
fn header_version(path: &Path) -> io::Result<i64> {
    let mut version = [0; 4];
    File::open(path)?.read_exact_at(&mut version, 60)?;
    Ok(i64::from(u32::from_be_bytes(version)))
}

/// Query for the end of the request that ended first.
const FIRST_END: &str = "SELECT json_extract(body, '$.end_s') FROM request WHERE NOT is_open \
     ORDER BY json_extract(body, '$.end_s'), id LIMIT 1";

/// Query for the requests that ended first.
const FIRST_ENDED: &str = "SELECT body FROM request WHERE NOT is_open \
     ORDER BY json_extract(body, '$.end_s'), id LIMIT ?1";

/// Forgets the oldest of too many events of a request, or of none.
fn forget_events(all: &Transaction<'_>, written: &[Event]) -> rusqlite::Result<()> {
    let requests: BTreeSet<Option<u64>> = written.iter().map(|event| event.request).collect();
    for request in requests {
        match request {
            Some(request) => all.prepare_cached(SURPLUS_EVENTS)?.execute([request, MOST_EVENTS])?,
            None => all.prepare_cached(SURPLUS_EVENTS_OF_NONE)?.execute([MOST_EVENTS_OF_NONE])?,
        };
    }
    Ok(())
}

const SURPLUS_EVENTS: &str = "DELETE FROM event WHERE seq IN \
     (SELECT seq FROM event WHERE request = ?1 ORDER BY seq DESC LIMIT -1 OFFSET ?2)";
const SURPLUS_EVENTS_OF_NONE: &str = "DELETE FROM event WHERE seq IN \
     (SELECT seq FROM event WHERE request IS NULL ORDER BY seq DESC LIMIT -1 OFFSET ?1)";

/// Forgets ended requests with their events, and keeps the totals.
fn forget_requests(all: &Transaction<'_>, changes: &Changes) -> rusqlite::Result<()> {
    for &id in &changes.forgotten {
        all.prepare_cached("DELETE FROM event WHERE request = ?1")?.execute([signed(id)])?;
        let row = "DELETE FROM request WHERE id = ?1 AND NOT is_open";
        all.prepare_cached(row)?.execute([signed(id)])?;
    }
    for total in &changes.totals {
        all.prepare_cached("INSERT OR REPLACE INTO total VALUES (?1, ?2, ?3)")?.execute([
            &total.kind,
            &total.name,
            &total.body,
        ])?;
    }
    if let Some(ended_s) = changes.forgotten_end_s {
        let latest = "INSERT INTO forgotten VALUES (1, ?1) \
                      ON CONFLICT DO UPDATE SET ended_s = max(ended_s, ?1)";
        all.execute(latest, [signed(ended_s)])?;
    }
    Ok(())
}

/// SQLite's numbers are signed; the same bits come back.
fn signed(number: u64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search takes as long in a large ledger as in a small one.
    #[test]
    fn requests_and_events_are_found_by_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        connection.execute_batch(FORGETTING).unwrap();
        for (query, index) in [
            (FIRST_ENDED, "request_ended"),
            (FIRST_END, "request_ended"),
            (SURPLUS_EVENTS, "event_request"),
            (SURPLUS_EVENTS_OF_NONE, "event_of_none"),
        ] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            let values = vec![1; plan.parameter_count()];
            let steps = plan
                .query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3))
                .unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.contains(index)), "{query}: {steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{query}: {steps:?}");
        }
    }
}
